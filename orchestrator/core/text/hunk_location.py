"""Locates a hunk: the one place whose lines equal the hunk's, exactly or nearly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from orchestrator.core.errors import SearchAmbiguous, SearchNotFound, shown_lines
from orchestrator.core.text.encoding import Document, Edit
from orchestrator.core.text.forms.hunks import PatchHunk
from orchestrator.core.text.indent import depth_of, indent_of
from orchestrator.core.text.locate import NUMBERED
from orchestrator.core.text.matching import Passage, find, not_found

_MORE_CONTEXT = "Give the hunk more lines of context, or a heading that it is below ('@@ def name')."
_SOME_CONTEXT = "Give the hunk a line of context: one of the file's own, before or behind the new ones, led by a blank."


def stands_as_stated(hunk: PatchHunk, base: Document) -> bool:
    """Whether the hunk's header is right: its counts, and the line at which it says that it is."""
    old, at = hunk.old, hunk.old_start
    return (
        hunk.counted and at is not None and at + len(old) <= len(base.lines) and base.lines[at : at + len(old)] == old
    )


def locate_hunk(
    hunk: PatchHunk,
    index: int,
    base: Document,
    standing: LineIndex,
    *,
    believed: bool,
    fuzzy: bool = False,
    window: range | None = None,
) -> Passage:
    """Find the hunk's place; `standing` is of the base's lines.

    `believed`: all headers of the file's hunks are right, so a line may decide. `window`: the lines between
    those of the hunks before and behind it, which decide where nothing else does.

    Taken is the only place where its context and removed lines are. Of several: the one at the end, where the
    hunk says that it ends the file; the one below its headings; the one at its line, where that is believed and
    its heading is not behind it. A line and a heading that name two places name none.
    Where they are nowhere: with `fuzzy` the one place that differs in typography, as `matching.find` finds it.
    Raises SearchNotFound, SearchAmbiguous (`details`: `hunk`, 0-based; `nearest`, or 1-based `lines`).
    """
    try:
        return _located(hunk, base, standing, believed=believed, fuzzy=fuzzy, window=window)
    except (SearchNotFound, SearchAmbiguous) as error:
        stated = f" (for line {hunk.old_start + 1})" if hunk.old_start is not None else ""
        error.message = f"hunk {index + 1}{stated}: {error.message}"
        error.details["hunk"] = index
        if hunk.old_start is not None and isinstance(error, SearchNotFound):
            error.details["line"] = hunk.old_start + 1
        raise


def _located(
    hunk: PatchHunk, base: Document, standing: LineIndex, *, believed: bool, fuzzy: bool, window: range | None
) -> Passage:
    if not hunk.old:
        at = _insertion(hunk, base)
        return Passage(at, at, tuple(_edits(hunk, at)))
    found: list[int] = []
    for reading in _readings(hunk):
        found = standing.places(reading.old)
        if found:
            hunk = reading
            break
    if not found:
        if not fuzzy:
            raise _nowhere(hunk, base, "the base does not contain its context and removed lines")
        return _alike(hunk, base)
    try:
        at = _chosen(hunk, found, base, believed=believed)
    except SearchAmbiguous:
        inside = [at for at in found if at >= window.start and at + len(hunk.old) <= window.stop] if window else []
        if len(inside) != 1 or hunk.anchors or hunk.old_start is not None:
            raise
        at = inside[0]
    return Passage(at, at + len(hunk.old), tuple(_edits(hunk, at)))


def _alike(hunk: PatchHunk, base: Document) -> Passage:
    """Where its lines are but for typography; never below another heading than it names, nor at a file's end."""
    scopes = below(base.lines, hunk.anchors)
    name = "its passage of context and removed lines"
    try:
        match = find(base.lines, hunk.old, hunk.new, name, within=lambda at: any(at in scope for scope in scopes))
    except SearchAmbiguous as error:
        error.hint = _MORE_CONTEXT
        del error.details["count"]
        raise
    if hunk.old_no_newline or hunk.new_no_newline or (hunk.at_end and match.stop != len(base.lines)):
        why = f"its lines are at line {match.start + 1} except for typography, and the hunk must end the file"
        raise _nowhere(hunk, base, why)
    return match


class LineIndex:
    """Where lines are in a text; made once for all hunks, and a passage that comes again is looked up."""

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


def _chosen(hunk: PatchHunk, found: list[int], base: Document, *, believed: bool) -> int:
    size = len(hunk.old)
    if found[-1] + size == len(base.lines) and (hunk.at_end or (hunk.old_no_newline and not base.final_newline)):
        return found[-1]
    if hunk.anchors and hunk.old_start is None:
        scopes = below(base.lines, hunk.anchors)
        if not scopes:
            raise _nowhere(hunk, base, f"its heading {' / '.join(hunk.anchors)[:80]!r} is not in the base")
        inside = [at for at in found if _begins_in(hunk, at, scopes)]
        if not inside:
            raise _nowhere(hunk, base, f"its lines are not below {' / '.join(hunk.anchors)[:80]!r}")
        found = inside
    if len(found) == 1:
        return found[0]
    stated = hunk.old_start if hunk.old_start in found else None
    torn = stated is not None and contradicts(base.lines, hunk.anchors, stated + hunk.first_change)
    if believed and stated is not None and not torn:
        return stated
    if hunk.anchors and hunk.old_start is not None and not torn:
        scopes = below(base.lines, hunk.anchors)
        inside = [at for at in found if _begins_in(hunk, at, scopes)]
        if len(inside) == 1:
            return inside[0]
    lines = [at + 1 for at in found]
    raise SearchAmbiguous(
        f"its lines occur {len(lines)} times in the base: lines {shown_lines(lines)}.",
        hint=_MORE_CONTEXT,
        details={"lines": lines},
    )


def _begins_in(hunk: PatchHunk, at: int, scopes: Sequence[range]) -> bool:
    """Whether what the hunk changes first lies below a heading; it may add lines behind the last one there."""
    context = hunk.first_change
    adds = hunk.lines[context][0] == "+"
    return any(scope.start <= at + context < scope.stop + adds for scope in scopes)


def _insertion(hunk: PatchHunk, base: Document) -> int:
    """Where lines go that name none of the file's: into an empty file, or at the end where that is said."""
    end = len(base.lines)
    if end == 0 or hunk.at_end:
        return end
    if hunk.counted and hunk.old_start == end and not hunk.anchors:
        return end
    raise SearchAmbiguous(
        "it only adds lines, and holds none that the file has: where they go is a guess.",
        hint=_SOME_CONTEXT,
        details={"lines": []},
    )


def _readings(hunk: PatchHunk) -> Iterator[PatchHunk]:
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


def _nowhere(hunk: PatchHunk, base: Document, why: str) -> SearchNotFound:
    error = not_found(base.lines, hunk.old, "")
    error.message = f"{why}."
    return error


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
