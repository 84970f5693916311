"""Search and replace: locates passages in a document and returns the edits."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, count, pairwise
from operator import add
from typing import NamedTuple

import msgspec

from orchestrator.core import errors as e
from orchestrator.core.errors import MOST_PLACES, shown_lines
from orchestrator.core.text.answer_space import MAX_LINE
from orchestrator.core.text.edits import Edit, edits_between
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.indent import indent_of
from orchestrator.core.text.lines import plain, split
from orchestrator.core.text.matching import Passage, find, not_found, opens_flat
from orchestrator.core.text.unicode_escapes import RESPELLED, respelled

NUMBERED = re.compile(r" *(\d+)(?:\t| ?\|(?: |\Z))")
"""A line number before a line, as reads show it (a tab) or as other tools do (a bar)."""


class Replacement(msgspec.Struct, frozen=True):
    """A passage and what shall be in its place, `expected_count` times; `fuzzy`: it may be quoted otherwise.

    `unescaped`: both came through a client that decodes escapes.
    """

    search: str
    replace: str
    expected_count: int = 1
    fuzzy: bool = False
    unescaped: bool = False


class LineReplacement(msgspec.Struct, frozen=True):
    """Lines by number, 1-based and inclusive, the text that they are expected to hold, and the new one."""

    start: int
    end: int
    expect: str
    replace: str
    unescaped: bool = False


Change = Replacement | LineReplacement

_UNSURE = (
    " It is there without the line's indentation, so the indentation of its new lines is uncertain: quote whole lines."
)


class Found(msgspec.Struct, frozen=True):
    """Where changes go."""

    passages: tuple[Passage, ...]
    symbols: tuple[str, ...] = ()  # by whose names some of them were meant
    named_only: bool = False  # all of them
    warnings: tuple[str, ...] = ()

    @property
    def edits(self) -> list[Edit]:
        """All of them, ascending."""
        edits = (edit for passage in self.passages for edit in passage.edits)
        return sorted(edits, key=lambda edit: (edit.start, edit.length))

    @property
    def alike(self) -> bool:
        """Whether one at least is not there as quoted."""
        return any(passage.score is not None for passage in self.passages)

    @property
    def score(self) -> float:
        """Of the least sure of them."""
        return min((passage.score for passage in self.passages if passage.score is not None), default=1.0)


class _Span(NamedTuple):
    """Characters of the document's text, half-open, and what replaces them."""

    start: int
    end: int
    new: str
    change: int


def find_exact(text: str, search: str, *, overlapping: bool = True) -> list[int]:
    r"""The offsets at which a passage is in a text with `\n` endings, ascending.

    Not `overlapping`: those that `str.replace` would replace. Line endings in `search` are read as `\n`.
    Cost: O(len(text)) and O(len(search)) for each. Raises ParameterInvalid on an empty search.
    """
    search = plain(search)
    if not search:
        raise e.ParameterInvalid("search", "it is empty", hint="Give the lines to replace, or use write_file.")
    found: list[int] = []
    step = 1 if overlapping else len(search)
    at = -step
    while (at := text.find(search, at + step)) >= 0:
        found.append(at)
    return found


def locate_changes(doc: Document, changes: Sequence[Change], *, lenient: bool = False) -> Found:
    """Where all the changes go: located in the document as it is, all or none; their edits touch changed lines only.

    A passage must occur `expected_count` times, counted from the top without overlap. One that is pasted with line
    numbers is taken without them. A search that begins within a line's indentation needs all of it, or none.
    With `lenient`, a `fuzzy` one that is expected once and occurs nowhere is looked for by `matching.find`.

    Raises ParameterInvalid (no changes, an empty search, a count under 1, lines that are not there), NothingToChange,
    SearchNotFound (`details`: `change`, 0-based, and `nearest`), ExpectMismatch, SearchAmbiguous (`details`: `change`,
    `count`, `expected_count`, 1-based `lines`, the first few, and `columns` of long ones), ChangesOverlap (`details`:
    `changes`, `line`).
    Cost: O(len(text)) for each change.
    """
    if not changes:
        raise e.ParameterInvalid("changes", "there are none")
    text = _Text(doc)
    spans: list[_Span] = []
    alike: list[tuple[int, Passage]] = []
    for index, change in enumerate(changes):
        try:
            found = text.located(index, change, lenient=lenient)
        except (e.SearchNotFound, e.SearchAmbiguous) as error:
            error.details["change"] = index
            raise
        if isinstance(found, Passage):
            alike.append((index, found))
        else:
            spans += found
    passages = [*text.passages(sorted(spans), alike), *(passage for _, passage in alike)]
    located = Found(tuple(sorted(passages, key=lambda passage: passage.start)), warnings=tuple(text.warnings))
    if not located.edits:
        raise e.NothingToChange("the changes leave the text as it is.")
    return located


def strip_line_numbers(text: str, *, ascending: bool = True) -> str | None:
    """A passage without the line numbers that an excerpt shows, None unless every line has one.

    A number is digits and a tab or a bar, after blanks or none, and each is greater than the one before.
    """
    lines, ends = split(text)
    found = [number for number in map(NUMBERED.match, lines) if number]
    if not found or len(found) < len(lines):
        return None
    if ascending and any(int(a[1]) >= int(b[1]) for a, b in pairwise(found)):
        return None
    bare = "\n".join(line[number.end() :] for line, number in zip(lines, found, strict=True))
    return bare + "\n" if ends[-1] else bare


def as_lines(search: str, replace: str) -> tuple[list[str], list[str]]:
    """Both texts as whole lines; a search that ends with a newline replaces lines, and '' then removes them."""
    search, replace = plain(search), plain(replace)
    if not search.strip():
        raise e.ParameterInvalid("search", "it contains only blanks", hint="Add a neighbouring line to it.")
    end = search[search.rfind("\n") + 1 :]
    if end and not end.strip() and replace[replace.rfind("\n") + 1 :] == end:  # where the next line begins
        search, replace = search.removesuffix(end), replace.removesuffix(end)
    if search.endswith("\n"):
        return search[:-1].split("\n"), replace.removesuffix("\n").split("\n") if replace else []
    return search.split("\n"), replace.split("\n")


class _Text:
    """A document's text, and at which of its characters each line starts; the last of these is where it ends."""

    def __init__(self, doc: Document) -> None:
        self.doc, self.text = doc, doc.text
        self.starts = list(map(add, accumulate(map(len, doc.lines), initial=0), count()))
        self.warnings: list[str] = []
        self._indentation: tuple[int, int] = (-1, 0)  # the line asked for last, and where its indentation ends

    def line_of(self, at: int) -> int:
        """The 1-based line that a character is in."""
        return bisect_right(self.starts, at)

    def _is_indented(self, at: int) -> bool:
        """Whether blanks and nothing else are before a character in its line. Cost: O(log lines)."""
        line = self.line_of(at) - 1
        if self._indentation[0] != line:
            self._indentation = (line, self.starts[line] + len(indent_of(self.doc.lines[line])))
        start: int = self.starts[line]
        return start < at <= self._indentation[1]

    def located(self, index: int, change: Change, *, lenient: bool) -> list[_Span] | Passage:
        """Where a change goes. Raises as `locate_changes`."""
        if isinstance(change, LineReplacement):
            return [self._numbered(index, change)]
        if not change.search and not self.doc.lines:
            return [_Span(0, 0, plain(change.replace), index)]
        search, new = _without_numbers(self.text, change, index)
        if search == new and search:
            raise e.NothingToChange(f"change {index + 1}: search and replace are the same.", details={"change": index})
        name = f"change {index + 1}: its search text"
        found = self._occurrences(name, index, change.expected_count, search, new)
        if found == "" and change.unescaped and change.expected_count == 1 and search not in self.text:
            match respelled(self.text, search, new):
                case str(found):
                    pass
                case (search, new):
                    self._warn(index)
                    found = self._occurrences(name, index, 1, search, new)
        if isinstance(found, list):
            return found
        passage, lines = as_lines(search, new)
        if not lenient or not change.fuzzy or change.expected_count > 1:
            raise not_found(self.doc.lines, passage, name, found)
        return find(self.doc.lines, passage, lines, name, why=found)

    def _warn(self, index: int) -> None:
        self.warnings.append(f"change {index + 1}: {RESPELLED}")

    def _occurrences(self, name: str, index: int, expected_count: int, search: str, new: str) -> list[_Span] | str:
        """Where a search is exactly; else why it is not sure what it means, "" where it is nowhere."""
        if expected_count < 1:
            raise e.ParameterInvalid("expected_count", f"{expected_count} is under 1")
        found = find_exact(self.text, search, overlapping=expected_count == 1)
        if _needs_whole_indentation(search, new):
            found = [at for at in found if not self._is_indented(at)]
        if not found:
            return ""
        if len(found) != expected_count:
            lines = [self.line_of(at) for at in found[: MOST_PLACES + 1]]
            itself = expected_count == 1 == len(find_exact(self.text, search, overlapping=False))
            times = "overlaps itself: it is at several places" if itself else f"occurs {len(found)} times"
            raise e.SearchAmbiguous(
                f"{name} {times} in the file, not {expected_count}: lines {shown_lines(lines)}.",
                hint="Add a neighbouring line to it." if itself else None,
                details={
                    "count": len(found),
                    "expected_count": expected_count,
                    "lines": lines[:MOST_PLACES],
                    **self._columns(found[:MOST_PLACES], lines),
                },
            )
        spans = [self._in_indentation(_Span(at, at + len(search), new, index)) for at in found]
        return _UNSURE if None in spans else [span for span in spans if span is not None]

    def _columns(self, found: Sequence[int], lines: Sequence[int]) -> dict[str, list[int]]:
        """Where in their lines places are, 1-based, where lines are so long that their numbers say little."""
        if not any(len(self.doc.lines[line - 1]) > MAX_LINE for line in lines):
            return {}
        return {"columns": [at + 1 - self.starts[line - 1] for at, line in zip(found, lines, strict=False)]}

    def _in_indentation(self, span: _Span) -> _Span | None:
        """A span that begins behind the indentation of its line; None where its depth is not sure."""
        if not self._is_indented(span.start) or not self.text[span.start].strip():
            return span
        line = self.starts[self.line_of(span.start) - 1]
        indent, search = self.text[line : span.start], self.text[span.start : span.end]
        if not span.new and search.endswith("\n"):
            return span._replace(start=line)
        first, *more = [row for row in span.new.split("\n") if row.strip()] or [""]
        kept = {row.strip() for row in search.split("\n")[:1]}
        deep = all(row.startswith(indent) for row in more)
        moved = any(row.strip() in kept and indent_of(row) != indent for row in more)
        quoted = [row for row in search.split("\n") if row.strip()]
        one = len(quoted) == 1
        moved = moved or any(row.strip() == first.strip() and indent_of(row) != indent for row in quoted[1:])
        if "\n" in span.new.removesuffix("\n") + search.removesuffix("\n") and (
            indent_of(first) or moved or (one and not deep) or any(opens_flat(indent + first, row) for row in more[:1])
        ):
            return None
        return span

    def _numbered(self, index: int, change: LineReplacement) -> _Span:
        """The lines that a change names by number. Raises ParameterInvalid, ExpectMismatch, NothingToChange."""
        first, last, most = change.start, change.end, self.doc.line_count
        if first < 1 or last < first:
            raise e.ParameterInvalid("start", f"change {index + 1}: lines {first} to {last} are not a range")
        if last > most:
            raise e.ParameterInvalid(
                "end", f"change {index + 1}: line {last} is beyond the end of the file, which has {most} lines"
            )
        present = "\n".join(self.doc.lines[first - 1 : last])
        expect, new = plain(change.expect).removesuffix("\n"), plain(change.replace)
        if present != expect and (bare := strip_line_numbers(expect)) == present:
            expect, new = bare, strip_line_numbers(new) or new
        if present != expect and change.unescaped and not isinstance(both := respelled(present, expect, new), str):
            expect, new = both
            self._warn(index)
        if present != expect:
            differ = f"line {first} differs" if first == last else f"lines {first} to {last} differ"
            raise e.ExpectMismatch(
                f"change {index + 1}: {differ} from `expect`.",
                details={"change": index, "start": first, "end": last},
            )
        if new.removesuffix("\n") == present and new:
            raise e.NothingToChange(f"change {index + 1}: expect and replace are the same.", details={"change": index})
        end = min(self.starts[last], len(self.text))
        if new and not new.endswith("\n") and self.text[end - 1] == "\n":
            new += "\n"
        return _Span(self.starts[first - 1], end, new, index)

    def passages(self, spans: Sequence[_Span], alike: Sequence[tuple[int, Passage]]) -> Iterator[Passage]:
        """The lines of spans, which ascend; those that share lines are one. Raises ChangesOverlap, of `alike` too."""
        for one, other in pairwise(spans):
            if other.start < one.end:
                raise _overlap(one.change, other.change, self.line_of(other.start))
        groups: list[tuple[int, int, list[_Span]]] = []
        for span in spans:
            start, end = self.line_of(span.start) - 1, self.line_of(span.end - 1)
            shared = bool(groups) and start < groups[-1][1]
            if span.end < len(self.text) and self.text[span.end - 1] == "\n" and not span.new.endswith("\n"):
                whole = not span.new and not shared and span.start == self.starts[start]
                end += not whole  # the line after it joins the one in which the new text ends
            first, last, group = groups.pop() if shared else (start, end, [])
            group.append(span)
            groups.append((first, max(last, end), group))
        taken = [(first, last, group[-1].change) for first, last, group in groups]
        taken += ((one.start, one.stop, index) for index, one in alike)
        for (_, stop, change), (start, _, following) in pairwise(sorted(taken)):
            if start < stop:
                raise _overlap(change, following, start + 1)
        for first, last, group in groups:
            pieces: list[str] = []
            at = self.starts[first]
            for span in group:
                pieces += self.text[at : span.start], span.new
                at = span.end
            new, ends = split("".join([*pieces, self.text[at : self.starts[last]]]))
            edits = edits_between(self.doc, new, bool(ends) and ends[-1] != "", start=first, stop=last)
            yield Passage(first, last, tuple(edits))


def _overlap(one: int, other: int, line: int) -> e.ChangesOverlap:
    return e.ChangesOverlap(
        f"changes {one + 1} and {other + 1} both replace text of line {line}.",
        details={"changes": sorted([one, other]), "line": line},
    )


def _needs_whole_indentation(search: str, new: str) -> bool:
    """Whether a search with a part of an indentation is not sure, since how deep what it brings belongs is not."""
    one = "\n" not in search.removesuffix("\n") + new.removesuffix("\n")
    shifts = not one or search.endswith("\n") != new.endswith("\n") or indent_of(search) != indent_of(new)
    return search[0] in " \t" and bool(search.strip()) and shifts and bool(new or not one or search.endswith("\n"))


def _without_numbers(text: str, change: Replacement, index: int) -> tuple[str, str]:
    """Search and replacement, without numbers unless the text has the search with them. Raises ParameterInvalid."""
    search, new = plain(change.search), plain(change.replace)
    bare = None if search in text else strip_line_numbers(search)
    if not bare:
        return search, new
    new_bare = strip_line_numbers(new, ascending=False)
    if new_bare is None and any(map(NUMBERED.match, new.split("\n"))):
        raise e.ParameterInvalid(
            "replace",
            f"some of its lines begin with a line number, others do not (change {index + 1})",
            hint="Leave the line numbers out of search and replace.",
        )
    return bare, new if new_bare is None else new_bare
