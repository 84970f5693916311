"""Secrets in a text, by the forms that their issuers give them: found, hidden for a reader, and put back.

First rules: provider tokens and private keys. They look at a text line by line, so that a marker
stands where the secret stood and no line moves.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

import msgspec

MARKER: Final = re.compile(r"\[redacted:([a-z0-9-]{1,40})#([0-9]{1,9})\]")
"""What stands for a secret: its kind, and a number that is that secret's alone."""

_MOST_PASSES = 4
"""A marker puts an end to what stands before it, which may then be of another secret's form."""

# Each form begins where no such character stands before it, and its runs are possessive: one pass, no going back.
# Sources: the issuers' documentation of their prefixes, compared with the rules of gitleaks.
_FORMS: Final[tuple[tuple[str, str], ...]] = (
    ("aws-access-key", r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    (
        "aws-secret-key",
        (
            r"(?i:aws_?secret_?(?:access_?)?key)[\"']?[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}[\"']?"
            r"(?P<aws>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])"
        ),
    ),
    ("github-token", r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{36,}+|github_pat_[A-Za-z0-9_]{36,}+)"),
    ("gitlab-token", r"(?<![A-Za-z0-9])gl(?:pat|dt|ft|soat|rt|cbt|ptt|agent|imt|oas)-[A-Za-z0-9_.-]{20,}+"),
    (
        "slack-token",
        (
            r"(?<![A-Za-z0-9])(?:xox[abceoprs]-[A-Za-z0-9-]{10,}+|xapp-[0-9]-[A-Za-z0-9-]{10,}+"
            r"|hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{30,}+)"
        ),
    ),
    ("stripe-key", r"(?<![A-Za-z0-9])(?:(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{16,}+|whsec_[A-Za-z0-9+/=]{24,}+)"),
    (
        "google-key",
        r"(?<![A-Za-z0-9])(?:AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])|GOCSPX-[A-Za-z0-9_-]{28,}+|ya29\.[A-Za-z0-9_-]{20,}+)",
    ),
    ("anthropic-key", r"(?<![A-Za-z0-9])sk-ant-[A-Za-z0-9_-]{20,}+"),
    (
        "openai-key",
        r"(?<![A-Za-z0-9])sk-(?:(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}+|[A-Za-z0-9]{32,}+)",
    ),
    ("npm-token", r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    ("pypi-token", r"(?<![A-Za-z0-9])pypi-AgE[A-Za-z0-9_-]{50,}+"),
    ("json-web-token", r"(?<![A-Za-z0-9_-])ey[JK][A-Za-z0-9_-]{8,}+\.ey[JK][A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+"),
    (
        "azure-key",
        (
            r"(?i:AccountKey|SharedAccessKey)=(?P<azure>[A-Za-z0-9+/]{40,}+={0,2})"
            r"|[?&]sig=(?P<sas>[A-Za-z0-9%/+]{43,}+={0,2})"
            r"|(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,}+"
        ),
    ),
    ("hugging-face-token", r"(?<![A-Za-z0-9])hf_[A-Za-z]{34}(?![A-Za-z0-9])"),
    ("digitalocean-token", r"(?<![A-Za-z0-9])do[opr]_v1_[a-f0-9]{64}(?![A-Za-z0-9])"),
    ("sendgrid-key", r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    ("shopify-token", r"(?<![A-Za-z0-9])shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}(?![A-Za-z0-9])"),
    ("vault-token", r"(?<![A-Za-z0-9])hv[sbr]\.[A-Za-z0-9_-]{24,}+"),
    ("telegram-token", r"(?<![A-Za-z0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    ("age-key", r"(?<![A-Za-z0-9])AGE-SECRET-KEY-1[0-9A-Z]{58}(?![A-Za-z0-9])"),
)
KINDS: Final[tuple[str, ...]] = (*(kind for kind, _ in _FORMS), "private-key", "key-lines")
_COMPILED = tuple((kind, re.compile(form)) for kind, form in _FORMS)

_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-[0-9]:")
_END = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|Private-(?:MAC|Hash): *[0-9a-f]*")
_OPEN = re.compile(r"-----BEGIN [A-Z0-9 ]{1,60}-----")
_KEY_LINE = re.compile(r"""[\s"'#*/+]{0,40}[A-Za-z0-9+/]{60,76}={0,2}(?:\\n)?[\s"',;+\\]{0,12}\Z""")
_KEY_TAIL = re.compile(r"""[\s"'#*/+]{0,40}[A-Za-z0-9+/]{1,76}={0,2}(?:\\n)?[\s"',;+\\]{0,12}\Z""")
_REMAINS = re.compile(r"(?i)\[\s?redacted\s?:|redacted\s?:\s?(?:" + "|".join(KINDS) + r")\b")

MOST_KEY_LINES = 400
"""A key block longer than this has lost its end; the lines after are looked at as any others."""

_RUN = 3
"""So many full lines of base64 in a row, mixed in case, are taken for a key whose head is not in sight."""


class Secret(msgspec.Struct, frozen=True, order=True):
    """Where a secret stands: 0-based line, and characters from `start` to before `end` in it."""

    line: int
    start: int
    end: int
    kind: str


class MarkerDamaged(Exception):
    """A text that came back holds a marker that was not given out for it, or the remains of one."""


def secrets(lines: Sequence[str]) -> tuple[Secret, ...]:
    """The secrets of a text, in its order; none overlaps another. Cost: O(characters), for any text."""
    found = list(_blocks(lines))
    whole = {secret.line for secret in found}
    for number, line in enumerate(lines):
        if number not in whole:
            found.extend(_tokens(number, line))
    return tuple(sorted(found))


class Veil:
    """Hides secrets from one reader, the same one always behind the same marker; and puts them back."""

    def __init__(self, shown: Iterable[str] = ()) -> None:
        """`shown`: all that the reader will see, so that no marker is given out that stands there already."""
        self._own = {match[0] for text in shown for match in MARKER.finditer(text)}
        taken = [int(match[2]) for marker in self._own if (match := MARKER.fullmatch(marker))]
        self._next = max(taken, default=0) + 1
        self._markers: dict[str, str] = {}
        self._secrets: dict[str, str] = {}

    def hide(self, lines: Sequence[str]) -> tuple[str, ...]:
        """The lines with a marker for each secret; as many as before."""
        hidden = list(lines)
        for _ in range(_MOST_PASSES):
            found = secrets(hidden)
            if not found:
                return tuple(hidden)
            for number, standing in groupby(found, key=lambda secret: secret.line):
                hidden[number] = self._hidden(hidden[number], standing)
        for number in {secret.line for secret in secrets(hidden)}:
            hidden[number] = self._marker(hidden[number], "key-lines")
        return tuple(hidden)

    def restore(self, lines: Sequence[str], *, allowed: Iterable[str]) -> tuple[str, ...]:
        """The lines with their secrets back; only markers that stand in `allowed` texts may come back here.

        Raises MarkerDamaged: a marker was changed, made up, or brought from elsewhere.
        """
        given = {match[0] for text in allowed for match in MARKER.finditer(text)}
        return tuple(self._restored(line, given) for line in lines)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What was hidden, sorted."""
        return tuple(sorted({match[1] for marker in self._secrets if (match := MARKER.fullmatch(marker))}))

    def _hidden(self, line: str, found: Iterable[Secret]) -> str:
        pieces, at = [], 0
        for secret in found:
            pieces += [line[at : secret.start], self._marker(line[secret.start : secret.end], secret.kind)]
            at = secret.end
        return "".join((*pieces, line[at:]))

    def _restored(self, line: str, given: set[str]) -> str:
        for match in MARKER.finditer(line):
            if match[0] not in given:
                raise MarkerDamaged(match[0])
        if _REMAINS.search(MARKER.sub("", line)):
            raise MarkerDamaged("the remains of a marker")
        return self._whole(line)

    def _whole(self, line: str) -> str:
        for _ in range(_MOST_PASSES + 1):  # a later pass may have hidden a marker of an earlier one
            line, count = MARKER.subn(lambda match: self._secrets.get(match[0], match[0]), line)
            if not count:
                break
        return line

    def _marker(self, text: str, kind: str) -> str:
        if text not in self._markers:
            marker = f"[redacted:{kind}#{self._next}]"
            self._next += 1
            self._markers[text], self._secrets[marker] = marker, text
        return self._markers[text]


def _tokens(number: int, line: str) -> Iterator[Secret]:
    """Secrets within one line; where two forms fit, the one that begins first, then the longer."""
    if len(line) < 20:
        return
    found: list[tuple[int, int, str]] = []
    for kind, form in _COMPILED:
        for match in form.finditer(line):
            start, end = match.span(match.lastgroup) if match.lastgroup else match.span()
            found.append((start, -end, kind))
    taken = 0
    for start, end, kind in sorted(found):
        if start >= taken and not MARKER.fullmatch(line[start:-end]):
            yield Secret(number, start, -end, kind)
            taken = -end


def _blocks(lines: Sequence[str]) -> Iterator[Secret]:
    """Private keys over several lines; also those of which only the middle or the end is in sight."""
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
            if closed or (stop - number >= _RUN and _mixed(lines[number:stop])):
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
    stop = first + 1
    while stop < len(lines) and (_KEY_TAIL.match(lines[stop]) or not lines[stop].strip()):
        stop += 1
    return [head, *_whole_lines(lines, range(first + 1, stop), "private-key")], stop


def _whole_lines(lines: Sequence[str], numbers: Iterable[int], kind: str) -> list[Secret]:
    kept = (number for number in numbers if lines[number].strip() and not MARKER.fullmatch(lines[number]))
    return [Secret(number, 0, len(lines[number]), kind) for number in kept]


def _past(form: re.Pattern[str], lines: Sequence[str], number: int) -> int:
    """The first line from here on that is not of this form."""
    while number < len(lines) and form.match(lines[number]):
        number += 1
    return number


def _mixed(lines: Sequence[str]) -> bool:
    """Whether these are neither hex, nor of one case only, nor without digits: a table of sums, a ruler."""
    text = "".join(lines)
    return text != text.lower() and text != text.upper() and any(char.isdigit() for char in text)


def _past_tail(lines: Sequence[str], number: int) -> int:
    """Past the short last line of a block and the word that ends it."""
    if number < len(lines) and _KEY_TAIL.match(lines[number]) and not lines[number].strip().isalpha():
        number += 1
    if number < len(lines) and _END.search(lines[number]):
        number += 1
    return number
