"""Where a hunk goes: at the one place where its lines stand, and never at one of several alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from orchestrator.core.errors import SearchAmbiguous, SearchNotFound, shown_lines
from orchestrator.core.text.encoding import Document, Edit
from orchestrator.core.text.headings import below
from orchestrator.core.text.hunks import PatchHunk
from orchestrator.core.text.nearest import nearest

_NUMBERED = re.compile(r" *(\d+)\t")
_MORE_CONTEXT = "Give the hunk more lines of context, or a heading that it stands below ('@@ def name')."


class Placed(msgspec.Struct, frozen=True):
    """A hunk at its place: the lines that it counts on, 0-based and half-open, and what it edits."""

    start: int
    stop: int
    edits: tuple[Edit, ...]


def stands_as_stated(hunk: PatchHunk, base: Document) -> bool:
    """Whether the hunk's header is right: its counts, and the line at which it says that it stands."""
    old, at = hunk.old, hunk.old_start
    return (
        hunk.counted and at is not None and at + len(old) <= len(base.lines) and base.lines[at : at + len(old)] == old
    )


def place(hunk: PatchHunk, index: int, base: Document, *, believed: bool) -> Placed:
    """Find the hunk's place. `believed`: all headers of the file's hunks are right, so a line may decide.

    Taken is the only place where its context and removed lines stand. Of several: the one at the end, where the
    hunk says that it ends the file; the one below its headings; the one at its line, where that is believed.
    Raises SearchNotFound, SearchAmbiguous (`details`: `hunk`, 0-based; `nearest`, or 1-based `lines`).
    """
    if not hunk.old:
        at = _insertion(hunk, index, base)
        return Placed(at, at, tuple(_edits(hunk, at)))
    found: list[int] = []
    for reading in _readings(hunk):
        found = find_lines(reading.old, base.lines)
        if found:
            hunk = reading
            break
    if not found:
        raise _nowhere(hunk, index, base, "its context and removed lines stand nowhere in the base")
    at = _chosen(hunk, index, found, base, believed=believed)
    return Placed(at, at + len(hunk.old), tuple(_edits(hunk, at)))


def find_lines(passage: Sequence[str], lines: Sequence[str]) -> list[int]:
    """Every 0-based place where the passage stands exactly, ascending. Every hunk's place comes from here."""
    wanted = tuple(passage)
    probe = max(range(len(wanted)), key=lambda at: len(wanted[at]))  # the longest line is likely the rarest
    starts = (at - probe for at, line in enumerate(lines) if line == wanted[probe] and at >= probe)
    return [at for at in starts if tuple(lines[at : at + len(wanted)]) == wanted]


def _chosen(hunk: PatchHunk, index: int, found: list[int], base: Document, *, believed: bool) -> int:
    size = len(hunk.old)
    ends = [at for at in found if at + size == len(base.lines)]
    if ends and (hunk.at_end or (hunk.old_no_newline and not base.final_newline)):
        return ends[0]
    if hunk.anchors and hunk.old_start is None:
        scopes = below(base.lines, hunk.anchors)
        if not scopes:
            raise _nowhere(
                hunk, index, base, f"its heading {' / '.join(hunk.anchors)[:80]!r} stands nowhere in the base"
            )
        inside = [at for at in found if _begins_in(hunk, at, scopes)]
        if not inside:
            raise _nowhere(hunk, index, base, f"its lines do not stand below {' / '.join(hunk.anchors)[:80]!r}")
        found = inside
    if len(found) == 1:
        return found[0]
    if believed and hunk.old_start in found:
        return hunk.old_start
    if hunk.anchors and hunk.old_start is not None:
        scopes = below(base.lines, hunk.anchors)
        inside = [at for at in found if _begins_in(hunk, at, scopes)]
        if len(inside) == 1:
            return inside[0]
    lines = [at + 1 for at in found]
    raise SearchAmbiguous(
        f"hunk {index + 1}{_stated(hunk)}: its lines stand {len(lines)} times in the base: lines {shown_lines(lines)}.",
        hint=_MORE_CONTEXT,
        details={"hunk": index, "lines": lines},
    )


def _begins_in(hunk: PatchHunk, at: int, scopes: Sequence[range]) -> bool:
    """Whether what the hunk changes first lies below a heading; it may add lines behind the last one there."""
    context = next((i for i, (tag, _) in enumerate(hunk.lines) if tag != " "), 0)
    adds = hunk.lines[context][0] == "+"
    return any(scope.start <= at + context < scope.stop + adds for scope in scopes)


def _insertion(hunk: PatchHunk, index: int, base: Document) -> int:
    """Where lines go that name none of the file's: into an empty file, or at the end where that is said."""
    end = len(base.lines)
    if end == 0 or hunk.at_end:
        return end
    if hunk.counted and hunk.old_start == end and not hunk.anchors:
        return end
    raise SearchAmbiguous(
        f"hunk {index + 1}{_stated(hunk)} only adds lines, and holds none that the file has: where they go is a guess.",
        hint=_MORE_CONTEXT,
        details={"hunk": index, "lines": []},
    )


def _readings(hunk: PatchHunk) -> Iterator[PatchHunk]:
    """The hunk as it is, then without pasted line numbers, then with the blank that its context lacks."""
    yield hunk
    old = [_NUMBERED.match(text) for text in hunk.old]
    added = [_NUMBERED.match(text) for tag, text in hunk.lines if tag == "+"]
    ascending = all(a and b and int(a[1]) < int(b[1]) for a, b in pairwise(old)) and all(old)
    if ascending and (all(added) or not any(added)):
        bare = tuple((tag, _NUMBERED.sub("", text, count=1)) if old else (tag, text) for tag, text in hunk.lines)
        yield msgspec.structs.replace(hunk, lines=bare)
    if any(tag == " " and text for tag, text in hunk.lines):
        lines = tuple(
            (tag, f" {text}") if tag == " " and text and at not in hunk.bare else (tag, text)
            for at, (tag, text) in enumerate(hunk.lines)
        )
        yield msgspec.structs.replace(hunk, lines=lines)


def _nowhere(hunk: PatchHunk, index: int, base: Document, why: str) -> SearchNotFound:
    details: dict[str, object] = {"hunk": index, "nearest": nearest(base.lines, hunk.old)}
    if hunk.old_start is not None:
        details["line"] = hunk.old_start + 1
    return SearchNotFound(f"hunk {index + 1}{_stated(hunk)}: {why}.", details=details)


def _stated(hunk: PatchHunk) -> str:
    return f" (for line {hunk.old_start + 1})" if hunk.old_start is not None else ""


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
