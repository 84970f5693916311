"""A text as somebody is shown it: what is hidden of it is known from all of its lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from orchestrator.core.content import LineRange
from orchestrator.core.events.files import HiddenSecret
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.redact import secrets

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
