"""What changed within one line: the characters that a reader's eye is led to."""

from __future__ import annotations

from collections.abc import Sequence

from diff_match_patch import diff_match_patch

MOST_CHARACTERS = 300
"""Of a line; comparing longer ones takes too long: with a line of this length it is 20 ms at worst."""

LEAST_COMMON = 0.5
"""Of the longer line: two that have less in common are different lines, not one that was changed."""

Spans = tuple[tuple[int, int], ...]
"""Half-open ranges of characters, ascending."""


def inline_changes(old: str, new: str) -> tuple[Spans, Spans] | None:
    """The changed characters of two versions of a line; None where they are too long or too different.

    Small agreements within a change count as changed. Cost: O(characters × differences).
    """
    longer = max(len(old), len(new))
    if longer > MOST_CHARACTERS:
        return None
    matcher = diff_match_patch()
    matcher.Diff_Timeout = 0  # the result must not depend on the machine's load
    parts = matcher.diff_main(old, new, False)
    if sum(len(text) for kind, text in parts if kind == matcher.DIFF_EQUAL) < LEAST_COMMON * longer:
        return None
    matcher.diff_cleanupSemantic(parts)
    return _spans(parts, matcher.DIFF_DELETE), _spans(parts, matcher.DIFF_INSERT)


def _spans(parts: Sequence[tuple[int, str]], wanted: int) -> Spans:
    """Where in its own text the parts of one kind are; those of the other kind are not in it."""
    spans, at = [], 0
    for kind, text in parts:
        if kind == wanted:
            spans.append((at, at + len(text)))
        if kind in (wanted, diff_match_patch.DIFF_EQUAL):
            at += len(text)
    return tuple(spans)
