"""find_references: where a name is used. A search finds files with the word, syntax trees say what each is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from anyio import to_thread

from orchestrator.api import relations as s
from orchestrator.core.errors import (
    MOST_PLACES,
    FileTooLarge,
    PathError,
    SymbolAmbiguous,
    SymbolNotFound,
    escaped,
)
from orchestrator.core.events.files import ContentSearched
from orchestrator.core.globs import Globs
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import ROOT
from orchestrator.core.text.answer_space import estimate_tokens
from orchestrator.core.text.fuzzy import FuzzyPattern
from orchestrator.core.text.import_paths import FAMILIES
from orchestrator.core.text.locate_symbol import find_symbols
from orchestrator.core.text.references import MEANT, References, Role, Sought
from orchestrator.core.text.search import Pattern
from orchestrator.core.text.symbols import Outline, Symbol, language_of, suffixes_of
from orchestrator.engine.access import ContentAccess, Showing
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.outlined_files import outlined_file
from orchestrator.engine.reads.reference_page import FoundFile, ReferencePage, reference_line
from orchestrator.engine.reads.search import Searcher
from orchestrator.engine.reads.search_page import told
from orchestrator.engine.reads.search_query import query_of, read_cursor
from orchestrator.engine.reads.symbol_reads import named_symbol
from orchestrator.engine.services import Services

NAMED: tuple[Showing, ...] = ("search", "read")
SHOWN: tuple[Showing, ...] = (*NAMED, "list")

MOST_NEAR_FILES = 8
"""In which names are sought that are like one that is nowhere."""

LOOKED_US = 8_000_000
"""How long files are looked at for one answer; it then goes on with the next file."""

_RANK: tuple[Role, ...] = ("definition", "import", "use", "member", "word", "string", "comment", "elsewhere")
"""Of several on one line the first says what the line is."""

_INNER = frozenset({"function", "method"})


class _Defined(NamedTuple):
    """Where the symbol is that is looked for. `within`: in a function, so that no other file can use it."""

    access: ContentAccess
    path: WorkspacePath
    name: str  # dotted
    line: int
    within: bool


class ReferenceFinder:
    """Shows lines as a search does, and notes them as seen."""

    def __init__(self, services: Services, observer: Observer, searcher: Searcher) -> None:
        self._s, self._observer, self._searcher = services, observer, searcher

    async def find_references(self, caller: Caller, call: Call, params: s.FindReferences) -> s.FoundReferences:
        query, after, first = query_of(params, free=("max_results",)), 0, ""
        if params.cursor is not None:
            (after,), first = read_cursor(params.cursor, query, 1)
        name = params.symbol.rpartition(".")[2] or params.symbol
        defined = await self._defined(caller, call, params) if params.path is not None else None
        globs = params.globs or (_family(defined.path) if defined is not None else ())
        sweep = await self._searcher.sweep(caller, ROOT, globs, Pattern(name, word=True))
        counts = {file.path: file.total for file in sweep.files}
        paths = sorted(counts)
        if defined is None and name != params.symbol:
            defined = await self._defined_in(caller, paths, params.symbol)
            family = self._s.paths.globs(params.globs) or Globs(_family(defined.path) or ("*",))
            paths = [path for path in paths if family.match(path)]
        if defined is not None:  # it was named, so it is shown, also where the caller may not list it
            paths = [defined.path] if defined.within else sorted({defined.path, *paths})
        page = ReferencePage(call.room.framed(escaped(name)), params.max_results, query)
        for warning in told(sweep.reasons):
            page.warn(warning)
        until = self._s.clock.ticks_us() + LOOKED_US
        for path in [path for path in paths if path >= first]:
            named = defined.access if defined is not None and path == defined.path else None
            access = named or self._s.access.content_of_many(caller, path, SHOWN)
            if access is None:
                continue  # policy was changed meanwhile
            if self._s.clock.ticks_us() > until:
                page.more = f"{query}:0:{path}"
                break
            try:
                found, lines = await self._lines_of(access, name, defined, params, after if path == first else 0)
            except FileTooLarge:
                page.leaves_out(path, name)
                continue
            except PathError:
                continue  # it is gone by now, or no text
            page.count(found)
            if not page.takes(found, lines):
                break
        near = () if counts or defined is not None else await self._near(caller, globs, name)
        total = sum(counts.get(path, 0) for path in paths)
        event = ContentSearched(
            pattern=name,
            path=ROOT,
            globs=globs,
            seen=tuple(page.seen),
            total=total,
            files_searched=sweep.searched,
            left_out=sweep.left_out,
            tokens=sum(estimate_tokens(hit.text) for hit in page.hits),
        )
        await self._s.notes.note_shown(caller, call, event)
        return s.FoundReferences(
            symbol=params.symbol,
            defined_in=defined.path if defined is not None else None,
            hits=tuple(page.hits),
            total=total,
            files_searched=sweep.searched,
            files_left_out=sweep.left_out,
            by_scope=page.ways["scope"],
            by_syntax=page.ways["syntax"],
            by_word=page.ways["word"],
            elsewhere=page.dropped["elsewhere"],
            in_comments=page.dropped["comment"],
            in_strings=page.dropped["string"],
            partial=sweep.partial,
            cursor=page.more,
            versions=page.versions,
            warnings=(*page.warnings, *page.told_large(), *near),
        )

    async def _near(self, caller: Caller, globs: tuple[str, ...], name: str) -> tuple[str, ...]:
        """What is defined under a name like one that is nowhere, in the files that are most like it."""
        sweep = await self._searcher.sweep(caller, ROOT, globs, FuzzyPattern(name, case_sensitive=False))
        defined = dict[str, WorkspacePath]()
        for file in sorted(sweep.files, key=lambda one: one.rank)[:MOST_NEAR_FILES]:
            access = self._s.access.content_of_many(caller, file.path, SHOWN)
            if access is None:
                continue  # policy was changed meanwhile
            try:
                async with self._s.locks.shared(file.path):
                    found = await outlined_file(self._s, self._observer, access)
            except PathError:
                continue  # it is gone by now, no text, or read by pieces
            if found.outline.parsed:
                defined.update((found.told(one.name), file.path) for _, one in found.outline.walk())
        nearest = await to_thread.run_sync(get_close_matches, name, tuple(defined))
        named = ", ".join(f"{escaped(one)} ({escaped(defined[one])})" for one in nearest)
        return (f"no file that was searched has the word {escaped(name)}; nearest names: {named}",) if named else ()

    async def _defined(self, caller: Caller, call: Call, params: s.FindReferences) -> _Defined:
        """Raises SymbolNotFound, SymbolAmbiguous, and as a read of the file."""
        path = self._s.paths.file(params.path or "")
        access = self._s.access.content(caller, call, path, NAMED)
        async with self._s.locks.shared(path):
            found = await outlined_file(self._s, self._observer, access)
        places = _places(access, found.outline, params.symbol)
        if not places:
            named_symbol(path, found.outline, params.symbol)
        return _only(places, params.symbol)

    async def _defined_in(self, caller: Caller, paths: Sequence[WorkspacePath], symbol: str) -> _Defined:
        """Where a dotted name is defined, of the files with its last part. Raises SymbolNotFound, SymbolAmbiguous."""
        places = list[_Defined]()
        for path in paths:
            access = self._s.access.content_of_many(caller, path, SHOWN)
            if access is None:
                continue  # policy was changed meanwhile
            try:
                async with self._s.locks.shared(path):
                    found = await outlined_file(self._s, self._observer, access)
            except PathError:
                continue  # it is gone by now, no text, or read by pieces
            places += _places(access, found.outline, symbol)
        if not places:
            last = symbol.rpartition(".")[2]
            hint = f"find_references(symbol={quoted(last)}) shows where anything is called {escaped(last)}."
            raise SymbolNotFound(f"no file that was searched defines {escaped(symbol)}", hint=hint)
        return _only(places, symbol)

    async def _lines_of(
        self,
        access: ContentAccess,
        name: str,
        defined: _Defined | None,
        params: s.FindReferences,
        after: int,
    ) -> tuple[FoundFile, list[s.ReferenceLine]]:
        """The lines of a file, beyond a line, on which the name is what is looked for. Raises the PathError family."""
        path = access.path
        async with self._s.locks.shared(path):
            found = await outlined_file(self._s, self._observer, access)
            answer: References | None = None
            if params.by == "scope":
                sought = _sought(found.outline, path, name, defined)
                answer = await self._s.parser.references(path, found.data, sought)
        by_line: dict[int, list[Role]] = {}
        if answer is None:
            word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
            for number, text in enumerate(found.document.lines, 1):
                if name in text and word.search(text):
                    by_line[number] = ["word"]
        else:
            for one in answer.found:
                other = one.role == "definition" and defined and _is_other(found.outline, one.line, defined)
                by_line.setdefault(one.line, []).append("elsewhere" if other else one.role)
        meant = {line: min(roles, key=_RANK.index) for line, roles in by_line.items() if MEANT.intersection(roles)}
        dropped: Counter[str] = Counter(role for roles in by_line.values() for role in roles if role not in MEANT)
        way = "word" if answer is None else "scope" if answer.scoped else "syntax"
        lines = [
            reference_line(found, name, number, role)
            for number, role in meant.items()
            if number > after and number <= found.document.line_count
        ]
        return FoundFile(found, way, dropped), lines


def _places(access: ContentAccess, outline: Outline, symbol: str) -> list[_Defined]:
    """The symbols that are called so, once for each dotted name: overloads are used alike."""
    named = dict[str, Symbol]()
    for name, one in find_symbols(outline, symbol):
        named.setdefault(name, one)
    places = list[_Defined]()
    for name, one in named.items():
        around = outline.enclosing(one.line, one.end_line)
        within = any(holder.kind in _INNER for holder in around[: name.count(".")])
        places.append(_Defined(access, access.path, name, one.line, within))
    return places


def _only(places: Sequence[_Defined], symbol: str) -> _Defined:
    """Raises SymbolAmbiguous, with a call for each."""
    if len(places) == 1:
        return places[0]
    told = [
        {
            "path": one.path,
            "name": one.name,
            "line": one.line,
            "call": f"find_references(symbol={quoted(one.name)}, path={quoted(one.path)})",
        }
        for one in places[:MOST_PLACES]
    ]
    raise SymbolAmbiguous(
        f"{len(places)} symbols are called {escaped(symbol)}",
        hint="Send the call of the one that you mean, from `details`.",
        details={"places": told},
    )


def _is_other(outline: Outline, line: int, defined: _Defined) -> bool:
    """Whether what is defined on a line belongs to another class, of which this tells by its dotted name."""
    name = "." + ".".join(one.name for one in outline.enclosing(line, line)).replace("::", ".")
    meant = "." + defined.name.replace("::", ".")
    called_alike = name.rpartition(".")[2] == meant.rpartition(".")[2]
    return called_alike and not (name.endswith(meant) or meant.endswith(name))


def _sought(outline: Outline, path: WorkspacePath, name: str, defined: _Defined | None) -> Sought:
    if defined is None:
        return Sought(name)
    held = "." in defined.name
    if path == defined.path:
        return Sought(name, line=defined.line, held=held)
    brings = any(
        name in one.names or "*" in one.names or name in re.split(r"\W+", one.source) for one in outline.imports
    )
    return Sought(name, foreign=True, imported=brings, held=held)


def _family(path: WorkspacePath) -> tuple[str, ...]:
    """Globs of the files that can use what is defined in a file of this name; none: any."""
    language = language_of(path)
    if language is None:
        return ()
    family: Iterator[str] = (one for each in FAMILIES if language in each for one in each)
    return tuple(f"*{suffix}" for one in (tuple(family) or (language,)) for suffix in suffixes_of(one))
