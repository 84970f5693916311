"""Search and replace: where passages stand in a document, and what replacing them edits."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import msgspec

from orchestrator.core.errors import (
    ChangesOverlap,
    NothingToChange,
    ParameterInvalid,
    SearchAmbiguous,
    SearchNotFound,
    shown_lines,
)
from orchestrator.core.text.encoding import Document, Edit, edits_between
from orchestrator.core.text.lines import plain, split
from orchestrator.core.text.nearest import nearest

_NUMBERED = re.compile(r" *(\d+)\t")


class Replacement(msgspec.Struct, frozen=True):
    """A passage and what shall stand in its place, `expected_count` times."""

    search: str
    replace: str
    expected_count: int = 1


class _Span(NamedTuple):
    """Characters of the document's text, half-open, and what replaces them."""

    start: int
    end: int
    new: str
    change: int


def find_exact(text: str, search: str) -> list[int]:
    r"""The offsets at which a passage stands in a text with `\n` endings, ascending.

    Occurrences that overlap are all listed; line endings in `search` are read as `\n`.
    Cost: O(len(text)) and O(len(search)) for each. Raises ParameterInvalid on an empty search.
    """
    search = plain(search)
    if not search:
        raise ParameterInvalid("search", "it is empty", hint="Give the lines to replace, or use write_file.")
    found: list[int] = []
    at = -1
    while (at := text.find(search, at + 1)) >= 0:
        found.append(at)
    return found


def locate_changes(doc: Document, changes: Sequence[Replacement]) -> list[Edit]:
    """Where all the changes go, as edits of the document, ascending; they touch changed lines only.

    Every change is located in the document as it is, none in the result of another. A passage must
    stand there `expected_count` times; for more than one, occurrences are counted from the top
    without overlap, as `str.replace` does. A passage pasted with line numbers is taken without
    them if it does not stand there with them. Nothing is located unless everything is.

    Raises ParameterInvalid (no changes, an empty search, a count under 1), NothingToChange,
    SearchNotFound (`details`: `change`, 0-based, and `nearest`, see `nearest`), SearchAmbiguous
    (`details`: `change`, `count`, `expected_count`, 1-based `lines` of each occurrence) and
    ChangesOverlap (`details`: `changes`, `line`). Cost: O(len(text)) for each change.
    """
    if not changes:
        raise ParameterInvalid("changes", "there are none")
    text = doc.text
    starts = _Starts(doc.lines)
    spans: list[_Span] = []
    for index, change in enumerate(changes):
        spans += _occurrences(doc, text, starts, index, change)
    spans.sort()
    _check_apart(spans, starts)
    edits: list[Edit] = []
    for first, last, group in _passages(text, starts, spans):
        edits += _edits(doc, text, starts, (first, last), group)
    if not edits:
        raise NothingToChange("the changes leave the text as it is.")
    return edits


def strip_line_numbers(text: str) -> str | None:
    """A passage without the line numbers that an excerpt shows, None unless every line has one.

    A number is digits and a tab, after blanks or none, and each is greater than the one before.
    """
    lines, ends = split(text)
    found = [number for number in map(_NUMBERED.match, lines) if number]
    if not found or len(found) < len(lines) or any(int(a[1]) >= int(b[1]) for a, b in pairwise(found)):
        return None
    bare = "\n".join(line[number.end() :] for line, number in zip(lines, found, strict=True))
    return bare + "\n" if ends[-1] else bare


class _Starts:
    """Where each line starts in the text, and where the text ends.

    Kept without the line breaks before it, which takes half the time of summing them up.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._before = list(accumulate(map(len, lines), initial=0))

    def __getitem__(self, line: int) -> int:
        return self._before[line] + line

    def up_to(self, at: int) -> int:
        """How many lines start at or before an offset: the 1-based line that it lies in."""
        return bisect_right(range(len(self._before)), at, key=self.__getitem__)


def _occurrences(doc: Document, text: str, starts: _Starts, index: int, change: Replacement) -> Iterator[_Span]:
    if change.expected_count < 1:
        raise ParameterInvalid("expected_count", f"{change.expected_count} is under 1")
    search, new = plain(change.search), plain(change.replace)
    if search == new and search:
        raise NothingToChange(f"change {index + 1}: search and replace are the same.", details={"change": index})
    found = find_exact(text, search)
    if not found and (bare := strip_line_numbers(search)):
        search, new = bare, strip_line_numbers(new) or new
        found = find_exact(text, search)
        if found and search == new:
            raise NothingToChange(f"change {index + 1}: search and replace are the same.", details={"change": index})
    if not found:
        raise SearchNotFound(
            f"change {index + 1}: its search text does not stand in the file.",
            details={"change": index, "nearest": nearest(doc.lines, split(search)[0])},
        )
    if change.expected_count > 1:
        found = _apart(found, len(search))
    if len(found) != change.expected_count:
        lines = [starts.up_to(at) for at in found]
        raise SearchAmbiguous(
            f"change {index + 1}: its search text stands {len(found)} times in the file, not "
            f"{change.expected_count}: lines {shown_lines(lines)}.",
            details={
                "change": index,
                "count": len(found),
                "expected_count": change.expected_count,
                "lines": lines,
            },
        )
    return (_Span(at, at + len(search), new, index) for at in found)


def _apart(found: Sequence[int], length: int) -> list[int]:
    """The occurrences that `str.replace` would replace."""
    kept: list[int] = []
    for at in found:
        if not kept or at >= kept[-1] + length:
            kept.append(at)
    return kept


def _check_apart(spans: Sequence[_Span], starts: _Starts) -> None:
    for one, other in pairwise(spans):
        if other.start < one.end:
            line = starts.up_to(other.start)
            raise ChangesOverlap(
                f"changes {one.change + 1} and {other.change + 1} both replace text of line {line}.",
                details={"changes": sorted([one.change, other.change]), "line": line},
            )


def _passages(text: str, starts: _Starts, spans: Sequence[_Span]) -> Iterator[tuple[int, int, list[_Span]]]:
    """Spans that share lines, with those lines: 0-based, half-open."""
    first = last = -1
    group: list[_Span] = []
    for span in spans:
        start, end = starts.up_to(span.start) - 1, starts.up_to(span.end - 1)
        shared = start < last
        if span.end < len(text) and text[span.end - 1] == "\n" and not span.new.endswith("\n"):
            gone = not span.new and not shared and span.start == starts[start]
            end += not gone  # the line after it joins the one in which the new text ends
        if group and not shared:
            yield first, last, group
            group = []
        if not group:
            first = start
        last = max(last, end)
        group.append(span)
    yield first, last, group


def _edits(doc: Document, text: str, starts: _Starts, passage: tuple[int, int], group: Sequence[_Span]) -> list[Edit]:
    """The edits that put a group's new texts into its lines, those of the passage, half-open."""
    first, last = passage
    pieces: list[str] = []
    at = starts[first]
    for span in group:
        pieces += text[at : span.start], span.new
        at = span.end
    lines, ends = split("".join([*pieces, text[at : starts[last]]]))
    return edits_between(doc, lines, bool(ends) and ends[-1] != "", start=first, stop=last)
