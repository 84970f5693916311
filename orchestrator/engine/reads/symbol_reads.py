"""read_symbol, read_enclosing and read_content: lines found by a name, by a line in a symbol, or by a text."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api import structure as s
from orchestrator.core.content import LineRange
from orchestrator.core.errors import (
    MOST_PLACES,
    FileTooLarge,
    ParameterInvalid,
    SearchNotFound,
    SymbolAmbiguous,
    SymbolNotFound,
    escaped,
)
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.locate_symbol import find_symbols, only_symbol
from orchestrator.core.text.symbols import CODE, NO_GRAMMAR, Outline, Symbol
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.file_reads import Reader
from orchestrator.engine.reads.outlined_files import OutlinedFile, outlined_file
from orchestrator.engine.reads.search import Searcher
from orchestrator.engine.services import Services

AROUND = 10
"""Lines before and after a line that is in no symbol."""

BY_LOOKS = f"{NO_GRAMMAR} for this file: its parts are those that headings and indentation show"


class SymbolReader:
    """Shows lines as a read of them does."""

    def __init__(self, services: Services, observer: Observer, reader: Reader) -> None:
        self._s, self._observer, self._reader = services, observer, reader

    async def read_symbol(self, caller: Caller, call: Call, params: s.ReadSymbol) -> r.FileText:
        path = self._s.paths.file(params.path)
        access = self._s.access.content(caller, call, path)
        async with self._s.locks.shared(path):
            found = await self._outlined(
                access, f"Find it with search_content(path={quoted(path)}, pattern=…), then read_lines shows its lines."
            )
            name, symbol = named_symbol(path, found.outline, params.symbol)
            return await self._show(access, call, params, found, LineRange(symbol.line, symbol.end_line), name)

    async def read_enclosing(self, caller: Caller, call: Call, params: s.ReadEnclosing) -> r.FileText:
        path, line = self._s.paths.file(params.path), params.line
        access = self._s.access.content(caller, call, path)
        async with self._s.locks.shared(path):
            lines = f"start={max(1, line - AROUND)}, end={line + AROUND}"
            found = await self._outlined(access, f"Send read_lines(path={quoted(path)}, {lines}).")
            total = found.document.line_count
            if line > max(total, 1):
                raise ParameterInvalid("line", f"{line} is after the last line, {total}, of {path}")
            told: tuple[str, ...] = ()
            holders = _around(found.outline.enclosing(line, line))
            if not holders:
                around = LineRange(max(1, line - AROUND), min(total, line + AROUND))
                told = (f"line {line} is in no function, class or section: the lines around it are shown",)
                return await self._show(access, call, params, found, around, None, told)
            name, symbol = holders[max(0, len(holders) - params.depth)]
            if len(holders) < params.depth:
                told = (f"nothing is around {found.told(name)}",)
            return await self._show(access, call, params, found, LineRange(symbol.line, symbol.end_line), name, told)

    async def _outlined(self, access: ContentAccess, instead: str) -> OutlinedFile:
        """The file; `instead` says what to send where it is read by pieces, which has no outline."""
        try:
            return await outlined_file(self._s, self._observer, access)
        except FileTooLarge as error:
            error.hint = instead
            raise

    async def _show(
        self,
        access: ContentAccess,
        call: Call,
        params: s.ReadSymbol | s.ReadEnclosing,
        found: OutlinedFile,
        lines: LineRange,
        name: str | None,
        told: tuple[str, ...] = (),
    ) -> r.FileText:
        wanted = p.ReadFile(
            path=params.path,
            start=max(1, lines.start - params.context_lines),
            end=lines.end + params.context_lines,
            max_tokens=params.max_tokens,
            line_numbers=params.line_numbers,
        )
        notes = (*found.shown.warnings, *told, *(() if found.outline.parsed else (BY_LOOKS,)))
        text = await self._reader.show(access, call, wanted, found.shown._replace(warnings=notes))
        return msgspec.structs.replace(text, symbol=found.told(name) if name is not None else None)


class ContentReader:
    """Finds the place, and shows its lines as the other reads do."""

    def __init__(self, reader: Reader, symbols: SymbolReader, searcher: Searcher) -> None:
        self._reader, self._symbols, self._searcher = reader, symbols, searcher

    async def read_content(self, caller: Caller, call: Call, params: s.ReadContent) -> r.FileText:
        _check(params)
        line = params.line
        if params.pattern is not None:
            line = await self._line_of(caller, call, params.path, params.pattern)
        if params.mode not in ("semantic", "enclosing"):
            start = -params.limit if params.mode == "tail" else line or 1
            return await self._lines(caller, call, params, start)
        if line is None:
            raise ParameterInvalid("line", f"mode={params.mode!r} needs a place", hint="Send `line` or `pattern`.")
        wanted = s.ReadEnclosing(
            path=params.path,
            line=line,
            depth=params.depth,
            max_tokens=params.max_tokens,
            line_numbers=params.line_numbers,
        )
        try:
            return await self._symbols.read_enclosing(caller, call, wanted)
        except FileTooLarge as error:
            text = await self._lines(caller, call, params, max(1, line - params.limit // 2))
            warned = (*text.warnings, f"the lines around line {line} are shown: {error.message}")
            return msgspec.structs.replace(text, warnings=warned)

    async def _lines(self, caller: Caller, call: Call, params: s.ReadContent, start: int) -> r.FileText:
        wanted = p.ReadFile(
            path=params.path,
            start=start,
            end=start + params.limit - 1,
            max_tokens=params.max_tokens,
            line_numbers=params.line_numbers,
            delta=False,
        )
        try:
            return await self._reader.read_file(caller, call, wanted)
        except ParameterInvalid as error:  # it is called `start` there
            raise ParameterInvalid("line", error.message.removeprefix("start: ")) from error

    async def _line_of(self, caller: Caller, call: Call, path: str, pattern: str) -> int:
        """Where a text occurs first. Raises SearchNotFound."""
        line = await self._searcher.first_line(caller, call, path, pattern)
        if line is None:
            hint = f"search_content(path={quoted(path)}, mode='fuzzy') finds it with typos, mode='regex' by expression."
            raise SearchNotFound(f"the text occurs in no line of {escaped(path)}", hint=hint)
        return line


def _around(holders: Sequence[Symbol]) -> list[tuple[str, Symbol]]:
    """The symbols around a line with their dotted names, outermost first; those of code alone, if it has any."""
    named = [(".".join(one.name for one in holders[: at + 1]), symbol) for at, symbol in enumerate(holders)]
    return [one for one in named if one[1].kind in CODE] or named


def named_symbol(path: WorkspacePath, outline: Outline, name: str) -> tuple[str, Symbol]:
    """As `only_symbol`; a refusal says what to send instead: the nearest names, or the lines of each called so."""
    try:
        return only_symbol(outline, name)
    except SymbolAmbiguous as error:
        error.hint = "Send the call of the one that you mean, from `details`."
        error.details["places"] = [
            {"name": dotted, "line": one.line, "end_line": one.end_line, "call": _reading(path, one)}
            for dotted, one in find_symbols(outline, name)[:MOST_PLACES]
        ]
        raise
    except SymbolNotFound as error:
        where = f"path={quoted(path)}"
        error.hint = (
            f"No symbol is near. get_overview({where}) shows its names, search_content({where}, pattern=…) texts."
        )
        if error.details.get("nearest"):
            error.hint = f"Send one of the nearest names; get_overview({where}) has all."
        raise


def _reading(path: WorkspacePath, symbol: Symbol) -> str:
    return f"read_file(path={quoted(path)}, start={symbol.line}, end={symbol.end_line})"


def _check(params: s.ReadContent) -> None:
    """Whether the parameters go together. Raises ParameterInvalid."""
    given = [name for name in ("line", "pattern") if getattr(params, name) is not None]
    if len(given) > 1:
        raise ParameterInvalid("pattern", "send one of line and pattern")
    if given and params.mode in ("head", "tail"):
        raise ParameterInvalid(given[0], f"does not go with mode={params.mode!r}, which begins at an end of the file")
    if params.depth > 1 and params.mode != "enclosing":
        raise ParameterInvalid("depth", f"goes with mode='enclosing', not with {params.mode!r}")
