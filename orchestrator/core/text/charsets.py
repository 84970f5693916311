"""The supported encodings, and the detection of a file's encoding from its bytes.

Of a guess, characters speak for the encoding and against it. Only where too little speaks for it is it in doubt.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, get_args

import msgspec

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
LEAST_DOUBLE: Final = 2
"""Two-byte characters; no other encoding has the commonest ones of Shift-JIS at these bytes."""
LEAST_HANZI: Final = 4
"""Of GB18030, at whose bytes EUC-JP and EUC-KR have their own."""
TIMES_MORE: Final = 4
"""So many must speak for an encoding where one speaks against it."""

_WORD = re.compile(r"[^\W\d_²³¹¼½¾ªºµ]+")
_PART = re.compile(r"[A-ZÀ-ÖØ-ÞŠŽŒŸß]*[a-zà-öø-ÿšžœ]+|[A-ZÀ-ÖØ-ÞŠŽŒŸß]+|.")
"""Of a word in camel case, each of its words."""
_LATIN_LETTER = re.compile(r"[À-ÖØ-öø-ÿ]")
_SIGN = re.compile(
    r"(?<=[A-Za-z])’(?=[A-Za-z])|[€”’–—…•](?![@-~\x80-\U0010ffff])|(?<![^\x00-\x7f])[\xa0-\xbf](?![^\x00-\x7f])"
)
"""Signs as Latin text has them; before a letter the bytes of some would be half of a kanji."""

_LATIN_SIGNS = re.compile(r"[¿¡«“‘’]?[À-ÖØ-öø-ÿ]*[€“”‘’–—…•\xa0§©«®°·»£]*")
_KANA = re.compile("[\u3041-\u30fe]")
_NARROW = re.compile("[\uff61-\uff9f]")


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


def guess(data: bytes) -> tuple[Legacy, bool]:
    """The likeliest encoding of bytes that are no UTF-8 and have no mark, and whether it may be relied on.

    A two-byte encoding must hold all of the bytes, and more must speak for it in a sample than for Latin letters.
    Those are cp1252 where there are C1 bytes that it defines, else latin-1, which holds anything.
    Cost: O(len(data)) in C, and O(SAMPLE_BYTES).
    """
    best: Legacy = "cp1252" if _C1.search(data) and holds(data, "cp1252") is not None else "latin-1"
    sample = _sample(data)
    most = _of_latin(sample.decode(best, "ignore"))
    for encoding, evidence_of in _EVIDENCE.items():
        text = holds(data, encoding)
        if text is None or _ODD[encoding].search(text):
            continue
        evidence = evidence_of(sample.decode(CODECS[encoding], "ignore"))
        if evidence.speaking_for and evidence.balance > most.balance:
            best, most = encoding, evidence
    return best, most.enough


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


class Evidence(msgspec.Struct, frozen=True):
    """Characters that speak for an encoding, and against it."""

    speaking_for: int
    against: int
    sure: bool = True  # False: the same bytes are text in another encoding, too

    @property
    def balance(self) -> int:
        return self.speaking_for - self.against

    @property
    def enough(self) -> bool:
        return self.sure and self.speaking_for > 0 and self.speaking_for >= TIMES_MORE * self.against


def _of_latin(text: str) -> Evidence:
    """Of text read as latin-1 or cp1252: letters in words that have as many of ASCII, and signs at their places.

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
    return Evidence(good, bad)


def _odd(run: str) -> bool:
    """Whether neighbours are not such as Latin text has: signs in a row with letters, or controls."""
    if any("\x80" <= char <= "\x9f" for char in run):
        return True
    return len(run) > 1 and not run.isalpha() and not _LATIN_SIGNS.fullmatch(run)


def _of_shift_jis(text: str) -> Evidence:
    """Of text read as Shift-JIS: kana and the kanji of the first level, against rare ones and narrow katakana."""
    common = rare = 0
    for char in "".join(RUN.findall(text)):
        code = int.from_bytes(char.encode("cp932", "replace"))
        usual = code < 0x8400 or 0x889F <= code <= 0x9872
        common += usual and code >= 0x100
        rare += not usual
    narrow = len(_NARROW.findall(text))
    return Evidence(common if common >= LEAST_DOUBLE else 0, rare + max(0, narrow - common) // 2)


def _of_gb18030(text: str) -> Evidence:
    """Of text read as GB18030: the hanzi of the first level, against rare ones and kana.

    The same bytes are text in EUC-JP, with kana or with next to nothing from its second level (from 0xD0 on, where
    a quarter of all Chinese text is), and in EUC-KR, with nothing at all from there.
    """
    common = late = other = 0
    for char in "".join(RUN.findall(text)):
        raw = char.encode("gb18030", "replace")
        if len(raw) == 2 and 0xB0 <= raw[0] <= 0xD7 and raw[1] >= 0xA1:
            common += 1
            late += raw[0] >= 0xD0
        elif not (len(raw) == 2 and raw[0] in (0xA1, 0xA3) and raw[1] >= 0xA1):
            other += 1
    kana = len(_KANA.findall(text))
    rival = kana * 10 > common or late * 8 < common
    return Evidence(common if common >= LEAST_DOUBLE else 0, other, common >= LEAST_HANZI and not rival)


_EVIDENCE: Final[Mapping[Legacy, Callable[[str], Evidence]]] = {"shift_jis": _of_shift_jis, "gb18030": _of_gb18030}
