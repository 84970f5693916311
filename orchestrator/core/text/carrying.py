"""What a caller changes in a passage, carried onto lines that are not quite as the caller quotes them.

Only what differs between `search` and `replace` is changed; every other line keeps the file's own
characters, so a misquotation never gets into the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.core.text.diff import Hunk, diff
from orchestrator.core.text.encoding import Edit
from orchestrator.core.text.indent import Rebasing, indent_of
from orchestrator.core.text.literals import inside_strings
from orchestrator.core.text.merge import Merged, merge3
from orchestrator.core.text.pairing import Pairing, squeezed

NEIGHBOURS = 100
"""Lines around a place from which the width of a level of indentation is read."""

_TOKEN = re.compile(r"\w+|[ \t]+|[^\w \t]")


class NotCarried(Exception):
    """A line that the change touches does not stand there; the text says what is in the way."""


def carried(lines: Sequence[str], passage: Sequence[str], new: Sequence[str], place: Pairing) -> list[Edit]:
    """The edits of `lines` that do at `place` what passage → new does, ascending. Raises NotCarried."""
    partner = dict(place.pairs)
    depths = _Depths(lines, passage, new, place)
    edits = [_edit(lines, passage, new, hunk, partner, depths) for hunk in diff(passage, new)]
    return [edit for edit in edits if tuple(lines[edit.start : edit.start + edit.length]) != edit.lines]


class _Depths:
    """How new lines are indented: code as the code around it, and what lies inside of a string as that was quoted."""

    def __init__(self, lines: Sequence[str], passage: Sequence[str], new: Sequence[str], place: Pairing) -> None:
        near = lines[max(0, place.start - NEIGHBOURS) : place.stop + NEIGHBOURS]
        self._new = new
        self._inside = set[int]()
        moved = any(indent_of(passage[i]) != indent_of(lines[j]) for i, j in place.pairs)
        there = inside_strings(lines) if moved else {}
        strings = {at for at, string in there.items() if not string.doc}
        if moved:
            inside = inside_strings(new, opened=there.get(place.start), goes_on=place.stop in there)
            self._inside = {at for at, string in inside.items() if not string.doc}
        pairs = [(passage[i], lines[j]) for i, j in place.pairs if j not in strings]
        quoted = [(passage[i], lines[j]) for i, j in place.pairs if j in strings]
        self._code, self._strings = (Rebasing(some, (*passage, *new), near) for some in (pairs, quoted))
        self.sure = self._code.consistent and self._strings.consistent

    def lines(self, hunk: Hunk, after: str | None) -> list[str]:
        """What a hunk brings, made ready."""
        return [
            (self._strings if at in self._inside else self._code).line(self._new[at], after=after)
            for at in range(hunk.new_start, hunk.new_end)
        ]


def _edit(
    lines: Sequence[str],
    passage: Sequence[str],
    new: Sequence[str],
    hunk: Hunk,
    partner: dict[int, int],
    depths: _Depths,
) -> Edit:
    old, come = range(hunk.old_start, hunk.old_start + hunk.old_len), new[hunk.new_start : hunk.new_end]
    there = [partner[i] for i in old if i in partner]
    if not there:
        if any(passage[i].strip() for i in old):
            raise NotCarried(f"line {hunk.old_start + 1} of the search, which is replaced, does not stand there")
        at, after = _between(lines, passage, hunk, partner)
        _check_depths(depths, come)
        return Edit(at, 0, tuple(depths.lines(hunk, after)))
    _check_whole(lines, passage, old, there, partner)
    after = passage[next(i for i in old if i in partner)]
    ready = depths.lines(hunk, after)
    if len(old) == len(come) == len(there):
        stepped = [line for i, line in zip(old, come, strict=True) if indent_of(passage[i]) != indent_of(line)]
        _check_depths(depths, stepped)
        ready = [_line(passage[i], lines[partner[i]], raw, line) for i, raw, line in zip(old, come, ready, strict=True)]
    else:
        _check_depths(depths, come)
        for i in old:
            if i in partner and squeezed(passage[i]) != squeezed(lines[partner[i]]):
                raise NotCarried(f"line {i + 1} of the search, which is replaced, reads otherwise there")
    return Edit(there[0], there[-1] + 1 - there[0], tuple(ready))


def _check_depths(depths: _Depths, come: Sequence[str]) -> None:
    """Lines of one depth in the quotation stand at several in the file: at which a new one belongs is not said."""
    if any(line.strip() for line in come) and not depths.sure:
        raise NotCarried("its lines are indented otherwise there, so how deep the new ones belong is not sure")


def _check_whole(
    lines: Sequence[str], passage: Sequence[str], old: range, there: Sequence[int], partner: dict[int, int]
) -> None:
    """Nothing is replaced that the caller did not quote, and all that the caller quoted is there."""
    missing = next((i for i in old if i not in partner and passage[i].strip()), None)
    if missing is not None:
        raise NotCarried(f"line {missing + 1} of the search, which is replaced, does not stand there")
    kept = set(there)
    more = next((j for j in range(there[0], there[-1] + 1) if j not in kept and lines[j].strip()), None)
    if more is not None:
        raise NotCarried(f"line {more + 1} of the file stands between lines that are replaced")


def _between(
    lines: Sequence[str], passage: Sequence[str], hunk: Hunk, partner: dict[int, int]
) -> tuple[int, str | None]:
    """Where new lines go, and the line of the passage whose indentation they follow."""
    above = next((i for i in range(hunk.old_start - 1, -1, -1) if passage[i].strip()), None)
    below = next((i for i in range(hunk.old_start + hunk.old_len, len(passage)) if passage[i].strip()), None)
    over = partner.get(above) if above is not None else None
    under = partner.get(below) if below is not None else None
    if (above is not None and over is None) or (below is not None and under is None):
        raise NotCarried(f"a line beside the new ones (line {hunk.old_start + 1} of the search) does not stand there")
    if over is not None and under is not None and any(lines[j].strip() for j in range(over + 1, under)):
        raise NotCarried(f"line {over + 2} of the file stands where lines are added, and the search does not have it")
    if over is not None and above is not None:
        blanks = hunk.old_start - above - 1  # of the passage, between its line above and what is new
        room = (under if under is not None else len(lines)) - over - 1
        while blanks and (blanks > room or lines[over + blanks].strip()):
            blanks -= 1
        return over + 1 + blanks, passage[above]
    if under is not None and below is not None:
        return under, passage[below]
    raise NotCarried("there is no line to add to")


def _line(quoted: str, present: str, new: str, rebased: str) -> str:
    """A changed line: word by word where the file's line differs from the quoted one."""
    if indent_of(quoted) == indent_of(new):
        rebased = indent_of(present) + rebased.lstrip(" \t") if rebased.strip() else rebased
    if quoted.strip() == present.strip():
        return rebased.rstrip() + _end(present) if _end(quoted) == _end(new) else rebased
    words = merge3(*(_TOKEN.findall(line.strip()) for line in (quoted, present, new)))
    if isinstance(words, Merged):
        return indent_of(rebased) + "".join(words.lines)
    if squeezed(quoted) == squeezed(present):
        return rebased
    raise NotCarried("what the change replaces in a line reads otherwise there")


def _end(line: str) -> str:
    """The blanks at a line's end."""
    return line[len(line.rstrip()) :]
