"""The document that a merge of lines gives: each line keeps the line end and the bytes of the version it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from orchestrator.core.content import ThreeWay
from orchestrator.core.text.diff import diff
from orchestrator.core.text.edits import edits_between, splice
from orchestrator.core.text.encoding import Document, with_runs_of
from orchestrator.core.text.merge import LineMerge, Merged

Piece = tuple[str, str, bytes | None]
"""A line, its end, and its bytes where it is damaged."""


def merged_document(sides: ThreeWay[Document], like: Document, lines: Sequence[str], *, ended: bool) -> Document:
    """The document `like`, with these lines, which came of merging the three, in the place of its own.

    Where the versions have several kinds of line ends or damaged lines, they are merged with those: a line that
    somebody changed is as it is in their version. Where that does not give the lines, new ones that the proposed
    version has end as there, unless the file was converted since. `ended`: whether the last line is.
    """
    after = splice(with_runs_of(like, *sides), edits_between(like, lines, ended), sides.proposed, sides.base)
    kinds = frozenset[str]().union(*(side.kinds for side in sides)) - {""}
    if len(kinds) < 2 and not any(side.kept for side in sides):
        return after
    found = _with_ends(sides, after) or _ends_as_proposed(sides, after)
    return after if any(pair == ("\r", "\n") and not line for pair, line in _joints(found)) else found


def _joints(doc: Document) -> zip[tuple[tuple[str, str], str]]:
    """The ends of two lines that follow each other, and the second line."""
    return zip(pairwise(doc.ends), doc.lines[1:], strict=False)


def _with_ends(sides: ThreeWay[Document], after: Document) -> Document | None:
    """Merged as lines with their ends and bytes; None where these conflict, or give other lines."""
    if len({side.encoding for side in sides if side.kept} | {after.encoding}) > 1:
        return None
    known: dict[str, Piece] = {}
    merged = LineMerge(*(_tokens(side, known) for side in sides)).merged()
    if not isinstance(merged, Merged):
        return None
    pieces = [known[token] for token in merged.lines]
    if tuple(line for line, _, _ in pieces) != after.lines:
        return None
    ends = [end for _, end, _ in pieces[:-1]] + [*after.ends[-1:]]
    if pieces and pieces[-1][1] and after.final_newline:
        ends[-1] = pieces[-1][1]
    kept = {at: raw for at, (_, _, raw) in enumerate(pieces) if raw is not None}
    return msgspec.structs.replace(after, ends=tuple(ends), kept=kept)


def _tokens(doc: Document, known: dict[str, Piece]) -> tuple[str, ...]:
    """Its lines with their ends and bytes; a last line without an end as if it ended like the one before it."""
    tokens = list[str]()
    for at, (line, end) in enumerate(zip(doc.lines, doc.ends, strict=True)):
        raw = doc.kept.get(at)
        own = end or next(iter(doc.ends[at - 1 : at]), "\n")
        token = (line if raw is None else raw.hex() + "\n") + own
        known[token] = line, own, raw
        tokens.append(token)
    return tuple(tokens)


def _ends_as_proposed(sides: ThreeWay[Document], after: Document) -> Document:
    """With the ends of the lines that the file has not and the proposed version has; the file's, if converted."""
    if not sides.current.kinds >= sides.base.kinds - {""}:
        return after
    ends = list(after.ends)
    new = {at for hunk in diff(sides.current.lines, after.lines) for at in range(hunk.new_start, hunk.new_end)}
    shift = start = 0
    for hunk in (*diff(sides.proposed.lines, after.lines), None):
        stop = hunk.new_start if hunk is not None else len(ends)
        for at in new.intersection(range(start, stop)):
            end = sides.proposed.ends[at - shift]
            ends[at] = end if end and ends[at] else ends[at]
        if hunk is not None:
            start, shift = hunk.new_end, hunk.new_end - hunk.old_end
    return msgspec.structs.replace(after, ends=tuple(ends))
