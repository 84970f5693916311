"""Finds a passage in the one place where it is equal except for typography and indentation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec
from rapidfuzz.distance import Indel

from orchestrator.core.errors import MOST_PLACES, SearchAmbiguous, SearchNotFound, shown_lines
from orchestrator.core.text.diff import diff
from orchestrator.core.text.edits import Edit
from orchestrator.core.text.indent import (
    NEIGHBOURS,
    TAB,
    Rebasing,
    Uncertain,
    depth_of,
    indent_of,
    indents,
    inside_strings,
)
from orchestrator.core.text.normalised import check_new, differences, key_of, nearest, rewritten

BLANKS = 0.1
"""What typography and indentation count for in a score."""
COMPARED_CHARS = 400
_OPENERS = (":", "{", "(", "[")
_FLAT = ("-", ")", "]", "}")
_ENDED = "_)]};\"'`"


class Passage(msgspec.Struct, frozen=True):
    """Lines that a change looks at, 0-based and half-open, and what it does in them.

    `score`: how like they are to what the change quotes, 0.9–1.0; None where they are exactly so.
    """

    start: int
    stop: int
    edits: tuple[Edit, ...]
    score: float | None = None


def find(
    lines: Sequence[str],
    passage: Sequence[str],
    new: Sequence[str],
    name: str,
    *,
    why: str = "",
    within: Callable[[int], bool] = lambda at: True,
) -> Passage:
    """The one place of a passage, of those that `within` takes by their 0-based first line; and passage → new there.

    Raises SearchNotFound (`details`: `nearest`) and SearchAmbiguous (`details`: `count`, 1-based `lines`); `name`
    is what the messages call the passage, and `why` the reason that they give if one is known. Cost: O(characters).
    """
    keys = list(map(key_of, lines))
    found = [at for at in places(keys, passage) if within(at)]
    if len(found) > 1:
        raise SearchAmbiguous(
            f"{name}, ignoring typography and indentation, occurs {len(found)} times in the file: "
            f"lines {shown_lines([at + 1 for at in found])}.",
            details={"count": len(found), "lines": [at + 1 for at in found[:MOST_PLACES]]},
        )
    if not found:
        raise not_found(lines, passage, name, why, keys=keys)
    at = found[0]
    present = lines[at : at + len(passage)]
    try:
        edits = edits_at(lines, at, passage, new)
    except Uncertain as reason:
        why = why or f" It is at line {at + 1} except for typography, and {reason}."
        raise not_found(lines, passage, name, why, keys=keys) from None
    return Passage(at, at + len(passage), tuple(edits), round(_closeness(passage, present), 3))


def places(keys: Sequence[str], passage: Sequence[str]) -> list[int]:
    """Where a passage is in lines of these keys, but for typography and indentation; 0-based, ascending."""
    wanted = list(map(key_of, passage))
    if not any(wanted):
        return []
    probe = max(range(len(wanted)), key=lambda at: len(wanted[at]))
    last = len(keys) - len(wanted) + probe
    starts = (at - probe for at, key in enumerate(keys) if key == wanted[probe] and probe <= at <= last)
    return [at for at in starts if keys[at : at + len(wanted)] == wanted]


def not_found(
    lines: Sequence[str], passage: Sequence[str], name: str, why: str = "", *, keys: Sequence[str] | None = None
) -> SearchNotFound:
    """The refusal, with the nearest places and what is other there; `keys` are those of the lines, where known."""
    near = nearest(lines, passage, keys=keys)
    error = SearchNotFound(f"{name} is not in the file.{why}", details={"nearest": near})
    error.differences = tuple(differences(lines, passage, place) for place in near)
    return error


def edits_at(lines: Sequence[str], at: int, passage: Sequence[str], new: Sequence[str]) -> list[Edit]:
    """The edits of `lines` that do at line `at`, where a passage is, what passage → new does. Raises Uncertain.

    Only what differs between the two is changed; every other line keeps the file's own characters.
    """
    present = lines[at : at + len(passage)]
    passage, new = _first_line_completed(passage, present, new)
    if not _same_shape(passage, present):
        raise Uncertain("its lines are indented differently there")
    depths = _Depths(passage, present, new, lines[max(0, at - NEIGHBOURS) : at + len(passage) + NEIGHBOURS])
    edits: list[Edit] = []
    for hunk in diff(passage, new):
        old, there = passage[hunk.old_start : hunk.old_end], present[hunk.old_start : hunk.old_end]
        added = new[hunk.new_start : hunk.new_end]
        if len(old) == len(added) and (len(old) == 1 or depths.consistent):
            made = [
                depths.beside(was, is_, line) + rewritten(was, is_, line) if line.strip() else depths.blank(line)
                for was, is_, line in zip(old, there, added, strict=True)
            ]
        else:
            check_new(added, passage, present)
            made = [depths.of(line) + line.lstrip(" \t") if line.strip() else depths.blank(line) for line in added]
        edits.append(Edit(at + hunk.old_start, hunk.old_len, tuple(made)))
    _check_strings(lines, edits, depths.made)
    return [edit for edit in edits if tuple(lines[edit.start : edit.start + edit.length]) != edit.lines]


def opens_flat(one: str, other: str) -> bool:
    """Whether a line opens a block, and the next one is not deeper, though it does not close it."""
    deeper = depth_of(other, TAB) > depth_of(one, TAB)
    return not deeper and one.rstrip().endswith(_OPENERS) and not other.lstrip().startswith(_FLAT)


def _steps_well(lines: Sequence[str]) -> bool:
    """Whether a line is deeper than the one before it just where that one opens a block, so far as that is plain."""
    for one, other in pairwise(line for line in lines if line.strip()):
        last = one.rstrip()[-1]
        ended = last.isalnum() or last in _ENDED
        if opens_flat(one, other) or (ended and depth_of(other, TAB) > depth_of(one, TAB)):
            return False
    return True


def _steps_in(lines: Sequence[str]) -> set[str]:
    """By what lines are indented deeper than the ones before them, but for lines that go on."""
    return {
        indent_of(other).removeprefix(indent_of(line))
        for line, other in pairwise(line for line in lines if line.strip())
        if depth_of(other, TAB) > depth_of(line, TAB) and line.rstrip()[-1] not in ",\\+-*/|&=<>.?"
    }


class _Depths:
    """The indentation of new lines: that of the file's lines that the lines of the passage represent."""

    def __init__(self, passage: Sequence[str], present: Sequence[str], new: Sequence[str], near: Sequence[str]) -> None:
        pairs = list(zip(passage, present, strict=True))
        self._rebasing = Rebasing(pairs, (*passage, *new), near)
        self._shown = _shown(passage, present, new)
        self.consistent = self._rebasing.consistent
        self.made = set[str]()  # what is behind an indentation that was worked out

    def blank(self, line: str) -> str:
        """A line that holds nothing."""
        return "" if self._rebasing.changes else line

    def beside(self, quoted: str, present: str, line: str) -> str:
        """That of a line in the place of another."""
        return indent_of(present) if indent_of(quoted) == indent_of(line) else self.of(line)

    def of(self, line: str) -> str:
        """Raises Uncertain where it is not sure which lines of the file a line belongs to."""
        if not self._rebasing.changes:
            return indent_of(line)
        self.made.add(line.strip())
        if not self.consistent:
            raise Uncertain("lines equally indented in the search are not so in the file")
        if not self._shown:
            raise Uncertain("it is uncertain whether its new lines follow the indentation of the search or of the file")
        return self._rebasing.indent(line)


def _shown(passage: Sequence[str], present: Sequence[str], new: Sequence[str]) -> bool:
    """Whether the replacement shows that it is indented as the search is, and not as the file is."""
    quoted, held = set(indents(passage)), set(indents(present))
    kept = {line for line, there in zip(passage, present, strict=True) if indent_of(line) != indent_of(there)}
    if len(indents(passage)) == 1 and "" in quoted and len(indents(new)) > 1:
        kept = {line.strip() for line in passage if line.strip()}
        first = next(at for at, line in enumerate(new) if line.strip())
        return any(line.strip() in kept for line in new[first + 1 :]) and _steps_well(new)
    as_search = any(line in kept or indent_of(line) in quoted - held for line in new if line.strip())
    as_file = any(indent in held - quoted for indent in indents(new))
    steps = _steps_in(passage)
    return as_search and (not as_file or _steps_well(new)) and (not steps or _steps_in(new) <= steps)


def _first_line_completed(
    passage: Sequence[str], present: Sequence[str], new: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """Both with the indentation that the first line alone was quoted without. Raises Uncertain."""
    missing = indent_of(present[0])
    rest = [(indent_of(a), indent_of(b)) for a, b in zip(passage[1:], present[1:], strict=True) if a.strip()]
    if not missing or indent_of(passage[0]) or not rest or any(a != b for a, b in rest):
        return passage, new
    first = f"{missing}{passage[0]}"
    if not new or not new[0].strip():
        return [first, *passage[1:]], new
    other = any(line.strip() == new[0].strip() and indent_of(line) != missing for line in passage[1:])
    flat = any(opens_flat(missing + new[0].lstrip(" \t"), line) for line in new[1:2] if line.strip())
    if other or flat or indent_of(new[0]) not in ("", missing) or passage[0] in new[1:]:
        raise Uncertain("its first line is quoted without indentation, so the indentation of new lines is uncertain")
    return [first, *passage[1:]], [missing + new[0].lstrip(" \t"), *new[1:]]


def _same_shape(passage: Sequence[str], present: Sequence[str]) -> bool:
    """Whether lines step in and out as they are quoted; or are quoted without any indentation at all."""
    rows = [(depth_of(a, TAB), depth_of(b, TAB)) for a, b in zip(passage, present, strict=True) if a.strip()]
    if not any(quoted for quoted, _ in rows):
        return True
    return all((a < c, a > c) == (b < d, b > d) for (a, b), (c, d) in pairwise(rows))


def _check_strings(lines: Sequence[str], edits: Sequence[Edit], made: set[str]) -> None:
    """What is indented anew may not lie inside of a string, where blanks are its value. Raises Uncertain."""
    if not made:
        return
    result, new = list[str](), set[int]()
    at = 0
    for edit in edits:
        result += lines[at : edit.start]
        new.update(len(result) + i for i, line in enumerate(edit.lines) if line.strip() in made)
        result += edit.lines
        at = edit.start + edit.length
    inside = inside_strings([*result, *lines[at:]])
    if any(line in inside and not inside[line].doc for line in new):
        raise Uncertain("a new line is inside a string, where blanks matter")


def _closeness(passage: Sequence[str], present: Sequence[str]) -> float:
    """How equal the lines are as they are, of which typography and blanks are a tenth."""
    pairs = zip(passage, present, strict=True)
    total = sum(Indel.normalized_similarity(a[:COMPARED_CHARS], b[:COMPARED_CHARS]) for a, b in pairs)
    return 1 - BLANKS * (1 - total / len(passage))
