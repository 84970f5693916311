r"""Characters that a file spells as escapes of JSON and JavaScript: `\u00e9`, or `\ud83d\ude00` above U+FFFF.

Some clients decode such escapes in what their models send, so a quoted line comes with the characters themselves.
"""

from __future__ import annotations

import re
from bisect import bisect_right

_ESCAPE = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u(?![dD][89a-fA-F])([0-9a-fA-F]{4})"
)
_LINE_ENDS = "\n\r\x85\u2028\u2029"
"""Decoded, they would make two lines of one."""

RESPELLED = (
    "your client decodes \\uXXXX escapes. The text was found as the file spells it, with escapes, and its replacement "
    "is spelled likewise"
)

UNCERTAIN = (
    " It is there, spelled with \\uXXXX escapes, which your client decodes; which characters of the replacement are to "
    "be escaped is not certain. Quote only what changes."
)


def respelled(text: str, search: str, new: str) -> tuple[str, str] | str:
    r"""Search and replacement as the file spells them, where the text has the search once, with escapes in it.

    What both begin and end with keeps the file's spelling. Between, a character is spelled as in the passage, and one
    that is not in it as its like there: beyond ASCII with an escape, unless the passage has such characters unescaped.
    Else why it is not certain, "" where the text has no such passage. Cost: O(characters).
    """
    if "\\u" not in text or not search:
        return ""
    decoded = _Decoded(text)
    start = decoded.text.find(search)
    if start < 0 or decoded.text.find(search, start + 1) >= 0:
        return ""
    spelled = [decoded.spelling(at) for at in range(start, start + len(search))]
    if spelled == list(search):
        return ""
    before = _equal(search, new)
    after = _equal(search[before:][::-1], new[before:][::-1])
    spellings = _Spellings(search, spelled)
    replaced, middle = search[before : len(search) - after], new[before : len(new) - after]
    written = list(map(spellings.of, middle))
    if any(spellings.is_mixed(one) for one in {*replaced, *middle} & {*new}) or None in written:
        return UNCERTAIN
    parts = (*spelled[:before], *filter(None, written), *spelled[len(search) - after :])
    return "".join(spelled), "".join(parts)


def _equal(one: str, other: str) -> int:
    """How many characters both begin with."""
    differ = (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differ, min(len(one), len(other)))


class _Decoded:
    """A text with its escapes decoded, and where each of its characters is in the file."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._behind, self._raw = list[int](), list[int]()  # each escape's end: decoded, and in the file
        pieces = list[str]()
        length = last = 0
        for found in _ESCAPE.finditer(text):
            character = _character(found)
            if character in _LINE_ENDS:
                continue
            pieces += text[last : found.start()], character
            length += found.start() - last + 1
            last = found.end()
            self._behind.append(length)
            self._raw.append(last)
        self.text = "".join([*pieces, text[last:]])

    def spelling(self, at: int) -> str:
        """A character as the file has it."""
        return self._text[self._offset(at) : self._offset(at + 1)]

    def _offset(self, at: int) -> int:
        known = bisect_right(self._behind, at)
        return self._raw[known - 1] + at - self._behind[known - 1] if known else at


class _Spellings:
    """How a passage spells its characters."""

    def __init__(self, search: str, spelled: list[str]) -> None:
        self._known: dict[str, set[str]] = {}
        for character, spelling in zip(search, spelled, strict=True):
            self._known.setdefault(character, set()).add(spelling)
        self._escapes = "".join(spelling for spelling in spelled if len(spelling) > 1)
        self._pairs = any(len(spelling) > len("\\u0000") for spelling in spelled)
        self._plain = any(not spelling.isascii() for spelling in spelled)

    def is_mixed(self, character: str) -> bool:
        return len(self._known.get(character, ())) > 1

    def of(self, character: str) -> str | None:
        """None: it is not certain."""
        if character in self._known:
            return min(self._known[character])
        if character.isascii() and (character.isprintable() or character in "\t\n"):
            return character
        if self._plain or character in _LINE_ENDS:
            return None
        if ord(character) > 0xFFFF and not self._pairs:
            return character  # a pair of escapes is no character in Python, the character itself is one everywhere
        units = character.encode("utf-16-be", "surrogatepass").hex()
        digits = re.sub(r"\\u", "", self._escapes)
        units = units.upper() if digits != digits.lower() else units
        return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _character(escape: re.Match[str]) -> str:
    units = (escape[1] or "") + (escape[2] or "") + (escape[3] or "")
    return bytes.fromhex(units).decode("utf-16-be")
