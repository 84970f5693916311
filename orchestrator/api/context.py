"""Files within a token budget: several at once, an excerpt, a summary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import READS, Operation
from orchestrator.api.structure import SymbolName
from orchestrator.core import errors as e
from orchestrator.core.errors import escaped, plural
from orchestrator.core.text.excerpts import LeaveOut
from orchestrator.core.text.symbols import NO_GRAMMAR

MOST_FILES = 30


class ReadFiles(p.Params, frozen=True):
    paths: Annotated[tuple[p.AnyPath, ...], Meta(description="Relative paths.", min_length=1, max_length=MOST_FILES)]
    max_tokens: Annotated[int, Meta(description="Token budget of all.", ge=50, le=200_000)] = 8000
    line_numbers: p.Numbered = True
    delta: p.Delta = None


class GetExcerpt(p.Params, frozen=True):
    path: p.PathText
    line: Annotated[p.Count | None, Meta(description="Around this line.")] = None
    pattern: Annotated[
        Annotated[str, Meta(min_length=1, max_length=p.PATTERN_CHARACTERS)] | None,
        Meta(description="Around the first line that holds this text."),
    ] = None
    symbol: Annotated[SymbolName | None, Meta(description="Of this function, class, key or section.")] = None
    max_lines: Annotated[int, Meta(description="Most lines.", ge=1, le=5000)] = 80
    max_tokens: p.Tokens = 2000
    leave_out: Annotated[LeaveOut, Meta(description="Which part, where not all fits.")] = "end"


class SummarizeFile(p.Params, frozen=True):
    path: p.PathText
    max_tokens: p.Tokens = 400


class FileAnswer(r.Result, frozen=True, kw_only=True):
    """One file of several: its text, or why there is none."""

    path: str
    text: r.FileText | None = None
    code: str | None = None
    message: str | None = None
    hint: str | None = None
    approval: str | None = None  # of a read that waits for a person


class FileTexts(r.Result, frozen=True, kw_only=True):
    files: tuple[FileAnswer, ...] = ()  # in the order of `paths`
    left_out: tuple[str, ...] = ()  # those that there was no room for
    next: str | None = None  # the call that reads them
    notices: tuple[r.Notice, ...] = ()


class LinesLeftOut(r.Lines, frozen=True, kw_only=True):
    next: str  # the call that shows them


class ExcerptPart(r.Lines, frozen=True, kw_only=True):
    text: str  # numbered


class Excerpt(r.Result, frozen=True, kw_only=True):
    path: str
    version_id: str
    total_lines: int
    parts: tuple[ExcerptPart, ...] = ()
    left_out: tuple[LinesLeftOut, ...] = ()  # of what was asked for
    next_in_line: str | None = None  # the call that shows the rest of the first line that was shortened
    symbol: str | None = None
    matches: tuple[int, ...] = ()  # the lines that hold the pattern, the first of them
    total_matches: int = 0
    truncated: bool = False
    redactions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[r.Notice, ...] = ()


class Summary(r.Result, frozen=True, kw_only=True):
    path: str
    version_id: str
    language: str  # `text`: no grammar took it, so it is outlined by headings and indentation
    total_lines: int
    tokens: int  # what all of it takes
    tokens_by: str = "estimate"  # or "tiktoken NAME" by the vocabulary of `[tokens]`; "estimate (…)": why not by that
    text: str = ""  # its leading documentation, and a line of each key definition with where it ends
    by: str | None = None  # the plugin that wrote the text
    symbols: int = 0  # in all of the file
    left_out: int = 0  # of these
    next: str | None = None  # the call that shows more
    redactions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[r.Notice, ...] = ()


READ_FILES = Operation(
    "read_files",
    ReadFiles,
    FileTexts,
    "Read several text files within one token budget. Each has its text or its own error.",
    raises=(e.ParameterInvalid,),
)

GET_EXCERPT = Operation(
    "get_excerpt",
    GetExcerpt,
    Excerpt,
    "Lines of a file around a line, a text or a symbol, or its beginning; says what was left out.",
    raises=(*READS, e.BinaryFile, e.SearchNotFound, e.SymbolNotFound, e.SymbolAmbiguous),
    command="excerpt",
)

SUMMARIZE_FILE = Operation(
    "summarize_file",
    SummarizeFile,
    Summary,
    "What a file is about: its leading documentation and key definitions, in a few lines.",
    raises=(*READS, e.BinaryFile),
    command="summary",
)


def excerpt_head(result: Excerpt) -> str:
    """What it is, on one line."""
    head = f"{escaped(result.path)} {result.version_id}, of {plural(result.total_lines, 'line')}"
    if result.symbol is not None:
        head += f", {escaped(result.symbol)}"
    if result.total_matches:
        more = " …" if result.total_matches > len(result.matches) else ""
        head += f", {plural(result.total_matches, 'line')} with the text: {', '.join(map(str, result.matches))}{more}"
    return head


def excerpt_rows(result: Excerpt) -> Iterator[str]:
    """The parts, and between them what was left out."""
    for at, part in enumerate(result.parts):
        if at:
            yield f"   … lines {result.parts[at - 1].end + 1}-{part.start - 1}"
        yield part.text.removesuffix("\n")


def summary_head(result: Summary) -> str:
    """What it is, on one line."""
    what = f"{NO_GRAMMAR}: by headings and indentation" if result.language == "text" else result.language
    size = f"{plural(result.total_lines, 'line')}, {plural(result.tokens, 'token')} by {result.tokens_by}"
    by = f", summary by plugin {escaped(result.by)}" if result.by else ""
    return f"{escaped(result.path)} {result.version_id}: {what}, {size}, {plural(result.symbols, 'symbol')}{by}"
