"""Where a TOML text says something, for messages that name the line.

tomllib keeps no positions. This reads just enough of TOML to find tables, keys and the items of
arrays; what it cannot find (dotted keys, inline tables) it answers with the nearest thing above.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Place = tuple[str | int, ...]
"""`("rule", 2, "paths", 1)`: counted from 1, as a person counts."""

_TOKEN = re.compile(
    r"""
      (?P<long>\"{3}(?:\\.|[^\\])*?\"{3,5}|'{3}.*?'{3,5})
    | (?P<text>"(?:\\.|[^"\\\n])*"|'[^'\n]*')
    | (?P<comment>\#[^\n]*)
    | (?P<mark>[\[\]{}=,\n])
    | (?P<word>[^\s\[\]{}=,"'#]+)
    """,
    re.VERBOSE | re.DOTALL,
)


class Positions:
    """The lines (from 1) at which a text's tables, keys and array items stand."""

    def __init__(self, text: str) -> None:
        self._lines = dict(_read(text))

    def line(self, *place: str | int) -> int:
        """The line of a place, or of the nearest place that holds it; 1 for the text as a whole."""
        for length in range(len(place), 0, -1):
            line = self._lines.get(place[:length])
            if line is not None:
                return line
        return 1


def _read(text: str) -> Iterator[tuple[Place, int]]:
    table: Place = ()
    counts: dict[Place, int] = {}
    for statement in _statements(text):
        words = [word for word, _ in statement]
        line = statement[0][1]
        if words[0] == "[":
            names = tuple(_bare(part) for word in words if word not in "[]" for part in _parts(word))
            if words[:2] == ["[", "["]:
                counts[names] = counts.get(names, 0) + 1
                table = (*names, counts[names])
                if counts[names] == 1:
                    yield names, line
            else:
                table = names
            yield table, line
        elif "=" in words:
            at = words.index("=")
            key = (*table, *(_bare(part) for word in words[:at] for part in _parts(word)))
            yield key, line
            yield from _items(key, statement[at + 1 :])


def _statements(text: str) -> Iterator[list[tuple[str, int]]]:
    """Tokens with their lines, one list for each header or assignment."""
    line, depth, seen = 1, 0, 0
    statement: list[tuple[str, int]] = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        line += text.count("\n", seen, match.start())
        seen = match.start()
        if match.lastgroup == "mark":
            depth += (token in "[{") - (token in "]}")
        if token == "\n" and depth <= 0 and statement:
            yield statement
            statement, depth = [], 0
        elif token != "\n" and match.lastgroup != "comment":
            statement.append((token, line))
    if statement:
        yield statement


def _items(key: Place, value: list[tuple[str, int]]) -> Iterator[tuple[Place, int]]:
    """The items of a flat array."""
    if not value or value[0][0] != "[":
        return
    count, fresh = 0, True
    for token, line in value[1:]:
        if token == ",":
            fresh = True
        elif fresh and token != "]":
            count, fresh = count + 1, False
            yield (*key, count), line


def _parts(word: str) -> list[str]:
    return [word] if word[0] in "\"'" else [part for part in word.split(".") if part]


def _bare(word: str) -> str:
    return word[1:-1] if word[0] in "\"'" else word
