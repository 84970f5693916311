"""The confidence in a detected encoding: characters that speak for it, and against it.

Only a file that we may be wrong about is held back: one in which too little, or something else too, speaks.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

LEAST_DOUBLE: Final = 2
"""Two-byte characters; no other encoding has the commonest ones of Shift-JIS at these bytes."""
LEAST_HANZI: Final = 4
"""Of GB18030, at whose bytes EUC-JP and EUC-KR have their own."""
TIMES_MORE: Final = 4
"""So many must speak for an encoding where one speaks against it."""

_WORD = re.compile(r"[^\W\d_²³¹¼½¾ªºµ]+")
_PART = re.compile(r"[A-ZÀ-ÖØ-ÞŠŽŒŸß]*[a-zà-öø-ÿšžœ]+|[A-ZÀ-ÖØ-ÞŠŽŒŸß]+|.")
"""Of a word in camel case, each of its words."""
_RUN = re.compile(r"[^\x00-\x7f]+")
_LATIN_LETTER = re.compile(r"[À-ÖØ-öø-ÿ]")
_SIGN = re.compile(
    r"(?<=[A-Za-z])’(?=[A-Za-z])|[€”’–—…•](?![@-~\x80-\U0010ffff])|(?<![^\x00-\x7f])[\xa0-\xbf](?![^\x00-\x7f])"
)
"""Signs as Latin text has them; before a letter the bytes of some would be half of a kanji."""

_LATIN_SIGNS = re.compile(r"[¿¡«“‘’]?[À-ÖØ-öø-ÿ]*[€“”‘’–—…•\xa0§©«®°·»£]*")
_KANA = re.compile("[\u3041-\u30fe]")
_NARROW = re.compile("[\uff61-\uff9f]")


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


def latin(text: str) -> Evidence:
    """Of text read as latin-1 or cp1252: letters in words that have as many of ASCII, and signs at their places.

    A letter alone between ASCII counts too: it is half of nothing. What Cyrillic, Greek, kana or hanzi read as
    is in words without one letter of ASCII.
    """
    good = sum(1 for _ in _SIGN.finditer(text))
    bad = 0
    for word in _WORD.finditer(text):
        if word[0].isascii():
            continue
        for part in _PART.findall(word[0]):
            letters = len(_LATIN_LETTER.findall(part))
            plain = sum(char.isascii() for char in part)
            if not letters:
                bad += not part.isascii()
            elif letters <= plain + 1 and (plain or len(word[0]) == 1):
                good += letters
            else:
                bad += letters
    bad += sum(len(run[0]) for run in _RUN.finditer(text) if _odd(run[0]))
    return Evidence(good, bad)


def _odd(run: str) -> bool:
    """Whether neighbours are not such as Latin text has: signs in a row with letters, or controls."""
    if any("\x80" <= char <= "\x9f" for char in run):
        return True
    return len(run) > 1 and not run.isalpha() and not _LATIN_SIGNS.fullmatch(run)


def shift_jis(text: str) -> Evidence:
    """Of text read as Shift-JIS: kana and the kanji of the first level, against rare ones and narrow katakana."""
    common = rare = 0
    for char in _characters(text):
        code = int.from_bytes(char.encode("cp932", "replace"))
        if code < 0x100:
            continue
        if code < 0x8400 or 0x889F <= code <= 0x9872:
            common += 1
        else:
            rare += 1
    narrow = len(_NARROW.findall(text))
    return Evidence(common if common >= LEAST_DOUBLE else 0, rare + max(0, narrow - common) // 2)


def gb18030(text: str) -> Evidence:
    """Of text read as GB18030: the hanzi of the first level, against rare ones and kana.

    The same bytes are text in EUC-JP, with kana or with next to nothing from its second level (from 0xD0 on, where
    a quarter of all Chinese text is), and in EUC-KR, with nothing at all from there.
    """
    common = late = other = 0
    for char in _characters(text):
        raw = char.encode("gb18030", "replace")
        if len(raw) == 2 and 0xB0 <= raw[0] <= 0xD7 and raw[1] >= 0xA1:
            common += 1
            late += raw[0] >= 0xD0
        elif not (len(raw) == 2 and raw[0] in (0xA1, 0xA3) and raw[1] >= 0xA1):
            other += 1
    kana = len(_KANA.findall(text))
    rival = kana * 10 > common or late * 8 < common
    return Evidence(common if common >= LEAST_DOUBLE else 0, other, common >= LEAST_HANZI and not rival)


def _characters(text: str) -> str:
    return "".join(run for run in _RUN.findall(text))
