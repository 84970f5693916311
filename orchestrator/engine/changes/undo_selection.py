"""Which changes an undo is about, and the stories of the files that they touched."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import anyio.lowlevel
import msgspec
from anyio import to_thread

from orchestrator.core.decisions.lineage import Key
from orchestrator.core.errors import Aborted, NothingToChange, RevertImpossible, VersionUnknown
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.catalog import tag_of
from orchestrator.core.events.external import ExternalBatchClosed, ExternalBatchOpened
from orchestrator.core.events.files import (
    ChangeAborted,
    ChangeApplied,
    ChangeDiverged,
    ChangeIntended,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
)
from orchestrator.core.globs import Globs
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.projections.history import VersionRow
from orchestrator.core.timestamps import Timestamp
from orchestrator.engine.changes.answers import Answers
from orchestrator.engine.external.batches import members
from orchestrator.engine.services import Services
from orchestrator.ports.journal import EventFilter

OUTSIDE = "outside"
"""As an agent's name: changes by other hands."""

SLICE = 200
"""Events that are gone through before other callers have their turn: some 2 ms."""

GLOB_SLICE = 20
"""The same where their paths are matched with globs."""

OUTSIDE_TAGS = (tag_of(ExternalFileChanged), tag_of(ExternalFileCreated), tag_of(ExternalFileRemoved))


class UndoFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What a rollback chooses by; None and empty leave all through."""

    agent: str | None = None
    session: str | None = None
    task: Seq | None = None
    globs: tuple[str, ...] = ()
    since: Timestamp | None = None
    until: Timestamp | None = None


class UndoSelection(msgspec.Struct, frozen=True):
    """The rows of history to undo, and whose they were."""

    keys: frozenset[Key]
    authors: dict[WorkspacePath, frozenset[str | None]]
    folders: frozenset[WorkspacePath] = frozenset()  # directories that the changes made


Made = tuple[WorkspacePath, Seq, str | None]
"""A path, the version that it got, and by whom; None: by other hands."""


class UndoSelector:
    """Reads the journal for undos."""

    def __init__(self, services: Services, answers: Answers) -> None:
        self._s, self._answers = services, answers

    async def one(self, number: Seq) -> UndoSelection:
        """The change that an event belongs to, or the group of outside changes that it opened or closed.

        Raises VersionUnknown, RevertImpossible, Aborted.
        """
        recorded = await self._s.journal.event(number)
        if recorded is None:
            raise VersionUnknown(f"the journal has no event {show(number)}", hint="file_history lists changes.")
        event = recorded.event
        if isinstance(event, ExternalBatchOpened | ExternalBatchClosed):
            group = event.group if isinstance(event, ExternalBatchClosed) else recorded.seq
            return await self._whole([item async for item in members(self._s.journal, group)])
        if isinstance(event, ExternalFileChanged | ExternalFileCreated | ExternalFileRemoved):
            return await self._whole([recorded])
        if not isinstance(event, ChangeIntended | ChangeApplied | ChangeAborted | ChangeDiverged):
            raise RevertImpossible(
                f"{show(recorded.seq)} changed no file, so there is nothing to revert",
                hint="Name the version_id or change of an answer or of file_history.",
            )
        outcome = await self._answers.outcome(recorded)
        if outcome is None or not isinstance(outcome.event, ChangeApplied):
            raise Aborted(f"{show(recorded.seq)} never took effect", hint="There is nothing to revert.")
        if not _made(outcome):
            raise RevertImpossible(
                f"{show(recorded.seq)} only made a directory, which holds no content to bring back",
                hint="Remove the directory yourself if it is not needed.",
            )
        return await self._whole([outcome])

    async def span(self, span: UndoFilter) -> UndoSelection:
        """All changes of a span that are still in effect. Raises NothingToChange if there are none."""
        globs = await to_thread.run_sync(Globs, span.globs) if span.globs else None
        found: dict[Seq, list[Made]] = {}
        folders: dict[Seq, frozenset[WorkspacePath]] = {}
        seen = 0
        async for recorded in self._s.journal.events(self._filter(span)):
            seen += 1
            if seen % (SLICE if globs is None else GLOB_SLICE) == 0:
                await anyio.lowlevel.checkpoint()
            if _fits(recorded, span):
                made = [item for item in _made(recorded) if globs is None or globs.match(item[0])]
                if made:
                    found[_change_of(recorded)] = made
                folders[_change_of(recorded)] = await self._folders(recorded)
        for change, reverter in (await self._undone()).items():
            if reverter not in found:  # else both are undone, one after the other
                found.pop(change, None)
        if not found:
            raise NothingToChange(
                "no change that is still in effect fits", hint="`orchestrator log` or journal_query show what there is."
            )
        everything = [item for made in found.values() for item in made]
        work = partial(_chosen, everything, tuple(folders.values()))
        return await to_thread.run_sync(work) if len(everything) > SLICE else work()

    async def _whole(self, events: list[Recorded]) -> UndoSelection:
        """All that these events did."""
        made = [made for recorded in events for made in _made(recorded)]
        return _chosen(made, [await self._folders(recorded) for recorded in events])

    async def _folders(self, recorded: Recorded) -> frozenset[WorkspacePath]:
        """The directories that were made for a change, or came with it."""
        match recorded.event:
            case ExternalFileCreated(parents=parents):
                return frozenset(parents)
            case ChangeApplied(change=change, paths=paths) if any(item.before is None for item in paths):
                intent = await self._s.journal.event(change)
                parents = intent.event.parents if intent and isinstance(intent.event, ChangeIntended) else ()
                return frozenset((*parents, *(item.path for item in paths if item.directory)))
            case _:
                return frozenset()

    @staticmethod
    def _filter(span: UndoFilter) -> EventFilter:
        tags: tuple[str, ...] = OUTSIDE_TAGS if span.agent == OUTSIDE else (tag_of(ChangeApplied),)
        if span.agent is None and span.session is None and span.task is None:
            tags = (tag_of(ChangeApplied), *OUTSIDE_TAGS)
        after = span.since.seq if span.since is not None and span.since.seq is not None else 0
        agent = span.agent if span.agent != OUTSIDE else None
        return EventFilter(tags=tags, agent=agent, session=span.session, after=after)

    async def _undone(self) -> dict[Seq, Seq]:
        """Changes that are undone, each with the change that undid it and is itself in effect."""
        reverters = await self._s.journal.reverters()
        return await to_thread.run_sync(_undone, reverters) if reverters else {}

    async def histories(self, chosen: UndoSelection) -> dict[WorkspacePath, tuple[VersionRow, ...]]:
        """All rows of every path that the chosen files ever had, oldest first."""
        histories: dict[WorkspacePath, tuple[VersionRow, ...]] = {}
        wanted = {path for path, _ in chosen.keys}
        while wanted:
            found = await self._s.journal.histories(wanted)
            histories |= found
            next_ones = {row.path for row in await self._s.journal.moved_away(wanted)}
            next_ones |= {row.moved_from for rows in found.values() for row in rows if row.moved_from is not None}
            wanted = next_ones - histories.keys()
        return histories


def _undone(reverters: Iterable[tuple[Seq, tuple[Seq, ...]]]) -> dict[Seq, Seq]:
    undone: dict[Seq, Seq] = {}
    for change, reverts in reverters:
        if change not in undone:
            for seq in reverts:
                undone.setdefault(seq, change)
    return undone


def _made(recorded: Recorded) -> list[Made]:
    """What an event did, path by path."""
    match recorded.event:
        case ChangeApplied(paths=paths):
            return [(item.path, recorded.seq, recorded.agent) for item in paths if not item.directory]
        case ExternalFileChanged(path=path) | ExternalFileCreated(path=path) | ExternalFileRemoved(path=path):
            return [(path, recorded.seq, recorded.event.by)]
        case _:
            return []


def _change_of(recorded: Recorded) -> Seq:
    return recorded.event.change if isinstance(recorded.event, ChangeApplied) else recorded.seq


def _fits(recorded: Recorded, span: UndoFilter) -> bool:
    if span.task is not None and not (isinstance(recorded.event, ChangeApplied) and recorded.event.task == span.task):
        return False
    change = _change_of(recorded)  # a change took effect at its intent, so that no state lies in its middle
    return (span.since is None or span.since.before(change, recorded.at)) and (
        span.until is None or not span.until.before(change, recorded.at)
    )


def _chosen(made: list[Made], folders: Iterable[frozenset[WorkspacePath]]) -> UndoSelection:
    authors: dict[WorkspacePath, set[str | None]] = {}
    for path, _, agent in made:
        authors.setdefault(path, set()).add(agent)
    return UndoSelection(
        frozenset((path, seq) for path, seq, _ in made),
        {path: frozenset(agents) for path, agents in authors.items()},
        frozenset[WorkspacePath]().union(*folders),
    )
