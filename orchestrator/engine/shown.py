"""What answers showed that no other event records: one event each, whose lines go into the session's read set.

An answer that showed its caller nothing new is no event: who polls is recorded once for each change of what it sees.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import msgspec
from anyio import to_thread

from orchestrator.api.conflicts import ConflictInfo
from orchestrator.api.journal_operations import ExportPage
from orchestrator.api.results import ChangeAnswer, Result
from orchestrator.core.content import LineRange, SeenLines
from orchestrator.core.errors import escaped
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.files import AnswerShown
from orchestrator.core.ids import AgentName, EscapedPath, Seq, WorkspacePath
from orchestrator.core.text.answer_space import estimate_tokens
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.forms.unified import plain_name
from orchestrator.core.text.regions import merged, united
from orchestrator.core.text.unified_diff import ShownFile, shown_files
from orchestrator.engine.caller import Call, Caller, HeldNote
from orchestrator.engine.services import OFF_LOOP_BYTES, Services
from orchestrator.engine.sessions import SessionLifecycle

T = TypeVar("T")

MOST_NAMED = 100
"""Ids of one answer that its event names, and paths; `more` counts the others."""

KEPT_ANSWERS = 1000
"""Answers whose repetition is known for one."""

_ID = re.compile(r"@([1-9]\d{0,17})")
_PATHS = ("path", "paths", "moved_from")
_NOTHING_NEW = ("head", "cursor")
"""Members that differ from one answer to the next of the same state."""

_ENCODER = msgspec.json.Encoder()


class ShownAnswers:
    """Notes what answers showed, after their operation and where that noted nothing itself."""

    def __init__(self, services: Services, lifecycle: SessionLifecycle) -> None:
        self._s, self._lifecycle = services, lifecycle
        self._unnoted: set[int] = set()
        """Of the calls that run: the identity of the arguments, as long as no event of the call is in the journal."""
        self._last: OrderedDict[tuple[str, ...], bytes] = OrderedDict()
        self._exports: set[tuple[AgentName, str]] = set()
        """Who was given an export up to where, with more to come."""
        services.journal.subscribe(self._fold)

    def _fold(self, recorded: Recorded) -> None:
        if recorded.origin.call is not None:
            self._unnoted.discard(id(recorded.origin.call.arguments))

    @contextmanager
    def following(self, call: Call) -> Iterator[None]:
        """While this lasts, it is known whether an event of the call is in the journal."""
        own = id(call.details.arguments)
        self._unnoted.add(own)
        try:
            yield
        finally:
            self._unnoted.discard(own)

    async def note(self, caller: Caller, call: Call, result: Result) -> None:
        """Append the event of an answer, unless another event of its call says what it showed."""
        held = call.held or ()
        noted = id(call.details.arguments) not in self._unnoted or any(n.origin.call is call.details for n in held)
        if noted and not (isinstance(result, ChangeAnswer) and result.status in ("waiting", "conflict")):
            return
        named = _Named()
        named.look(result)
        seen = await self._seen(caller, named)
        if noted and not seen:
            return
        event = AnswerShown(
            operation=call.operation.name,
            status=result.status if isinstance(result, ChangeAnswer) else "",
            ids=tuple(named.ids)[:MOST_NAMED],
            paths=tuple(named.paths)[:MOST_NAMED],
            more=max(0, len(named.ids) - MOST_NAMED) + max(0, len(named.paths) - MOST_NAMED),
            seen=seen,
            tokens=sum(map(estimate_tokens, named.diffs)),
        )
        origin = msgspec.structs.replace(caller.origin(call), request_id=None, request_digest=None)  # it may run yet
        if call.held is not None:
            call.held.append(HeldNote(origin, event))
            return
        key, answer = _key(caller, call, event), _digest(event, result)
        if self._goes_on(caller, call, result) or self._last.get(key) == answer:
            return
        if seen:
            await self._lifecycle.begin(caller)
        if await self._s.notes.note(origin, (f"session:{caller.session}", event)):
            self._last[key] = answer
            self._last.move_to_end(key)
            while len(self._last) > KEPT_ANSWERS:
                self._last.popitem(last=False)

    def _goes_on(self, caller: Caller, call: Call, result: Result) -> bool:
        """Whether it is a later page of an export: the event of each page would be on the next one."""
        if not isinstance(result, ExportPage):
            return False
        goes_on = (caller.agent, getattr(call.params, "after", "")) in self._exports
        self._exports = {(caller.agent, result.after)} if result.more else set()
        return goes_on

    # --- lines ----------------------------------------------------------------------------

    async def _seen(self, caller: Caller, named: _Named) -> tuple[SeenLines, ...]:
        """The lines of known versions that the answer shows, without those that the session has seen already."""
        found = [seen for diff in named.diffs async for seen in self._of_diff(diff)]
        for conflict in named.conflicts:
            found += [seen async for seen in self._of_conflict(conflict)]
        joined: dict[tuple[WorkspacePath, Seq], SeenLines] = {}
        for seen in found:
            key = seen.path, seen.version
            before = joined[key].ranges if key in joined else ()
            joined[key] = msgspec.structs.replace(seen, ranges=merged((*before, *seen.ranges)))
        return tuple(seen for seen in joined.values() if not self._known(caller, seen))

    def _known(self, caller: Caller, seen: SeenLines) -> bool:
        session = self._s.state.sessions.get(caller.session)
        read = session.seen.get(seen.path) if session is not None else None
        known = read.versions.get(seen.version) if read is not None else None
        return known is not None and (known.whole or united(known.ranges, seen.ranges) == known.ranges)

    async def _of_diff(self, diff: str) -> AsyncIterator[SeenLines]:
        """Lines that a file holds now: those of the side of the diff that is its present content.

        It is that if most of its lines are there, at their numbers; a long line that was cut is not.
        """
        files = partial(list[ShownFile], shown_files(diff))
        for file in await _beside(files, diff):
            for name, lines in ((file.old_name, file.old), (file.new_name, file.new)):
                path = WorkspacePath(plain_name(name)[2:])
                entry = self._s.state.registry.get(path)
                document = await self._s.contents.kept_text(entry.digest) if entry is not None else None
                if entry is None or document is None:
                    continue
                ranges = await _beside(partial(_ranges, document, lines), diff)
                if ranges:
                    yield SeenLines(path=path, version=entry.version, ranges=ranges, total_lines=document.line_count)
                    break

    async def _of_conflict(self, conflict: ConflictInfo) -> AsyncIterator[SeenLines]:
        """Whole texts of versions; the proposed one is of none."""
        path = WorkspacePath(conflict.path)
        for text, version in ((conflict.base, conflict.base_version), (conflict.current, conflict.current_version)):
            if text is None or version is None:
                continue
            row = await self._s.journal.version_at(path, int(version[1:]))
            document = await self._s.contents.kept_text(row.digest) if row is not None else None
            if row is None or document is None or document.text != text:
                continue
            ranges = (LineRange(1, document.line_count),) if document.line_count else ()
            yield SeenLines(path=path, version=row.seq, ranges=ranges, total_lines=document.line_count)


async def _beside(work: Callable[[], T], diff: str) -> T:
    """What is made of a diff; of a large one beside the event loop."""
    return await to_thread.run_sync(work) if len(diff) > OFF_LOOP_BYTES else work()


def _ranges(document: Document, lines: Sequence[tuple[int, str]]) -> tuple[LineRange, ...]:
    """Which of these lines a text has at their numbers; none unless it has most."""
    there = [n for n, text in lines if document.lines[n - 1 : n] == (text,)]
    return merged(tuple(LineRange(n, n) for n in there)) if 2 * len(there) > len(lines) else ()


def _key(caller: Caller, call: Call, event: AnswerShown) -> tuple[str, ...]:
    """Whose answer to what; of one with lines it matters which session has seen them."""
    return caller.agent, caller.session if event.seen else "", call.digest


def _digest(event: AnswerShown, result: Result) -> bytes:
    """Differs where the answer shows something else."""
    plain = {name: value for name, value in msgspec.structs.asdict(result).items() if name not in _NOTHING_NEW}
    return hashlib.sha256(_ENCODER.encode((event, plain))).digest()


class _Named:
    """What an answer names and shows, whatever its type."""

    def __init__(self) -> None:
        self.ids: dict[Seq, None] = {}
        self.paths: dict[EscapedPath, None] = {}
        self.diffs: list[str] = []
        self.conflicts: list[ConflictInfo] = []

    def look(self, result: Result) -> None:
        """Take in an answer, with all within it."""
        if isinstance(result, ConflictInfo):
            self.conflicts.append(result)
        for name in result.__struct_fields__:
            if name in _NOTHING_NEW:
                continue
            for item in _items(getattr(result, name)):
                if isinstance(item, Result):
                    self.look(item)
                elif (number := _ID.fullmatch(item)) is not None:
                    self.ids[Seq(int(number[1]))] = None
                elif name in _PATHS and not item.startswith("/"):
                    self.paths[EscapedPath(escaped(item))] = None
                elif name.endswith("diff"):
                    self.diffs.append(item)


def _items(value: object) -> Iterator[Result | str]:
    """The answers and texts in a member."""
    if isinstance(value, Result | str):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _items(item)
