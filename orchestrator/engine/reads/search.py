"""search_content: an exact text in one file or in a tree."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec
from anyio import to_thread

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.content import LineRange
from orchestrator.core.errors import BinaryFile, FileNotFound, ParameterInvalid, PathError, TextTooCostly, escaped
from orchestrator.core.events.files import ContentSearched, SeenLines
from orchestrator.core.globs import Globs
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.projections.registry import NOTHING, Known
from orchestrator.core.text.answer_space import MAX_LINE, AnswerSpace, estimate_tokens, size
from orchestrator.core.text.encoding import Document, decode
from orchestrator.core.text.regions import merged
from orchestrator.core.text.search import Found, Match, Pattern, search
from orchestrator.engine.access import ContentAccess, Showing
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import NO_VERSION, Observer, required, warnings
from orchestrator.engine.paths import Walker, below
from orchestrator.engine.redaction import NOTHING_HIDDEN, Hidden
from orchestrator.engine.services import MAX_FILE_BYTES, Services

SHOWN: tuple[Showing, ...] = ("search", "read")
"""What a search of one file shows; one of many files shows their names too."""

SHOWN_OF_MANY: tuple[Showing, ...] = (*SHOWN, "list")

LARGE_BYTES = 512 * 1024
"""Larger texts are searched in a worker."""

ROW_BYTES, FILE_BYTES = 12, 24
"""Of a line beside its text: its number and its mark; of a file beside its path: its version."""

MIN_LINE = 50


class Sweep:
    """How many lines match in each file of a tree, by path."""

    def __init__(self) -> None:
        self.counts: dict[WorkspacePath, int] = {}
        self.searched = self.unsearched = 0
        self.left_out = 0  # files that policy keeps out

    def add(self, path: WorkspacePath, found: Found | None) -> None:
        """A file was searched; None: it is not text."""
        self.searched += 1
        if found is not None and found.total:
            self.counts[path] = found.total


class Searcher:
    """Finds lines, shows them, and notes which lines of which version were shown."""

    def __init__(self, services: Services, observer: Observer) -> None:
        self._s, self._observer = services, observer
        self._walker = Walker(services.workspace, services.ignore)

    async def search_content(self, caller: Caller, call: Call, params: p.SearchContent) -> r.SearchResult:
        pattern = Pattern(params.pattern, case_sensitive=params.case_sensitive, word=params.word)
        start = self._s.paths.either(params.path)
        stat = self._s.workspace.stat(start)
        if stat is None:
            raise FileNotFound(start, "there is nothing to search")
        skip_line, skip_path = _read_cursor(params.cursor)
        page = _Page(call.room.framed(), params)
        alone, named = stat.kind != "directory", None
        if alone:
            named = self._s.access.content(caller, call, start, SHOWN)
            sweep, shown = Sweep(), [start]
        else:
            await self._s.access.names(caller, call, start, directory=True)
            sweep = await self.sweep(caller, start, params.globs, pattern, invert=params.invert)
            shown = [] if params.count_only else sorted(sweep.counts)
        for path in [path for path in shown if path >= (skip_path or "")]:
            after = skip_line if path == skip_path else 0
            access = named or self._s.access.content_of_many(caller, path, SHOWN_OF_MANY)
            try:
                if access is None:
                    continue  # policy was changed meanwhile
                version, found, hidden, warned = await self._matches(
                    access, pattern, params, after=after, most=page.left + 1
                )
            except PathError:
                if alone:
                    raise
                continue  # it is gone by now, or no text
            if alone:
                sweep.add(path, found)
            if params.count_only or not page.takes(path, version, found, hidden, warned, last=path == shown[-1]):
                break
        total = sum(sweep.counts.values())
        event = ContentSearched(
            pattern=params.pattern,
            path=start,
            globs=params.globs,
            seen=tuple(page.seen),
            total=total,
            files_searched=sweep.searched,
            left_out=sweep.left_out,
            tokens=sum(estimate_tokens(line) for hit in page.hits for line in (*hit.before, hit.text, *hit.after)),
        )
        await self._s.notes.note_shown(caller, call, event)
        return r.SearchResult(
            hits=tuple(page.hits),
            total=total,
            files_searched=sweep.searched,
            files_left_out=sweep.left_out,
            truncated=page.more is not None,
            partial=sweep.unsearched > 0,
            cursor=page.more,
            versions=page.versions,
            warnings=tuple(page.warnings),
        )

    async def sweep(
        self, caller: Caller, start: WorkspacePath, globs: tuple[str, ...], pattern: Pattern, *, invert: bool
    ) -> Sweep:
        """Count the matching lines of each file that the caller may search; of large ones in a worker."""
        sweep, large = Sweep(), list[WorkspacePath]()
        search_in = partial(found_in, pattern=pattern, invert=invert)

        def sweep_small() -> None:
            wanted = Globs(globs) if globs else None
            for item in self._walker.walk(start):
                path = item.path
                if item.stat.kind != "file" or not item.valid:
                    continue
                if wanted is not None and not wanted.match(below(start, path)):
                    continue
                if self._s.access.content_of_many(caller, path, SHOWN_OF_MANY) is None:
                    sweep.left_out += 1
                    continue
                try:
                    data = self._s.workspace.read(path, most=MAX_FILE_BYTES).data
                except PathError:
                    sweep.unsearched += 1
                    continue
                known = self._known(path)
                if not invert and known is NOTHING and not pattern.maybe(data):
                    sweep.add(path, None)
                elif len(data) > LARGE_BYTES:
                    large.append(path)
                else:
                    sweep.add(path, search_in(data, known))

        await to_thread.run_sync(sweep_small)
        for path in large:
            try:
                read = await to_thread.run_sync(partial(self._s.workspace.read, path, most=MAX_FILE_BYTES))
                sweep.add(path, await self._s.workers.run(partial(search_in, read.data, self._known(path))))
            except (PathError, TextTooCostly):
                sweep.unsearched += 1
        return sweep

    def _known(self, path: WorkspacePath) -> Known:
        """What is known of the encoding of a file."""
        entry = self._s.state.registry.get(path)
        return self._s.state.encodings.of(entry.digest if entry is not None else None)

    async def _matches(
        self, access: ContentAccess, pattern: Pattern, params: p.SearchContent, *, after: int, most: int
    ) -> tuple[Seq, Found, Hidden, tuple[str, ...]]:
        """The present version, its first matching lines beyond a line, what of it is hidden, and warnings.

        Raises the PathError family.
        """
        path = access.path
        async with self._s.locks.shared(path):
            present = await self._observer.refresh_for_display(access)
            entry, digest, data = required(present)
            wanted = partial(
                found_in,
                pattern=pattern,
                context_lines=params.context_lines,
                invert=params.invert,
                max_hits=most,
                after=after,
            )
            if len(data) > LARGE_BYTES:
                found = await self._s.workers.run(partial(wanted, data, self._s.state.encodings.of(digest)))
            else:
                document = await self._s.contents.text(digest, data)
                found = wanted(document) if document is not None else None
            if found is None:
                raise BinaryFile(path, "it is not text")
            hidden = NOTHING_HIDDEN
            document = await self._s.contents.text(digest, data) if found.hits else None
            if document is not None:
                hidden = await self._s.redaction.of(access.caller, path, digest, document)
            return entry.version, self._s.redaction.matches(hidden, found), hidden, warnings(present)


class _Page:
    """The hits of one answer, as long as there is room."""

    def __init__(self, room: AnswerSpace, params: p.SearchContent) -> None:
        self._room, self._most, self._cursor = room, params.max_results, params.cursor
        self._widest = max(MIN_LINE, min(MAX_LINE, room.bytes // 8))
        self.hits: list[r.Hit] = []
        self.seen: list[SeenLines] = []
        self.versions: dict[str, str] = {}
        self.warnings: list[str] = []
        self.more: str | None = None
        """The cursor of the next page."""

    @property
    def left(self) -> int:
        """How many more hits were asked for."""
        return self._most - len(self.hits)

    def takes(
        self,
        path: WorkspacePath,
        version: Seq,
        found: Found,
        hidden: Hidden,
        warnings: tuple[str, ...],
        *,
        last: bool,
    ) -> bool:
        """Take the hits of one file, as far as they fit; whether the page goes on after them."""
        shown = self._fitting(path, list(found.hits[: self.left]))
        if shown:
            self.hits += [_hit(path, match, self._widest) for match in shown]
            self.versions[path] = show(version)
            self.warnings += warnings
            if version != NO_VERSION:
                seen = _seen(path, version, shown, found.lines, self._widest)
                ranges = tuple(part for known in seen.ranges for part in hidden.without(known))
                self.seen.append(msgspec.structs.replace(seen, ranges=ranges))
        if len(found.hits) > len(shown):
            self.more = f"{shown[-1].line}:{path}" if shown else _last_cursor(self.hits) or self._cursor
        elif not self.left and not last:
            self.more = _last_cursor(self.hits)
        return self.more is None

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


def found_in(
    text: bytes | Document,
    known: Known = NOTHING,
    *,
    pattern: Pattern,
    context_lines: int = 0,
    invert: bool = False,
    max_hits: int = 0,
    after: int = 0,
) -> Found | None:
    """Search a text; None if the bytes are none."""
    document = decode(text, like=known.written or known.like) if isinstance(text, bytes) else text
    if document is None:
        return None
    return search(document.lines, pattern, context_lines=context_lines, invert=invert, max_hits=max_hits, beyond=after)


def _hit(path: WorkspacePath, match: Match, widest: int) -> r.Hit:
    text, spans = match.text, match.submatches
    if len(text) > widest:
        first = max(0, spans[0][0] - widest // 4) if spans else 0
        text = text[first : first + widest]
        spans = tuple((a - first, b - first) for a, b in spans if b - first <= len(text))
    return r.Hit(
        path=path,
        line=match.line,
        text=text,
        submatches=tuple(r.Submatch(start=a, end=b) for a, b in spans),
        before=tuple(line[:widest] for line in match.before),
        after=tuple(line[:widest] for line in match.after),
    )


def _costs(path: WorkspacePath, matches: list[Match], room: AnswerSpace, widest: int) -> Iterator[tuple[int, int]]:
    """Bytes and lines of each hit with its context; a text has a line of context once, for all hits around it."""
    last = 0
    for match in matches:
        hit = _hit(path, match, widest)
        first = match.line - len(hit.before)
        before, after = hit.before[max(0, last + 1 - first) :], hit.after[max(0, last - match.line) :]
        counted = match.line <= last and len(match.text) <= widest  # among the context of an earlier hit
        rows = (*(() if counted else (hit.text,)), *before, *after)
        gap = ROW_BYTES if last and first > last + 1 else 0
        yield room.cost(sum(size(row) + ROW_BYTES for row in rows) + gap, hit), len(rows) + bool(gap)
        last = match.line + len(hit.after)


def _seen(path: WorkspacePath, version: Seq, shown: list[Match], total: int, widest: int) -> SeenLines:
    cut = any(len(line) > widest for match in shown for line in (match.text, *match.before, *match.after))
    ranges = merged(tuple(LineRange(m.line - len(m.before), m.line + len(m.after)) for m in shown))
    return SeenLines(path=path, version=version, ranges=ranges, total_lines=total, cut=cut)


def _last_cursor(hits: list[r.Hit]) -> str | None:
    return f"{hits[-1].line}:{hits[-1].path}" if hits else None


def _read_cursor(cursor: str | None) -> tuple[int, str | None]:
    if cursor is None:
        return 0, None
    line, _, path = cursor.partition(":")
    if not line.isdecimal() or len(line) > 9 or not path:
        raise ParameterInvalid("cursor", "is not one of ours; send the cursor of the last answer")
    return int(line), path
