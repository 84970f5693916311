"""How files hang together: what imports what, and where a name is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import READS, Operation
from orchestrator.api.structure import SymbolName
from orchestrator.core import errors as e
from orchestrator.core.errors import escaped, plural


class RelatedFiles(p.Params, frozen=True):
    path: p.PathText
    direction: Annotated[
        Literal["both", "imports", "imported_by"], Meta(description="Which side; both by default.")
    ] = "both"
    depth: Annotated[int, Meta(description="Imports of imports, so far.", ge=1, le=3)] = 1
    skip: p.Skip = 0


class FindReferences(p.Params, frozen=True):
    symbol: SymbolName
    path: Annotated[p.AnyPath | None, Meta(description="The file that defines it: then imports and scopes decide.")] = (
        None
    )
    globs: p.Globs = ()
    by: Annotated[Literal["scope", "word"], Meta(description="word: also in comments, strings and other scopes.")] = (
        "scope"
    )
    max_results: Annotated[int, Meta(description="Most lines.", ge=1, le=1000)] = 50
    cursor: p.Cursor = None


class RelatedFile(r.Result, frozen=True, kw_only=True):
    path: str
    line: int  # of the import
    source: str  # as the import writes it
    via: str | None = None  # at a depth over 1: the file between
    depth: int = 1


class Related(r.Result, frozen=True, kw_only=True):
    path: str
    version_id: str
    imports: tuple[RelatedFile, ...] = ()  # files that it imports
    imported_by: tuple[RelatedFile, ...] = ()  # files that import it
    unresolved: tuple[str, ...] = ()  # what it imports besides: packages of others, or files that were not found
    unresolved_left_out: int = 0
    left_out: int = 0  # related files that this answer has no room for
    next: str | None = None  # the call that shows them
    files_searched: int = 0
    partial: bool = False  # there was no time to look at every file that may import it
    warnings: tuple[str, ...] = ()


class ReferenceLine(r.Result, frozen=True, kw_only=True):
    """A line with the name; of several roles on it the first.

    role: `definition`, `import`, `use`, `member` (`x.name`: whose, is not known), or `word`, without a grammar.
    """

    path: str
    line: int
    role: str
    text: str = ""
    inside: str | None = None  # the symbol around it
    start: int = 0  # of the name, in characters of `text`


class FoundReferences(r.Result, frozen=True, kw_only=True):
    symbol: str
    defined_in: str | None = None
    hits: tuple[ReferenceLine, ...] = ()
    total: int  # lines with the word, in all files searched
    files_searched: int
    files_left_out: int  # kept out by policy
    by_scope: int = 0  # files of this answer whose scopes were looked at
    by_syntax: int = 0  # whose syntax was: comments and strings are left out
    by_word: int = 0  # of which the word alone is known
    elsewhere: int = 0  # in these files: words of other scopes, that are not shown
    in_comments: int = 0
    in_strings: int = 0
    partial: bool = False  # not every file could be searched
    cursor: str | None = None
    versions: dict[str, str] = msgspec.field(default_factory=dict)  # path → version_id of each file with a hit
    warnings: tuple[str, ...] = ()


RELATED_FILES = Operation(
    "related_files",
    RelatedFiles,
    Related,
    "Files that a file imports, and files that import it: Python, JavaScript, TypeScript, Go, Rust, Java, C, C++.",
    weight="tree",
    raises=(*READS, e.BinaryFile),
    command="related",
)

FIND_REFERENCES = Operation(
    "find_references",
    FindReferences,
    FoundReferences,
    "Where a name is used: lines with the word, then by syntax and scope where a grammar allows; it says which.",
    weight="tree",
    raises=(*READS, e.BinaryFile, e.SymbolNotFound, e.SymbolAmbiguous),
    command="references",
)


def related_rows(result: Related) -> Iterator[str]:
    """A row for each file, those that it imports first."""
    for title, files in (("imports", result.imports), ("imported by", result.imported_by)):
        if files:
            yield f"{title}:"
            yield from (f"  {related_text(one)}" for one in files)
    if result.unresolved:
        more = f" … {result.unresolved_left_out} more" if result.unresolved_left_out else ""
        yield f"not of this workspace, or not found: {', '.join(result.unresolved)}{more}"


def related_text(one: RelatedFile) -> str:
    """A file, and the import that relates it."""
    via = f" (by {one.via})" if one.via else ""
    return f"{one.path}{via}, line {one.line}: {one.source}"


def references_head(result: FoundReferences) -> str:
    """How many lines, and how they were chosen."""
    ways = [(result.by_scope, "by scope"), (result.by_syntax, "by syntax"), (result.by_word, "by the word alone")]
    drops = [
        (result.elsewhere, "of other scopes"),
        (result.in_comments, "in comments"),
        (result.in_strings, "in strings"),
    ]
    parts = [f"{plural(result.total, 'line')} with the word in {plural(result.files_searched, 'file')} searched"]
    parts += [", ".join(f"{plural(count, 'file')} {way}" for count, way in ways if count)]
    parts += [", ".join(f"{count} {where}" for count, where in drops if count)]
    if parts[-1]:
        parts[-1] = f"not shown: {parts[-1]} (by='word' shows them)"
    if result.files_left_out:
        parts.append(f"policy left out {plural(result.files_left_out, 'file')}")
    if result.partial:
        parts.append("some files could not be searched")
    return "; ".join(filter(None, parts))


def reference_rows(result: FoundReferences) -> Iterator[str]:
    """The lines by file, each with what it is and what it is in."""
    last = ""
    for hit in result.hits:
        if hit.path != last:
            yield f"{escaped(hit.path)} {result.versions.get(hit.path, '')}"
            last = hit.path
        inside = f" in {escaped(hit.inside)}" if hit.inside else ""
        yield f"{hit.line:>6} {hit.role}{inside}\t{hit.text}"
