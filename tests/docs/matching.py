"""Comparing what a document shows with what really came: versions stand for each other, times do not matter."""

from __future__ import annotations

import re
from typing import Any

_VERSION = re.compile(r"@\d+|\b\d{12}\b")  # as a person reads it, and as it is in the name of an archived file
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ?")
_SPACES = re.compile(r" {2,}")


class Versions:
    """Which real `@N` each `@N` of the document stands for, one to one. Learnt from what is compared."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}

    def real(self, reported: str) -> str:
        """A text of the document with the real versions in it, where they are known."""
        return _VERSION.sub(lambda match: self._real.get(match[0], match[0]), reported)

    def match(self, reported: str, real: str) -> bool:
        """Whether two lines agree. `…` in the document stands for anything; widths of gaps do not count."""
        reported, real = _plain(reported), _plain(real)
        names = _VERSION.findall(reported)
        pattern = "(@[0-9]+|[0-9]{12})".join(
            ".*".join(re.escape(piece) for piece in text.split("…")) for text in _VERSION.split(reported)
        )
        found = re.fullmatch(pattern, real)
        return found is not None and all(self._learn(a, b) for a, b in zip(names, found.groups(), strict=True))

    def match_lines(self, reported: list[str], real: list[str]) -> str | None:
        """None if they agree, else the first line of the document that does not. A line `…` stands for any lines."""
        rest = list(real)
        for number, line in enumerate(reported):
            if line.strip() == "…":
                if number + 1 == len(reported):
                    return None
                while rest and not self.match(reported[number + 1], rest[0]):
                    rest.pop(0)
            elif not rest or not self.match(line, rest.pop(0)):
                return line
        return f"(after the end) {rest[0]}" if rest else None

    def match_json(self, reported: Any, real: Any) -> bool:
        """Whether everything that the document shows is so; objects may have more members."""
        match reported, real:
            case dict(), dict():
                return all(key in real and self.match_json(value, real[key]) for key, value in reported.items())
            case list(), list():
                return len(reported) == len(real) and all(map(self.match_json, reported, real))
            case str(), str():
                a, b = reported.split("\n"), real.split("\n")
                return self.match_lines(a, b) is None
            case _:
                return bool(reported == real) and type(reported) is type(real)

    def _learn(self, reported: str, real: str) -> bool:
        known = self._real.get(reported)
        if known is None and real not in self._real.values():
            self._real[reported] = known = real
        return known == real


def _plain(line: str) -> str:
    return _SPACES.sub("  ", _TIME.sub("(a time)", line)).rstrip()
