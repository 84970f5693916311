"""The hits of one answer: as many as were asked for and as there is room, and the cursor of the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.content import LineRange, SeenLines
from orchestrator.core.errors import escaped, plural
from orchestrator.core.events.files import ContentSearched
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.shown_text import Hidden
from orchestrator.core.text.answer_space import MAX_LINE, AnswerSpace, estimate_tokens, size
from orchestrator.core.text.regions import merged
from orchestrator.core.text.search import Found, Match, MatchType
from orchestrator.engine.external.observer import NO_VERSION
from orchestrator.engine.reads.search_query import query_of, read_cursor
from orchestrator.engine.reads.search_sources import Shown

ROW_BYTES, FILE_BYTES = 12, 24
"""Of a line beside its text: its number and its mark; of a file beside its path: its version."""

MIN_LINE = 50

MOST_ROWS = 8
"""A match over several lines is shown as far as so many full lines go."""

MOST_REASONS = 3
"""Files of which is told why not all of them was searched."""

_FREE = ("max_results", "context_lines")
"""Parameters that may differ from page to page."""


class Cursor(msgspec.Struct, frozen=True):
    """Where the next page begins: behind a line of a file, of which so many hits were shown."""

    query: str
    line: int = 0
    shown: int = 0
    best: int = 1000  # thousandths: the score by which files are ranked
    path: str = ""

    def __str__(self) -> str:
        return f"{self.query}:{self.line}:{self.shown}:{self.best}:{self.path}"

    @property
    def rank(self) -> tuple[int, str]:
        """Of the file; less is earlier."""
        return -self.best, self.path

    @classmethod
    def of(cls, params: p.SearchContent) -> Cursor:
        """The one that the parameters bring, or the start. Raises ParameterInvalid, also for one of another search."""
        query = query_of(params, free=_FREE)
        if params.cursor is None:
            return cls(query)
        (line, shown, best), path = read_cursor(params.cursor, query, 3)
        return cls(query, line, shown, best, path)


class Ranked(msgspec.Struct, frozen=True):
    """A file with matches; the best come first, and of equals those that are earlier by path."""

    path: WorkspacePath
    total: int
    best: float = 1.0

    @property
    def rank(self) -> tuple[int, str]:
        """Its place among others; less is earlier."""
        return -round(self.best * 1000), self.path


class Page:
    """The hits of one answer, as long as there is room."""

    def __init__(self, room: AnswerSpace, params: p.SearchContent, kind: MatchType) -> None:
        self._room, self._params, self._kind = room, params, kind
        self.cursor = Cursor.of(params)
        """Where it begins."""
        self._widest = max(MIN_LINE, min(MAX_LINE, room.bytes // 8))
        self.hits: list[r.Hit] = []
        self.files: list[r.FileHits] = []
        self.seen: list[SeenLines] = []
        self.versions: dict[str, str] = {}
        self.warnings: list[str] = []
        self.more: str | None = None
        """The cursor of the next page."""
        self._last = self.cursor
        self.outlining_s = 0.0
        """How long outlines were waited for."""

    @property
    def left(self) -> int:
        """How many more hits were asked for."""
        return self._params.max_results - len(self.hits)

    def after(self, path: WorkspacePath) -> int:
        """The line of a file behind which it goes on."""
        return self.cursor.line if path == self.cursor.path else 0

    def warn(self, warning: str) -> None:
        """Before hits are taken."""
        self.warnings.append(warning)
        self._room = self._room.less(size(warning), 1)

    def tells(self, reasons: Mapping[WorkspacePath, str]) -> None:
        """Why not all of some files was searched; before hits are taken."""
        for warning in told(reasons):
            self.warn(warning)

    def takes(
        self,
        file: Ranked,
        content: Shown,
        found: Found,
        hidden: Hidden,
        *,
        last: bool,
    ) -> bool:
        """Take the hits of one file, as far as they fit; whether the page goes on after them."""
        path = file.path
        earlier = self.cursor.shown if path == self.cursor.path else 0
        most = self._params.max_per_file
        hits = found.hits if most is None else found.hits[: max(0, most - earlier)]
        shown = self._fitting(path, list(hits[: self.left]))
        if shown:
            self.hits += [hit_of(path, match, self._widest, self._kind) for match in shown]
            self.versions[path] = show(content.version)
            self.warnings += content.warnings
            if content.version != NO_VERSION:
                seen = _seen(path, content.version, shown, found.lines, self._widest)
                ranges = tuple(part for known in seen.ranges for part in hidden.without(known))
                self.seen.append(msgspec.structs.replace(seen, ranges=ranges))
            self._last = Cursor(self.cursor.query, shown[-1].line, earlier + len(shown), -file.rank[0], path)
        if len(hits) > len(shown) or (not self.left and not last):
            self.more = str(self._last)
        return self.more is None

    def takes_files(self, files: Sequence[Ranked]) -> None:
        """Take the files behind the cursor, as far as they fit."""
        rest = [file for file in files if not self.cursor.path or file.rank > self.cursor.rank]
        most = self._params.max_results
        found = [r.FileHits(path=file.path, total=file.total, score=file.best) for file in rest[:most]]
        room = self._room.less(max((size(repr(file.path)) + size(file.path) for file in found), default=0))
        costs = ((room.cost(size(escaped(file.path)) + ROW_BYTES, file), 1) for file in found)
        self.files = found[: room.first(costs)]
        if len(rest) > len(self.files):
            last = rest[len(self.files) - 1]
            self.more = str(Cursor(self.cursor.query, best=-last.rank[0], path=last.path))

    def event(self, start: WorkspacePath, *, total: int, searched: int, left_out: int) -> ContentSearched:
        """That these lines were shown."""
        return ContentSearched(
            pattern=self._params.pattern,
            path=start,
            globs=self._params.globs,
            mode=self._params.mode,
            seen=tuple(self.seen),
            total=total,
            files_searched=searched,
            left_out=left_out,
            tokens=sum(estimate_tokens(line) for hit in self.hits for line in (*hit.before, hit.text, *hit.after)),
        )

    def answer(
        self, noted: ContentSearched, *, partial: bool, truncated: bool, hint: str | None = None
    ) -> r.SearchResult:
        """The page, as it was noted."""
        return r.SearchResult(
            hits=tuple(self.hits),
            files=tuple(self.files),
            total=noted.total,
            files_searched=noted.files_searched,
            files_left_out=noted.left_out,
            truncated=truncated,
            partial=partial,
            cursor=self.more,
            versions=self.versions,
            hint=hint,
            warnings=tuple(self.warnings),
        )

    def _fitting(self, path: WorkspacePath, shown: list[Match]) -> list[Match]:
        """The first of the hits for which there is room; of a first page at least one, without its context."""
        self._room = self._room.less(size(escaped(path)) + FILE_BYTES, 1)
        costs = list(_costs(path, shown, self._room, self._widest))
        fitting = self._room.less(size(repr(path)) + size(path)).first(costs, least=0)  # the cursor may name it, too
        for cost in costs[:fitting]:
            self._room = self._room.less(*cost)
        if shown and not fitting and not self.hits:  # with so much context it fits on no page
            return [msgspec.structs.replace(shown[0], before=(), after=(), submatches=shown[0].submatches[:1])]
        return shown[:fitting]


def told(reasons: Mapping[WorkspacePath, str]) -> Iterator[str]:
    """Why not all of some files was searched, one line each; of many the first."""
    for path, reason in [*reasons.items()][:MOST_REASONS]:
        yield f"{escaped(path)}: {reason}"
    if len(reasons) > MOST_REASONS:
        yield f"so it is with {plural(len(reasons) - MOST_REASONS, 'more file')}"


def hit_of(path: WorkspacePath, match: Match, widest: int, kind: MatchType) -> r.Hit:
    """A match as it is shown, a long one as the part around it."""
    text, spans, left_out = match.text, match.submatches, match.before_text
    most = widest if match.rows == 1 else MOST_ROWS * widest
    if len(text) > most:
        first = max(0, spans[0][0] - widest // 4) if spans and match.rows == 1 else 0
        text = text[first : first + most]
        spans = tuple((a - first, b - first) for a, b in spans)
        left_out = None if left_out is None else left_out + first
    later = [a for a, b in spans if a > len(text) or (a == len(text) and a < b)]
    spans = tuple((a, min(b, len(text))) for a, b in spans[: len(spans) - len(later)])
    if match.rows > 1:
        later = []
    return r.Hit(
        path=path,
        line=match.line,
        end_line=match.last if match.rows > 1 else None,
        text=text,
        column=left_out + 1 if left_out else None,
        submatches=tuple(r.Submatch(start=a, end=b) for a, b in spans),
        before=tuple(line[:widest] for line in match.before),
        after=tuple(line[:widest] for line in match.after),
        context=match.context,
        match_type="exact" if match.score == 1.0 and kind == "fuzzy" else kind,
        score=match.score,
        more_matches=len(later),
        next_column=left_out + later[0] + 1 if later and left_out is not None else None,
    )


def _costs(path: WorkspacePath, matches: list[Match], room: AnswerSpace, widest: int) -> Iterator[tuple[int, int]]:
    """Bytes and lines of each hit with its context; a text has a line of context once, for all hits around it."""
    last = 0
    for match in matches:
        hit = hit_of(path, match, widest, "regex")
        first = match.line - len(hit.before)
        before, after = hit.before[max(0, last + 1 - first) :], hit.after[max(0, last - match.last) :]
        counted = match.last <= last and len(match.text) <= widest  # among the context of an earlier hit
        rows = (*(() if counted else hit.shown_rows), *before, *after)
        more = [row for row in ("" if last and first > last + 1 else None, hit.context) if row is not None]
        yield room.cost(sum(size(row) + ROW_BYTES for row in (*rows, *more)), hit), len(rows) + len(more)
        last = match.last + len(hit.after)


def _seen(path: WorkspacePath, version: Seq, shown: list[Match], total: int, widest: int) -> SeenLines:
    cut = any(
        len(line) > widest for match in shown for line in (*match.text.split("\n"), *match.before, *match.after)
    ) or any(match.rows > 1 and len(match.text) > MOST_ROWS * widest for match in shown)
    ranges = merged(tuple(LineRange(m.line - len(m.before), m.last + len(m.after)) for m in shown))
    return SeenLines(path=path, version=version, ranges=ranges, total_lines=total, cut=cut)
