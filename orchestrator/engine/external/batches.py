"""External changes of one burst: one act, which can be undone as one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import msgspec

from orchestrator.core.errors import RevertImpossible
from orchestrator.core.events.base import ExternalChange, Origin, Recorded
from orchestrator.core.events.codec import tag_of, tags_with
from orchestrator.core.events.files import ExternalBatchClosed, ExternalBatchOpened, ExternalTrigger
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.engine.services import Services
from orchestrator.ports.journal import AppendBatch, EventFilter, Journal, NewContents, NewEvent

STREAM = "external"

_TAGS = (*tags_with("external"), tag_of(ExternalBatchOpened), tag_of(ExternalBatchClosed))


class ExternalBatch:
    """The changes of one burst: one act. It is opened by the second of them, so a single change is no group.

    With an `origin` it is the act of a command, or of an agent's own `tool`: the changes are its agent's, and one
    alone is a group, too.
    """

    def __init__(
        self, services: Services, trigger: ExternalTrigger, origin: Origin | None = None, tool: str = ""
    ) -> None:
        self._journal, self._notes, self._trigger = services.journal, services.notes, trigger
        self._tool = tool
        self._origin, self.owned = origin or Origin(), origin is not None
        self._least = 1 if self.owned else 2
        self.came: set[WorkspacePath] = set()
        """The directories that other programs made, or moved to where they are, in this burst."""
        self.changed: dict[WorkspacePath, Seq] = {}
        """The last change of each path, where they are a command's."""
        self.seq: Seq | None = None
        self._changes = 0
        self._also: list[Seq] = []
        self._closed = False
        self._turn = anyio.Lock()

    async def append(self, events: tuple[NewEvent, ...], blobs: NewContents, *, external: int) -> None:
        """Append events, so many of them external changes; one call at a time, so none comes after the close."""
        async with self._turn:
            joins = external > 0 and not self._closed
            if joins and self._changes + external >= self._least:
                await self._open()
            origin = msgspec.structs.replace(self._origin, cause=self.seq) if joins else Origin()
            recorded = await self._journal.append(AppendBatch(events, origin, blobs))
            if joins and self.seq is None:
                self._also.append(recorded[0].seq)
            self._changes += external if joins else 0
            for one in recorded if self.owned and joins else ():
                if isinstance(one.event, ExternalChange):
                    self.changed[one.event.path] = one.seq

    @property
    def several(self) -> bool:
        """Whether it is a group, and not a change by itself."""
        return self._changes > 1

    def met_before(self, seq: Seq) -> None:
        """This change, too, is of the group: a caller met it before its hint. Of a command's it was before that."""
        if not self.owned:
            self._also.append(seq)
            self._changes += 1

    async def _open(self) -> None:
        if self.seq is None:
            event = ExternalBatchOpened(trigger=self._trigger, tool=self._tool)
            opened = await self._notes.append(self._origin, (STREAM, event))
            self.seq = opened[0].seq

    async def close(self) -> None:
        """The group is whole. One that a daemon's end left open is whole too: what follows is another act."""
        async with self._turn:
            self._closed = True
            if self._changes >= self._least:
                await self._open()
            if self.seq is not None:
                closed = ExternalBatchClosed(group=self.seq, changes=self._changes, also=tuple(self._also))
                origin = msgspec.structs.replace(self._origin, cause=self.seq)
                await self._notes.append(origin, (STREAM, closed))


async def members(journal: Journal, seq: Seq) -> AsyncIterator[Recorded]:
    """The external changes of a group. Raises RevertImpossible if the event opened none.

    Groups of one author do not overlap: one that was never closed ends where the next begins.
    """
    opened = await journal.event(seq)
    if opened is None or not isinstance(opened.event, ExternalBatchOpened):
        raise RevertImpossible(
            f"{show(seq)} opened no group of external changes",
            hint="journal_query kind external_batch_opened lists them.",
        )
    async for recorded in journal.events(EventFilter(tags=_TAGS, after=seq)):
        match recorded.event:
            case ExternalBatchOpened() if recorded.agent == opened.agent:
                return
            case ExternalBatchClosed(group=group, also=also) if group == seq:
                for number in also:
                    met = await journal.event(number)
                    if met is not None:
                        yield met
                return
            case _ if recorded.origin.cause == seq:
                yield recorded
            case _:
                continue
