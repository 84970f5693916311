"""The part of an answer that a client passes on to its model; more is not sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder()


class AnswerSpace(msgspec.Struct, frozen=True):
    """Bytes of JSON text, as clients count them at most, and lines."""

    bytes: int = 1 << 40
    lines: int = 1 << 40
    typed: bool = False  # a text goes out as typed content, too; the client may count either
    whole: str = ""  # what the client hands on of an answer, in words

    def less(self, taken: int, lines: int = 0) -> AnswerSpace:
        """What is left when so many bytes and lines are taken."""
        return AnswerSpace(max(0, self.bytes - taken), max(0, self.lines - lines), self.typed, self.whole)

    def at_most(self, most_bytes: int) -> AnswerSpace:
        """No more of it than so many bytes."""
        return AnswerSpace(min(self.bytes, most_bytes), self.lines, self.typed, self.whole)

    def cost(self, text: int, item: Any) -> int:
        """The bytes of an item, which takes so many as text."""
        return max(text, len(_ENCODER.encode(item)) + 1) if self.typed else text

    def overrules(self, parameter: str, value: int) -> str:
        """What an answer says that ends before the caller's own limit."""
        return f"cut before {parameter}={value}: this client hands on {self.whole} of an answer at most"

    def holds(self, *texts: str) -> bool:
        """Whether these texts fit, one beside the other."""
        return sum(map(size, texts)) <= self.bytes and sum(text.count("\n") + 1 for text in texts) <= self.lines

    def first(self, costs: Iterable[tuple[int, int]], *, least: int = 1) -> int:
        """How many of these fit, from the first on, each with its bytes and its lines; `least` do where so many are."""
        taken = lines = count = 0
        for cost, rows in costs:
            taken, lines = taken + cost, lines + rows
            if count >= least and (taken > self.bytes or lines > self.lines):
                break
            count += 1
        return count


UNBOUNDED = AnswerSpace()


def size(text: str) -> int:
    """The bytes of a text within JSON: some clients count it so, and none counts more."""
    return len(_ENCODER.encode(text)) - 2


def json_size(value: Any) -> int:
    """The bytes of a value as JSON within JSON, and of its comma."""
    return size(_ENCODER.encode(value).decode()) + 1
