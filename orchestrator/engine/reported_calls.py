"""Calls of an agent's own tools, as the program that launched it reports them.

A report is the agent's claim. A change is credited to the agent only where the disk has exactly what the agent said
that it would write, move or delete, and nobody noted it before; all else is an external change. What a command that
was asked about changes is the agent's, as with hooks, as long as no other session's command runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from orchestrator.api.reported_calls import CallKind, ReportedEdit, ReportToolCall, ToolCallNote
from orchestrator.core.change import PathChange, PermissionCheck, Provenance
from orchestrator.core.content import digest_of
from orchestrator.core.errors import PathError
from orchestrator.core.events.base import Origin
from orchestrator.core.events.conflicts import ApprovalExpired, ApprovalRequested
from orchestrator.core.ids import Digest, WorkspacePath, show
from orchestrator.core.paths import ROOT
from orchestrator.core.policy.rules import Action
from orchestrator.core.projections.file_rows import FileEntry
from orchestrator.core.projections.pending import Approval
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changes.pipeline import rules
from orchestrator.engine.external.batches import ExternalBatch
from orchestrator.engine.external.native_claims import GONE, Key, NativeClaim
from orchestrator.engine.external.observer import CurrentFile, Observer
from orchestrator.engine.external.watch import Watching
from orchestrator.engine.native_records import NativeRecords
from orchestrator.engine.services import Services

MOST_CALLS = 1_000
"""That are under way; the oldest is given up."""

_ACTIONS: dict[CallKind, Action] = {
    "read": "read",
    "search": "read",
    "edit": "write",
    "delete": "delete",
    "move": "move",
}


class _Claimed(msgspec.Struct):
    """A call that changes files."""

    group: ExternalBatch
    claims: dict[WorkspacePath | None, NativeClaim] = msgspec.field(default_factory=dict)  # None: of a command
    edits: dict[WorkspacePath, list[ReportedEdit]] = msgspec.field(default_factory=dict)


class ReportedCalls:
    """The operation that a run calls, and what goes on between its calls."""

    def __init__(self, services: Services, observer: Observer, watching: Watching, records: NativeRecords) -> None:
        self._s, self._observer, self._watching, self._records = services, observer, watching, records
        self._open: dict[Key, _Claimed] = {}

    async def report_tool_call(self, caller: Caller, call: Call, params: ReportToolCall) -> ToolCallNote:
        match params.state:
            case "asks":
                return await self._ask(caller, call, params)
            case "withdraws":
                await self._withdraw(caller, call, params)
            case "begins":
                await self._claim(caller, call, params)
            case "ends":
                await self._claim(caller, call, params)
                return await self._end(caller, call, params)
        return ToolCallNote()

    # --- asking a person -----------------------------------------------------------------

    async def _ask(self, caller: Caller, call: Call, params: ReportToolCall) -> ToolCallNote:
        """Put it into the queue, once. Raises Denied."""
        known = self._request(caller, params)
        if known is not None:
            return ToolCallNote(approval=show(known.seq))
        edits = _by_path(self._paths(params.edits), params.edits)
        named = dict.fromkeys((*edits, *(self._s.paths.file(path, may_create=True) for path in params.paths)))
        checks = [check for path in named if (check := self._check(params.kind, path, edits)) is not None]
        asked = await self._s.permissions.asks(caller, checks)
        changes, blobs = list[PathChange](), dict[Digest, bytes]()
        for path in named:
            async with self._s.locks.alone((path,)):
                present = await self._present(path)
            found = outcomes(_data(present), edits.get(path, ())) if present is not None else ()
            before = present.entry.digest if found and present is not None and present.entry is not None else None
            after = digest_of(found[0]) if found else None
            blobs |= {after: found[0]} if after is not None else {}
            changes.append(PathChange(path, before, after))
        request = ApprovalRequested(
            provenance=Provenance(operation=call.operation.name, reason=params.reason),
            paths=tuple(changes) or (PathChange(ROOT, None, None),),
            rule=rules(asked.asks) or f"{params.kind}: {params.client} asks before it uses a tool of its own",
            permissions=tuple(checks),
            expires_at=self._s.clock.now_ms() + self._s.permissions.policy.limits.approval_ttl_s * 1000,
            tool_call=params.call,
        )
        stream = f"approval:{request.paths[0].path}"
        origin = _origin(caller, call, params)
        recorded = await self._s.notes.append(origin, (stream, request), blobs=tuple(blobs.items()))
        return ToolCallNote(approval=show(recorded[0].seq))

    async def _withdraw(self, caller: Caller, call: Call, params: ReportToolCall) -> None:
        known = self._request(caller, params)
        if known is None:
            return
        async with self._s.locks.alone(item.path for item in known.request.paths):
            if self._request(caller, params) is not None:  # nobody has answered it meanwhile
                event = ApprovalExpired(approval=known.seq, cause="withdrawn", message="its agent asks no more")
                await self._s.notes.append(_origin(caller, call, params), (known.stream, event))

    def _check(
        self, kind: CallKind, path: WorkspacePath, edits: dict[WorkspacePath, list[ReportedEdit]]
    ) -> PermissionCheck | None:
        action = "write" if path in edits else _ACTIONS.get(kind)
        if action == "write" and self._s.workspace.stat(path) is None:
            action = "create"
        return PermissionCheck(action, path) if action is not None else None

    def _request(self, caller: Caller, params: ReportToolCall) -> Approval | None:
        """The one that waits for this call."""
        return next(
            (
                item
                for item in self._s.state.pending.waiting()
                if (item.agent, item.session, item.request.tool_call) == (caller.agent, caller.session, params.call)
            ),
            None,
        )

    # --- what it changes -----------------------------------------------------------------

    async def _claim(self, caller: Caller, call: Call, params: ReportToolCall) -> None:
        """From here on exactly what it says that it writes is its own."""
        if not params.edits and params.kind not in ("delete", "move", "execute"):
            return
        key = (caller.session, params.call)
        claimed = self._open.get(key)
        if claimed is None:
            while len(self._open) >= MOST_CALLS:
                del self._open[next(iter(self._open))]
            tool = f"{params.client} {params.tool}"
            claimed = self._open[key] = _Claimed(ExternalBatch(self._s, "acp", _origin(caller, call, params), tool))
        if params.kind == "execute" and params.state == "begins":
            self._add(key, claimed, NativeClaim(claimed.group, None))
        if params.kind in ("delete", "move"):
            self._claim_gone(key, claimed, [self._s.paths.file(path, may_create=True) for path in params.paths])
        for path, edits in _by_path(self._paths(params.edits), params.edits).items():
            if path in claimed.group.changed:
                continue
            claimed.edits[path] = edits
            before = await self._begin_on_known(key, claimed, path)  # before a look: it may be written already
            async with self._s.locks.alone((path,)):
                present = await self._present(path)
            if present is None or path in claimed.group.changed:
                continue
            if _data(present) != before:  # somebody else has changed it since
                self._begin(key, claimed, path, _data(present), present.entry)

    async def _begin_on_known(self, key: Key, claimed: _Claimed, path: WorkspacePath) -> bytes | None:
        """As it would be made of what the journal knows to be there; that content."""
        entry = self._s.state.registry.get(path)
        before = await self._s.contents.get(entry.digest) if entry is not None and entry.digest else None
        if entry is None or before is not None:
            self._begin(key, claimed, path, before, entry)
        return before

    def _begin(
        self, key: Key, claimed: _Claimed, path: WorkspacePath, before: bytes | None, entry: FileEntry | None
    ) -> None:
        left = outcomes(before, claimed.edits[path])
        contents = frozenset(map(digest_of, left)) | ({GONE} if before and b"" in left else frozenset())
        version, known = entry.version if entry is not None else None, claimed.claims.get(path)
        if known is not None and known.version == version:
            contents |= known.contents
        if contents:
            self._add(key, claimed, NativeClaim(claimed.group, path, contents, version))

    def _claim_gone(self, key: Key, claimed: _Claimed, paths: Sequence[WorkspacePath]) -> None:
        """Those that are there will be gone; where one is not, it is where the content of the only other one goes."""
        known = {path: entry for path in paths if (entry := self._s.state.registry.get(path)) is not None}
        for path, entry in known.items():
            self._add(key, claimed, NativeClaim(claimed.group, path, frozenset((GONE,)), entry.version))
        moved = next(iter(known.values())).digest if len(known) == 1 else None
        for path in paths:
            if path not in known and moved is not None:
                self._add(key, claimed, NativeClaim(claimed.group, path, frozenset((moved,))))

    def _add(self, key: Key, claimed: _Claimed, claim: NativeClaim) -> None:
        claimed.claims[claim.path] = claim
        self._observer.claims.begin((key[0], f"{key[1]}\0{claim.path or ''}"), claim)

    async def run(self) -> None:
        """While the daemon serves: what others change meanwhile, an edit is made of as well."""
        while True:
            moved = self._s.state_changes.next()
            await self._s.background.log_failures(self._renew)
            await moved.wait()

    async def _renew(self) -> None:
        for key, claimed in tuple(self._open.items()):
            for path in claimed.edits.keys() - claimed.group.changed.keys():
                claim, entry = claimed.claims.get(path), self._s.state.registry.get(path)
                if entry is not None and (claim is None or claim.version != entry.version):
                    await self._begin_on_known(key, claimed, path)

    async def _end(self, caller: Caller, call: Call, params: ReportToolCall) -> ToolCallNote:
        """What the disk has by now is recorded; nobody need be asked any more."""
        await self._withdraw(caller, call, params)
        claimed = self._open.pop((caller.session, params.call), None)
        if claimed is None:
            return ToolCallNote()
        try:
            for path, claim in claimed.claims.items():
                if path is None:
                    await self._watching.settle()
                    continue
                async with self._s.locks.alone((path,)):
                    present = await self._present(path)
                if present is not None:
                    await self._records.note_written(caller, call, claim, present)
        finally:
            for path in claimed.claims:
                self._observer.claims.end((caller.session, f"{params.call}\0{path or ''}"))
        group = claimed.group
        await group.close()
        changes, more = self._records.listed(caller, group)
        number = show(group.seq) if group.seq is not None else None
        return ToolCallNote(group=number, changes=changes, more_changes=more)

    # --- small things ----------------------------------------------------------------------

    def _paths(self, edits: Sequence[ReportedEdit]) -> list[WorkspacePath]:
        return [self._s.paths.file(edit.path, may_create=True) for edit in edits]

    async def _present(self, path: WorkspacePath) -> CurrentFile | None:
        """None of what can't be looked at: a link, a file that is too large."""
        try:
            return await self._observer.refresh(path, content=True)
        except PathError:
            return None


def _origin(caller: Caller, call: Call, params: ReportToolCall) -> Origin:
    """With the agent's own id of the call."""
    return msgspec.structs.replace(caller.aside(call), client_call_id=params.call)


def _by_path(paths: Sequence[WorkspacePath], edits: Sequence[ReportedEdit]) -> dict[WorkspacePath, list[ReportedEdit]]:
    found = dict[WorkspacePath, list[ReportedEdit]]()
    for path, edit in zip(paths, edits, strict=True):
        found.setdefault(path, []).append(edit)
    return found


def _data(present: CurrentFile | None) -> bytes | None:
    return present.data if present is not None and isinstance(present.data, bytes) else None


def outcomes(before: bytes | None, edits: Sequence[ReportedEdit]) -> tuple[bytes, ...]:
    """What a file may hold after these, with either line ending; nothing where that can't be told.

    `before` None: there is no file. A passage that is there more than once may be replaced once, or everywhere.
    """
    try:
        text = (before or b"").decode()
    except UnicodeDecodeError:
        return ()
    plain, found = text.replace("\r\n", "\n"), dict[str, None]()
    for times in (1, -1):
        after = plain
        for edit in edits:
            old, new = (part.replace("\r\n", "\n") if part is not None else None for part in (edit.old, edit.new))
            if old is None or old == after:
                after = new or ""
            elif old and old in after:
                after = after.replace(old, new or "", times)
            else:
                return ()
        found |= dict.fromkeys((after.replace("\n", "\r\n"), after) if "\r\n" in text else (after,))
    return tuple(each.encode("utf-8", "surrogatepass") for each in found if before is None or each != text)
