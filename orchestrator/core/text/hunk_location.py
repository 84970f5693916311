"""Locates a hunk: the one place whose lines equal the hunk's, exactly or nearly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from orchestrator.core.errors import MOST_PLACES, SearchAmbiguous, SearchNotFound, shown_lines
from orchestrator.core.text.edits import Edit
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.forms.hunks import PatchHunk
from orchestrator.core.text.indent import depth_of, indent_of
from orchestrator.core.text.locate import NUMBERED
from orchestrator.core.text.matching import Passage, find, not_found

_MORE_CONTEXT = "Give the hunk more lines of context, or a heading that it is below ('@@ def name')."
_SOME_CONTEXT = "Give the hunk a line of context: one of the file's own, before or behind the new ones, led by a blank."


class LineIndex:
    """Where lines are in a text; made once for all passages, and a passage that comes again is looked up."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._at: dict[str, list[int]] = {}
        self._found: dict[tuple[str, ...], list[int]] = {}
        for at, line in enumerate(lines):
            self._at.setdefault(line, []).append(at)

    def places(self, passage: tuple[str, ...]) -> list[int]:
        """Every 0-based place where the passage is exactly, ascending. Every hunk's place comes from here."""
        if passage not in self._found:
            rarest = min(range(len(passage)), key=lambda at: len(self._at.get(passage[at], ())))
            starts = (at - rarest for at in self._at.get(passage[rarest], ()) if at >= rarest)
            self._found[passage] = [at for at in starts if tuple(self._lines[at : at + len(passage)]) == passage]
        return self._found[passage]


class HunkLocator:
    """Locates hunks of one patch in a text.

    `fuzzy`: hunks whose lines are there but for typography, too. `believed`: a line that a hunk states may decide,
    where the headers of all `hunks` are right.
    """

    def __init__(self, base: Document, hunks: Sequence[PatchHunk], *, fuzzy: bool, believed: bool) -> None:
        self._base, self._fuzzy = base, fuzzy
        self._index = LineIndex(base.lines)
        self._believed = believed and all(self.is_as_stated(hunk) for hunk in hunks if hunk.old_start is not None)

    def is_as_stated(self, hunk: PatchHunk) -> bool:
        """Whether the hunk's header is right: its counts, and the line at which it says that it is."""
        old, at, lines = hunk.old, hunk.old_start or 0, self._base.lines
        return hunk.counted and at + len(old) <= len(lines) and lines[at : at + len(old)] == old

    def locate(self, hunk: PatchHunk, number: int, window: range | None = None) -> Passage:
        """The hunk's place. `window`: the lines between those of its neighbours, which decide where nothing else does.

        Taken is the only place where its context and removed lines are. Of several: the one at the end, where the
        hunk says that it ends the file; the one below its headings; the one at its line, where that is believed and
        its heading is not behind it. A line and a heading that name two places name none.
        Where they are nowhere: the one place that differs in typography, as `matching.find` finds it, if `fuzzy`.
        Raises SearchNotFound, SearchAmbiguous (`details`: `hunk`, 0-based; `nearest`, or 1-based `lines`).
        """
        try:
            return self._located(hunk, window)
        except (SearchNotFound, SearchAmbiguous) as error:
            stated = f" (for line {hunk.old_start + 1})" if hunk.old_start is not None else ""
            error.message = f"hunk {number + 1}{stated}: {error.message}"
            error.details["hunk"] = number
            if hunk.old_start is not None and isinstance(error, SearchNotFound):
                error.details["line"] = hunk.old_start + 1
            raise

    def _located(self, hunk: PatchHunk, window: range | None) -> Passage:
        if not hunk.old:
            at = self._insertion(hunk)
            return Passage(at, at, tuple(_edits(hunk, at)))
        located = ((reading, self._index.places(reading.old)) for reading in readings(hunk))
        hunk, found = next(((reading, places) for reading, places in located if places), (hunk, []))
        if not found:
            if not self._fuzzy:
                raise self._nowhere(hunk, "the base does not contain its context and removed lines")
            return self._alike(hunk)
        at = self._chosen(hunk, found, window)
        return Passage(at, at + len(hunk.old), tuple(_edits(hunk, at)))

    def _alike(self, hunk: PatchHunk) -> Passage:
        """Where its lines are but for typography; never below another heading than it names, nor at a file's end."""
        lines = self._base.lines
        scopes = below(lines, hunk.anchors)
        name = "its passage of context and removed lines"
        try:
            match = find(lines, hunk.old, hunk.new, name, within=lambda at: any(at in scope for scope in scopes))
        except SearchAmbiguous as error:
            error.hint = _MORE_CONTEXT
            del error.details["count"]
            raise
        if hunk.old_no_newline or hunk.new_no_newline or (hunk.at_end and match.stop != len(lines)):
            why = f"its lines are at line {match.start + 1} except for typography, and the hunk must end the file"
            raise self._nowhere(hunk, why)
        return match

    def _chosen(self, hunk: PatchHunk, found: list[int], window: range | None) -> int:
        """Which of several places, ascending."""
        size, lines, stated = len(hunk.old), self._base.lines, hunk.old_start
        if found[-1] + size == len(lines) and (hunk.at_end or (hunk.old_no_newline and not self._base.final_newline)):
            return found[-1]
        scopes = below(lines, hunk.anchors) if hunk.anchors else []
        inside = [at for at in found if _begins_in(hunk, at, scopes)]
        if hunk.anchors and stated is None:
            heading = " / ".join(hunk.anchors)[:80]
            if not scopes:
                raise self._nowhere(hunk, f"its heading {heading!r} is not in the base")
            if not inside:
                raise self._nowhere(hunk, f"its lines are not below {heading!r}")
            found = inside
        if len(found) == 1:
            return found[0]
        at_line = stated is not None and stated in found
        contradicted = at_line and contradicts(lines, hunk.anchors, (stated or 0) + hunk.first_change)
        if stated is not None and at_line and self._believed and not contradicted:
            return stated
        if stated is None and not hunk.anchors and window is not None:
            inside = [at for at in found if at >= window.start and at + size <= window.stop]
        if len(inside) == 1 and not contradicted:
            return inside[0]
        numbers = [at + 1 for at in found]
        raise SearchAmbiguous(
            f"its lines occur {len(numbers)} times in the base: lines {shown_lines(numbers)}.",
            hint=_MORE_CONTEXT,
            details={"lines": numbers[:MOST_PLACES]},
        )

    def _insertion(self, hunk: PatchHunk) -> int:
        """Where lines go that name none of the file's: into an empty file, or at the end where the hunk says so."""
        end = len(self._base.lines)
        if end == 0 or hunk.at_end or (hunk.counted and hunk.old_start == end and not hunk.anchors):
            return end
        raise SearchAmbiguous(
            "it only adds lines, and holds none that the file has: where they go is a guess.",
            hint=_SOME_CONTEXT,
            details={"lines": []},
        )

    def _nowhere(self, hunk: PatchHunk, why: str) -> SearchNotFound:
        error = not_found(self._base.lines, hunk.old, "")
        error.message = f"{why}."
        return error


def _begins_in(hunk: PatchHunk, at: int, scopes: Sequence[range]) -> bool:
    """Whether what the hunk changes first lies below a heading; it may add lines behind the last one there."""
    context = hunk.first_change
    adds = hunk.lines[context][0] == "+"
    return any(scope.start <= at + context < scope.stop + adds for scope in scopes)


def readings(hunk: PatchHunk) -> Iterator[PatchHunk]:
    """The hunk as it is, then without pasted line numbers, then with the blank that its context lacks."""
    yield hunk
    old = [NUMBERED.match(text) for text in hunk.old]
    added = [NUMBERED.match(text) for tag, text in hunk.lines if tag == "+"]
    ascending = all(a and b and int(a[1]) < int(b[1]) for a, b in pairwise(old)) and all(old)
    if ascending and (all(added) or not any(added)):
        bare = tuple((tag, NUMBERED.sub("", text, count=1)) if old else (tag, text) for tag, text in hunk.lines)
        yield msgspec.structs.replace(hunk, lines=bare)
    if _dedented(hunk):
        return
    lines = tuple(
        (tag, f" {text}") if tag == " " and text and at not in hunk.bare else (tag, text)
        for at, (tag, text) in enumerate(hunk.lines)
    )
    if lines != hunk.lines:
        yield msgspec.structs.replace(hunk, lines=lines)


def _dedented(hunk: PatchHunk) -> bool:
    """Whether new lines are as deep as context does once the diff's blank is off: then the blank is the diff's."""
    signed = [text for at, (tag, text) in enumerate(hunk.lines) if tag == " " and text.strip() and at not in hunk.bare]
    context = {indent_of(text) for text in signed}
    removed = {indent_of(text) for tag, text in hunk.lines if tag == "-" and text.strip()}
    added = {indent_of(text) for tag, text in hunk.lines if tag == "+" and text.strip()}
    return bool(context & added - removed)


def _edits(hunk: PatchHunk, start: int) -> list[Edit]:
    """One edit for each run of removed and added lines."""
    edits: list[Edit] = []
    at = start
    removed, added = 0, list[str]()
    for tag, text in (*hunk.lines, (" ", "")):
        if tag == "-":
            removed += 1
        elif tag == "+":
            added.append(text)
        else:
            if removed or added:
                edits.append(Edit(at, removed, tuple(added)))
            at, removed, added = at + removed + 1, 0, []
    if edits and hunk.old_no_newline != hunk.new_no_newline:
        edits[-1] = msgspec.structs.replace(edits[-1], final_newline=hunk.old_no_newline)
    return edits


_CLOSERS = ("{", "}", ")", "]")


def below(lines: Sequence[str], headings: Sequence[str]) -> list[range]:
    """The lines, 0-based, at which something below all of these headings may begin; each narrows the one before.

    A heading is a line, or a part of one between word limits. What it opens ends before the first line that
    is indented no deeper, closing brackets apart; a heading that opens nothing reaches to the end of the
    block that it is in. The heading's own line counts as below it. Empty where one is nowhere.
    """
    scopes = [range(len(lines))]
    for heading in headings:
        scopes = [_opened(lines, at, scope) for scope in scopes for at in _standing(lines, heading.strip(), scope)]
    return scopes


def contradicts(lines: Sequence[str], headings: Sequence[str], at: int) -> bool:
    """Whether one of these headings is in the text, but only behind line `at`, 0-based.

    Whoever names it means another place then: git names a line above the hunk, be it the function
    before. Above, any line that holds the heading counts, since git cuts long ones short.
    """
    return any(
        not any(heading in line for line in lines[: at + 1]) and any(_names(line, heading) for line in lines[at + 1 :])
        for heading in map(str.strip, headings)
    )


def _standing(lines: Sequence[str], heading: str, scope: range) -> list[int]:
    """Where a heading is: as a whole line if anywhere, else as a part of one."""
    whole = [at for at in scope if lines[at].strip() == heading]
    return whole or [at for at in scope if _names(lines[at], heading)]


def _names(line: str, heading: str) -> bool:
    """Whether a line holds a heading between word limits."""
    return heading in line and re.search(rf"(?:(?<!\w)|(?!\w)){re.escape(heading)}(?:(?!\w)|(?<!\w))", line) is not None


def _opened(lines: Sequence[str], at: int, scope: range) -> range:
    depth = depth_of(lines[at])
    following = next((i for i in range(at + 1, scope.stop) if lines[i].strip()), scope.stop)
    opens = following < scope.stop and (depth_of(lines[following]) > depth or lines[following].strip().startswith("{"))
    for i in range(following, scope.stop):
        inner = depth_of(lines[i])
        if not lines[i].strip() or (opens and inner == depth and lines[i].strip().startswith(_CLOSERS)):
            continue
        if inner < depth + opens:
            return range(at, i)
    return range(at, scope.stop)
