"""journal_query and journal_export: who did what, in pages, as far as the caller may see it.

An event is found in bounded steps, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import msgspec

from orchestrator.api import journal_operations as k
from orchestrator.api import parameters as p
from orchestrator.core.annotations import paths_of
from orchestrator.core.change import PathChange
from orchestrator.core.errors import NotPermitted, ParameterInvalid, VersionUnknown, escaped
from orchestrator.core.events.base import OUTSIDE, Outcome, Recorded, author_of
from orchestrator.core.events.codec import BY_TAG, outcome_of, tag_of, tags_with
from orchestrator.core.events.conflicts import ApprovalRequested
from orchestrator.core.events.files import (
    ChangeApplied,
    ExternalFileCreated,
    ExternalFileRemoved,
    FilesFound,
    path_changes,
)
from orchestrator.core.events.sessions import TaskBegun, TaskEnded
from orchestrator.core.events.visibility import visible, without_paths
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.positions import Timestamp, parse_seq, parse_timestamp
from orchestrator.core.text.answer_space import json_size
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.services import Services
from orchestrator.ports.journal import EventFilter, Journal, Mention

PAGE_CHARACTERS = 2 * 1024 * 1024
"""A page that has grown past this ends, however few its events are; an answer has to fit into a frame."""

QUERY_BYTES = 1024 * 1024
"""Of one page of a query; an entry that has more by itself lists the first of what it is about."""

LISTED = 500
"""Of a list within an entry of a query; an export has all of it."""

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


Readable = Callable[[WorkspacePath], bool]


class Auditor:
    """Answers from the journal, never from the disk."""

    def __init__(self, services: Services) -> None:
        self._s = services

    async def journal_query(self, caller: Caller, call: Call, params: k.JournalQuery) -> k.JournalPage:
        before = int(parse_seq(params.cursor, parameter="cursor")) if params.cursor else None
        wanted, head = await self._wanted(caller, params), show(self._s.journal.head)
        if wanted is None:
            return k.JournalPage(head=head)
        found = await newest(self._s.journal, wanted, before=before, limit=params.limit + 1)
        page = found.events[: params.limit]
        readable = self._readable(caller)
        entries: list[k.JournalEntry] = []
        room, looked = call.room.at_most(QUERY_BYTES).framed(), 0
        for item in page:
            shown = self._shown(caller, item)
            if shown is not None:
                entry = _shortened(await self._entry(caller, shown, readable, path=wanted.path))
                cost = json_size(entry)
                if entries and cost > room.bytes:
                    break
                entries.append(entry)
                room = room.less(cost)
            looked += 1
        answered = k.JournalPage(head=head, entries=tuple(entries), unlisted=looked - len(entries))
        if looked < len(page) or len(found.events) > params.limit:
            return msgspec.structs.replace(answered, cursor=show(page[looked - 1].seq))
        if found.last is None:
            return answered
        return msgspec.structs.replace(answered, cursor=show(found.last), partial=True)

    async def journal_export(self, caller: Caller, call: Call, params: k.JournalExport) -> k.ExportPage:
        after = parse_seq(params.after, parameter="after", start=self._s.state.registry.start)
        wanted = await self._wanted(caller, params)
        lines: list[str] = []
        size, last = 0, None
        if wanted is not None:
            found = await oldest(self._s.journal, wanted, after=after, limit=params.limit)
            readable, last = self._readable(caller), found.last
            for item in found.events:
                entry = await self._entry(caller, item, readable, path=wanted.path)
                lines.append(_ENCODER.encode(entry).decode() + "\n")
                size += len(lines[-1])
                if size > PAGE_CHARACTERS:
                    last = item.seq
                    break
        return k.ExportPage(
            text="".join(lines),
            events=len(lines),
            after=show(self._s.journal.head if last is None else last),
            more=last is not None,
        )

    # --- which events -------------------------------------------------------------------

    async def _wanted(self, caller: Caller, params: k.JournalFilter) -> EventQuery | None:
        """What the caller asks for and may see; None: nothing can fit. Raises NotPermitted, ParameterInvalid …"""
        agent, session = self._whose(caller, params)
        external: Outcome | None = "external" if params.agent == OUTSIDE else None
        tags = _tags(params.kind, params.outcome, external)
        if tags is None:
            return None
        mentions: list[Mention] = []
        path = self._s.paths.either(params.path) if params.path is not None else None
        if path is not None:
            if not (caller.is_person or self._s.access.may_be_counted(caller, path)):
                if session not in (None, caller.session) or caller.session is None:
                    return None
                session = caller.session  # that others' events of it are left out tells of its name
            texts = dict.fromkeys((_ENCODER.encode(path), _ENCODER.encode(escaped(path))))
            mentions.append(Mention(streams=streams_of(path), texts=tuple(texts)))
        task = await self._task(params.task) if params.task is not None else None
        if task is not None:
            carried = f'"task":{task.task}'.encode()
            mentions.append(Mention(texts=(carried,), session=task.session, first=task.task, last=task.last))
        parse = partial(parse_timestamp, head=self._s.journal.head, start=self._s.state.registry.start or Seq(0))
        since = parse(params.since, parameter="since") if params.since is not None else Timestamp()
        until = parse(params.until, parameter="until") if params.until is not None else Timestamp()
        wanted = EventFilter(
            tags=tags,
            agent=agent if agent != OUTSIDE else None,
            session=session,
            after=max(task.task - 1 if task else 0, (since.seq or 1) - 1),
            until=until.seq,
            since_at=since.at,
            until_at=until.at,
            client_call_id=params.client_call_id,
            mentions=tuple(mentions),
        )
        return EventQuery(wanted, path, task, params.outcome)

    def _whose(self, caller: Caller, params: k.JournalFilter) -> tuple[str | None, str | None]:
        """Of which agent, and of which session. Raises NotPermitted."""
        shows = "everybody" if caller.is_person else self._s.permissions.policy.journal.shows
        if shows == "everybody":
            return params.agent, params.session
        if shows == "session" and params.session not in (None, caller.session):
            raise NotPermitted("agents see the events of their own session", hint="Leave session out, or ask a person.")
        if shows == "session":
            return params.agent, caller.session
        if params.agent not in (None, caller.agent):
            raise NotPermitted("agents see their own events", hint="Leave agent out, or ask a person.")
        return caller.agent, params.session

    async def _task(self, raw: p.Version) -> Task:
        number = parse_seq(raw, parameter="task")
        begun = await self._s.notes.event(number, TaskBegun)
        if begun is None:
            raise VersionUnknown(f"{show(number)} is no task")
        wanted = EventFilter(tags=(tag_of(TaskEnded),), session=begun.session, after=number)
        async for recorded in self._s.journal.events(wanted, batch=100):
            if isinstance(recorded.event, TaskEnded) and recorded.event.task == number:
                return Task(number, begun.session, recorded.seq)
        return Task(number, begun.session, 2**62)

    # --- entries, without hashes of what the caller may not read --------------------------

    def _readable(self, caller: Caller) -> Readable:
        return cache(partial(self._s.permissions.readable, caller))

    def _shown(self, caller: Caller, item: Recorded) -> Recorded | None:
        """An event, without the paths that its reader may not list; None where it is about one. Its own is whole."""
        if caller.is_person or item.session == caller.session:
            return item
        lists = cache(partial(self._s.access.lists, caller))
        kind, _, path = item.stream.partition(":")
        if kind in _STREAMS and not lists(WorkspacePath(path)):
            return None
        event = without_paths(item.event, lists)
        return msgspec.structs.replace(item, event=event) if event is not None else None

    async def _entry(
        self, caller: Caller, item: Recorded, readable: Readable, *, path: WorkspacePath | None = None
    ) -> k.JournalEntry:
        """One event; with `path` a scan's list is cut down to it. Of others an agent gets none of their texts."""
        event, call = item.event, item.origin.call
        own = caller.is_person or item.session == caller.session
        if path is not None and isinstance(event, FilesFound):
            event = FilesFound(entries=tuple(found for found in event.entries if found.path == path))
        about = getattr(event, "provenance", event)
        approval = item.seq if isinstance(event, ApprovalRequested) else getattr(about, "approval", None)
        return k.JournalEntry(
            seq=show(item.seq),
            at=item.at,
            kind=tag_of(event),
            stream=item.stream,
            agent=author_of(item),
            session=item.session,
            event=visible(event, item.stream, readable, texts=own),
            owner=item.origin.owner,
            outcome=outcome_of(event),
            operation=(call.operation if call is not None else getattr(about, "operation", None)) or None,
            arguments=(call.arguments or None) if call is not None and own else None,
            took_us=call.took_us if call is not None else None,
            tokens=getattr(event, "tokens", None),
            approval=show(approval) if isinstance(approval, int) else None,
            cause=show(item.origin.cause) if item.origin.cause is not None else None,
            client_call_id=item.origin.client_call_id if own else None,
            paths=tuple([await self._path(item, change, readable) for change in path_changes(event)]),
        )

    async def _path(self, item: Recorded, change: PathChange, readable: Readable) -> k.EntryPath:
        """What an event did to a path: the versions before and after."""
        event, before = item.event, change.previous
        if isinstance(event, ChangeApplied):
            there = change.present
        else:
            there = not isinstance(event, ExternalFileRemoved)
            if not isinstance(event, ExternalFileCreated):
                rows = await self._s.journal.versions(change.path, limit=1, before=item.seq)
                before = rows[0].seq if rows else None
        shown = readable(change.path)
        return k.EntryPath(
            path=change.path,
            before=show(before) if before is not None else None,
            after=show(item.seq) if there else None,
            before_hash=change.before if shown else None,
            after_hash=change.after if shown else None,
            moved_from=change.moved_from,
        )


def _shortened(entry: k.JournalEntry) -> k.JournalEntry:
    """An entry with the first of each long list in it."""
    event, left_out = _first(entry.event)
    if not left_out and len(entry.paths) <= LISTED:
        return entry
    more = left_out + max(0, len(entry.paths) - LISTED)
    return msgspec.structs.replace(entry, event=event, paths=entry.paths[:LISTED], left_out=more)


def _first(value: Any) -> tuple[Any, int]:
    """A value with the first of each long list in it, and how many items that leaves out."""
    match value:
        case dict():
            parts = {name: _first(item) for name, item in value.items()}
            return {name: part for name, (part, _) in parts.items()}, sum(count for _, count in parts.values())
        case list() | tuple():
            kept = [_first(item) for item in value[:LISTED]]
            return [part for part, _ in kept], max(0, len(value) - LISTED) + sum(count for _, count in kept)
        case _:
            return value, 0


def _tags(kind: str | None, *outcomes: Outcome | None) -> tuple[str, ...] | None:
    """The kinds to look at, () for all; None where they exclude each other."""
    if kind is not None and kind not in BY_TAG:
        raise ParameterInvalid("kind", f"{escaped(kind)!r} is no kind of event", hint=", ".join(sorted(BY_TAG)))
    sets = [{kind}] if kind is not None else []
    sets += [set(tags_with(outcome)) for outcome in outcomes if outcome is not None]
    return tuple(sorted(set.intersection(*sets))) or None if sets else ()


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
