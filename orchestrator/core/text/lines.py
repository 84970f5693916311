"""Lines of a text, and what ends each of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_END = re.compile(r"(\r\n|\n|\r)")


def split(text: str) -> tuple[list[str], list[str]]:
    r"""Cut a text into the contents of its lines and their endings, two lists of one length.

    Only `\n`, `\r\n` and `\r` end a line; a form feed, U+0085 or U+2028 stands inside one, as
    it does for git and for compilers. An ending is `""` for the last line alone, and only where
    the text does not end with one: `"a\nb"` is `["a", "b"], ["\n", ""]`, and `""` is no lines.
    `"".join` of both in turn gives the text back. Cost: O(len(text)).
    """
    if not text:
        return [], []
    if "\r" not in text:
        lines = text.split("\n")
        ends = ["\n"] * len(lines)
        if lines[-1]:
            ends[-1] = ""
        else:
            lines.pop()
            ends.pop()
        return lines, ends
    pieces = _END.split(text)
    lines, ends = pieces[::2], pieces[1::2]
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
