"""Which events a filter means, found in bounded steps however many there are."""

from __future__ import annotations

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api.journal_operations import JournalFilter
from orchestrator.core.annotations import paths_of
from orchestrator.core.errors import NotPermitted, ParameterInvalid, VersionUnknown, escaped
from orchestrator.core.events.base import Outcome, Recorded
from orchestrator.core.events.catalog import BY_TAG, outcome_of, tag_of, tags_with
from orchestrator.core.events.sessions import TaskBegun, TaskEnded
from orchestrator.core.ids import Seq, WorkspacePath, parse_seq, show
from orchestrator.core.timestamps import parse_timestamp
from orchestrator.engine.caller import Caller
from orchestrator.engine.path_resolution import Paths
from orchestrator.ports.journal import EventFilter, Journal, Mention

_STREAMS = ("file", "approval", "conflict", "stray")
_ENCODER = msgspec.json.Encoder()

STEP = 20_000
"""Positions that one query looks through: 40 ms on the readers' thread where every payload is searched."""

BUDGET = 200_000
"""Positions that one call looks through; then it answers with what it has."""


class Task(msgspec.Struct, frozen=True):
    """A task's span in its session."""

    task: Seq
    session: str
    last: int


class EventQuery(msgspec.Struct, frozen=True):
    """A filter that the journal can walk by, and what the events must fit besides."""

    filter: EventFilter
    path: WorkspacePath | None = None
    task: Task | None = None
    outcome: Outcome | None = None

    @property
    def bounded(self) -> bool:
        """Whether a walk may pass many events to find few."""
        return self.filter.looks_inside or self.outcome is not None

    def fits(self, recorded: Recorded) -> bool:
        """The exact answer, on a decoded event."""
        return (
            (self.outcome is None or outcome_of(recorded.event) == self.outcome)
            and (self.path is None or about(recorded, self.path))
            and (self.task is None or within(recorded, self.task))
        )


class FoundEvents(msgspec.Struct, frozen=True):
    """What a walk found, in its order; `last` is the last position that it looked at, None at the end of all."""

    events: list[Recorded]
    last: int | None


def about(recorded: Recorded, path: WorkspacePath) -> bool:
    """Whether an event is about a path: by its stream, or because it names it."""
    if recorded.stream in streams_of(path):
        return True
    names = (path, escaped(path))
    return any(name in names for name in paths_of(recorded.event))


def streams_of(path: WorkspacePath) -> tuple[str, ...]:
    """The streams that are about one path."""
    return tuple(f"{kind}:{path}" for kind in _STREAMS)


def within(recorded: Recorded, task: Task) -> bool:
    """Whether an event belongs to a task."""
    own = recorded.session == task.session and task.task <= recorded.seq <= task.last
    named = getattr(recorded.event, "provenance", recorded.event)
    return own or getattr(named, "task", None) == task.task


class EventSearch:
    """Turns parameters into a filter, and walks by it."""

    def __init__(self, journal: Journal, paths: Paths) -> None:
        self._journal, self._paths = journal, paths

    async def wanted(self, caller: Caller, params: JournalFilter) -> EventQuery | None:
        """What the caller asks for and may see; None: nothing can fit. Raises NotPermitted, ParameterInvalid …"""
        session = self._session(caller, params.session)
        tags = _tags(params.kind, params.outcome)
        if tags is None:
            return None
        mentions: list[Mention] = []
        path = self._paths.either(params.path) if params.path is not None else None
        if path is not None:
            texts = dict.fromkeys((_ENCODER.encode(path), _ENCODER.encode(escaped(path))))
            mentions.append(Mention(streams=streams_of(path), texts=tuple(texts)))
        task = await self._task(params.task) if params.task is not None else None
        if task is not None:
            carried = f'"task":{task.task}'.encode()
            mentions.append(Mention(texts=(carried,), session=task.session, first=task.task, last=task.last))
        wanted = EventFilter(
            tags=tags,
            agent=params.agent,
            session=session,
            after=task.task - 1 if task else 0,
            mentions=tuple(mentions),
        )
        return EventQuery(self._between(wanted, params), path, task, params.outcome)

    def _between(self, wanted: EventFilter, params: JournalFilter) -> EventFilter:
        """The filter with the caller's bounds, each a position or a time."""
        replace, head = msgspec.structs.replace, self._journal.head
        if params.since is not None:
            since = parse_timestamp(params.since, parameter="since", head=head)
            after = wanted.after if since.seq is None else max(wanted.after, since.seq - 1)
            wanted = replace(wanted, after=after, since_at=since.at)
        if params.until is not None:
            until = parse_timestamp(params.until, parameter="until", head=head)
            wanted = replace(wanted, until=until.seq, until_at=until.at)
        return wanted

    def _session(self, caller: Caller, session: str | None) -> str | None:
        if caller.is_person:
            return session
        if session not in (None, caller.session):
            raise NotPermitted("agents see the events of their own session", hint="Leave session out, or ask a person.")
        return caller.session

    async def _task(self, raw: p.Version) -> Task:
        number = parse_seq(raw, parameter="task")
        begun = await self._journal.event(number)
        if begun is None or not isinstance(begun.event, TaskBegun):
            raise VersionUnknown(f"{show(number)} is no task")
        session = begun.event.session
        wanted = EventFilter(tags=(tag_of(TaskEnded),), session=session, after=number)
        async for recorded in self._journal.events(wanted, batch=100):
            if isinstance(recorded.event, TaskEnded) and recorded.event.task == number:
                return Task(number, session, recorded.seq)
        return Task(number, session, 2**62)


def _tags(kind: str | None, outcome: Outcome | None) -> tuple[str, ...] | None:
    """The kinds to look at, () for all; None where the two exclude each other."""
    if kind is not None and kind not in BY_TAG:
        raise ParameterInvalid("kind", f"{escaped(kind)!r} is no kind of event", hint=", ".join(sorted(BY_TAG)))
    if outcome is None:
        return (kind,) if kind is not None else ()
    tags = tags_with(outcome)
    if kind is None:
        return tags
    return (kind,) if kind in tags else None


async def newest(
    journal: Journal, wanted: EventQuery, *, before: int | None, limit: int, step: int = STEP, budget: int = BUDGET
) -> FoundEvents:
    """Up to `limit` events that fit, newest first, all before a position.

    Where no index leads, `budget` positions are looked through at most, `step` by each query.
    """
    floor, top = wanted.filter.after, min(_end(journal, wanted), journal.head if before is None else before - 1)
    lowest = max(floor, top - budget) if wanted.bounded else floor
    found: list[Recorded] = []
    while top > lowest:
        bottom = max(lowest, top - step) if wanted.bounded else lowest
        part = msgspec.structs.replace(wanted.filter, after=bottom, until=top)
        rows = await journal.newest(part, limit=limit)
        for recorded in filter(wanted.fits, rows):
            found.append(recorded)
            if len(found) == limit:
                return FoundEvents(found, recorded.seq)
        top = rows[-1].seq - 1 if len(rows) == limit else bottom
    return FoundEvents(found, top + 1 if top > floor else None)


async def oldest(
    journal: Journal, wanted: EventQuery, *, after: int, limit: int, step: int = STEP, budget: int = BUDGET
) -> FoundEvents:
    """As `newest`, but from the oldest on, all after a position."""
    bottom, end = max(after, wanted.filter.after), _end(journal, wanted)
    highest = min(end, bottom + budget) if wanted.bounded else end
    found: list[Recorded] = []
    while bottom < highest:
        top = min(highest, bottom + step) if wanted.bounded else highest
        part = msgspec.structs.replace(wanted.filter, after=bottom, until=top)
        async for recorded in journal.events(part, batch=min(limit, 1000)):
            if wanted.fits(recorded):
                found.append(recorded)
                if len(found) == limit:
                    return FoundEvents(found, recorded.seq)
        bottom = top
    return FoundEvents(found, bottom if bottom < end else None)


def _end(journal: Journal, wanted: EventQuery) -> int:
    return journal.head if wanted.filter.until is None else min(wanted.filter.until, journal.head)
