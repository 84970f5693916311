"""All names of a tree in the order of their paths, as text: what a glob must hold is found in it at once.

A line is a path, and behind it a mark of what it is (none: a file). Marks sort before whatever a path may go on with,
so lines are in the order of their paths. They lie in pieces of some hundred lines, each one text: 1,000,000 names of
45 bytes take 45 MB, and a word that is nowhere is sought in all of them in 30 ms.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from orchestrator.core.ids import WorkspacePath

NameKind = Literal["file", "directory", "other", "invalid"]
"""`invalid` breaks the name rule: it is written escaped, shown, and never opened."""

MARKS: Final[dict[NameKind, str]] = {"file": "", "directory": "\1", "other": "\2", "invalid": "\3"}
KINDS: Final[dict[str, NameKind]] = {mark: kind for kind, mark in MARKS.items() if mark}
AFTER: Final = "\4"
"""Behind a path: after all lines of that path, before what lies below it."""

LAST: Final = "\U0010ffff"
"""After all lines that begin alike."""

PIECE_LINES: Final = 400


def line_of(path: str, kind: NameKind) -> str:
    """A name as the index holds it."""
    return path + MARKS[kind]


def read_line(line: str) -> tuple[str, NameKind]:
    """The path and what it is."""
    kind = KINDS.get(line[-1:])
    return (line, "file") if kind is None else (line[:-1], kind)


class NameIndex:
    """Sorted lines. A reader in another thread sees them as they were at one moment; writers take turns."""

    def __init__(self, lines: Sequence[str] = ()) -> None:
        """Of lines in order, each once."""
        self._pieces = _pieces(lines)
        self._count = len(lines)

    @property
    def pieces(self) -> tuple[str, ...]:
        """All lines, in pieces; the same objects for as long as the lines of each are the same."""
        return self._pieces[1]

    def __len__(self) -> int:
        return self._count

    def holds(self, line: str) -> bool:
        """Whether this very line is there."""
        firsts, texts = self._pieces
        at = bisect_right(firsts, line) - 1
        return at >= 0 and f"\n{line}\n" in texts[at]

    def holds_below(self, above: str) -> bool:
        """Whether anything is in a directory: its path with a `/`, or nothing for all."""
        return self._has_prefix(above) if above else bool(self._count)

    def replace(self, first: str, last: str, lines: Sequence[str]) -> None:
        """Put these, in order, in the place of all lines from `first` up to before `last`."""
        firsts, texts = self._pieces
        start = max(0, bisect_right(firsts, first) - 1)
        end = max(start + 1, bisect_left(firsts, last))
        old = [line for text in texts[start:end] for line in lines_in(text)]
        left, right = bisect_left(old, first), bisect_left(old, last)
        more_firsts, more_texts = _pieces([*old[:left], *lines, *old[right:]])
        self._pieces = firsts[:start] + more_firsts + firsts[end:], texts[:start] + more_texts + texts[end:]
        self._count += len(lines) - (right - left)

    def put(self, path: str, kind: NameKind | None) -> None:
        """What is at a path that keeps to the name rule; None: nothing, and nothing below it."""
        if kind is None and not self._has_prefix(path):
            return
        if kind is None:
            self.replace(path, path + MARKS["invalid"], ())
        elif not self.holds(line_of(path, kind)):
            self.replace(path, path + MARKS["invalid"], (line_of(path, kind),))
        if kind != "directory":
            self.clear_below(path)

    def _has_prefix(self, start: str) -> bool:
        """Whether a line begins so; two texts are looked through at most."""
        firsts, texts = self._pieces
        at = max(0, bisect_right(firsts, start) - 1)
        return any(f"\n{start}" in text for text in texts[at : at + 2])

    def clear_below(self, path: str) -> None:
        """Nothing is in a directory."""
        if self.holds_below(f"{path}/"):
            self.replace(f"{path}/", f"{path}0", ())

    def lines(self, first: str = "", last: str = LAST, holding: Sequence[str] = ()) -> Iterator[list[str]]:
        """The lines from `first` up to before `last`, in order, some at a time.

        Those that hold none of the texts in `holding` are left out, if there are any.
        """
        firsts, texts = self._pieces
        start = max(0, bisect_right(firsts, first) - 1)
        for at in range(start, bisect_left(firsts, last)):
            text = texts[at]
            if holding and not any(piece in text for piece in holding):
                continue
            found = lines_in(text)
            if firsts[at] < first or found[-1] >= last:
                found = found[bisect_left(found, first) : bisect_left(found, last)]
            if len(holding) == 1:
                found = [line for line in found if holding[0] in line]
            elif holding:
                found = [line for line in found if any(piece in line for piece in holding)]
            if found:
                yield found

    def down_to(
        self, depth: int, above: str, first: str = "", last: str = LAST, holding: Sequence[str] = ()
    ) -> Iterator[list[str]]:
        """As `lines`, of a directory (its path with a `/`); what is more levels below it is passed over unread."""
        at = first
        while True:
            for lines in self.lines(at, last, holding):
                shallow, number = list[str](), 0
                while number < len(lines):
                    names = lines[number][len(above) :].split("/", depth)
                    if len(names) <= depth:
                        shallow.append(lines[number])
                        number += 1
                    else:
                        at = f"{above}{'/'.join(names[:depth])}0"
                        number = bisect_left(lines, at, number)
                yield shallow
                if lines[-1] < at:
                    break
            else:
                return


def _pieces(lines: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The first line of each piece, and its text, with a line's end at both ends."""
    step = len(lines) if len(lines) <= 2 * PIECE_LINES else PIECE_LINES
    texts = tuple("\n" + "\n".join(lines[at : at + step]) + "\n" for at in range(0, len(lines), step or 1))
    return tuple(text[1 : text.index("\n", 1)] for text in texts), texts  # copies: the lines themselves can go


def files_in(text: str) -> list[WorkspacePath]:
    """The files of a piece."""
    return [WorkspacePath(line) for line in lines_in(text) if line[-1] > AFTER]


def lines_in(text: str) -> list[str]:
    """The lines of a piece."""
    return text[1:-1].split("\n")
