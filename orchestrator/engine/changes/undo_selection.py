"""Finds in the journal which changes an undo is about, and the histories of the files that they touched."""

from __future__ import annotations

from collections.abc import Collection

import anyio.lowlevel
from anyio import to_thread

from orchestrator.core.decisions.lineage import (
    Made,
    UndoFilter,
    UndoSelection,
    change_of,
    in_effect,
    made_by,
    selection,
)
from orchestrator.core.errors import Aborted, RevertImpossible, VersionUnknown
from orchestrator.core.events.base import ExternalChange, Recorded
from orchestrator.core.events.codec import tag_of, tags_with
from orchestrator.core.events.files import (
    ChangeAborted,
    ChangeApplied,
    ChangeDiverged,
    ChangeIntended,
    ExternalBatchClosed,
    ExternalBatchOpened,
    ExternalFileCreated,
)
from orchestrator.core.globs import Globs
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.projections.versions import VersionRow
from orchestrator.engine.external.batches import members
from orchestrator.engine.notes import Notes
from orchestrator.ports.journal import EventFilter, Journal

OUTSIDE = "outside"
"""As an agent's name: external changes."""

SLICE = 200
"""Events that are read before other callers have their turn: some 2 ms."""

GLOB_SLICE = 20
"""The same where their paths are matched with globs."""

EXTERNAL_TAGS = tags_with("external")


class UndoSelector:
    """Reads the journal for undos."""

    def __init__(self, journal: Journal, notes: Notes) -> None:
        self._journal, self._notes = journal, notes

    async def one(self, number: Seq) -> UndoSelection:
        """The change that an event belongs to, or the group of outside changes that it opened or closed.

        Raises VersionUnknown, RevertImpossible, Aborted.
        """
        recorded = await self._journal.event(number)
        if recorded is None:
            raise VersionUnknown(f"the journal has no event {show(number)}", hint="file_history lists changes.")
        event = recorded.event
        if isinstance(event, ExternalBatchOpened | ExternalBatchClosed):
            group = event.group if isinstance(event, ExternalBatchClosed) else recorded.seq
            return await self._whole([item async for item in members(self._journal, group)])
        if isinstance(event, ExternalChange):
            return await self._whole([recorded])
        if not isinstance(event, ChangeIntended | ChangeApplied | ChangeAborted | ChangeDiverged):
            raise RevertImpossible(
                f"{show(recorded.seq)} changed no file, so there is nothing to revert",
                hint="Name the version_id or change of an answer or of file_history.",
            )
        outcome = await self._notes.outcome(recorded)
        if outcome is None or not isinstance(outcome.event, ChangeApplied):
            raise Aborted(f"{show(recorded.seq)} never took effect", hint="There is nothing to revert.")
        if not made_by(outcome):
            raise RevertImpossible(
                f"{show(recorded.seq)} only made a directory, which holds no content to bring back",
                hint="A person can remove it with rmdir; it does no harm.",
            )
        return await self._whole([outcome])

    async def span(self, span: UndoFilter) -> UndoSelection:
        """All changes of a span that are still in effect. Raises NothingToChange if there are none."""
        globs = await to_thread.run_sync(Globs, span.globs) if span.globs else None
        chosen: dict[Seq, list[Made]] = {}
        folders: dict[Seq, Collection[WorkspacePath]] = {}
        seen = 0
        async for recorded in self._journal.events(_events_of(span)):
            seen += 1
            if seen % (SLICE if globs is None else GLOB_SLICE) == 0:
                await anyio.lowlevel.checkpoint()
            made = span.made(recorded, globs)
            if made is not None:
                folders[change_of(recorded)] = await self._folders(recorded)
            if made:
                chosen[change_of(recorded)] = made
        reverters = await self._journal.reverters()
        return await to_thread.run_sync(lambda: selection(in_effect(chosen, reverters), folders.values()))

    async def _whole(self, events: list[Recorded]) -> UndoSelection:
        """All that these events did."""
        made = [made for recorded in events for made in made_by(recorded)]
        return selection(made, [await self._folders(recorded) for recorded in events])

    async def _folders(self, recorded: Recorded) -> Collection[WorkspacePath]:
        """The directories that were made for a change, or added with it."""
        match recorded.event:
            case ExternalFileCreated(parents=parents):
                return parents
            case ChangeApplied(change=change, paths=paths) if any(item.before is None for item in paths):
                intent = await self._notes.event(change, ChangeIntended)
                return (*(intent.directories.made if intent else ()), *(item.path for item in paths if item.directory))
            case _:
                return ()

    async def histories(self, chosen: UndoSelection) -> dict[WorkspacePath, tuple[VersionRow, ...]]:
        """All rows of every path that the chosen files ever had, oldest first."""
        histories: dict[WorkspacePath, tuple[VersionRow, ...]] = {}
        wanted = {path for path, _ in chosen.keys}
        while wanted:
            found = await self._journal.histories(wanted)
            histories |= found
            next_ones = {row.path for row in await self._journal.moved_away(wanted)}
            next_ones |= {row.moved_from for rows in found.values() for row in rows if row.moved_from is not None}
            wanted = next_ones - histories.keys()
        return histories


def _events_of(span: UndoFilter) -> EventFilter:
    """The events that a span may choose, as far as the journal can filter them."""
    tags: tuple[str, ...] = EXTERNAL_TAGS if span.agent == OUTSIDE else (tag_of(ChangeApplied),)
    if span.agent is None and span.session is None and span.task is None:
        tags = (tag_of(ChangeApplied), *EXTERNAL_TAGS)
    after = span.since.seq if span.since is not None and span.since.seq is not None else 0
    agent = span.agent if span.agent != OUTSIDE else None
    return EventFilter(tags=tags, agent=agent, session=span.session, after=after)
