"""Redacts secrets in a text with markers, and restores them.

First rules: provider tokens and private keys. They look at a text line by line, so that a marker
is where the secret was and no line moves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

import msgspec

from orchestrator.core.text.secret_rules import Level
from orchestrator.core.text.secrets import Glance, Secret, forms_in, key_lines, kinds

MARKER: Final = re.compile(r"\[redacted:([a-z0-9-]{1,40})#([0-9]{1,9})\]")
"""Replaces a secret: its kind, and a number that is that secret's alone."""

PIECE_LINES = 400
"""Lines that are looked through at once: what a processor has at hand."""

_MOST_PASSES = 4
"""A marker puts an end to what is before it, which may then be of another secret's form."""

_REMAINS = re.compile(r"(?i)\[\s?redacted\s?:|redacted\s?:\s?(?:" + "|".join(kinds()) + r")\b")


class MarkerDamaged(Exception):
    """A text that was sent back holds a marker that was not given out for it, or the remains of one."""


def secrets(lines: Sequence[str], keys: Iterable[Secret] = (), level: Level = "tokens") -> tuple[Secret, ...]:
    """The secrets of a text, in its order; none overlaps another. Cost: O(characters), for any text.

    `keys`: lines of keys that begin or end beyond these lines, known from the whole of the text.
    """
    found: list[Secret] = []
    first = len(lines)  # from there on may be lines of keys
    for start in range(0, len(lines), PIECE_LINES):
        piece = lines[start : start + PIECE_LINES]
        glance = Glance(piece)
        first = min(first, start) if glance.keys else first
        found += _moved(forms_in(piece, glance, level), start)
    whole = {secret.line: secret for secret in (*_moved(key_lines(lines[first:]), first), *keys)}
    found = [*whole.values(), *(secret for secret in found if secret.line not in whole)]
    return tuple(sorted(one for one in found if not MARKER.fullmatch(lines[one.line][one.start : one.end])))


def _moved(found: Iterable[Secret], down: int) -> Iterator[Secret]:
    return (msgspec.structs.replace(secret, line=secret.line + down) for secret in found)


class SecretRedactor:
    """Hides secrets from one reader, the same one always behind the same marker; and puts them back."""

    def __init__(self, shown: Iterable[str] = (), number: Callable[[str], int] | None = None) -> None:
        """`shown`: all that the reader will see, so that no marker is given out that is there already.

        `number`: of a secret's marker; else they are counted.
        """
        self._number = number
        self._next = 1 + max((int(match[2]) for text in shown for match in MARKER.finditer(text)), default=0)
        self._markers: dict[str, str] = {}
        self._secrets: dict[str, str] = {}

    def hide(self, lines: Sequence[str], keys: Iterable[Secret] = (), level: Level = "tokens") -> tuple[str, ...]:
        """The lines with a marker for each secret; as many as before. `keys` as of `secrets`."""
        hidden = list(lines)
        for turn in range(_MOST_PASSES):
            found = secrets(hidden, () if turn else keys, level)
            if not found:
                return tuple(hidden)
            for number, its_secrets in groupby(found, key=lambda secret: secret.line):
                hidden[number] = self._hidden(hidden[number], its_secrets)
        for number in {secret.line for secret in secrets(hidden, level=level)}:
            hidden[number] = self._marker(hidden[number], "key-lines")
        return tuple(hidden)

    def restore(self, lines: Sequence[str], *, allowed: Iterable[str]) -> tuple[str, ...]:
        """The lines with their secrets back; only markers that are in `allowed` texts may come back here.

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
        for _ in range(_MOST_PASSES + 1):  # a later pass may have hidden a marker of an earlier one
            line, count = MARKER.subn(lambda match: self._secrets.get(match[0], match[0]), line)
            if not count:
                break
        return line

    def _marker(self, text: str, kind: str) -> str:
        if text not in self._markers:
            marker = f"[redacted:{kind}#{self._next if self._number is None else self._number(text)}]"
            self._next += 1
            self._markers[text], self._secrets[marker] = marker, text
        return self._markers[text]
