"""Lines of files that read like instructions to a model: marked where they are shown, never held back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

_EARLIER = r"(?:previous|prior|above|earlier|preceding|system)\s{1,9}"
_SAID = r"(?:instruction|prompt|message|rule|direction|guideline)s?"
_FORMS: Final = {
    "ignore": (
        r"\b(?:ignore|disregard|forget|override)\s{1,9}(?:(?:all|any|the|your|these|of)\s{1,9}){0,4}" + _EARLIER + _SAID
    ),
    "you are now": r"\byou are now (?:an?|in|the) \w{1,40}",
    "instruction": r"\b(?:new|updated|real|actual)\s{1,9}(?:system\s{1,9})?(?:instructions?|prompt)\s{0,9}:",
    "tell": r"\b(?:do not|don't|never)\s{1,9}(?:tell|inform|mention)\b.{0,60}\b(?:user|human|developer|operator)\b",
    "mark": r"</?(?:system|assistant)>|\[/?INST\]|<\|(?:im_start|im_end|system|assistant)\|>",
}
_FORM = re.compile("|".join(f"(?:{form})" for form in _FORMS.values()), re.IGNORECASE)
_WORDS: Final = (
    *("ignore", "disregard", "forget", "override", "you are now", "instruction", "prompt"),
    *("tell", "inform", "mention", "system>", "assistant>", "inst]", "im_start|", "im_end|", "system|", "assistant|"),
)
"""In lower case: a line without any of these is of no form."""

MOST_MARKED: Final = 5
LONGEST: Final = 4000
"""Characters of a line that are looked at."""


def instructions_in(lines: Sequence[str]) -> Iterator[int]:
    """The lines, 1-based, that read like instructions to a model.

    Known forms only: that a line has no mark says nothing of it.
    """
    lower = "\n".join(lines).lower()
    words = [word for word in _WORDS if word in lower]
    for number, plain in enumerate(lower.split("\n") if words else (), 1):
        for word in words:
            if word in plain and _FORM.search(lines[number - 1][:LONGEST]):
                yield number
                break
