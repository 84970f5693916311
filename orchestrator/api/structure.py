"""What a file consists of: its outline, one symbol of it, what is around a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import READS, Operation
from orchestrator.core import errors as e
from orchestrator.core.errors import escaped, plural
from orchestrator.core.text.symbols import NO_GRAMMAR

SymbolName = Annotated[p.Name, Meta(min_length=1, description="Dotted name, e.g. 'Class.method'; or its last part.")]


class GetOverview(p.Params, frozen=True):
    path: p.PathText
    changed_since: Annotated[p.Version | None, Meta(description="'@N': mark what changed after it.")] = None
    symbol: Annotated[SymbolName | None, Meta(description="Only what this one holds.")] = None
    depth: Annotated[p.Count | None, Meta(description="Levels; default: as many as fit.")] = None
    skip: p.Skip = 0
    max_tokens: p.Tokens = 4000


class ReadSymbol(p.Params, frozen=True):
    path: p.PathText
    symbol: SymbolName
    context_lines: p.Beside = 0
    max_tokens: p.Tokens = 8000
    line_numbers: p.Numbered = True


class ReadEnclosing(p.Params, frozen=True):
    path: p.PathText
    line: Annotated[p.Count, Meta(description="A line in it, 1-based.")]
    depth: Annotated[p.Count, Meta(description="1: the innermost; 2: what is around that.")] = 1
    context_lines: p.Beside = 0
    max_tokens: p.Tokens = 8000
    line_numbers: p.Numbered = True


class ReadContent(p.Params, frozen=True):
    path: p.PathText
    mode: Annotated[
        Literal["lines", "semantic", "tail", "head", "enclosing"],
        Meta(description="lines: from there on; semantic: the function or class around it; enclosing: by depth."),
    ] = "lines"
    line: Annotated[p.Count | None, Meta(description="Where, 1-based; default for lines: 1.")] = None
    pattern: Annotated[
        Annotated[str, Meta(min_length=1, max_length=p.PATTERN_CHARACTERS)] | None,
        Meta(description="Instead of line: where this text occurs first."),
    ] = None
    limit: Annotated[int, Meta(description="Most lines; a function or class is shown whole.", ge=1, le=5000)] = 100
    depth: Annotated[p.Count, Meta(description="enclosing: 1 is the innermost, 2 what is around that.")] = 1
    max_tokens: p.Tokens = 8000
    line_numbers: p.Numbered = True


class OutlineEntry(r.Result, frozen=True, kw_only=True):
    """A symbol with what it holds. Lines include decorators, attributes and the comments right above."""

    name: str
    type: str
    line: int
    end_line: int
    change: str | None = None  # since `changed_since`: added, modified; its own lines, not those of what it holds
    left_out: int = 0  # symbols in it that are not shown
    children: tuple[OutlineEntry, ...] = ()


class ImportLine(r.Result, frozen=True, kw_only=True):
    line: int
    source: str  # as the text writes it
    names: tuple[str, ...] = ()


class LongLinesText(r.Result, frozen=True, kw_only=True):
    """Lines of more than 1,000 characters, which reads cut."""

    count: int
    longest: int  # characters
    lines: tuple[int, ...] = ()  # the first of them


class SearchHint(r.Result, frozen=True, kw_only=True):
    pattern: str
    count: int


class SymbolChange(r.Result, frozen=True, kw_only=True):
    name: str  # dotted
    type: str
    change: str  # added, modified, removed
    line: int  # where it is; of a removed one where it was


class Overview(r.Result, frozen=True, kw_only=True):
    path: str
    version_id: str
    language: str  # `text`: no grammar took it, so it is outlined by headings and indentation
    line_count: int
    size: int
    encoding: str
    eol: str
    long_lines: LongLinesText | None = None
    errors: int = 0  # places that the grammar could not take
    symbol: str | None = None  # the one whose inside `outline` shows
    imports: tuple[ImportLine, ...] = ()
    imports_left_out: int = 0
    outline: tuple[OutlineEntry, ...] = ()
    symbols: int = 0  # in all of the file, or of `symbol`
    left_out: int = 0  # of these
    next: str | None = None  # the call that shows the next of what was left out
    changed_symbols: tuple[SymbolChange, ...] = ()  # where `changed_since` was sent
    changes_left_out: int = 0
    changed_outside: bool = False  # lines that belong to no symbol changed, too
    search_hints: tuple[SearchHint, ...] = ()
    warnings: tuple[str, ...] = ()


GET_OVERVIEW = Operation(
    "get_overview",
    GetOverview,
    Overview,
    "Outline of a file: symbols with their lines, imports, what changed. Read on with read_symbol or read_file.",
    raises=(*READS, e.BinaryFile, e.VersionNotKept, e.VersionUnknown, e.SymbolNotFound, e.SymbolAmbiguous),
    command="overview",
)

READ_SYMBOL = Operation(
    "read_symbol",
    ReadSymbol,
    r.FileText,
    "Read one function, class, key or section by its name.",
    raises=(*READS, e.BinaryFile, e.SymbolNotFound, e.SymbolAmbiguous),
    command="symbol",
)

READ_ENCLOSING = Operation(
    "read_enclosing",
    ReadEnclosing,
    r.FileText,
    "Read the whole function, class or section around a line.",
    raises=(*READS, e.BinaryFile),
    command="around",
)

READ_CONTENT = Operation(
    "read_content",
    ReadContent,
    r.FileText,
    "Read the lines from a line or text on, the symbol around it, or either end of a file.",
    raises=(*READS, e.BinaryFile, e.LinesNotCounted, e.SearchNotFound, e.TextTooCostly),
    tool=False,
    command="read",
)


def overview_head(result: Overview) -> str:
    """What it is, on one line."""
    what = f"{NO_GRAMMAR}: by headings and indentation" if result.language == "text" else result.language
    parts = [f"{escaped(result.path)} {result.version_id}: {what}, {plural(result.line_count, 'line')}"]
    parts += [plural(result.size, "byte"), f"({result.encoding}, {result.eol})"]
    if result.errors:
        parts.append(plural(result.errors, "syntax error"))
    if result.long_lines is not None:
        long, numbers = result.long_lines, ", ".join(map(str, result.long_lines.lines))
        parts.append(f"{plural(long.count, 'long line')} (to {long.longest} characters): {numbers}")
    return ", ".join(parts)


def overview_rows(result: Overview) -> Iterator[str]:
    """What it holds: imports, then a row for each symbol, then what changed and what to search for."""
    if result.imports:
        more = f" … {result.imports_left_out} more" if result.imports_left_out else ""
        yield f"imports: {'; '.join(map(import_text, result.imports))}{more}"
    if result.symbol is not None:
        yield f"in {result.symbol}:"
    yield from _entries(result.outline, 0)
    if result.changed_symbols or result.changed_outside:
        yield from ("changed:", *(f"  {change_text(one)}" for one in result.changed_symbols))
        if result.changes_left_out:
            yield f"  … {result.changes_left_out} more"
        if result.changed_outside:
            yield "  lines outside of symbols"
    if result.search_hints:
        yield "holds: " + ", ".join(f"{hint.pattern.strip()} ×{hint.count}" for hint in result.search_hints)


def _entries(entries: tuple[OutlineEntry, ...], depth: int) -> Iterator[str]:
    for entry in entries:
        yield entry_text(entry, depth)
        yield from _entries(entry.children, depth + 1)


def entry_text(entry: OutlineEntry, depth: int) -> str:
    """A symbol's own row."""
    lines = f"{entry.line}-{entry.end_line}" if entry.end_line > entry.line else f"{entry.line}"
    notes = [entry.change] if entry.change else []
    notes += [f"{entry.left_out} inside"] if entry.left_out else []
    return f"{'  ' * depth}{lines} {entry.type} {entry.name}" + (f" ({', '.join(notes)})" if notes else "")


def import_text(one: ImportLine) -> str:
    """What a line imports."""
    return f"{one.line} {one.source}" + (f": {', '.join(one.names)}" if one.names else "")


def change_text(one: SymbolChange) -> str:
    """What became of a symbol."""
    return f"{one.change} {one.type} {one.name}, line {one.line}"
