"""The symbols that a text defines and their lines: the outline as plain values."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class Symbol(msgspec.Struct, frozen=True):
    """A definition or a heading. Lines are 1-based, the end inclusive; decorators and attributes belong to it."""

    name: str
    kind: str  # function, method, class, interface, struct, enum, module, heading, key …
    line: int
    end_line: int
    children: tuple[Symbol, ...] = ()
    alone: bool = True  # nothing else stands on its lines
    tail: str = ""  # the "," or ";" that follows it there


class Outline(msgspec.Struct, frozen=True):
    """What one text defines, in its order."""

    language: str  # the grammar's name; "text" where it was outlined by indentation and headings
    symbols: tuple[Symbol, ...]
    errors: int = 0  # places that the grammar could not take, missing tokens included
    parsed: bool = True  # False: no grammar, or the parse ran out of time; `errors` says nothing then
    compiles: bool | None = None  # Python alone: whether the interpreter takes it; None where that is not known

    def walk(self) -> Iterator[tuple[str, Symbol]]:
        """Each symbol with its dotted name ("Class.method"), outer before inner."""
        yield from _walked(self.symbols, "")

    def enclosing(self, line: int) -> tuple[Symbol, ...]:
        """The symbols that a 1-based line lies in, outermost first."""
        found: list[Symbol] = []
        symbols = self.symbols
        while (inside := next((s for s in symbols if s.line <= line <= s.end_line), None)) is not None:
            found.append(inside)
            symbols = inside.children
        return tuple(found)


def _walked(symbols: tuple[Symbol, ...], prefix: str) -> Iterator[tuple[str, Symbol]]:
    for symbol in symbols:
        name = f"{prefix}{symbol.name}"
        yield name, symbol
        yield from _walked(symbol.children, f"{name}.")
