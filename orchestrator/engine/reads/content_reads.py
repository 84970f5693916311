"""read_content: lines from a place on, at either end of a file, or the whole function or class around a place."""

from __future__ import annotations

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api import structure as s
from orchestrator.core.errors import FileTooLarge, ParameterInvalid, SearchNotFound, escaped
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.file_reads import Reader
from orchestrator.engine.reads.search import Searcher
from orchestrator.engine.reads.symbol_reads import SymbolReader


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
            raise ParameterInvalid("line", f"{start} is after the last line of {escaped(params.path)}") from error

    async def _line_of(self, caller: Caller, call: Call, path: str, pattern: str) -> int:
        """Where a text occurs first. Raises SearchNotFound."""
        line = await self._searcher.first_line(caller, call, path, pattern)
        if line is None:
            hint = f"search_content(path={quoted(path)}, mode='fuzzy') finds it with typos, mode='regex' by expression."
            raise SearchNotFound(f"the text occurs in no line of {escaped(path)}", hint=hint)
        return line


def _check(params: s.ReadContent) -> None:
    """Whether the parameters go together. Raises ParameterInvalid."""
    given = [name for name in ("line", "pattern") if getattr(params, name) is not None]
    if len(given) > 1:
        raise ParameterInvalid("pattern", "send one of line and pattern")
    if given and params.mode in ("head", "tail"):
        raise ParameterInvalid(given[0], f"does not go with mode={params.mode!r}, which begins at an end of the file")
    if params.depth > 1 and params.mode != "enclosing":
        raise ParameterInvalid("depth", f"goes with mode='enclosing', not with {params.mode!r}")
