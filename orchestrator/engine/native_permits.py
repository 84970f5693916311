"""Before an agent's own tool acts: whether it may, and what it is about to leave on the disk."""

from __future__ import annotations

from typing import Literal

from orchestrator.api import native_edits as n
from orchestrator.api import parameters as p
from orchestrator.core.change import PermissionCheck
from orchestrator.core.content import digest_of
from orchestrator.core.errors import (
    ApprovalRequired,
    BaseRequired,
    ChangesOverlap,
    EditStale,
    FileExists,
    NothingToChange,
    NotPermitted,
    OrchestratorError,
    SearchAmbiguous,
    SearchNotFound,
    escaped,
)
from orchestrator.core.events.base import OUTSIDE
from orchestrator.core.ids import Digest, Seq, WorkspacePath, show
from orchestrator.core.projections.read_sets import SeenFile
from orchestrator.core.text.answer_space import AnswerSpace
from orchestrator.core.text.edits import splice
from orchestrator.core.text.encoding import NotEncodable, encode
from orchestrator.core.text.forms.hunks import FilePatch
from orchestrator.core.text.patch import locate_patch
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changes.change_answers import Answers
from orchestrator.engine.changes.diffs import Shows
from orchestrator.engine.changes.write_operations import Writer
from orchestrator.engine.external.native_claims import GONE, NativeClaim
from orchestrator.engine.external.observer import CurrentFile, Observer, regular
from orchestrator.engine.leases import Leases
from orchestrator.engine.native_calls import NativeCalls
from orchestrator.engine.native_commands import NativeCommands
from orchestrator.engine.services import Services

SHOWN = AnswerSpace(bytes=4_000, lines=60)
"""Of what changed since the agent read."""


class NativePermits:
    """The operation that hooks call before a tool."""

    def __init__(
        self,
        services: Services,
        observer: Observer,
        calls: NativeCalls,
        *,
        commands: NativeCommands,
        leases: Leases,
        writer: Writer,
        answers: Answers,
    ) -> None:
        self._s, self._observer, self._calls, self._leases = services, observer, calls, leases
        self._commands, self._writer, self._diffs = commands, writer, answers.diffs

    async def native_before(self, caller: Caller, call: Call, params: n.NativeBefore) -> n.NativePermit:
        await self._calls.hold(caller)
        if params.kind == "read":
            await self._permit_read(caller, call, params)
            return n.NativePermit()
        agent = self._s.state.identities.get(caller.agent)
        if agent is not None and agent.read_only:
            raise NotPermitted(f"{params.tool} is not for {caller.agent}, whose token is for reading")
        if params.kind == "command":
            return await self._commands.permit(caller, call, params)
        if params.kind == "patch":
            wanted = await self._permit_patch(caller, call, params)
        else:
            wanted = await self._permit_change(caller, call, params)
        if wanted is not None:
            await self._ask(caller, call, wanted)
        return n.NativePermit()

    # --- reads --------------------------------------------------------------------------

    async def _permit_read(self, caller: Caller, call: Call, params: n.NativeBefore) -> None:
        access = self._s.access.content(caller, call, self._s.paths.file(params.path, may_create=True))
        async with self._s.locks.shared(access.path):
            present = await self._observer.refresh_for_display(access)
        if present.stat is not None:
            regular(access.path, present.stat)
        group = self._calls.group(caller, call, params)
        self._calls.begin(caller, params, NativeClaim(group, access.path, frozenset((UNWRITTEN,)), _version(present)))

    # --- changes ------------------------------------------------------------------------

    async def _permit_change(
        self, caller: Caller, call: Call, params: n.NativeBefore
    ) -> p.WriteFile | p.ApplyPatch | None:
        """Raises what refuses it. What to ask a person about; None: policy lets it be."""
        path = self._s.paths.file(params.path, may_create=True)
        async with self._s.locks.alone((path,)):
            present = await self._present(path)
            action: Literal["write", "create"] = "write" if present.stat is not None else "create"
            checks = [PermissionCheck(action, path)]
            if params.kind == "edit":
                checks.append(PermissionCheck("read", path))
            asked = await self._s.permissions.asks(caller, checks)
            await self._leases.crossing(caller, (path,))
            seen = await self._check_seen(caller, present, whole=params.kind == "write")
            if params.exact:
                _check_quoted(params, present)
            texts = _outcomes(params, present)
            if not asked.asks:
                whole = seen is not None and (version := _version(present)) is not None and _saw_whole(seen, version)
                group, contents = self._calls.group(caller, call, params), frozenset(map(_digest, texts))
                self._calls.begin(caller, params, NativeClaim(group, path, contents, _version(present), whole))
                return None
        if texts:
            base = present.entry.digest if present.entry is not None else None
            return p.WriteFile(path=path, content=texts[0], mode="truncate" if base else "create", base=base)
        rule = asked.asks[0]
        raise ApprovalRequired(
            f"{params.tool} {escaped(path)} needs a person's yes: {rule.reason}",
            hint="What it would write is not known beforehand, so nobody can be asked: use the "
            "orchestrator's own tools for this file.",
            details={"rule": rule.rule, "path": path},
        )

    async def _permit_patch(
        self, caller: Caller, call: Call, params: n.NativeBefore
    ) -> p.WriteFile | p.ApplyPatch | None:
        """As a change, of several files. A patch quotes what it changes, so it is stale only where that is gone."""
        files = self._calls.patches(params)
        named = tuple(dict.fromkeys(path for source, target, _ in files for path in (source, target)))
        async with self._s.locks.alone(named):
            present = {path: await self._present(path) for path in named}
            checks = [check for each in files for check in _checks(*each, exists=present[each[0]].stat is not None)]
            asked = await self._s.permissions.asks(caller, checks)
            await self._leases.crossing(caller, named)
            contents = dict[WorkspacePath, frozenset[Digest]]()
            for source, target, patch in files:
                if source != target or patch.new_path is None:
                    contents[source] = frozenset((GONE,))
                if patch.new_path is not None:
                    contents[target] = await self._patched(caller, patch, present[source])
            if asked.asks:
                return p.ApplyPatch(patch=params.patch or "")
            group = self._calls.group(caller, call, params)
            for path, digests in contents.items():
                self._calls.begin(caller, params, NativeClaim(group, path, digests, _version(present[path])))
        return None

    async def _patched(self, caller: Caller, patch: FilePatch, present: CurrentFile) -> frozenset[Digest]:
        """The contents that a file may have afterwards; none: it is not known. Raises EditStale, FileExists."""
        if patch.old_path is None:
            if present.stat is not None:
                hint = "Change it with '*** Update File', or delete it first."
                raise FileExists(present.path, "the patch creates it, but it is there", hint=hint)
            return frozenset((_digest(patch.added),))
        entry = present.entry
        document = await self._s.contents.kept_text(entry.digest) if entry is not None else None
        if document is None:
            return frozenset()
        if not patch.hunks:
            return frozenset((entry.digest,)) if entry is not None and entry.digest is not None else frozenset()
        try:
            edits = locate_patch(patch, document, fuzzy=True, unread=True).edits
            return frozenset((digest_of(encode(splice(document, edits))),))
        except SearchNotFound:
            await self._check_seen(caller, present, whole=False)
            return frozenset((UNWRITTEN,))  # its client refuses it, too, and may not tell
        except (SearchAmbiguous, ChangesOverlap, NothingToChange, NotEncodable):
            pass  # the client's own rules decide
        return frozenset()

    async def _present(self, path: WorkspacePath) -> CurrentFile:
        present = await self._observer.refresh(path, content=True)
        if present.stat is not None:
            regular(path, present.stat)
        return present

    async def _ask(self, caller: Caller, call: Call, wanted: p.WriteFile | p.ApplyPatch) -> None:
        """Put the change to a person, as the daemon itself would make it. Raises ApprovalRequired."""
        if isinstance(wanted, p.WriteFile):
            answer = await self._writer.write_file(caller, call, wanted)
        else:
            answer = await self._writer.apply_patch(caller, call, wanted)
        if answer.status == "applied":
            raise ApprovalRequired(
                f"a person had said yes to this: the change is made, as {answer.version_id}",
                hint="Read the file, and go on.",
            )
        raise ApprovalRequired(
            f"{answer.message}. Approval pending as {answer.approval}",
            hint="Go on with other work. When a person says yes the daemon itself makes this change: read the file "
            "again then, and do not make it a second time.",
            details={"approval": answer.approval},
        )

    async def _check_seen(self, caller: Caller, present: CurrentFile, *, whole: bool) -> SeenFile | None:
        """What the session saw of the file. Raises EditStale, BaseRequired."""
        path, entry = present.path, present.entry
        if entry is None or entry.digest is None:
            return None
        session = self._s.state.sessions.get(caller.session)
        seen = session.seen.get(path) if session is not None else None
        known = seen.newest if seen is not None else None
        if known is not None and known != entry.version:
            row = await self._s.past.at(path, known)
            if row.digest != entry.digest:
                raise await self._stale(caller, path, known, row.digest, entry.digest)
        if known is None and whole:
            raise BaseRequired(
                f"{escaped(path)} is there, and no read of it in this session is on record",
                hint=f"Read {escaped(path)} with your own tool first; then write it.",
            )
        return seen

    async def _stale(
        self, caller: Caller, path: WorkspacePath, known: Seq, before: Digest | None, now: Digest
    ) -> OrchestratorError:
        rows = await self._s.journal.versions(path, limit=20)
        others = dict.fromkeys(row.agent or OUTSIDE for row in rows if row.seq > known)
        error = EditStale(
            f"{escaped(path)} was changed since you read it at {show(known)}, by {', '.join(map(escaped, others))}",
            details={"path": path, "read": show(known), "version_id": show(rows[0].seq)},
        )
        shows = Shows.readable(self._s, caller)
        old, new = await self._s.contents.kept_text(before) if before else None, await self._s.contents.kept_text(now)
        if old is not None and new is not None and shows(path):
            sides = await shows.text(path, before, old), await shows.text(path, now, new)
            diff = await self._diffs.between(path, *sides, room=SHOWN)
            error.shown = f"{diff.text or ''}{diff.cut}".strip() or None
        return error


UNWRITTEN = Digest("unwritten")
"""No content has this hash: a read changes nothing, nor does a patch of what is not there."""


def _checks(source: WorkspacePath, target: WorkspacePath, patch: FilePatch, *, exists: bool) -> list[PermissionCheck]:
    if patch.new_path is None:
        return [PermissionCheck("delete", source)]
    if patch.old_path is None:
        return [PermissionCheck("write" if exists else "create", source)]
    read = PermissionCheck("read", source)
    if source != target:
        return [read, PermissionCheck("move", source), PermissionCheck("create", target)]
    return [read, PermissionCheck("write", source)]


def _check_quoted(params: n.NativeBefore, present: CurrentFile) -> None:
    """Raises SearchNotFound where the tool, which quotes exactly, can't find what it replaces first."""
    text = _text(present)
    missing = next((item.old for item in params.changes[:1] if text is not None and item.old not in text), None)
    if missing and present.entry is not None:
        raise SearchNotFound(
            f"the text to replace is not in {escaped(present.path)} at {show(present.entry.version)}",
            hint="Read the file again, and quote it as it is now.",
        )


def _version(present: CurrentFile) -> Seq | None:
    return present.entry.version if present.entry is not None else None


def _saw_whole(seen: SeenFile, version: Seq) -> bool:
    coverage = seen.versions.get(version)
    return coverage is not None and coverage.whole


def _digest(text: str) -> Digest:
    return digest_of(text.encode("utf-8", "surrogatepass"))


def _text(present: CurrentFile) -> str | None:
    """With `\\n`, as tools quote it; None of what is no UTF-8."""
    if not isinstance(present.data, bytes):
        return None
    try:
        return present.data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


def _outcomes(params: n.NativeBefore, present: CurrentFile) -> tuple[str, ...]:
    """What the tool may leave there, with either line ending; nothing where it does not say that."""
    text = params.content
    if text is None and params.changes:
        text = _text(present) if present.stat is not None else ""
        for item in params.changes:
            if text is None or (item.old and item.old not in text):
                return ()
            text = text.replace(item.old, item.new, -1 if item.everywhere else 1) if item.old else item.new + text
    if text is None:
        return ()
    crlf = isinstance(present.data, bytes) and b"\r\n" in present.data
    plain = text.replace("\r\n", "\n")
    return tuple(dict.fromkeys((plain.replace("\n", "\r\n"), text) if crlf else (text, plain)))
