"""The symbols that a text defines and their lines, what two outlines say of a merge, and a file's language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from orchestrator.core.content import LineHunk
from orchestrator.core.ids import WorkspacePath

CODE: Final = frozenset(
    "function method class interface struct enum union trait impl module type property macro".split()
)
"""The kinds that make code; two changes to one of these may not fit together although their lines do."""

_SUFFIXES: Final = {
    "python": ".py .pyi .pyw",
    "javascript": ".js .mjs .cjs .jsx",
    "typescript": ".ts .mts .cts",
    "tsx": ".tsx",
    "go": ".go",
    "rust": ".rs",
    "java": ".java",
    "c": ".c .h",
    "cpp": ".cpp .cc .cxx .hpp .hh .hxx .ipp .inl",
    "c-sharp": ".cs .csx",
    "ruby": ".rb .rake .gemspec .ru",
    "php": ".php .phtml",
    "bash": ".sh .bash .zsh .ksh",
    "json": ".json .jsonc .geojson .webmanifest",
    "yaml": ".yaml .yml",
    "toml": ".toml",
    "html": ".html .htm .xhtml",
    "css": ".css",
    "markdown": ".md .markdown .mdown",
    "kotlin": ".kt .kts",
    "swift": ".swift",
    "lua": ".lua",
    "scala": ".scala .sc",
    "sql": ".sql",
}

NO_GRAMMAR: Final = "no grammar, or too long a parse"
"""Said of an outline by headings and indentation."""

LANGUAGES: Final = tuple(_SUFFIXES)
"""The grammars by name; `tsx` comes with TypeScript's wheel, the last five with the extra `languages-all`."""

_BY_SUFFIX = {suffix: language for language, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}


def suffixes_of(language: str) -> tuple[str, ...]:
    """Of the names of files in a language."""
    return tuple(_SUFFIXES[language].split())


def language_of(path: WorkspacePath) -> str | None:
    """The grammar that a path's suffix asks for; None where there is none for it."""
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    return _BY_SUFFIX.get(f".{suffix.lower()}") if stem and dot else None


class Symbol(msgspec.Struct, frozen=True):
    """A definition or a heading. Lines are 1-based, the end inclusive; decorators and attributes belong to it."""

    name: str
    kind: str  # function, method, class, interface, struct, enum, module, heading, key …
    line: int
    end_line: int
    children: tuple[Symbol, ...] = ()
    alone: bool = True  # nothing else is on its lines
    tail: str = ""  # the "," or ";" that follows it there


class Import(msgspec.Struct, frozen=True, omit_defaults=True):
    """That a text takes in another, as it writes it: `a.b`, `./x`, `<stdio.h>`, `crate::a::{b, c}`."""

    source: str
    line: int
    names: tuple[str, ...] = ()  # what it takes of it, where the statement says so; `*`: all


class Outline(msgspec.Struct, frozen=True):
    """What one text defines and imports, in its order."""

    language: str  # the grammar's name; "text" where it was outlined by indentation and headings
    symbols: tuple[Symbol, ...]
    errors: int = 0  # places that the grammar could not take, missing tokens included
    parsed: bool = True  # False: no grammar, or the parse ran out of time; `errors` says nothing then
    compiles: bool | None = None  # Python alone: whether the interpreter takes it; None where that is not known
    imports: tuple[Import, ...] = ()

    def walk(self) -> Iterator[tuple[str, Symbol]]:
        """Each symbol with its dotted name ("Class.method"), outer before inner."""
        yield from walked(self.symbols, "")

    def enclosing(self, first: int, last: int) -> tuple[Symbol, ...]:
        """The symbols that hold both of two 1-based lines, outermost first."""
        found: list[Symbol] = []
        symbols = self.symbols
        while (holder := next((s for s in symbols if s.line <= first and last <= s.end_line), None)) is not None:
            found.append(holder)
            symbols = holder.children
        return tuple(found)


def walked(symbols: Sequence[Symbol], prefix: str) -> Iterator[tuple[str, Symbol]]:
    """Each symbol and what it holds, with its dotted name behind the prefix, outer before inner."""
    for symbol in symbols:
        name = f"{prefix}{symbol.name}"
        yield name, symbol
        yield from walked(symbol.children, f"{name}.")


def new_errors(before: Outline, other: Outline, after: Outline) -> bool:
    """Whether `after`, made of two texts that parse without an error, has errors. False where any was not parsed."""
    if not (before.parsed and other.parsed and after.parsed):
        return False
    if before.compiles and other.compiles and after.compiles is False:
        return True
    return before.errors == other.errors == 0 < after.errors


def touched(outline: Outline, hunks: Sequence[LineHunk]) -> set[str]:
    """The innermost functions, classes and the like, by dotted name, whose lines the new side of hunks changed.

    Removed lines count for what is around the place. A hunk outside of all symbols touches none.
    """
    names: set[str] = set()
    for hunk in hunks:
        first, last = hunk.new_start + 1, hunk.new_end
        for at in range(first, last + 1):
            names.update(_around(outline, at, at))
        if not hunk.new_len:
            names.update(_around(outline, last, first))
    return names


def _around(outline: Outline, first: int, last: int) -> Iterator[str]:
    """The innermost code symbol that holds two lines."""
    holders = outline.enclosing(first, last)
    code = [at for at, symbol in enumerate(holders, 1) if symbol.kind in CODE]
    if code:
        yield ".".join(symbol.name for symbol in holders[: code[-1]])
