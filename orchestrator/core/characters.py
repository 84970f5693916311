"""Characters that are invisible on a screen, and those that file systems ignore in names."""

from __future__ import annotations

import re

DEFAULT_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""A file system that folds case (ext4, HFS+) drops these. Source: Default_Ignorable_Code_Point of Unicode 16."""

_STYLE_OF_EMOJI = "\ufe0e\ufe0f"
_BRAILLE_BLANK = "\u2800"


def shows(character: str) -> bool:
    """Whether a reader sees one character (a space too) for what it is.

    The two selectors between text and emoji style count as part of the character before them.
    """
    if not character.isprintable() or character == _BRAILLE_BLANK:
        return False
    return not DEFAULT_IGNORABLE.match(character) or character in _STYLE_OF_EMOJI
