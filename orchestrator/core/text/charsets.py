"""The supported encodings, and the detection of a file's encoding from its bytes."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, get_args

from orchestrator.core.text import encoding_confidence

Encoding = Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1", "cp1252", "shift_jis", "gb18030"]
"""As callers see them. Both kinds of UTF-16 and `utf-8-sig` begin with a byte order mark; `shift_jis` is
Windows' (cp932), which is what the files of that name hold."""

Legacy = Literal["latin-1", "cp1252", "shift_jis", "gb18030"]
"""Those that nothing in the bytes gives away."""

LEGACY: Final[tuple[Legacy, ...]] = get_args(Legacy)

CODECS: Final[Mapping[Encoding, str]] = {
    "utf-8": "utf-8",
    "utf-8-sig": "utf-8",
    "utf-16-le": "utf-16-le",
    "utf-16-be": "utf-16-be",
    "latin-1": "latin-1",
    "cp1252": "cp1252",
    "shift_jis": "cp932",
    "gb18030": "gb18030",
}
"""Python's names, for the bytes after the mark."""

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
_ODD: Final[Mapping[Legacy, re.Pattern[str]]] = {
    "shift_jis": re.compile("[\x80\xa0\uf8f0-\uf8ff\ue000-\uf8ef]"),
    "gb18030": re.compile("[\x80-\x9f\ue000-\uf8ff\ufffe\uffff]"),
}
"""Characters that the codec has for bytes that no text in this encoding has; private ones too."""
_EVIDENCE: Final[Mapping[Legacy, Callable[[str], encoding_confidence.Evidence]]] = {
    "latin-1": encoding_confidence.latin,
    "cp1252": encoding_confidence.latin,
    "shift_jis": encoding_confidence.shift_jis,
    "gb18030": encoding_confidence.gb18030,
}


def marked(data: bytes) -> Encoding | None:
    """The encoding that the bytes' first ones name."""
    return next((encoding for encoding, mark in MARKS.items() if data.startswith(mark)), None)


def legacy(name: str | None) -> tuple[Legacy | None, bool]:
    """The encoding of this name, if it is one that must be remembered, and whether it is in doubt."""
    plain = name.removesuffix(DOUBT) if name is not None else None
    return next((encoding for encoding in LEGACY if encoding == plain), None), plain != name


def holds(data: bytes, encoding: Encoding) -> str | None:
    """The text of the bytes after the mark, if every one of them is part of a character."""
    try:
        return decoded(data, CODECS[encoding])
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


def guess(data: bytes) -> Legacy:
    """The likeliest encoding of bytes that are no UTF-8 and have no mark; the same for the same bytes.

    A two-byte encoding must hold all of the bytes, and more must speak for it in a sample than for Latin letters.
    Those are cp1252 where there are C1 bytes that it defines, else latin-1, which holds anything.
    Cost: O(len(data)) in C, and O(SAMPLE_BYTES).
    """
    best: Legacy = "cp1252" if _C1.search(data) and holds(data, "cp1252") is not None else "latin-1"
    most = _evidence(data, best).balance
    for encoding in LEGACY[2:]:
        text = holds(data, encoding)
        if text is None or _ODD[encoding].search(text):
            continue
        evidence = _evidence(data, encoding)
        if evidence.speaking_for and evidence.balance > most:
            best, most = encoding, evidence.balance
    return best


def certain(data: bytes, encoding: Legacy) -> bool:
    """Whether a guess may be relied on: enough of a sample speaks for it, and little against it."""
    return _evidence(data, encoding).enough


def _evidence(data: bytes, encoding: Legacy) -> encoding_confidence.Evidence:
    return _EVIDENCE[encoding](_sample(data).decode(CODECS[encoding], "ignore"))


def _sample(data: bytes) -> bytes:
    """Some bytes from about the first that is not ASCII, whole characters and lines as far as that goes."""
    found = _NOT_ASCII.search(data)
    first = found.start() if found else 0
    line = data.rfind(b"\n", 0, first) + 1
    start = max(line, first - 256)
    sample = data[start : first + SAMPLE_BYTES]
    if first + SAMPLE_BYTES >= len(data):
        return sample
    end = max(sample.rfind(sign) for sign in (b"\n", b"\r", b" ", b"\t"))
    return sample[: end + 1] if end > first - start else sample
