"""The operations that change files: parameters to commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
from anyio import to_thread

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.parameters import CHANGE_FORMS
from orchestrator.core.change import PermissionCheck
from orchestrator.core.decisions.commands import Command, CreateDirectory, Delete, Edit, Move, RemoveDirectory, Write
from orchestrator.core.decisions.patches import FilePart, Patch
from orchestrator.core.decisions.structure import Change
from orchestrator.core.errors import Denied, FileExists, FileNotFound, NothingToChange, ParameterInvalid, PathError
from orchestrator.core.ids import WorkspacePath, show
from orchestrator.core.policy.rules import Action, EditRules
from orchestrator.core.text.forms.hunks import FilePatch, ParsedPatch
from orchestrator.core.text.forms.recognise import parse
from orchestrator.core.text.locate import LineReplacement, Replacement
from orchestrator.core.text.locate_symbol import SymbolChange
from orchestrator.engine.caller import Call, Caller, ChangeRequest
from orchestrator.engine.changes.facts import RenameTracker
from orchestrator.engine.changes.pipeline import ChangePipeline
from orchestrator.engine.paths import Walker
from orchestrator.engine.services import OFF_LOOP_BYTES, Services

MOST_FILES = 5000
"""In one change of a directory; each is opened, verified and synced by itself."""


class Writer:
    """Reads paths and patches, and passes a command on."""

    def __init__(self, services: Services, pipeline: ChangePipeline, renames: RenameTracker) -> None:
        self._s, self._pipeline = services, pipeline
        self._permissions, self._renames = services.permissions, renames
        self._walker = Walker(services.workspace, services.ignore)

    async def edit_file(self, caller: Caller, call: Call, params: p.EditFile) -> r.ChangeAnswer:
        path = self._s.paths.file(params.path)
        rules = self._s.permissions.policy.edits
        changes = tuple(
            _change_of(change, at, rules, unescaped=call.unescaped) for at, change in enumerate(params.changes, 1)
        )
        request = ChangeRequest.of(caller, call, params)
        return await self._edit(request, "write", path, params.path, lambda now: Edit(path=now, changes=changes))

    async def apply_patch(self, caller: Caller, call: Call, params: p.ApplyPatch) -> r.ChangeAnswer:
        parsed, request, named = await _parsed(params), ChangeRequest.of(caller, call, params), params.path
        patch = parsed.files[0]
        fenced = parsed.form == "whole_file"
        content = patch.hunks or fenced
        created = patch.headed and patch.old_path is None and not fenced
        if len(parsed.files) > 1 or patch.renames or not content or created or (patch.whole is not None and not fenced):
            return await self._patch_several(request, named, parsed.files)
        raw = self._named(named, patch)
        if patch.whole is not None:
            return await self._write(request, raw, patch.whole, "truncate", fenced=True)
        action: Action = "delete" if patch.headed and patch.new_path is None else "write"
        fuzzy = self._s.permissions.policy.edits.fuzzy
        path = self._s.paths.file(raw)
        command = partial(Patch.of, patch=patch, fuzzy=fuzzy, unescaped=call.unescaped)
        return await self._edit(request, action, path, raw, command)

    async def _edit(
        self,
        request: ChangeRequest,
        action: Action,
        path: WorkspacePath,
        raw: str,
        command: Callable[[WorkspacePath], Command],
    ) -> r.ChangeAnswer:
        """Change a file; one that was moved is changed where it is now, and the answer says so."""
        self._permissions.refuse_early(request.caller, PermissionCheck(action, path))
        moved = await self._renames.follow(request.caller, path)
        if moved is None:
            return await self._pipeline.change(command(path), request)
        self._permissions.refuse_early(request.caller, PermissionCheck(action, moved.path))
        base = await self._renames.base_of(request, path, moved.path)
        answer = await self._pipeline.change(command(moved.path), msgspec.structs.replace(request, base=base))
        warning = f"{raw} was moved to {moved.path} at {show(moved.at)}; the change is of that file now"
        return msgspec.structs.replace(answer, warnings=(warning, *answer.warnings))

    def _named(self, path: str | None, patch: FilePatch) -> str:
        """The one file that a call and its patch name. Raises ParameterInvalid."""
        named = patch.new_path or patch.old_path
        if path is None and named is None:
            raise ParameterInvalid("path", "is required, since the patch names no file")
        if path is None or named is None:
            return path or named or ""
        may_create = patch.headed and (patch.old_path is None or patch.whole is not None)
        if self._s.paths.file(named, may_create=may_create) != self._s.paths.file(path, may_create=may_create):
            raise ParameterInvalid("path", f"is {path}, but the patch is of {named}")
        return path

    async def _patch_several(
        self, request: ChangeRequest, named: str | None, patches: tuple[FilePatch, ...]
    ) -> r.ChangeAnswer:
        if named is not None and (len(patches) > 1 or patches[0].renames):
            raise ParameterInvalid("path", "is for a patch of one file; this one names its files")
        if named is not None:
            self._named(named, patches[0])
        caller = request.caller
        files = tuple(self._file_part(caller, patch) for patch in patches)
        fuzzy = self._s.permissions.policy.edits.fuzzy
        command = Patch(files=files, fuzzy=fuzzy, unescaped=request.call.unescaped)
        self._permissions.refuse_early(caller, *command.required_permissions({}))
        for item in files:
            if item.patch.whole is not None and self._renames.seen(caller, item.path):
                await self._renames.refuse(caller, item.path)
        return await self._pipeline.change(command, request)

    def _file_part(self, caller: Caller, patch: FilePatch) -> FilePart:
        old, new = patch.old_path, patch.new_path
        if old is None and patch.whole is not None:
            path = self._s.paths.file(new or "", may_create=True)
            if self._exists(caller, path):
                return FilePart(path=path, target=path, patch=patch)
            path = self._s.paths.new(new or "")
            return FilePart(path=path, target=path, patch=patch, exists=False)
        source = self._s.paths.new(new or "") if old is None else self._s.paths.file(old)
        target = self._s.paths.new(new) if new is not None and patch.renames else source
        return FilePart(path=source, target=target, patch=patch)

    async def write_file(self, caller: Caller, call: Call, params: p.WriteFile) -> r.ChangeAnswer:
        return await self._write(ChangeRequest.of(caller, call, params), params.path, params.content, params.mode)

    async def _write(
        self, request: ChangeRequest, raw: str, content: str, mode: str, *, fenced: bool = False
    ) -> r.ChangeAnswer:
        path = self._s.paths.file(raw, may_create=True)
        if not self._exists(request.caller, path):
            path = self._s.paths.new(raw)
            self._permissions.refuse_early(request.caller, PermissionCheck("create", path))
            await self._refuse_departed(request, path, mode)
        else:
            self._permissions.refuse_early(request.caller, PermissionCheck("write", path))
        return await self._pipeline.change(Write(path=path, content=content, mode=mode, fenced=fenced), request)

    def _exists(self, caller: Caller, path: WorkspacePath) -> bool:
        """Whether something is there. Where that can't be seen, what policy denies either way is just denied."""
        try:
            return self._s.state.registry.get(path) is not None or self._s.workspace.stat(path) is not None
        except PathError:
            try:
                self._permissions.refuse_early(caller, PermissionCheck("write", path))
            except Denied:
                self._permissions.refuse_early(caller, PermissionCheck("create", path))
            raise

    async def _refuse_departed(self, request: ChangeRequest, path: WorkspacePath, mode: str) -> None:
        """Refuse a new content for a file that was moved; not what makes a new one at the old path."""
        if mode == "create" or (request.base is None and not self._renames.seen(request.caller, path)):
            return
        await self._renames.refuse(request.caller, path)
        if mode == "append":
            raise FileNotFound(path, "it was deleted since this session saw it", hint='Mode "create" makes a new one.')

    async def move_file(self, caller: Caller, call: Call, params: p.MoveFile) -> r.ChangeAnswer:
        source = self._s.paths.either(params.source)
        self._s.access.refuse_hidden(caller, source)
        tree = self._is_directory(source)
        if not tree:
            source = self._s.paths.file(params.source)
        destination = (self._s.paths.new_directory if tree else self._s.paths.new)(params.destination)
        self._permissions.refuse_early(caller, PermissionCheck("move", source), PermissionCheck("create", destination))
        command = await self._moved_tree(caller, source, destination) if tree else self._moved(source, destination)
        return await self._pipeline.change(command, ChangeRequest.of(caller, call, params))

    def _moved(self, source: WorkspacePath, destination: WorkspacePath) -> Move:
        if self._is_directory(destination):
            raise FileExists(destination, "it is a directory", hint="Name the file's new path in full.")
        return Move(files=((source, destination),))

    async def _moved_tree(self, caller: Caller, source: WorkspacePath, destination: WorkspacePath) -> Move:
        if f"{destination}/".startswith(f"{source}/"):
            raise ParameterInvalid("destination", f"is inside {source}, which is to be moved")
        if self._s.workspace.stat(destination) is not None and not self._is_empty(destination):
            raise FileExists(destination, "something is there, and a move never overwrites")
        files = await self._files_below(caller, source)
        pairs = tuple((path, WorkspacePath(f"{destination}{path[len(source) :]}")) for path in files)
        return Move(files=pairs, directory=source)

    async def delete_file(self, caller: Caller, call: Call, params: p.DeleteFile) -> r.ChangeAnswer:
        path = self._s.paths.either(params.path)
        self._s.access.refuse_hidden(caller, path)
        tree = self._is_directory(path)
        if not tree:
            path = self._s.paths.file(params.path)
        self._permissions.refuse_early(caller, PermissionCheck("delete", path))
        command = await self._deleted(caller, path, tree=tree)
        return await self._pipeline.change(command, ChangeRequest.of(caller, call, params))

    async def _deleted(self, caller: Caller, path: WorkspacePath, *, tree: bool) -> Command:
        if not tree:
            return Delete(files=(path,))
        if not await to_thread.run_sync(self._s.workspace.names, path):
            return RemoveDirectory(path=path)
        return Delete(files=await self._files_below(caller, path), directory=path)

    async def create_directory(self, caller: Caller, call: Call, params: p.CreateDirectory) -> r.ChangeAnswer:
        path = self._s.paths.new_directory(params.path)
        if path == ".":
            raise FileExists(path, "it is the workspace's root")
        self._permissions.refuse_early(caller, PermissionCheck("create", path, directory=True))
        return await self._pipeline.change(CreateDirectory(path=path), ChangeRequest.of(caller, call, params))

    # --- directories ------------------------------------------------------------------

    async def _files_below(self, caller: Caller, directory: WorkspacePath) -> tuple[WorkspacePath, ...]:
        """The files that are tracked or not ignored, in order; others stay where they are.

        Raises NothingToChange for an empty directory, ParameterInvalid beyond MOST_FILES, Denied for names not shown.
        """
        walked = await to_thread.run_sync(list, self._walker.walk(directory))
        found = {item.path for item in walked if item.stat.kind == "file" and item.valid}
        start = f"{directory}/"
        found |= {path for path in self._s.state.registry.paths() if path.startswith(start)}
        if not found:
            raise NothingToChange(
                f"{directory} holds no file that is tracked",
                hint="It holds empty directories, which delete_file removes one by one, or files that the ignore rules "
                "leave out.",
            )
        self._s.access.refuse_unlisted(caller, found, f"{directory} holds")
        if len(found) > MOST_FILES:
            raise ParameterInvalid(
                "path", f"{directory} holds {len(found)} files; one change takes {MOST_FILES}", hint="Go by its parts."
            )
        return tuple(sorted(found))

    def _is_empty(self, path: WorkspacePath) -> bool:
        """Whether nothing but directories is in a directory: such are left by a move that failed."""
        return self._is_directory(path) and all(
            item.valid and self._is_empty(WorkspacePath(f"{path}/{item.name}"))
            for item in self._s.workspace.names(path)
        )

    def _is_directory(self, path: WorkspacePath) -> bool:
        stat = self._s.workspace.stat(path) if path != "." else None
        return stat is not None and stat.kind == "directory"


FORMS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("search", "replace"), ("expected_count", "fuzzy")),
    (("start", "end", "expect", "replace"), ()),
    (("symbol", "content"), ()),
)
"""The members that each form of a change must have, and those that it may have."""


def _change_of(change: p.Replacement, at: int, rules: EditRules, *, unescaped: bool) -> Change:
    """The change, `at` counted from 1. Raises ParameterInvalid where it is of no form, or of two."""
    given = msgspec.to_builtins(change).keys()  # without those at their defaults
    required, optional = max(FORMS, key=lambda form: (len(given & {*form[0]}), form[0][0] in given))
    missing = [name for name in required if name not in given]
    if missing:
        hint = f"'' removes the passage. {CHANGE_FORMS}" if missing == ["replace"] else CHANGE_FORMS
        raise ParameterInvalid(missing[0], f"is required (change {at})", hint=hint)
    more = [name for name in given if name not in (*required, *optional)]
    if more:
        raise ParameterInvalid("changes", f"change {at} has {more[0]} besides {required[0]}", hint=CHANGE_FORMS)
    match change:
        case p.Replacement(symbol=str(symbol), content=str(content)):
            return SymbolChange(symbol, content)
        case p.Replacement(start=int(start), end=int(end), expect=str(expect), replace=str(replace)):
            return LineReplacement(start, end, expect, replace, unescaped)
        case p.Replacement(search=search, replace=replace, expected_count=count, fuzzy=fuzzy):
            return Replacement(search or "", replace or "", count, rules.fuzzy if fuzzy is None else fuzzy, unescaped)


async def _parsed(params: p.ApplyPatch) -> ParsedPatch:
    """The patch as it reads; a long one is read beside the event loop. Raises PatchInvalid, PatchAmbiguous."""
    if len(params.patch) <= OFF_LOOP_BYTES:
        return parse(params.patch, params.path)
    return await to_thread.run_sync(parse, params.patch, params.path)
