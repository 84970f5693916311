"""read_symbol and read_enclosing: the lines of one symbol, found by its name or by a line in it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api import structure as s
from orchestrator.core.content import LineRange
from orchestrator.core.errors import MOST_PLACES, FileTooLarge, ParameterInvalid, SymbolAmbiguous, SymbolNotFound
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.locate_symbol import find_symbols, only_symbol
from orchestrator.core.text.symbols import CODE, Outline, Symbol
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.file_reads import Reader
from orchestrator.engine.reads.outlined_files import OutlinedFile, outlined_file
from orchestrator.engine.services import Services

AROUND = 10
"""Lines before and after a line that is in no symbol."""

NO_GRAMMAR = "no grammar reads this file: its parts are those that headings and indentation show"


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
            try:
                name, symbol = only_symbol(found.outline, params.symbol)
            except (SymbolNotFound, SymbolAmbiguous) as error:
                offer(error, path, found.outline, params.symbol)
                raise
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
        notes = (*found.shown.warnings, *told, *(() if found.outline.parsed else (NO_GRAMMAR,)))
        text = await self._reader.show(access, call, wanted, found.shown._replace(warnings=notes))
        return msgspec.structs.replace(text, symbol=found.told(name) if name is not None else None)


def _around(holders: Sequence[Symbol]) -> list[tuple[str, Symbol]]:
    """The symbols around a line with their dotted names, outermost first; those of code alone, if it has any."""
    named = [(".".join(one.name for one in holders[: at + 1]), symbol) for at, symbol in enumerate(holders)]
    return [one for one in named if one[1].kind in CODE] or named


def offer(error: SymbolNotFound | SymbolAmbiguous, path: WorkspacePath, outline: Outline, name: str) -> None:
    """Put into a refusal what to send instead: the nearest names, or the lines of each that is called so."""
    if isinstance(error, SymbolAmbiguous):
        error.hint = "Send the call of the one that you mean, from `details`."
        error.details["places"] = [
            {"name": dotted, "line": one.line, "end_line": one.end_line, "call": _reading(path, one)}
            for dotted, one in find_symbols(outline, name)[:MOST_PLACES]
        ]
    elif error.details.get("nearest"):
        error.hint = f"Send one of the nearest names; get_overview(path={quoted(path)}) has all."
    else:
        where = f"path={quoted(path)}"
        error.hint = (
            f"No name is near. get_overview({where}) shows its names, search_content({where}, pattern=…) texts."
        )


def _reading(path: WorkspacePath, symbol: Symbol) -> str:
    return f"read_file(path={quoted(path)}, start={symbol.line}, end={symbol.end_line})"
