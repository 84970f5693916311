"""The lines of one answer of find_references: as many as were asked for and as there is room, and the next one's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from orchestrator.api import relations as s
from orchestrator.core.content import LineRange, SeenLines
from orchestrator.core.errors import escaped
from orchestrator.core.ids import WorkspacePath, show
from orchestrator.core.text.answer_space import MAX_LINE, AnswerSpace, size
from orchestrator.core.text.references import Role
from orchestrator.core.text.regions import merged
from orchestrator.engine.external.observer import NO_VERSION
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.outlined_files import OutlinedFile

ROW_BYTES, FILE_BYTES, MIN_LINE = 30, 24, 50

LARGE_BYTES = 120
"""Of the warning about files that are read by pieces, beside the call in it."""


class FoundFile(NamedTuple):
    """One file, how it was looked at, and what in it is not meant."""

    outlined: OutlinedFile
    way: str
    dropped: Mapping[str, int]


class ReferencePage:
    """The lines of one answer, as long as there is room."""

    def __init__(self, room: AnswerSpace, most: int, query: str) -> None:
        self._room, self._most, self._query = room, most, query
        self._widest = max(MIN_LINE, min(MAX_LINE, room.bytes // 8))
        self.hits: list[s.ReferenceLine] = []
        self.seen: list[SeenLines] = []
        self.versions: dict[str, str] = {}
        self.warnings: list[str] = []
        self.ways, self.dropped = Counter[str](), Counter[str]()
        self.more: str | None = None
        self._large, self._large_call = 0, ""

    def warn(self, warning: str) -> None:
        """Before lines are taken."""
        self.warnings.append(warning)
        self._room = self._room.less(size(warning), 1)

    def leaves_out(self, path: WorkspacePath, name: str) -> None:
        """A file with the word is read by pieces, so none of its lines is shown."""
        self._large += 1
        if self._large == 1:
            self._large_call = f"search_content(path={quoted(path)}, pattern={quoted(name)}, word=true)"
            self._room = self._room.less(size(self._large_call) + LARGE_BYTES, 1)

    def told_large(self) -> tuple[str, ...]:
        """How the lines of such files are found."""
        if not self._large:
            return ()
        files = "1 file that is" if self._large == 1 else f"{self._large} files that are"
        return (f"of {files} read by pieces no line is shown: {self._large_call} shows those of the first",)

    def count(self, found: FoundFile) -> None:
        """How a file was looked at."""
        self.ways[found.way] += 1
        self.dropped.update(found.dropped)

    def takes(self, found: FoundFile, lines: Sequence[s.ReferenceLine]) -> bool:
        """Take the lines of one file, as far as they fit; whether the page goes on after them."""
        path, version = found.outlined.shown.path, found.outlined.shown.version
        room = self._room.less(2 * size(escaped(path)) + size(repr(path)) + FILE_BYTES, 1)
        wanted = [self._cut(line) for line in lines[: self._most - len(self.hits)]]
        costs = [(room.cost(size(one.text) + size(one.inside or "") + ROW_BYTES, one), 1) for one in wanted]
        kept = wanted[: room.first(costs, least=0 if self.hits else 1)]
        if kept:
            self._room = room.less(sum(cost for cost, _ in costs[: len(kept)]), len(kept))
            self.hits += kept
            self.versions[path] = show(version)
            self.warnings += found.outlined.shown.warnings
            if version != NO_VERSION:
                self.seen.append(self._seen(found.outlined, kept))
        if len(kept) < len(lines):
            last = kept[-1] if kept else self.hits[-1]
            self.more = f"{self._query}:{last.line}:{last.path}"
        return self.more is None

    def _cut(self, line: s.ReferenceLine) -> s.ReferenceLine:
        """With a long line as a window around the name."""
        if len(line.text) <= self._widest:
            return line
        first = max(0, line.start - self._widest // 4)
        return msgspec.structs.replace(line, text=line.text[first : first + self._widest], start=line.start - first)

    def _seen(self, found: OutlinedFile, kept: Sequence[s.ReferenceLine]) -> SeenLines:
        shown = [line.line for line in kept if line.line not in found.hidden.lines]
        cut = any(len(found.document.lines[line - 1]) > self._widest for line in shown)
        return SeenLines(
            path=found.shown.path,
            version=found.shown.version,
            ranges=merged(tuple(LineRange(line, line) for line in shown)),
            total_lines=found.document.line_count,
            cut=cut,
        )


def reference_line(found: OutlinedFile, name: str, number: int, role: Role) -> s.ReferenceLine:
    text = found.document.lines[number - 1]
    around = found.outline.enclosing(number, number)
    inside = found.told(".".join(one.name for one in around)) if around and found.outline.parsed else None
    return s.ReferenceLine(
        path=found.shown.path,
        line=number,
        role=role,
        text=found.hidden.lines.get(number, text),
        inside=inside,
        start=max(0, text.find(name)),
    )
