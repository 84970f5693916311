"""Overviews and reads."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from orchestrator.api.results import FileText
from orchestrator.api.structure import GET_OVERVIEW, READ_ENCLOSING, ImportLine, OutlineEntry
from orchestrator.core.errors import FileNotFound, FileTooLarge, ParameterInvalid
from orchestrator.servers.toolsets import texts
from orchestrator.servers.toolsets.largefile import params as p
from orchestrator.servers.toolsets.largefile.answers import answer, half
from orchestrator.servers.toolsets.largefile.searches import first_match
from orchestrator.servers.toolsets.tool import Calls, ToolAnswer

LONG_LINE = 1000
ABOVE = 5
"""Lines before a match from which a read begins."""

TARGET_LINES = 21
"""That a read around a `target` of the first versions has."""

TARGET_BELOW = 15

_HINTS = {
    ".py": ("def ", "class ", "import ", "from "),
    ".go": ("func ", "type ", "import ", "package "),
    ".rs": ("fn ", "struct ", "impl ", "use "),
    ".java": ("class ", "interface ", "enum ", "import ", "@interface "),
    **dict.fromkeys((".js", ".ts", ".jsx", ".tsx"), ("function ", "class ", "const ", "import ")),
}
_OTHER_HINTS = ("TODO", "FIXME", "NOTE", "HACK")


async def overview(calls: Calls, params: p.Overview) -> ToolAnswer:
    """Lines, size, encoding and outline of a file."""
    path = calls.absolute(params.absolute_file_path)
    marks = _ranges(params.changed_lines) if params.changed_lines is not None else None
    known = await texts.facts(calls, path)
    if not known.exists:
        raise FileNotFound(path, "there is nothing")
    long: dict[str, Any] = {"has_long_lines": False, "count": 0, "max_length": 0, "threshold": LONG_LINE}
    said: dict[str, Any] = {
        "line_count": known.line_count or 0,
        "file_size": known.size,
        "encoding": known.encoding,
        "is_binary": known.is_binary,
        "binary_hint": _kind(path) if known.is_binary else None,
        "long_lines": long,
        "outline": [],
        "search_hints": [],
    }
    if known.is_binary:
        if marks is not None:
            raise ParameterInvalid("changed_lines", "Binary file: changed_lines not supported for binary files")
        return answer({**said, "warning": "Binary file detected. Text operations may not work correctly."})
    hints = _HINTS.get(PurePosixPath(path).suffix.lower(), _OTHER_HINTS)
    said["search_hints"] = list(hints)
    found = await calls.make(GET_OVERVIEW, path=path, room=half(calls), max_tokens=half(calls).bytes // 40)
    if found.long_lines is not None:
        long |= {"has_long_lines": True, "count": found.long_lines.count, "max_length": found.long_lines.longest}
    rows = [_import(one) for one in found.imports] + [_row(entry) for entry in _flat(found.outline)]
    if marks is not None:
        for row in rows:
            row["changes"] = _change(row["line_number"], row["end_line"], marks)
        said["changed_symbols"] = sum(row["changes"] is not None for row in rows)
    said |= {"line_count": found.line_count, "encoding": found.encoding, "outline": rows}
    left_out = [f"[cut: {found.left_out} of {found.symbols} symbols are not shown]"] if found.left_out else []
    return answer(said, *left_out, *found.warnings)


def _kind(path: str) -> str | None:
    """What a binary file may be, by its name."""
    kind = (mimetypes.guess_type(path)[0] or "").partition("/")[0]
    return {"image": "image", "audio": "media", "video": "media"}.get(kind)


def _flat(entries: Iterable[OutlineEntry]) -> Iterator[OutlineEntry]:
    for entry in entries:
        yield entry
        yield from _flat(entry.children)


def _import(one: ImportLine) -> dict[str, Any]:
    """Its outline begins with what a file imports."""
    name = f"import {one.source}"
    return {"name": name, "type": "import", "line_number": one.line, "end_line": one.line, "line_count": 1}


def _row(entry: OutlineEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "type": entry.type,
        "line_number": entry.line,
        "end_line": entry.end_line,
        "line_count": entry.end_line - entry.line + 1,
    }


Range = tuple[int, int, str]


def _ranges(given: tuple[tuple[int | str, ...], ...]) -> list[Range]:
    """Raises ParameterInvalid."""
    found = list[Range]()
    for one in given:
        match tuple(int(part) if str(part).isdecimal() else part for part in one):
            case (int(start), int(end)) if 1 <= start <= end:
                found.append((start, end, "modified"))
            case (int(start), int(end), "added" | "modified" | "removed" as kind) if 1 <= start <= end:
                found.append((start, end, str(kind)))
            case _:
                why = f"{list(one)} is not [start, end] or [start, end, 'added'|'modified'|'removed']"
                raise ParameterInvalid("changed_lines", why)
    return found


def _change(start: int, end: int, ranges: list[Range]) -> str | None:
    """What became of the lines of a symbol: all of them new, or gone, or else changed."""
    met = [one for one in ranges if one[0] <= end and one[1] >= start]
    kinds = {kind for _, _, kind in met}
    if not kinds:
        return None
    if kinds == {"added"}:
        new = {line for first, last, _ in met for line in range(max(first, start), min(last, end) + 1)}
        return "added" if len(new) == end - start + 1 else "modified"
    return "removed" if kinds == {"removed"} else "modified"


async def read(calls: Calls, params: p.Read) -> ToolAnswer:
    """Lines of a file, by number, around a match, or from one of its ends."""
    path, mode = calls.absolute(params.absolute_file_path), params.mode
    if mode not in ("lines", "semantic", "tail", "head"):
        raise ParameterInvalid("mode", f"Invalid mode: {mode}. Use 'lines', 'semantic', 'tail', or 'head'.")
    if params.target is not None:
        return await _read_target(calls, path, params.target, mode)
    warnings = []
    if params.offset != 1 and (mode in ("tail", "head") or params.pattern is not None):
        warnings.append(f"offset ignored {'when pattern is set' if params.pattern else f'in {mode} mode'}")
    start, match = params.offset, dict[str, Any]()
    end: int | None = start + params.limit - 1
    if mode == "tail":
        start, end = -params.limit, None
    elif mode == "head":
        start, end = 1, params.limit
    elif params.pattern is not None:
        hit = await first_match(calls, path, params.pattern)
        start = max(1, hit.line - ABOVE)
        end = start + params.limit - 1
        match = {"pattern": params.pattern, "match_line": hit.line, "similarity_score": hit.score}
    if mode == "semantic":
        return await _semantic(calls, path, match.get("match_line", start), match, warnings)
    shown = await texts.text_of(calls, path, start, end, room=half(calls))
    said = {**_shown(shown, mode), **({"truncated": _more(shown)} if mode == "lines" else {}), **match}
    return answer({**said, **({"warnings": warnings} if warnings else {})}, *texts.cut_note(shown, end=end))


async def _semantic(calls: Calls, path: str, line: int, match: dict[str, Any], warnings: list[str]) -> ToolAnswer:
    try:
        shown = await calls.make(
            READ_ENCLOSING, room=half(calls), path=path, line=line, line_numbers=False, max_tokens=texts.MOST_TOKENS
        )
    except FileTooLarge as error:
        shown = await texts.text_of(calls, path, max(1, line - ABOVE), line + TARGET_BELOW, room=half(calls))
        warnings = [*warnings, f"the lines around are shown: {error.message}"]
    said = {**_shown(shown, "semantic"), **match, **({"warnings": warnings} if warnings else {})}
    return answer(said, *texts.cut_note(shown, end=shown.end))


async def _read_target(calls: Calls, path: str, target: int | str, mode: str) -> ToolAnswer:
    """As the first versions did: about twenty lines from a line on, or around a match."""
    match: dict[str, Any] = {"target_type": "line_number"}
    if isinstance(target, int):
        start, end = max(1, target), max(1, target) + TARGET_LINES - 1
        if mode == "semantic":
            return await _semantic(calls, path, start, match, [])
    else:
        hit = await first_match(calls, path, target)
        start, end = max(1, hit.line - ABOVE), hit.line + TARGET_BELOW
        match = {"match_line": hit.line, "similarity_score": hit.score, "target_type": "pattern", "pattern": target}
    shown = await texts.text_of(calls, path, start, end, room=half(calls))
    said = _shown(shown, mode)
    del said["lines_returned"]
    return answer({**said, **match}, *texts.cut_note(shown, end=end))


async def read_enclosing(calls: Calls, params: p.ReadEnclosing) -> ToolAnswer:
    """The function or class around a line; else the lines around it."""
    path = calls.absolute(params.absolute_file_path)
    shown: FileText | None = None
    with suppress(FileTooLarge):  # then the lines around it are shown
        shown = await calls.make(
            READ_ENCLOSING,
            room=half(calls),
            path=path,
            line=params.line,
            depth=params.depth,
            line_numbers=False,
            max_tokens=texts.MOST_TOKENS,
        )
    if shown is not None and shown.symbol is not None and (shown.end > shown.start or shown.next):
        said = {**_shown(shown, "enclosing"), "enclosing_symbol": shown.symbol}
        return answer(said, *texts.cut_note(shown, end=shown.end))
    calls.held.clear()  # other lines are shown
    counted = shown.total_lines if shown is not None else None
    total = counted if counted is not None else params.line + params.context_lines
    start = max(1, min(params.line - params.context_lines // 2, total - params.context_lines + 1))
    end = min(total, start + params.context_lines - 1)
    shown = await texts.text_of(calls, path, start, end, room=half(calls))
    return answer({**_shown(shown, "context_window"), "enclosing_symbol": None}, *texts.cut_note(shown, end=end))


def _more(shown: FileText) -> bool:
    """Whether lines follow those that are shown; of a file whose lines nobody counted yet, the next call says so."""
    return bool(shown.next) if shown.total_lines is None else shown.end < shown.total_lines


def _shown(shown: FileText, mode: str) -> dict[str, Any]:
    return {
        "content": shown.text,
        "start_line": shown.start,
        "end_line": shown.end,
        "lines_returned": shown.end - shown.start + 1 if shown.end else 0,
        "total_lines": shown.total_lines,
        "mode": mode,
    }
