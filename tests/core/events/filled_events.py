"""An event of any type with a value in every field, each another one, and what a reader of the type finds in it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from types import UnionType
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

import msgspec

from orchestrator.core.annotations import Mark
from orchestrator.core.content import digest_of
from orchestrator.core.events.base import Event
from orchestrator.core.ids import Checksum, Digest, EscapedPath, WorkspacePath


class Report(msgspec.Struct, frozen=True):
    """A value that tells of a content, and the paths on which it depends whether it may be shown."""

    text: str
    paths: frozenset[str]


class Filled(msgspec.Struct):
    """One event."""

    event: Event
    paths: set[str] = msgspec.field(default_factory=set)
    data: dict[Digest, bytes] = msgspec.field(default_factory=dict)  # every content that it names
    marked: dict[Mark, list[Any]] = msgspec.field(default_factory=lambda: {mark: [] for mark in Mark})
    kept: set[Digest] = msgspec.field(default_factory=set)  # contents that the journal holds because of it
    reports: list[Report] = msgspec.field(default_factory=list)


class Filler:
    """Makes values of which no two are the same."""

    def __init__(self) -> None:
        self._numbers = count(1001)

    def event(self, kind: type[Event]) -> Filled:
        self._found = Filled(Event())
        self._found.event, _, open_tells = self._struct(kind, keeps=True)
        self._found.reports += [Report(text, frozenset(self._found.paths)) for text in open_tells]
        return self._found

    def _struct(self, kind: type[msgspec.Struct], *, keeps: Any) -> tuple[Any, set[str], list[str]]:
        """The struct, the paths in it, and what tells of contents in it, if it has no path of its own."""
        values, paths, reports, own = dict[str, Any](), set[str](), list[str](), False
        for field in msgspec.structs.fields(kind):
            made = self._value(field.type, frozenset(), keeps=getattr(kind, "kept", keeps))
            values[field.name], more, others = made
            own |= isinstance(values[field.name], str) and values[field.name] in more
            paths |= more
            reports += others
        if own:
            self._found.reports += [Report(text, frozenset(paths)) for text in reports]
            reports = []
        return kind(**values), paths, reports

    def _value(self, kind: Any, marks: frozenset[Mark], *, keeps: Any) -> tuple[Any, set[str], list[str]]:
        if get_origin(kind) is Annotated:
            plain, *extras = get_args(kind)
            return self._value(plain, marks.union(extra for extra in extras if isinstance(extra, Mark)), keeps=keeps)
        if get_origin(kind) in (Union, UnionType):
            return self._value(next(part for part in get_args(kind) if part is not type(None)), marks, keeps=keeps)
        if get_origin(kind) is tuple:
            made = [self._value(get_args(kind)[0], marks, keeps=keeps) for _ in range(2)]
            return tuple(item[0] for item in made), set().union(*(item[1] for item in made)), [*_all(made)]
        if get_origin(kind) is Literal:
            return get_args(kind)[-1], set(), []
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self._struct(kind, keeps=keeps)
        value = self._plain(kind, marks)
        for mark in marks:
            self._found.marked[mark].append(value)
        if Mark.BROUGHT in marks and keeps:
            self._found.kept.add(value)
        reports = [value] if isinstance(value, str) and (kind is Digest or Mark.REVEALING in marks) else []
        return value, {value} if kind in (WorkspacePath, EscapedPath) else set(), reports

    def _plain(self, kind: Any, marks: frozenset[Mark]) -> Any:
        number = next(self._numbers)
        if kind in (WorkspacePath, EscapedPath):
            self._found.paths.add(f"folder/{number}")
            return f"folder/{number}"
        if kind is Digest:
            data = b"content %d" % number
            self._found.data[digest_of(data)] = data
            return digest_of(data)
        if kind is Checksum:
            return Checksum(f"sha256:{number:064}")
        if isinstance(kind, NewType):
            return self._plain(kind.__supertype__, marks)
        simple = {str: f"text {number}", int: number, bool: True, float: number / 10_000, dict[str, Any]: {"n": number}}
        return simple[kind]


def _all(made: list[tuple[Any, set[str], list[str]]]) -> Iterator[str]:
    for _, _, reports in made:
        yield from reports
