"""Words that explain, in comments and in prose: which of them may be misquoted, and which tell two sentences apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from rapidfuzz.distance import Indel

LEAST_WORDS = 6
"""Of a line that is taken for prose."""
LEAST_EQUAL = 0.6
"""Of the words of two sentences, as a share of all."""
FEW_WORDS = 5
"""With less, only `LIGHT` words and endings may differ: too little is left to know a sentence by."""

LIGHT: Final = frozenset(
    "the a an this that these those its their our your it is are was were be been just also".split()
)
"""Words that no sentence is known by."""

DECISIVE: Final = frozenset(
    "no not never without none nor neither cannot nothing nobody nowhere hardly unless except only but "
    "must may might shall should can could will would and or if when while until before after above below over under "
    "to from into onto in out on off up down with by all any every each some both either more less fewer most least "
    "first last next previous left right true false yes old new "
    "one two three four five six seven eight nine ten".split()
)
"""Words that turn a sentence round, or say which of two is meant."""

ACTIONS: Final = frozenset(
    "allow deny enable disable start stop open close read write add remove accept reject grant revoke "
    "include exclude import export increase decrease ascend descend internal external legal illegal public private "
    "local remote inner outer upper lower minimum maximum min max begin end push pull client server input output "
    "early late load save lock unlock show hide send receive create delete encrypt decrypt encode decode".split()
)
"""Words that have a contrary, with whatever ending."""

_PROSE = frozenset("the an this that these those its their our your it they we you are was were will have has".split())
_OFTEN = _PROSE | frozenset("a of is be been which to for with and".split())
_NOT_PROSE = re.compile(r"[=<>{}\[\]|&$\\^~@#%*_/+\"`]|\w\(|\)\w|:(?!\s*$)|(?:^|\s)--?\w|;\s*$|\w\.\w")
_BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_EDGES = ",.;:!?()\u2026\u2013\u2014-"
_NEGATIONS = ("un", "in", "im", "ir", "dis", "non", "de")
_ENDINGS = ("ing", "es", "ed", "s", "d", "e")


def is_sentence(text: str) -> bool:
    """Whether a line is prose: six words or more, some such as code has none, and nothing that code is made of."""
    bullet = _BULLET.match(text)
    text = text[bullet.end() :] if bullet else text
    if _NOT_PROSE.search(text):
        return False
    words = words_of(text)
    if len(words) < LEAST_WORDS or (len(words[0]) > 1 and words[0].isupper()):
        return False
    if any(len(word) == 1 and word not in "aAI" for word in words):
        return False
    lower = [word.lower() for word in words]
    return any(word in _PROSE for word in lower) and sum(word in _OFTEN for word in lower) > 1


def words_of(text: str) -> tuple[str, ...]:
    """The words of a sentence without the signs around them; what stands in quotes keeps these."""
    words = (word.strip(_EDGES) for word in text.split())
    return tuple(f'"{word}' if word[0] == "'" else word for word in words if any(map(str.isalnum, word)))


def alike(ours: Sequence[str], theirs: Sequence[str], *, beside_code: bool = False) -> bool:
    """Whether two sentences may be one, misquoted. Beside code, which tells the place, one may be missing."""
    if ours == theirs:
        return True
    if not ours or not theirs:
        return beside_code and not any(_decides(word.lower(), first=False) for word in (*ours, *theirs))
    one, other = _told(ours), _told(theirs)
    equal = 0
    lost: list[tuple[str, bool]] = []
    gone: list[str] = []
    come: list[str] = []
    for step in Indel.opcodes(one, other):
        if step.tag == "equal":
            equal += step.src_end - step.src_start
            continue
        gone += one[step.src_start : step.src_end]
        come += other[step.dest_start : step.dest_end]
        lost += [(ours[at], at == 0) for at in range(step.src_start, step.src_end)]
        lost += [(theirs[at], at == 0) for at in range(step.dest_start, step.dest_end)]
    if any(_decides(word, first=first) for word, first in lost) or _turned(gone, come):
        return False
    if all(word.lower() in LIGHT for word, _ in lost):
        return equal > 0
    return min(len(one), len(other)) >= FEW_WORDS and 2 * equal >= LEAST_EQUAL * (len(one) + len(other))


def _told(words: Sequence[str]) -> list[str]:
    """As they are compared: without endings, and the first without its capital."""
    return [_stem(word.lower() if at == 0 and word[1:].islower() else word) for at, word in enumerate(words)]


def _stem(word: str) -> str:
    if not _plain(word):
        return word
    word = word.removesuffix("'s")
    ending = next((ending for ending in _ENDINGS if word.endswith(ending) and len(word) - len(ending) > 2), "")
    return word.removesuffix(ending)


def _plain(word: str) -> bool:
    return word.replace("'", "").isalpha() and word.islower()


def _decides(word: str, *, first: bool) -> bool:
    """Whether a word may not differ: no plain word, so a name or a number, or one that turns the sentence round."""
    lower = word.lower()
    if lower in DECISIVE or _stem(lower) in _ACTION_STEMS or "n't" in lower:
        return True
    return not _plain(word) and not (first and lower in LIGHT)


def _turned(gone: Iterable[str], come: Iterable[str]) -> bool:
    """Whether a word stands for its own contrary: `safe`, `unsafe`."""
    come = set(come)
    return any(
        f"{prefix}{word}" in others
        for words, others in ((set(gone), come), (come, set(gone)))
        for word in words
        for prefix in _NEGATIONS
    )


_ACTION_STEMS = frozenset(map(_stem, ACTIONS))
