"""get_overview: the outline of a file in as many levels as there is room for, its imports, and what changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from orchestrator.api import structure as s
from orchestrator.api.parameters import Version
from orchestrator.api.results import Result
from orchestrator.core.bounded_cache import BoundedCache
from orchestrator.core.content import LineRange
from orchestrator.core.errors import FileNotFound, FileTooLarge, escaped, plural
from orchestrator.core.events.files import HiddenSecret
from orchestrator.core.ids import Digest, Seq, WorkspacePath, show
from orchestrator.core.text.answer_space import PER_TOKEN, AnswerSpace, size, weight
from orchestrator.core.text.encoding import EMPTY, Document
from orchestrator.core.text.overview import SymbolChanges, TextFacts, count, facts_of, symbol_changes
from orchestrator.core.text.symbols import Outline, Symbol
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.large_texts import LargeTexts
from orchestrator.engine.reads.outlined_files import OutlinedFile, note_told, outlined_file
from orchestrator.engine.reads.symbol_reads import named_symbol
from orchestrator.engine.reads.windows import LargePassages
from orchestrator.engine.services import Services

CACHE_BYTES = 8 * 1024 * 1024
"""Of answers that are remembered; of what is known of contents a quarter."""

FACTS_BYTES, ENTRY_BYTES = 2_000, 320
"""What they take: of one content, and of a row of an answer with its texts."""

NOTE_BYTES = 24
"""Of a row beside its symbol: its end, and how many are inside."""

SAMPLE_LINES = 1_000
"""Of a file that is read by pieces, in which hints are counted."""

R = TypeVar("R", bound=Result)

_AnswerKey = tuple[s.GetOverview, Seq, Digest, tuple[HiddenSecret, ...], AnswerSpace, int]


class _Answer(NamedTuple):
    overview: s.Overview
    text: str


class Overviewer:
    """Answers from outlines, which the parser remembers by content, whoever asked for them."""

    def __init__(self, services: Services, observer: Observer, large: LargeTexts) -> None:
        self._s, self._observer, self._passages = services, observer, LargePassages(services, observer, large)
        self._facts: BoundedCache[Digest, TextFacts] = BoundedCache(CACHE_BYTES // 4)
        self._answers: BoundedCache[_AnswerKey, _Answer] = BoundedCache(CACHE_BYTES)
        services.caches.add("overviews", self._facts, self._answers)

    async def get_overview(self, caller: Caller, call: Call, params: s.GetOverview) -> s.Overview:
        path = self._s.paths.file(params.path)
        access = self._s.access.content(caller, call, path)
        async with self._s.locks.shared(path):
            try:
                found = await outlined_file(self._s, self._observer, access)
            except FileTooLarge as error:
                return await self._of_large(access, call, params, error)
            changes, warned = SymbolChanges(), found.shown.warnings
            if params.changed_since is not None:
                changes, more = await self._changes(access, found, params.changed_since)
                warned = (*warned, *more)
            tokens = self._s.permissions.answer_tokens(caller, params.max_tokens)
            room = call.room.framed(escaped(path), escaped(path), *warned)
            answer, text = self._answered(params, found, changes, room, tokens)
            await note_told(self._s, access, call, found.shown.version, found.document.line_count, text)
        return msgspec.structs.replace(answer, warnings=warned)

    async def _of_large(
        self, access: ContentAccess, call: Call, params: s.GetOverview, error: FileTooLarge
    ) -> s.Overview:
        """Of a file that is read by pieces: no outline, and of its first lines what it may be searched for."""
        path = access.path
        file = await self._passages.counted(access, error)
        if params.symbol is not None or params.changed_since is not None:
            error.hint = f"Send get_overview(path={quoted(path)}) alone, and search_content for what it defines."
            raise error
        rows, _, _ = await self._passages.lines(access.caller, path, file, LineRange(1, min(file.total, SAMPLE_LINES)))
        facts = facts_of(list(rows.values()))
        way = f"search_content(path={quoted(path)}, pattern=…) and read_lines show what it holds"
        note = f"it has {file.signature.size} bytes, so it has no outline; search_hints and long_lines count its first "
        answer = s.Overview(
            path=path,
            version_id=show(file.version),
            language="text",
            line_count=file.total,
            size=file.signature.size,
            encoding=file.encoding,
            eol=file.eol,
            long_lines=_long_lines(facts),
            search_hints=_search_hints(facts),
            warnings=(*file.warnings, f"{note}{plural(len(rows), 'line')} alone; {way}"),
        )
        await note_told(self._s, access, call, file.version, file.total, "\n".join(s.overview_rows(answer)))
        return answer

    def _answered(
        self, params: s.GetOverview, found: OutlinedFile, changes: SymbolChanges, room: AnswerSpace, tokens: int
    ) -> _Answer:
        """The answer, and its text; made once for a version, what of it is asked and what of it is hidden."""
        key = params, found.shown.version, found.digest, found.hidden.found, room, tokens
        known = self._answers.get(key) if params.changed_since is None else None
        if known is None:
            answer = self._overview(params, found, changes, _Budget(room, tokens))
            known = _Answer(answer, "\n".join(s.overview_rows(answer)))
            if params.changed_since is None:
                rows = sum(map(_taken, answer.outline)) + len(answer.imports)
                self._answers.put(key, known, FACTS_BYTES + ENTRY_BYTES * rows + len(known.text))
        return known

    async def _changes(
        self, access: ContentAccess, found: OutlinedFile, since: Version
    ) -> tuple[SymbolChanges, tuple[str, ...]]:
        """What became of the symbols since a position, and a warning; of a file that was not there all are new."""
        path, at = access.path, self._s.past.position(since, parameter="changed_since")
        try:
            row = await self._s.past.at(path, at)
        except FileNotFound as error:
            nothing = Outline("text", (), parsed=False)
            return symbol_changes(nothing, EMPTY.lines, found.outline, found.document.lines), (error.message,)
        digest, data = await self._s.past.content(access, row)
        old = await self._s.past.text(access, row)
        outline = await self._s.parser.outline(path, digest, data)
        assert outline is not None, "it is text"
        return symbol_changes(outline, old.lines, found.outline, found.document.lines), ()

    def _facts_of(self, digest: Digest, document: Document) -> TextFacts:
        return self._facts.get(digest) or self._facts.put(digest, facts_of(document.lines), FACTS_BYTES)

    def _overview(
        self, params: s.GetOverview, found: OutlinedFile, changes: SymbolChanges, budget: _Budget
    ) -> s.Overview:
        shown, document, outline = found.shown, found.document, found.outline
        facts, symbols, within = self._facts_of(found.digest, document), outline.symbols, None
        if params.symbol is not None:
            within, one = named_symbol(shown.path, outline, params.symbol)
            symbols = one.children
        first = within is None and not params.skip  # later pages do not repeat what is beside the outline
        imports = [
            s.ImportLine(line=one.line, source=found.told(one.source), names=one.names) for one in outline.imports
        ]
        changed = [
            s.SymbolChange(name=found.told(one.name), type=one.kind, change=one.change, line=one.line)
            for one in changes.symbols
        ]
        told = tuple(imports[: budget.of_quarter(imports, s.import_text)]) if first else ()
        moved = tuple(changed[: budget.of_quarter(changed, s.change_text)]) if first else ()
        marks = {(one.name, one.line): one.change for one in changes.symbols}
        rest, prefix = symbols[params.skip :], f"{within}." if within is not None else ""
        entries = _entries(rest, prefix, marks, found.told, params.depth, budget)
        left = count(rest) - sum(map(_taken, entries))
        return s.Overview(
            path=shown.path,
            version_id=show(shown.version),
            language=outline.language,
            line_count=document.line_count,
            size=len(found.data),
            encoding=document.encoding,
            eol=document.eol,
            long_lines=_long_lines(facts),
            errors=outline.errors,
            symbol=within,
            imports=told,
            imports_left_out=len(imports) - len(told) if first else 0,
            outline=entries,
            symbols=count(symbols),
            left_out=left,
            next=_next(params, shown.path, prefix, rest, entries) or None if left else None,
            changed_symbols=moved,
            changes_left_out=len(changed) - len(moved),
            changed_outside=changes.outside,
            search_hints=_search_hints(facts) if first else (),
        )


def _long_lines(facts: TextFacts) -> s.LongLinesText | None:
    long = facts.long_lines
    return s.LongLinesText(count=long.count, longest=long.longest, lines=long.lines) if long else None


def _search_hints(facts: TextFacts) -> tuple[s.SearchHint, ...]:
    return tuple(s.SearchHint(pattern=text, count=times) for text, times in facts.hints)


class _Budget:
    """What is left of an answer: bytes and lines for its client, and tokens."""

    def __init__(self, room: AnswerSpace, tokens: int) -> None:
        self._room, self._weight = room, tokens * PER_TOKEN

    def of_quarter(self, items: Sequence[R], text: Callable[[R], str]) -> int:
        """How many of these fit into a quarter of what is left; they are taken from it."""
        bytes_left, lines_left, weight_left = self._room.bytes // 4, self._room.lines // 4, self._weight // 4
        taken = 0
        for item in items:
            row = text(item)
            cost = self._room.cost(size(row) + 4, item)
            bytes_left, lines_left, weight_left = bytes_left - cost, lines_left - 1, weight_left - weight(row) - 8
            if min(bytes_left, lines_left, weight_left) < 0:
                break
            self._room, self._weight = self._room.less(cost, 1), self._weight - weight(row) - 8
            taken += 1
        return taken

    def cost(self, entry: s.OutlineEntry, depth: int) -> tuple[int, int]:
        """The bytes of one row, and its weight."""
        row = s.entry_text(entry, depth)
        return self._room.cost(size(row) + NOTE_BYTES, entry), weight(row) + NOTE_BYTES

    def holds(self, taken: int, rows: int, weighed: int) -> bool:
        return taken <= self._room.bytes and rows <= self._room.lines and weighed <= self._weight


def _entries(
    symbols: Sequence[Symbol],
    prefix: str,
    marks: Mapping[tuple[str, int], str],
    told: Callable[[str], str],
    depth: int | None,
    budget: _Budget,
) -> tuple[s.OutlineEntry, ...]:
    """The symbols in as many levels as fit, `depth` at most; where not even one fits, the first of them."""
    levels: list[list[tuple[int, int]]] = []  # the costs of the rows of each

    def measured(symbol: Symbol, prefix: str, level: int) -> s.OutlineEntry:
        entry = s.OutlineEntry(
            name=told(symbol.name),
            type=symbol.kind,
            line=symbol.line,
            end_line=symbol.end_line,
            change=marks.get((f"{prefix}{symbol.name}", symbol.line)) if marks else None,
        )
        if level == len(levels):
            levels.append([])
        levels[level].append(budget.cost(entry, level))
        if not symbol.children or level + 1 == depth:
            return entry
        inner = f"{prefix}{symbol.name}."
        children = tuple(measured(child, inner, level + 1) for child in symbol.children)
        return msgspec.structs.replace(entry, children=children)

    whole = [measured(symbol, prefix, 0) for symbol in symbols]
    taken = rows = weighed = fits = 0
    for costs in levels:
        taken, rows = taken + sum(cost for cost, _ in costs), rows + len(costs)
        weighed += sum(heavy for _, heavy in costs)
        if not budget.holds(taken, rows, weighed):
            break
        fits += 1
    if levels and not fits:
        whole = whole[: _first(levels[0], budget)]
    return tuple(_cut(entry, symbol, max(fits, 1)) for entry, symbol in zip(whole, symbols, strict=False))


def _first(costs: Iterable[tuple[int, int]], budget: _Budget) -> int:
    """How many rows fit, from the first on; one at least, so that a reader gets on."""
    taken = weighed = number = 0
    for cost, heavy in costs:
        taken, weighed = taken + cost, weighed + heavy
        if number and not budget.holds(taken, number + 1, weighed):
            break
        number += 1
    return number


def _cut(entry: s.OutlineEntry, symbol: Symbol, levels: int) -> s.OutlineEntry:
    """An entry with so many levels, itself one of them, and how many symbols are below."""
    if levels == 1 or not entry.children:
        return msgspec.structs.replace(entry, children=(), left_out=count(symbol.children))
    pairs = zip(entry.children, symbol.children, strict=True)
    return msgspec.structs.replace(entry, children=tuple(_cut(child, of, levels - 1) for child, of in pairs))


def _taken(entry: s.OutlineEntry) -> int:
    return 1 + sum(map(_taken, entry.children))


def _next(
    params: s.GetOverview,
    path: WorkspacePath,
    prefix: str,
    symbols: Sequence[Symbol],
    entries: Sequence[s.OutlineEntry],
) -> str:
    """The call that shows the next of what was left out: further symbols, or what the first of these holds."""
    since = f', changed_since="{params.changed_since}"' if params.changed_since is not None else ""
    if len(entries) < len(symbols):
        within = f", symbol={quoted(prefix[:-1])}" if prefix else ""
        depth = f", depth={params.depth}" if params.depth is not None else ""
        return f"get_overview(path={quoted(path)}{within}{depth}, skip={params.skip + len(entries)}{since})"
    name = _first_left_out(prefix, symbols, entries)
    return f"get_overview(path={quoted(path)}, symbol={quoted(name)}{since})" if name else ""


def _first_left_out(prefix: str, symbols: Sequence[Symbol], entries: Sequence[s.OutlineEntry]) -> str:
    """The dotted name of the first whose inside is not shown; not of one whose name is not."""
    for symbol, entry in zip(symbols, entries, strict=False):
        name = f"{prefix}{symbol.name}"
        if symbol.name != entry.name:
            continue
        if entry.left_out:
            return name
        if found := _first_left_out(f"{name}.", symbol.children, entry.children):
            return found
    return ""
