"""A text as somebody is shown it: what is hidden of it is known from all of its lines."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from orchestrator.core.content import LineRange
from orchestrator.core.events.files import HiddenSecret
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.redact import SecretRedactor, secrets
from orchestrator.core.text.secret_rules import Level
from orchestrator.core.text.secrets import Secret, env_values

COVER = "█"
"""In place of each character of a secret, where characters are counted."""


class Hidden(NamedTuple):
    """What of a text is not shown: by line, 1-based, what is shown in its place; and where each secret is."""

    lines: dict[int, str]
    found: tuple[HiddenSecret, ...]

    def over(self, lines: Sequence[str]) -> Sequence[str]:
        """The lines as they are shown."""
        if not self.lines:
            return lines
        return [self.lines.get(number, line) for number, line in enumerate(lines, 1)]

    def without(self, shown: LineRange) -> tuple[LineRange, ...]:
        """Of a range the lines that are shown as they are."""
        first, ranges = shown.start, list[LineRange]()
        for number in sorted(number for number in self.lines if shown.start <= number <= shown.end):
            if first < number:
                ranges.append(LineRange(first, number - 1))
            first = number + 1
        if first <= shown.end:
            ranges.append(LineRange(first, shown.end))
        return tuple(ranges)

    def moved(self, down: int) -> Hidden:
        """The same of lines that stand so many below."""
        found = (msgspec.structs.replace(secret, line=secret.line + down) for secret in self.found)
        return Hidden({line + down: text for line, text in self.lines.items()}, tuple(found))


NOTHING_HIDDEN = Hidden({}, ())


def hidden_of(lines: Sequence[str], level: Level, key: bytes, *, env: bool = False) -> Hidden:
    """What of a text is hidden at a level; `key`: of the numbers in the markers. `env`: all its values are secrets.

    Cost: O(characters). A search of one line keeps the interpreter lock.
    """
    found = secrets(lines, env_values(lines) if env else (), level)
    if not found:
        return NOTHING_HIDDEN
    redactor = SecretRedactor(number=partial(_number, key))
    shown = redactor.hide(lines, env_values(lines) if env else (), level)
    changed = {n: new for n, (old, new) in enumerate(zip(lines, shown, strict=True), 1) if old != new}
    return Hidden(changed, tuple(map(placed, found)))


def hidden_of_text(text: str, level: Level, key: bytes, *, env: bool = False) -> Hidden:
    """The same of lines that were joined for a worker."""
    return hidden_of(text.split("\n"), level, key, env=env)


def placed(secret: Secret) -> HiddenSecret:
    """A secret, in lines that are counted from 1."""
    return HiddenSecret(secret.line + 1, secret.start, secret.end, secret.kind)


def _number(key: bytes, secret: str) -> int:
    """The same for the same secret and key; it tells nothing else of it."""
    return int.from_bytes(hmac.digest(key, secret.encode("utf-8", "surrogatepass"), "sha256")[:4]) % 1_000_000


class ShownText:
    """Where lines of a file go into an answer, a refusal or a diff, they are taken from here.

    A few lines do not tell that they are a key's; so this is made by `Redaction.shown` alone, which looks at all.
    """

    def __init__(self, document: Document, hidden: Hidden) -> None:
        self._plain, self.hidden, self.document = document, hidden, document
        if hidden.lines:
            self.document = msgspec.structs.replace(document, lines=tuple(hidden.over(document.lines)))

    @property
    def lines(self) -> Sequence[str]:
        """With markers in the place of secrets."""
        return self.document.lines

    def in_place(self, line: int) -> str:
        """A line, 1-based, with each of its secrets covered, so that every character keeps its place."""
        plain = self._plain.lines[line - 1]
        if line not in self.hidden.lines:
            return plain
        shown = covered(plain, (secret for secret in self.hidden.found if secret.line == line))
        return COVER * len(plain) if secrets([shown], level="all") else shown


def covered(text: str, found: Iterable[HiddenSecret]) -> str:
    """A line with each of these secrets covered."""
    for secret in found:
        text = text[: secret.start] + COVER * (secret.end - secret.start) + text[secret.end :]
    return text
