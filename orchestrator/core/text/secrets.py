"""Finds secrets: by the forms of `secret_rules.toml`, and private keys over several lines.

Keys are found also inside lists, quotations, tables and calls.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import Final

import msgspec

from orchestrator.core.text.secret_rules import Level, secret_rules

_PERCENT = re.compile(r"%([2-7][0-9A-Fa-f])")
_SHORTEST, _SHORTEST_WORD, _FULL_LINE = 20, 15, 60
_HEADS = ("PRIVATE KEY", "PuTTY-User-Key-File-", "LS0tLS1CRUdJTi")
_ENV_VALUE = re.compile(
    r"(?:[-+]|\s{0,20}[0-9]{1,12}\t)?\s{0,20}(?:\[[0-9]{1,12} characters left out\] … |"
    r"(?:export\s{1,9})?[A-Za-z_][A-Za-z0-9_.]{0,200}\s{0,9}=\s{0,9}[\"']?)(?!\[redacted:[a-z0-9-]{1,40}#[0-9]{1,9}\])"
    r"(?P<value>[^\s\"'#](?:[^\"'#]|(?<!\s)#)*)"
)
"""Also of a numbered line, of a diff's, and of one without its beginning."""


def kinds() -> tuple[str, ...]:
    """What a marker may name; the last two are lines of keys."""
    return (*(rule.kind for rule in secret_rules("all")), "env-value", "private-key", "key-lines")


MOST_KEY_LINES: Final = 400
"""A key whose last line is further away than this has lost it; its lines are known by their base64 alone."""

MOST_KEY_BYTES: Final = 32 * 1024
"""Of as many lines of a key, or of one that is a single line."""

_RUN = 3
"""So many full lines of base64 in a row, mixed in case, are taken for a key whose head is not in sight."""

_MOST_BETWEEN = 4
"""Lines without base64 between two of the same key: headers, blank ones, a wrapped line's rest."""
_LONGEST_BETWEEN = 80

_LABEL = r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_BEGIN = re.compile(rf"-{{4,5}} ?BEGIN {_LABEL}|PuTTY-User-Key-File-[0-9]:")
_END = re.compile(rf"-{{4,5}} ?END {_LABEL}|Private-(?:MAC|Hash): *[0-9a-f]*")
_OPEN = re.compile(r"-----BEGIN [A-Z0-9 ]{1,60}-----")
_KEY_LINE = re.compile(r"""[\s"'#*/+-]{0,40}[A-Za-z0-9+/]{60,76}={0,2}(?:\\n)?[\s"',;+\\]{0,12}\Z""")
_KEY_TAIL = re.compile(r"""[\s"'#*/+-]{0,40}[A-Za-z0-9+/]{1,76}={0,2}(?:\\n)?[\s"',;+\\]{0,12}\Z""")
_FULL = re.compile(rf"[A-Za-z0-9+/]{{{_FULL_LINE}}}")
_ONLY_BASE64 = bytes(
    ord("A") if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "+/") else 0 for byte in range(256)
)
"""What tells runs of base64 from all else."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]{24,}+={0,2}")
_NUMBER = re.compile(r"[0-9]+")


class Secret(msgspec.Struct, frozen=True, order=True):
    """Where a secret is: 0-based line, and characters from `start` to before `end` in it."""

    line: int
    start: int
    end: int
    kind: str


def forms_in(lines: Sequence[str], glance: Glance, level: Level = "tokens") -> Iterator[Secret]:
    """Secrets within one line each, as they are written and as they read with `%2D` and its like taken back.

    In order, none overlapping: of two that do, the one that begins first, else the longer, else the issuer's.
    Cost: O(characters); only lines with a rule's keyword are looked at, so a text without any costs little.
    """
    rules = _expressions(level)
    for number, ranks in sorted(glance.suspects(lines, level).items()):
        line = lines[number]
        spans = [(start, -end, rank) for start, end, rank in _matched(line, rules, ranks)]
        if "%" in line:
            plain, places = _unquoted(line)
            found = _matched(plain, rules, range(len(rules)))
            spans += [(places[start], -places[end], rank) for start, end, rank in found]
        taken = 0
        for start, end, rank in sorted(spans):
            if start >= taken:
                yield Secret(number, start, -end, rules[rank][0])
                taken = -end


def env_values(lines: Sequence[str]) -> Iterator[Secret]:
    """The values of a file of environment variables, `KEY=value`."""
    for number, line in enumerate(lines):
        match = _ENV_VALUE.match(line)
        if match is not None:
            yield Secret(number, match.start("value"), match.end("value"), "env-value")


@cache
def _expressions(level: Level) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((rule.kind, rule.expression) for rule in secret_rules(level))


@cache
def _near(level: Level) -> tuple[tuple[int, re.Pattern[str]], ...]:
    return tuple((rank, re.compile(rule.near)) for rank, rule in enumerate(secret_rules(level)) if rule.near)


def may_hold_key(data: bytes) -> bool:
    """Whether bytes, of any encoding in which ASCII is itself, may hold lines of keys. Cost: O(len(data)), 1 GB/s."""
    return any(head.encode() in data for head in _HEADS) or b"A" * _FULL_LINE in data.translate(_ONLY_BASE64)


def begins_key(text: str) -> bool:
    """Whether a text may hold the head of a private key. Cost: O(characters), 1 GB/s."""
    return any(head in text for head in _HEADS)


class Glance:
    """What a text may hold, told from its words: most hold nothing, and nothing more is looked at then."""

    def __init__(self, lines: Sequence[str]) -> None:
        # other characters are in no form: with one of ASCII in their place the text is looked through faster
        self.text = "\n".join(lines).encode("ascii", "replace").decode("ascii")
        words = set(self.text.split())  # a text repeats itself
        self._long_words = "\n".join(word for word in words if len(word) >= _SHORTEST_WORD).lower()
        self.keys = begins_key(self.text) or any(len(word) >= _FULL_LINE and _FULL.search(word) for word in words)
        """Whether it may hold lines of keys."""

    def suspects(self, lines: Sequence[str], level: Level) -> dict[int, set[int]]:
        """The lines to look at, each with the ranks of the rules whose keywords it has."""
        text, lower = self.text, self.text.lower()
        found: dict[int, set[int]] = {}
        places: list[tuple[int, int]] = []
        for rank, rule in enumerate(secret_rules(level)):
            where = lower if rule.apart else self._long_words
            for keyword in rule.keywords:
                at = lower.find(keyword) if keyword in where else -1
                while at >= 0:
                    places.append((at, rank))
                    end = text.find("\n", at)
                    at = lower.find(keyword, end) if end >= 0 else -1
        places += [(match.start(), rank) for rank, near in _near(level) for match in near.finditer(text)]
        places += [(match.start(), 0) for match in _PERCENT.finditer(text)]
        if not places:
            return found
        starts = [0, *accumulate(len(line) + 1 for line in lines)]
        for place, rank in places:
            number = bisect_right(starts, place) - 1
            if len(lines[number]) >= _SHORTEST:
                found.setdefault(number, set()).add(rank)
        return found


def _matched(
    line: str, rules: Sequence[tuple[str, re.Pattern[str]]], ranks: Iterable[int]
) -> Iterator[tuple[int, int, int]]:
    for rank in ranks:
        for match in rules[rank][1].finditer(line):
            yield (*match.span(match.lastgroup or 0), rank)


def _unquoted(line: str) -> tuple[str, list[int]]:
    """The line with its ASCII characters in percent form taken back, and where each is in it; and its end."""
    pieces: list[str] = []
    places: list[int] = []
    at = 0
    for match in _PERCENT.finditer(line):
        pieces += [line[at : match.start()], chr(int(match[1], 16))]
        places += [*range(at, match.start()), match.start()]
        at = match.end()
    pieces.append(line[at:])
    places += range(at, len(line) + 1)
    return "".join(pieces), places


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
