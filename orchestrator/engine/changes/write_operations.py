"""The operations that change files: parameters to commands."""

from __future__ import annotations

import msgspec
from anyio import to_thread

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.change import PermissionCheck
from orchestrator.core.decisions.commands import Command, CreateDirectory, Delete, Edit, Move, Patch, Write
from orchestrator.core.decisions.multi_file import FilePart, PatchSeveral
from orchestrator.core.errors import FileExists, FileNotFound, ParameterInvalid, PathError
from orchestrator.core.ids import WorkspacePath, show
from orchestrator.core.text.forms.recognise import parse
from orchestrator.core.text.hunks import ParsedPatch
from orchestrator.core.text.patch import FilePatch
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changes.change_request import ChangeRequest
from orchestrator.engine.changes.edits import change_of
from orchestrator.engine.changes.pipeline import ChangePipeline
from orchestrator.engine.changes.renames import FollowedRename, RenameTracker
from orchestrator.engine.changes.trees import Trees
from orchestrator.engine.paths import Paths
from orchestrator.engine.services import OFF_LOOP_BYTES, Services


class Writer:
    """Reads paths and patches, then hands a command on."""

    def __init__(self, services: Services, changer: ChangePipeline, paths: Paths) -> None:
        self._s, self._changer, self._paths = services, changer, paths
        self._permissions, self._trees = changer.permissions, Trees(services)
        self._departures = RenameTracker(services)

    async def edit_file(self, caller: Caller, call: Call, params: p.EditFile) -> r.ChangeAnswer:
        path = self._paths.file(params.path)
        self._permissions.refuse_early(caller, PermissionCheck("write", path))
        rules = self._s.policy.edits
        changes = tuple(change_of(change, at, rules) for at, change in enumerate(params.changes, 1))
        followed = await self._departures.follow(caller, path, params.base)
        base = params.base
        if followed is not None:
            path, base = followed.path, followed.base
            self._permissions.refuse_early(caller, PermissionCheck("write", path))
        answer = await self._change(caller, call, Edit(path=path, changes=changes), params, base, params.supersedes)
        return answer if followed is None else _followed(answer, params.path, followed, "changes are")

    async def apply_patch(self, caller: Caller, call: Call, params: p.ApplyPatch) -> r.ChangeAnswer:
        parsed = await parsed_patch(params)
        answer = await self._patch(caller, call, params, parsed)
        return msgspec.structs.replace(answer, form=parsed.form)

    async def _patch(self, caller: Caller, call: Call, params: p.ApplyPatch, parsed: ParsedPatch) -> r.ChangeAnswer:
        patch = parsed.files[0]
        fenced = parsed.form == "whole_file"
        if (
            len(parsed.files) > 1
            or patch.renames
            or not (patch.hunks or fenced)
            or (patch.whole is not None and not fenced)
        ):
            return await self._patch_several(caller, call, params, parsed.files)
        raw = self._named(params.path, patch)
        if patch.whole is not None:
            return await self._write(caller, call, params, raw, patch.whole, "truncate", fenced=True)
        path = self._paths.file(raw)
        if patch.headed and patch.old_path is None:
            path = self._paths.new(path)
            self._permissions.refuse_early(caller, PermissionCheck("create", path))
            return await self._change(
                caller, call, Patch(path=path, patch=patch), params, params.base, params.supersedes
            )
        deleting = patch.headed and patch.new_path is None
        self._permissions.refuse_early(caller, PermissionCheck("delete" if deleting else "write", path))
        followed = await self._departures.follow(caller, path, params.base)
        base = params.base
        if followed is not None:
            path, base = followed.path, followed.base
            self._permissions.refuse_early(caller, PermissionCheck("delete" if deleting else "write", path))
        command = Patch(path=path, patch=patch, fuzzy=self._s.policy.edits.fuzzy)
        answer = await self._change(caller, call, command, params, base, params.supersedes)
        return answer if followed is None else _followed(answer, raw, followed, "patch is")

    def _named(self, path: str | None, patch: FilePatch) -> str:
        """The one file that a call and its patch name. Raises ParameterInvalid."""
        named = patch.new_path or patch.old_path
        if path is None and named is None:
            raise ParameterInvalid("path", "is required, since the patch names no file")
        if path is None or named is None:
            return path or named or ""
        may_create = patch.headed and (patch.old_path is None or patch.whole is not None)
        if self._paths.file(named, may_create=may_create) != self._paths.file(path, may_create=may_create):
            raise ParameterInvalid("path", f"is {path}, but the patch is of {named}")
        return path

    async def _patch_several(
        self, caller: Caller, call: Call, params: p.ApplyPatch, patches: tuple[FilePatch, ...]
    ) -> r.ChangeAnswer:
        if params.path is not None and (len(patches) > 1 or patches[0].renames):
            raise ParameterInvalid("path", "is for a patch of one file; this one names its files")
        if params.path is not None:
            self._named(params.path, patches[0])
        files = tuple(self._file_part(caller, patch) for patch in patches)
        command = PatchSeveral(files=files, fuzzy=self._s.policy.edits.fuzzy)
        self._permissions.refuse_early(caller, *command.required_permissions({}))
        seen = [
            item.path for item in files if item.patch.whole is not None and self._departures.seen(caller, item.path)
        ]
        for path in dict.fromkeys((*command.based, *seen)):
            await self._departures.refuse(caller, path, note=" None of the patch's files was changed.")
        return await self._change(caller, call, command, params, params.base, params.supersedes)

    def _file_part(self, caller: Caller, patch: FilePatch) -> FilePart:
        old, new = patch.old_path, patch.new_path
        if old is None and patch.whole is not None:
            path = self._paths.file(new or "", may_create=True)
            if self._stands(caller, path):
                return FilePart(path=path, target=path, patch=patch)
            path = self._paths.new(new or "")
            return FilePart(path=path, target=path, patch=patch, stands=False)
        source = self._paths.new(new or "") if old is None else self._paths.file(old)
        target = self._paths.new(new) if new is not None and patch.renames else source
        return FilePart(path=source, target=target, patch=patch)

    async def write_file(self, caller: Caller, call: Call, params: p.WriteFile) -> r.ChangeAnswer:
        return await self._write(caller, call, params, params.path, params.content, params.mode)

    async def _write(
        self,
        caller: Caller,
        call: Call,
        params: p.WriteFile | p.ApplyPatch,
        raw: str,
        content: str,
        mode: str,
        *,
        fenced: bool = False,
    ) -> r.ChangeAnswer:
        path = self._paths.file(raw, may_create=True)
        if not self._stands(caller, path):
            path = self._paths.new(raw)
            self._permissions.refuse_early(caller, PermissionCheck("create", path))
            await self._refuse_departed(caller, params, path, mode)
        else:
            self._permissions.refuse_early(caller, PermissionCheck("write", path))
        command = Write(path=path, content=content, mode=mode, fenced=fenced)
        return await self._change(caller, call, command, params, params.base, params.supersedes)

    def _stands(self, caller: Caller, path: WorkspacePath) -> bool:
        """Whether something is there. Where that can't be seen, what policy denies either way is just denied."""
        try:
            return self._s.state.registry.get(path) is not None or self._s.workspace.stat(path) is not None
        except PathError:
            self._permissions.refuse_any(caller, PermissionCheck("create", path), PermissionCheck("write", path))
            raise

    async def _refuse_departed(
        self, caller: Caller, params: p.WriteFile | p.ApplyPatch, path: WorkspacePath, mode: str
    ) -> None:
        """Refuse a new content for a file that was moved; not what makes a new one at the old path."""
        if mode == "create" or (params.base is None and not self._departures.seen(caller, path)):
            return
        note = f' Mode "create" makes a new {path}.' if isinstance(params, p.WriteFile) else ""
        await self._departures.refuse(caller, path, note=note)
        if mode == "append":
            raise FileNotFound(path, "it was deleted since this session saw it", hint=f"Read what is there.{note}")

    async def move_file(self, caller: Caller, call: Call, params: p.MoveFile) -> r.ChangeAnswer:
        source = self._paths.either(params.source)
        if self._is_directory(source):
            return await self._move_tree(caller, call, params, source)
        source = self._paths.file(params.source)
        destination = self._paths.new(params.destination)
        self._permissions.refuse_early(caller, PermissionCheck("move", source), PermissionCheck("create", destination))
        await self._departures.refuse(caller, source)
        if self._is_directory(destination):
            raise FileExists(destination, "it is a directory", hint="Name the file's new path in full.")
        return await self._change(caller, call, Move(files=((source, destination),)), params, params.base, None)

    async def _move_tree(self, caller: Caller, call: Call, params: p.MoveFile, source: WorkspacePath) -> r.ChangeAnswer:
        destination = self._paths.new_directory(params.destination)
        self._permissions.refuse_early(caller, PermissionCheck("move", source), PermissionCheck("create", destination))
        if f"{destination}/".startswith(f"{source}/"):
            raise ParameterInvalid("destination", f"is inside {source}, which is to be moved")
        if self._s.workspace.stat(destination) is not None and not self._is_empty(destination):
            raise FileExists(destination, "something is there, and a move never overwrites")
        files = await self._trees.files(source)
        pairs = tuple((path, WorkspacePath(f"{destination}{path[len(source) :]}")) for path in files)
        command = Move(files=pairs, directory=source)
        return await self._change(caller, call, command, params, params.base, None)

    async def delete_file(self, caller: Caller, call: Call, params: p.DeleteFile) -> r.ChangeAnswer:
        path = self._paths.either(params.path)
        if self._is_directory(path):
            self._permissions.refuse_early(caller, PermissionCheck("delete", path))
            command = Delete(files=await self._trees.files(path), directory=path)
            return await self._change(caller, call, command, params, params.base, None)
        path = self._paths.file(params.path)
        self._permissions.refuse_early(caller, PermissionCheck("delete", path))
        await self._departures.refuse(caller, path)
        return await self._change(caller, call, Delete(files=(path,)), params, params.base, None)

    async def create_directory(self, caller: Caller, call: Call, params: p.CreateDirectory) -> r.ChangeAnswer:
        path = self._paths.new_directory(params.path)
        if path == ".":
            raise FileExists(path, "it is the workspace's root")
        self._permissions.refuse_early(caller, PermissionCheck("create", path, directory=True))
        return await self._change(caller, call, CreateDirectory(path=path), params, None, None)

    async def _change(
        self,
        caller: Caller,
        call: Call,
        command: Command,
        params: p.ChangeParams,
        base: p.Version | None,
        supersedes: p.Version | None,
    ) -> r.ChangeAnswer:
        wanted = ChangeRequest(
            caller=caller,
            call=call,
            base=base,
            preview=params.preview,
            supersedes=supersedes,
            reason=params.reason,
        )
        return await self._changer.change(command, wanted)

    def _is_empty(self, path: WorkspacePath) -> bool:
        """Whether nothing but directories is in a directory."""
        return self._is_directory(path) and all(
            item.valid and self._is_empty(WorkspacePath(f"{path}/{item.name}"))
            for item in self._s.workspace.names(path)
        )

    def _is_directory(self, path: WorkspacePath) -> bool:
        stat = self._s.workspace.stat(path) if path != "." else None
        return stat is not None and stat.kind == "directory"


def _followed(answer: r.ChangeAnswer, raw: str, followed: FollowedRename, what: str) -> r.ChangeAnswer:
    """The answer to a change of a file that it names by the path it was moved from."""
    warning = f"{raw} was moved to {followed.path} at {show(followed.at)}; the {what} of that file now"
    return msgspec.structs.replace(answer, warnings=(warning, *answer.warnings))


async def parsed_patch(params: p.ApplyPatch) -> ParsedPatch:
    """The patch as it reads; a long one is read beside the event loop. Raises PatchInvalid, PatchAmbiguous."""
    if len(params.patch) <= OFF_LOOP_BYTES:
        return parse(params.patch, params.path)
    return await to_thread.run_sync(parse, params.patch, params.path)


async def read_as(params: object, answer: r.ChangeAnswer) -> r.ChangeAnswer:
    """The answer to a call that is repeated, with the form that its patch has."""
    if not isinstance(params, p.ApplyPatch):
        return answer
    return msgspec.structs.replace(answer, form=(await parsed_patch(params)).form)
