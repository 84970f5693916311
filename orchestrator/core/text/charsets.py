"""The supported encodings, and the detection of a file's encoding from its bytes.

Beside Unicode, Latin letters are read. Of a guess, characters speak for it and against it; where too little speaks for
it, it is in doubt.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from typing import Final, Literal, get_args

Encoding = Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1", "cp1252"]
"""As callers see them. Both kinds of UTF-16 and `utf-8-sig` begin with a byte order mark."""

Legacy = Literal["latin-1", "cp1252"]
"""Those that nothing in the bytes gives away."""

LEGACY: Final[tuple[Legacy, ...]] = get_args(Legacy)

MARKS: Final[Mapping[Encoding, bytes]] = {
    "utf-8-sig": b"\xef\xbb\xbf",
    "utf-16-le": b"\xff\xfe",
    "utf-16-be": b"\xfe\xff",
}

DOUBT: Final = "?"
"""After an encoding's name, as it is remembered: a guess for which little speaks."""

SAMPLE_BYTES = 16_384
"""Of the bytes from the first that is not ASCII on, what a guess looks at."""

PIECE_BYTES = 256 * 1024
"""What is decoded in one go."""

_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_C1 = re.compile(rb"[\x80-\x9f]")
RUN: Final = re.compile(r"[^\x00-\x7f]+")
"""A run of characters beyond ASCII."""
TIMES_MORE: Final = 4
"""So many characters must be as Latin texts have them, for one that is not."""

_L, _N = "À-ÖØ-öø-ÿ", r"\x80-\U0010ffff"
_LATIN = re.compile(
    rf"(?<=[A-Za-z])’?[{_L}]{{1,2}}(?![{_N}])|(?<![{_N}])[«¿¡“‘]?[{_L}]{{1,2}}(?=[A-Za-z])"
    rf"|(?<![{_N}])[{_L}\xa0-\xbf](?![{_N}])|(?<=[A-Za-z])’(?=[A-Za-z])"
    rf"|(?<![{_N}])[«“]?[{_L}]?[\xa0-\xbf€”’–—…•](?![@-~{_N}])|(?<=[A-Za-z])[{_L}][»”](?![@-~{_N}])"
)
"""One letter or two beside one of ASCII, or one alone; signs, but not before a letter: there their bytes would be half
of a kanji. What Cyrillic, Greek, kana or hanzi read as is in longer runs."""
_OPENING = re.compile(rf"(?<![{_N}])[“‘](?![{_N}])")
"""Says nothing, since most kanji begin so."""


_ANY_MARK = tuple(MARKS.values())


def marked(data: bytes) -> Encoding | None:
    """The encoding that the bytes' first ones name."""
    if not data.startswith(_ANY_MARK):  # as most files
        return None
    return next(encoding for encoding, mark in MARKS.items() if data.startswith(mark))


def legacy(name: str | None) -> tuple[Legacy | None, bool]:
    """The encoding of this name, if it is one that must be remembered, and whether it is in doubt."""
    if name is None:
        return None, False
    plain = name.removesuffix(DOUBT)
    return next((encoding for encoding in LEGACY if encoding == plain), None), plain != name


def codec_of(encoding: Encoding) -> str:
    """Python's name, for the bytes after the mark."""
    return encoding.removesuffix("-sig")


def holds(data: bytes, encoding: Encoding) -> str | None:
    """The text of the bytes after the mark, if every one of them is part of a character."""
    try:
        return decoded(data, codec_of(encoding))
    except UnicodeDecodeError:
        return None


def decoded(data: bytes, codec: str) -> str:
    """As `data.decode`, in pieces: one call would hold the interpreter lock, and take memory, for all of it.

    Raises UnicodeDecodeError.
    """
    if len(data) <= PIECE_BYTES:
        return data.decode(codec)
    decoder = codecs.getincrementaldecoder(codec)()
    starts = range(0, len(data), PIECE_BYTES)
    return "".join([decoder.decode(data[at : at + PIECE_BYTES], at + PIECE_BYTES >= len(data)) for at in starts])


def named(character: str) -> str:
    """A character as an error names it: its number, and its shape where it has one."""
    number = f"U+{ord(character):04X}"
    return f"{number} ({character})" if character.isprintable() and not character.isspace() else number


def slightly_damaged(body: bytes, *, most: int) -> bool:
    """Whether these bytes are UTF-8 but for a few pieces: more longer characters are whole than damaged.

    Looks no further than the first `most` pieces: bytes that are something else cost no more than a little text.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    damages = longer = 0
    for start in range(0, len(body), SAMPLE_BYTES):
        text = decoder.decode(body[start : start + SAMPLE_BYTES], start + SAMPLE_BYTES >= len(body))
        damages += text.count("\ufffd")
        if damages > most:
            return False
        longer += len(text) - len(text.encode("ascii", "ignore"))
    return longer - damages > damages


def guess(data: bytes) -> tuple[Legacy, bool]:
    """The likeliest encoding of bytes that are no UTF-8 and have no mark, and whether it may be relied on.

    It is cp1252 where there are C1 bytes that it defines, else latin-1, which holds anything.
    Cost: O(len(data)) in C, and O(SAMPLE_BYTES).
    """
    encoding: Legacy = "cp1252" if _C1.search(data) and holds(data, "cp1252") is not None else "latin-1"
    found = _NOT_ASCII.search(data)
    first = found.start() if found else 0
    text = _OPENING.sub("", data[max(0, first - 256) : first + SAMPLE_BYTES].decode(encoding, "ignore"))
    good = sum(len(piece[0]) for piece in _LATIN.finditer(text))
    bad = sum(len(run) for run in RUN.findall(text)) - good
    return encoding, good > 0 and good >= TIMES_MORE * bad
