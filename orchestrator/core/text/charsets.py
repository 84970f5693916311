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
"""So many letters and signs must speak for a guess where one speaks against it."""

_WORD = re.compile(r"[^\W\d_²³¹¼½¾ªºµ]+")
_PART = re.compile(r"[A-ZÀ-ÖØ-ÞŠŽŒŸß]*[a-zà-öø-ÿšžœ]+|[A-ZÀ-ÖØ-ÞŠŽŒŸß]+|.")
"""Of a word in camel case, each of its words."""
_LATIN_LETTER = re.compile(r"[À-ÖØ-öø-ÿ]")
_SIGN = re.compile(
    r"(?<=[A-Za-z])’(?=[A-Za-z])|[€”’–—…•](?![@-~\x80-\U0010ffff])|(?<![^\x00-\x7f])[\xa0-\xbf](?![^\x00-\x7f])"
)
"""Signs as Latin text has them; before a letter the bytes of some would be half of a kanji."""

_LATIN_SIGNS = re.compile(r"[¿¡«“‘’]?[À-ÖØ-öø-ÿ]*[€“”‘’–—…•\xa0§©«®°·»£]*")


def marked(data: bytes) -> Encoding | None:
    """The encoding that the bytes' first ones name."""
    return next((encoding for encoding, mark in MARKS.items() if data.startswith(mark)), None)


def legacy(name: str | None) -> tuple[Legacy | None, bool]:
    """The encoding of this name, if it is one that must be remembered, and whether it is in doubt."""
    plain = name.removesuffix(DOUBT) if name is not None else None
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
    """Whether these bytes are UTF-8 but for a few pieces: it has four longer characters for each of them.

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
    return longer - damages >= 4 * damages


def guess(data: bytes) -> tuple[Legacy, bool]:
    """The likeliest encoding of bytes that are no UTF-8 and have no mark, and whether it may be relied on.

    It is cp1252 where there are C1 bytes that it defines, else latin-1, which holds anything.
    Cost: O(len(data)) in C, and O(SAMPLE_BYTES).
    """
    encoding: Legacy = "cp1252" if _C1.search(data) and holds(data, "cp1252") is not None else "latin-1"
    found = _NOT_ASCII.search(data)
    first = found.start() if found else 0
    good, bad = _evidence(data[max(0, first - 256) : first + SAMPLE_BYTES].decode(encoding, "ignore"))
    return encoding, good > 0 and good >= TIMES_MORE * bad


def _evidence(text: str) -> tuple[int, int]:
    """What speaks for a Latin text and against it: letters in words that have as many of ASCII, signs at their places.

    A letter alone between ASCII counts too: it is half of nothing. What Cyrillic, Greek, kana or hanzi read as
    is in words without one letter of ASCII.
    """
    good = len(_SIGN.findall(text))
    bad = 0
    for word in _WORD.finditer(text):
        if word[0].isascii():
            continue
        for part in _PART.findall(word[0]):
            letters = len(_LATIN_LETTER.findall(part))
            plain = sum(char.isascii() for char in part)
            if letters and letters <= plain + 1 and (plain or len(word[0]) == 1):
                good += letters
            else:
                bad += letters or not part.isascii()
    bad += sum(len(run[0]) for run in RUN.finditer(text) if _odd(run[0]))
    return good, bad


def _odd(run: str) -> bool:
    """Whether neighbours are not such as Latin text has: signs in a row with letters, or controls."""
    if any("\x80" <= char <= "\x9f" for char in run):
        return True
    return len(run) > 1 and not run.isalpha() and not _LATIN_SIGNS.fullmatch(run)
