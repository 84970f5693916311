"""Splits a text into lines and their endings, and joins them."""

from __future__ import annotations

import re
from collections.abc import Sequence

PIECE = 256 * 1024
"""Characters that are cut in one go: one call for a long text would hold the interpreter lock too long."""

_END = re.compile(r"(\r\n|\n|\r)")


def split(text: str) -> tuple[list[str], list[str]]:
    r"""Cut a text into the contents of its lines and their endings, two lists of one length.

    Only `\n`, `\r\n` and `\r` end a line; a form feed, U+0085 or U+2028 is inside one, as
    it does for git and for compilers. An ending is `""` for the last line alone, and only where
    the text does not end with one: `"a\nb"` is `["a", "b"], ["\n", ""]`, and `""` is no lines.
    `"".join` of both in turn gives the text back. Cost: O(len(text)).
    """
    lines: list[str] = []
    ends: list[str] = []
    at = 0
    while at < len(text):
        stop = text.find("\n", at + PIECE) + 1 or len(text)
        more, ended = _split(text[at:stop])
        lines += more
        ends += ended
        at = stop
    return lines, ends


def _split(text: str) -> tuple[list[str], list[str]]:
    if "\r" in text:
        pieces = _END.split(text)
        lines, ends = pieces[::2], pieces[1::2]
    else:
        lines = text.split("\n")
        ends = ["\n"] * (len(lines) - 1)
    if lines[-1]:
        ends.append("")
    else:
        lines.pop()
    return lines, ends


def join(lines: Sequence[str], ends: Sequence[str]) -> str:
    """The inverse of `split`."""
    pieces = [""] * (2 * len(lines))
    pieces[::2], pieces[1::2] = lines, ends
    return "".join(pieces)


def plain(text: str) -> str:
    r"""The text with every line ending written `\n`, as callers see it."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def is_significant(line: str) -> bool:
    """Whether a line says anything: more than blanks and brackets, which meet by chance."""
    return any(map(str.isalnum, line))
