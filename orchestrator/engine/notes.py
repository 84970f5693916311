"""Facts appended to the journal by acts whose streams need no expected version, and single facts read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from orchestrator.core.content import LineRange, SeenLines
from orchestrator.core.errors import DiskFull, VersionUnknown, WritesStopped, escaped
from orchestrator.core.events.base import Event, ExternalChange, Origin, Recorded
from orchestrator.core.events.codec import tag_of
from orchestrator.core.events.conflicts import ApprovalDenied, ApprovalExpired, ApprovalGranted
from orchestrator.core.events.files import (
    ChangeAborted,
    ChangeApplied,
    ChangeDiverged,
    ChangeIntended,
    FileRead,
    HiddenSecret,
    MetadataRead,
)
from orchestrator.core.ids import AgentName, EscapedPath, Seq, WorkspacePath, show
from orchestrator.core.projections.pending import Approval
from orchestrator.core.projections.versions import VersionRow
from orchestrator.core.text.answer_space import estimate_tokens
from orchestrator.engine.caller import Call, Caller, HeldNote
from orchestrator.logs import logger
from orchestrator.ports.journal import ANY_VERSION, AppendBatch, EventFilter, Journal, NewContents, NewEvent

E = TypeVar("E", bound=Event)
End = TypeVar("End", ApprovalGranted, ApprovalDenied, ApprovalExpired)

_OUTCOMES = (tag_of(ChangeApplied), tag_of(ChangeAborted), tag_of(ChangeDiverged))


class Notes:
    """What callers did and were shown. While the journal can take nothing, reads are answered and counted here."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.unrecorded = 0
        """Reads and refusals that were answered while the journal could not take them."""
        self._log = logger("engine")

    async def append(self, origin: Origin, *events: tuple[str, Event], blobs: NewContents = ()) -> tuple[Recorded, ...]:
        """Append facts to streams whose version does not matter to them."""
        return await self._journal.append(
            AppendBatch(tuple(NewEvent(stream, event, ANY_VERSION) for stream, event in events), origin, blobs)
        )

    async def note(self, origin: Origin, *events: tuple[str, Event], blobs: NewContents = ()) -> bool:
        """Append what an answer does not depend on. False: the journal can take nothing now; reads go on without it."""
        try:
            await self.append(origin, *events, blobs=blobs)
        except (DiskFull, WritesStopped) as error:
            if not self.unrecorded:
                self._log.error("reads are answered and not noted", error=error.message, hint=error.hint)
            self.unrecorded += 1
            return False
        return True

    async def note_shown(self, caller: Caller, call: Call | None, *events: Event) -> None:
        """As `note`, in the stream of the caller's session: what an answer showed."""
        if call is not None and call.held is not None:
            call.held.extend(HeldNote(caller.origin(call), event) for event in events)
            return
        await self.note(caller.origin(call), *((f"session:{caller.session}", event) for event in events))

    async def note_read(self, caller: Caller, call: Call, event: FileRead) -> None:
        """Note lines that were shown; raises as `append` where a person let them be shown, which must be on record."""
        if event.approval is None or call.held is not None:
            await self.note_shown(caller, call, event)
        else:
            await self.append(caller.origin(call), (f"session:{caller.session}", event))

    async def note_lines(
        self,
        caller: Caller,
        call: Call,
        seen: SeenLines,
        text: str,
        *,
        approval: Seq | None,
        hidden: Iterable[HiddenSecret] = (),
        known_from: Seq | None = None,
        from_end: LineRange | None = None,
    ) -> None:
        """As `note_read`, of lines that a text shows; those of no version are noted as nothing but a look."""
        if not seen.version:
            await self.note_metadata(caller, call, seen.path)
            return
        event = FileRead(
            operation=call.operation.name,
            seen=seen,
            bytes=len(text),
            tokens=estimate_tokens(text),
            approval=approval,
            hidden=tuple(hidden),
            known_from=known_from,
            from_end=from_end,
        )
        await self.note_read(caller, call, event)

    async def release(self, held: Sequence[HeldNote]) -> None:
        """Note what was held, as the answer that is made of it goes out; raises as `note_read`."""
        for origin, event in held:
            required = isinstance(event, FileRead) and event.approval is not None
            await (self.append if required else self.note)(origin, (f"session:{origin.session}", event))

    async def note_metadata(self, caller: Caller, call: Call, path: WorkspacePath) -> None:
        """Note that facts about a path were shown, and none of its lines."""
        await self.note_shown(
            caller, call, MetadataRead(operation=call.operation.name, path=EscapedPath(escaped(path)))
        )

    async def event(self, seq: Seq | None, kind: type[E]) -> E | None:
        """An event of this type, by its number; None if it is another, or there is none."""
        recorded = await self._journal.event(seq) if seq is not None else None
        return recorded.event if recorded is not None and isinstance(recorded.event, kind) else None

    async def lease_holder(self, row: VersionRow) -> AgentName | None:
        """Who alone held a lease on a file while somebody unknown changed it."""
        unknown = row.kind == "external" and row.agent is None
        external = await self.event(row.seq, ExternalChange) if unknown else None
        return external.lease_holder if external is not None else None

    async def first(
        self, kind: type[E], wanted: Callable[[E], bool], *, after: Seq, stream: str | None = None
    ) -> E | None:
        """The first event of this type after a position that is `wanted`."""
        found = EventFilter(tags=(tag_of(kind),), stream=stream, after=after)
        async for recorded in self._journal.events(found, batch=20):
            if isinstance(recorded.event, kind) and wanted(recorded.event):
                return recorded.event
        return None

    async def end_of(self, approval: Approval, kind: type[End]) -> End | None:
        """The event of this type that ended a request for an approval."""
        return await self.first(
            kind, lambda event: event.approval == approval.seq, after=approval.seq, stream=approval.stream
        )

    async def outcome(self, recorded: Recorded) -> Recorded | None:
        """The event that closed a change, given any event of it; None while it is open.

        Raises VersionUnknown for an event of no change.
        """
        event = recorded.event
        if isinstance(event, ChangeApplied | ChangeAborted | ChangeDiverged):
            return recorded
        if not isinstance(event, ChangeIntended):
            raise VersionUnknown(f"{show(recorded.seq)} is no change, approval or conflict")
        wanted = EventFilter(tags=_OUTCOMES, stream=recorded.stream, after=recorded.seq)
        async for later in self._journal.events(wanted, batch=20):
            closed = later.event
            if isinstance(closed, ChangeApplied | ChangeAborted | ChangeDiverged) and closed.change == recorded.seq:
                return later
        return None
