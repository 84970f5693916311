"""Files in every encoding and with every kind of line end, and what their bytes must be after a change.

Nothing here asks the code under test: a line is a text and an ending, and Python's codecs make bytes of each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

CODECS = {
    "utf-8": ("utf-8", b""),
    "utf-8-sig": ("utf-8", b"\xef\xbb\xbf"),
    "utf-16-le": ("utf-16-le", b"\xff\xfe"),
    "utf-16-be": ("utf-16-be", b"\xfe\xff"),
    "latin-1": ("latin-1", b""),
    "cp1252": ("cp1252", b""),
}
"""By the name that callers see: the codec of Python, and the byte order mark."""

WORDS = {
    "utf-8": ("größe", "日本 €", "naïve 😀"),
    "utf-8-sig": ("größe", "日本 €", "naïve 😀"),
    "utf-16-le": ("größe", "日本 €", "naïve 😀\u2028 \x85"),
    "utf-16-be": ("größe", "日本 €", "naïve 😀 \u010a\u0d0a"),
    "latin-1": ("größe", "été à la mer", "naïve café"),
    "cp1252": ("größe – 5 €", "“deux” … 5 €", "it’s naïve"),
}
"""Three for each: what the file holds, what an edit writes, and what another writes."""

ENDS = {"lf": ["\n"], "crlf": ["\r\n"], "cr": ["\r"], "mixed": ["\n", "\r\n", "\r"]}
MODES = (0o644, 0o755, 0o600)
OPERATIONS = ("edit", "patch", "write", "merge", "revert", "rollback")
LINES = 14

EXCLUDED: dict[str, str] = {}
"""Cells that can't be, by the start of their id, with the reason; each is printed."""


@dataclass(frozen=True)
class Text:
    """Lines with their endings, in an encoding."""

    encoding: str
    lines: tuple[tuple[str, str], ...]

    @property
    def bytes(self) -> bytes:
        codec, mark = CODECS[self.encoding]
        return mark + b"".join(line.encode(codec) + end.encode(codec) for line, end in self.lines)

    @property
    def shown(self) -> str:
        """As callers see it."""
        return "".join(line + ("\n" if end else "") for line, end in self.lines)

    def with_line(self, number: int, text: str) -> Text:
        """Another text in the 1-based line; -1 is the last."""
        at = number - 1 if number > 0 else len(self.lines) + number
        lines = (*self.lines[:at], (text, self.lines[at][1]), *self.lines[at + 1 :])
        return replace(self, lines=lines)

    def with_line_after(self, number: int, text: str) -> Text:
        """One line more, which ends as the line before it does."""
        return replace(self, lines=(*self.lines[:number], (text, self.lines[number - 1][1]), *self.lines[number:]))

    def line(self, number: int) -> str:
        return self.lines[number - 1 if number > 0 else number][0]


@dataclass(frozen=True)
class Cell:
    """One file of the matrix; each operation is done to it in turn."""

    encoding: str
    eol: str
    final: bool
    mode: int

    @property
    def id(self) -> str:
        return f"{self.encoding}-{self.eol}-{'final' if self.final else 'nofinal'}-{self.mode:o}"

    @property
    def path(self) -> str:
        return f"{self.encoding}/{self.id}.txt"

    @property
    def words(self) -> tuple[str, str, str]:
        return WORDS[self.encoding]

    def start(self) -> Text:
        ends = ENDS[self.eol]
        lines = [(f"line {n}: {self.words[0]} {n}.", ends[n % len(ends)]) for n in range(1, LINES + 1)]
        if not self.final:
            lines[-1] = (lines[-1][0], "")
        return Text(self.encoding, tuple(lines))

    def write(self, workspace: Path) -> None:
        """The file as it is before anything happens to it."""
        file = workspace / self.path
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(self.start().bytes)
        file.chmod(self.mode)


def cells(encoding: str) -> Iterator[Cell]:
    for eol, final, mode in product(ENDS, (True, False), MODES):
        cell = Cell(encoding, eol, final, mode)
        if not any(cell.id.startswith(prefix) for prefix in EXCLUDED):
            yield cell


def attributes(file: Path) -> dict[str, bytes]:
    """The extended attributes that a user may set."""
    return {name: os.getxattr(file, name) for name in os.listxattr(file) if name.startswith("user.")}
