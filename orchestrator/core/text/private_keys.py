"""Finds private keys over several lines, also inside lists, quotations, tables and calls."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

MOST_KEY_LINES: Final = 400
"""A key whose last line is further away than this has lost it; its lines are known by their base64 alone."""

_RUN = 3
"""So many full lines of base64 in a row, mixed in case, are taken for a key whose head is not in sight."""

_MOST_BETWEEN = 4
"""Lines without base64 between two of the same key: headers, blank ones, a wrapped line's rest."""
_LONGEST_BETWEEN = 80

_LABEL = r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_BEGIN = re.compile(rf"-{{4,5}} ?BEGIN {_LABEL}|PuTTY-User-Key-File-[0-9]:")
_END = re.compile(rf"-{{4,5}} ?END {_LABEL}|Private-(?:MAC|Hash): *[0-9a-f]*")
_OPEN = re.compile(r"-----BEGIN [A-Z0-9 ]{1,60}-----")
_KEY_LINE = re.compile(r"""[\s"'#*/+]{0,40}[A-Za-z0-9+/]{60,76}={0,2}(?:\\n)?[\s"',;+\\]{0,12}\Z""")
_KEY_TAIL = re.compile(r"""[\s"'#*/+]{0,40}[A-Za-z0-9+/]{1,76}={0,2}(?:\\n)?[\s"',;+\\]{0,12}\Z""")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{24,}+={0,2}")
_NUMBER = re.compile(r"[0-9]+")


class Secret(msgspec.Struct, frozen=True, order=True):
    """Where a secret is: 0-based line, and characters from `start` to before `end` in it."""

    line: int
    start: int
    end: int
    kind: str


def key_lines(lines: Sequence[str]) -> Iterator[Secret]:
    """The lines of keys, ascending; also of keys of which only the middle or the end is in sight.

    Of a key that begins and ends in sight all that is between; of one without an end each line with 24
    or more characters of base64, for as long as such lines go on. Cost: O(characters).
    """
    ends = [number for number, line in enumerate(lines) if _END.search(line)]
    number = 0
    while number < len(lines):
        line = lines[number]
        begin = _BEGIN.search(line)
        if begin is not None:
            block, number = _block(lines, number, begin.start(), ends)
            yield from block
        elif _OPEN.search(line):  # a certificate or a public key: its lines are nobody's secret
            number = _past(_KEY_TAIL, lines, number + 1)
        elif (stop := _past(_KEY_LINE, lines, number)) > number:
            closed = stop < len(lines) and _END.search(lines[_past_tail(lines, stop) - 1]) is not None
            text = "".join(lines[number:stop])
            # neither hex, nor of one case only, nor without digits: a table of sums, a ruler
            mixed = text not in (text.lower(), text.upper()) and any(map(str.isdigit, text))
            if closed or (stop - number >= _RUN and mixed):
                stop = _past_tail(lines, stop)
                yield from _whole_lines(lines, range(number, stop), "key-lines")
            number = stop
        else:
            end = _END.match(line.lstrip())
            if end is not None and not line.lstrip().startswith("Private-"):
                yield Secret(number, 0, len(line), "private-key")
            number += 1


def _block(lines: Sequence[str], first: int, start: int, ends: Sequence[int]) -> tuple[list[Secret], int]:
    """A key from its first line on, and the line after it."""
    at = bisect_left(ends, first)
    last = ends[at] if at < len(ends) else len(lines)
    if last == first:
        end = _END.search(lines[first], start)
        if end is not None:
            return [Secret(first, start, end.end(), "private-key")], first + 1
        last = ends[at + 1] if at + 1 < len(ends) else len(lines)
    head = Secret(first, start, len(lines[first]), "private-key")
    if last < len(lines) and last - first <= MOST_KEY_LINES:
        end = _END.search(lines[last])
        tail = Secret(last, 0, end.end() if end else len(lines[last]), "private-key")
        return [head, *_whole_lines(lines, range(first + 1, last), "private-key"), tail], last + 1
    stop = _past_base64(lines, first + 1)
    return [head, *_whole_lines(lines, range(first + 1, stop), "private-key")], stop


def _past_base64(lines: Sequence[str], number: int) -> int:
    """The line after the last of a key that has no end in sight: past its base64, and the rest of it."""
    stop = number
    while True:
        near = range(stop, min(stop + _MOST_BETWEEN + 1, len(lines)))
        found = next((at for at in near if _BASE64.search(lines[at])), None)
        if found is None or any(len(lines[at].strip()) > _LONGEST_BETWEEN for at in range(stop, found)):
            break
        stop = found + 1
    if stop < len(lines) and _is_rest(lines, stop, number):
        stop += 1
    return stop


def _is_rest(lines: Sequence[str], at: int, first: int) -> bool:
    """Whether this line is a key's short last one: wrapped as the one before it."""
    if _KEY_TAIL.match(lines[at]):
        return True
    full = _BASE64.search(lines[at - 1]) if at > first else None
    if full is None:
        return False
    before = "[0-9]+".join(map(re.escape, _NUMBER.split(lines[at - 1][: full.start()])))
    after = re.escape(lines[at - 1][full.end() :])
    return re.fullmatch(rf"{before}[A-Za-z0-9+/]++={{0,2}}{after}", lines[at], re.DOTALL) is not None


def _whole_lines(lines: Sequence[str], numbers: Iterable[int], kind: str) -> list[Secret]:
    return [Secret(number, 0, len(lines[number]), kind) for number in numbers if lines[number].strip()]


def _past(form: re.Pattern[str], lines: Sequence[str], number: int) -> int:
    """The first line from here on that is not of this form."""
    while number < len(lines) and form.match(lines[number]):
        number += 1
    return number


def _past_tail(lines: Sequence[str], number: int) -> int:
    """Past the short last line of a block and the word that ends it."""
    if number < len(lines) and _KEY_TAIL.match(lines[number]) and not lines[number].strip().isalpha():
        number += 1
    if number < len(lines) and _END.search(lines[number]):
        number += 1
    return number
