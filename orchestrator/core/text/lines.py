"""Splits a text, or its bytes, into lines and their endings, and joins them.

For some lines decoding and encoding would not give back their bytes. Some encodings have two ways to write one
character (the NEC and IBM rows of Shift-JIS), and some files hold bytes that are no character: half of a surrogate
pair, an odd byte at the end of UTF-16, a stray byte in UTF-8. Such a line is shown with U+FFFD for each piece that
can't be read, and its bytes are kept beside it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from orchestrator.core.text.charsets import CODECS, Encoding

PIECE = 256 * 1024
"""Characters that are cut in one go: one call for a long text would hold the interpreter lock too long."""

_END = re.compile(r"(\r\n|\n|\r)")
_END_BYTES = re.compile(rb"(\r\n|\n|\r)")
_WIDE: tuple[Encoding, ...] = ("utf-16-le", "utf-16-be")

DAMAGE = "\ufffd"
"""Stands for bytes that are no character."""


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


def read(data: bytes, encoding: Encoding) -> tuple[list[str], list[str], dict[int, bytes]]:
    """Lines, endings, and by 0-based line the bytes of those that can't be written back from their text.

    `data` is what follows the mark. But for UTF-16, no byte of a longer character is a line feed or a carriage return
    in any encoding that we read.
    """
    codec = CODECS[encoding]
    if encoding in _WIDE:
        even = len(data) & ~1
        lines, ends = split(data[:even].decode(codec, "surrogatepass"))
        raw = [line.encode(codec, "surrogatepass") for line in lines]
    else:
        even = len(data)
        pieces = _END_BYTES.split(data)
        raw, ends = pieces[::2], [end.decode("ascii") for end in pieces[1::2]]
        if raw[-1]:
            ends.append("")
        else:
            raw.pop()
    if even < len(data):
        if not ends or ends[-1]:
            raw.append(b"")
            ends.append("")
        raw[-1] += data[even:]
    lines = [line.decode(codec, "replace") for line in raw]
    kept = {at: line for at, line in enumerate(raw) if not same(line, lines[at], encoding)}
    return lines, ends, kept


def retouched(raw: bytes, old: str, new: str, encoding: Encoding) -> bytes | None:
    """The bytes of a line whose text `old` became `new`, those before and after the passage as they were.

    None where that can't be had: then the new text is written as any other. Cost: O(len(raw)).
    """
    if old == new:
        return raw
    codec = CODECS[encoding]
    offsets = _offsets(raw, codec)
    if len(offsets) != len(old) + 1:
        return None
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    try:
        middle = new[head : len(new) - tail].encode(codec)
    except UnicodeEncodeError:
        return None
    made = raw[: offsets[head]] + middle + raw[offsets[len(old) - tail] :]
    return made if made.decode(codec, "replace") == new else None


def same(raw: bytes, text: str, encoding: Encoding) -> bool:
    """Whether the text is written as these bytes."""
    try:
        return text.encode(CODECS[encoding]) == raw
    except UnicodeEncodeError:
        return False


def fitting(kept: dict[int, bytes], ends: Sequence[str], encoding: Encoding) -> dict[int, bytes]:
    """Without lines that are gone, and in UTF-16 without an odd byte before others: it would shift them."""
    last = len(ends) - 1 if ends and not ends[-1] else -1
    odd = {at for at, raw in kept.items() if encoding in _WIDE and len(raw) % 2 and at != last}
    return {at: raw for at, raw in kept.items() if at < len(ends) and at not in odd}


def _offsets(raw: bytes, codec: str) -> list[int]:
    """Where each character of a line begins, with bytes that are none shown as `replace` does; and where it ends."""
    decoder = codecs.getincrementaldecoder(codec)("replace")
    offsets = [0]
    for end in range(1, len(raw) + 2):
        text = decoder.decode(raw[end - 1 : end], end > len(raw))
        if len(text) > 1:  # what came before the last character was none
            offsets += [max(offsets[-1], end - len(text[-1].encode(codec, "replace")))] * (len(text) - 1)
        if text:
            offsets.append(min(end, len(raw)))
    return offsets


def _shared(left: str, right: str) -> int:
    """How many characters both begin with."""
    most = min(len(left), len(right))
    return next((at for at in range(most) if left[at] != right[at]), most)
