"""Unified diffs as git writes them: as much as an answer has room for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import msgspec

from orchestrator.core.content import LineHunk, LineRange
from orchestrator.core.text.answer_space import MAX_LINE, MIN_LINE, UNBOUNDED, AnswerSpace, size
from orchestrator.core.text.diff import counts, diff
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.long_lines import first_difference, window
from orchestrator.core.text.regions import hull, merged

LEAST_BYTES = 400
"""Of a diff beside its paths: two windows of MIN_LINE characters, and the notes of what they leave out."""

_ESCAPES = {"\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r"}
_ESCAPES |= {'"': '\\"', "\\": "\\\\"}
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE = "\\ No newline at end of file"


class Side(NamedTuple):
    """One of two texts: its lines without endings, and whether the last has one. A path of None is `/dev/null`."""

    path: str | None
    lines: Sequence[str]
    final_newline: bool = True


class UnifiedDiff(msgspec.Struct, frozen=True):
    """`text` ends with a whole row. `added`, `removed`: lines of the whole diff, also where only a part is shown."""

    text: str
    added: int = 0
    removed: int = 0
    shown: tuple[LineRange, ...] = ()  # lines of the new text
    goes_on: tuple[int, int] | None = None  # the 1-based lines of the old and new text where the rest begins
    within: tuple[int, int] | None = None  # of the new text the first line of which a window is shown, and from where


class _Row(NamedTuple):
    """A row, and the 1-based lines of both texts that it is before or shows; `at`: of a window, what it is around."""

    text: str
    old: int = 1
    new: int = 1
    at: int | None = None


def document_diff(
    paths: tuple[str | None, str | None],
    old: Document,
    new: Document,
    *,
    context: int = 3,
    hunks: Sequence[LineHunk] | None = None,
    room: AnswerSpace = UNBOUNDED,
    widest: int | None = None,
) -> UnifiedDiff:
    """As `unified`, of two documents at these paths."""
    sides = (
        Side(path, doc.lines, doc.final_newline or not doc.lines) for path, doc in zip(paths, (old, new), strict=True)
    )
    return unified(*sides, context=context, hunks=hunks, room=room, widest=widest)


def fitting_diff(
    paths: tuple[str | None, str | None],
    old: Document,
    new: Document,
    *,
    room: AnswerSpace,
    whole_lines: bool,
    context: int = 3,
) -> UnifiedDiff:
    """As `document_diff`; of long lines windows, unless `whole_lines` are wanted and there is room for all of them.

    Where there is room for no new line, windows are narrower; LEAST_BYTES are taken to show both versions of a line.
    """
    hunks = line_hunks(old, new) if old.final_newline == new.final_newline else None
    made = partial(document_diff, paths, old, new, context=context, hunks=hunks, room=room)
    whole = made() if whole_lines else None
    if whole is not None and whole.goes_on is None:
        return whole
    least = msgspec.structs.replace(room, bytes=max(room.bytes, LEAST_BYTES + 2 * sum(size(it or "") for it in paths)))
    tries = (
        partial(made, widest=MAX_LINE),
        partial(made, widest=MAX_LINE // 4),
        partial(made, widest=MIN_LINE, room=least),
    )
    every = (one() for one in tries)
    first = next(every)
    return next((it for it in chain((first,), every) if it.goes_on is None or it.text.count("\n+") > 1), first)


def line_hunks(before: Document, after: Document) -> tuple[LineHunk, ...]:
    """The changed lines, as `PathChange` keeps them."""
    return tuple(diff(before.lines, after.lines))


def unified(
    old: Side,
    new: Side,
    *,
    context: int = 3,
    hunks: Sequence[LineHunk] | None = None,
    room: AnswerSpace = UNBOUNDED,
    widest: int | None = None,
) -> UnifiedDiff:
    r"""A unified diff as git writes it, its first rows if there is no room for all; `""` where nothing differs.

    Odd characters in a path are quoted as in git with `core.quotePath=false`, and a path with a blank is followed by
    a tab. Hunks with at most twice `context` lines between them are shown as one. Of a line with more than `widest`
    characters a window is shown, around where it differs from its other version. Who knows the `hunks` already saves
    the search for them; with them and a room, the cost is that of the rows that are shown.
    """
    before, after = ended(old), ended(new)
    if hunks is None or old.final_newline != new.final_newline:
        hunks = diff(before, after)
    if not hunks:
        return UnifiedDiff("")
    names = _Row(f"--- {_header('a/', old.path)}\n"), _Row(f"+++ {_header('b/', new.path)}\n")
    groups = ((_with_context(group, context, len(before)), group) for group in _grouped(hunks, 2 * context))
    rows = chain(names, chain.from_iterable(_rows(before, after, *pair, widest) for pair in groups))
    made: list[_Row] = []  # those that there is room for, and the next one

    def cost(row: _Row) -> tuple[int, int]:
        made.append(row)
        return size(row.text), row.text.count("\n")

    if room == UNBOUNDED:
        made += rows
    count = len(made) or room.less(1, 1).first(map(cost, rows), least=0)
    shown, rest = made[:count], made[count:]
    text = "".join(row.text for row in shown)
    part = next((row for row in shown if row.at is not None and row.text[0] != "-"), None)
    if not rest and part is None:
        wholes = (_with_context(group, context, len(before)) for group in _grouped(hunks, 2 * context))
        spans = tuple(LineRange(whole.new_start + 1, whole.new_end) for whole in wholes)
    else:
        seen = [row.new for row in shown[2:] if row.text[0] in " +" and row.at is None]
        spans = merged(tuple(LineRange(line, line) for line in seen))
    goes_on = (rest[0].old, rest[0].new) if rest else None
    within = (part.new, (part.at or 0) + 1) if part is not None else None
    return UnifiedDiff(text, *counts(hunks), spans, goes_on, within)


class ShownFile(msgspec.Struct):
    """What a diff shows of one file: both names as its headers have them, and lines by their 1-based numbers."""

    old_name: str
    new_name: str = ""
    old: list[tuple[int, str]] = []
    new: list[tuple[int, str]] = []


def shown_files(diff: str) -> Iterator[ShownFile]:
    """The lines of both texts that a diff of ours shows, also one that was cut. A rename's old name is in no header."""
    file, source = ShownFile(""), ""
    old = new = old_left = new_left = 0
    for row in diff.split("\n"):
        if old_left > 0 or new_left > 0:
            if row[:1] in (" ", "-"):
                file.old.append((old, row[1:]))
                old, old_left = old + 1, old_left - 1
            if row[:1] in (" ", "+"):
                file.new.append((new, row[1:]))
                new, new_left = new + 1, new_left - 1
        elif (hunk := _HUNK.match(row)) is not None:
            old, old_left = int(hunk[1]), int(hunk[2] or 1)
            new, new_left = int(hunk[3]), int(hunk[4] or 1)
        elif row.startswith("rename from "):
            source = f"a/{row.removeprefix('rename from ')}"
        elif row.startswith("--- "):
            if file.old_name:
                yield file
            file, source = ShownFile(source or row[4:].rstrip("\t")), ""
        elif row.startswith("+++ "):
            file.new_name = row[4:].rstrip("\t")
    if file.old_name:
        yield file


def ended(side: Side) -> Sequence[str]:
    """The lines; a last one without newline differs from one with it."""
    lines = side.lines
    return lines if side.final_newline or not lines else [*lines[:-1], f"{lines[-1]}\n{_NO_NEWLINE}"]


def _with_context(group: Sequence[LineHunk], context: int, total: int) -> LineHunk:
    whole = hull(group)
    lead, trail = min(context, whole.old_start), min(context, total - whole.old_end)
    added = lead + trail
    return LineHunk(whole.old_start - lead, whole.old_len + added, whole.new_start - lead, whole.new_len + added)


def _rows(
    before: Sequence[str],
    after: Sequence[str],
    whole: LineHunk,
    group: Sequence[LineHunk],
    widest: int | None = None,
) -> Iterator[_Row]:
    """One at a time: of a large diff an answer shows few."""
    start = whole.old_start
    spans = f"-{_span(start, whole.old_len)} +{_span(whole.new_start, whole.new_len)}"
    yield _Row(f"@@ {spans} @@\n", start + 1, whole.new_start + 1)
    for hunk in (*group, LineHunk(whole.old_end, 0, whole.new_end, 0)):
        shift = hunk.new_start - hunk.old_start
        for at in range(start, hunk.old_start):
            yield _row(" ", before[at], at + 1, at + shift + 1, widest)
        for at in range(hunk.old_start, hunk.old_end):
            other = _paired(after, hunk.new_start + at - hunk.old_start, hunk.new_end)
            yield _row("-", before[at], at + 1, hunk.new_start + 1, widest, other)
        for at in range(hunk.new_start, hunk.new_end):
            other = _paired(before, hunk.old_start + at - hunk.new_start, hunk.old_end)
            yield _row("+", after[at], hunk.old_end + 1, at + 1, widest, other)
        start = hunk.old_end


def _paired(lines: Sequence[str], at: int, end: int) -> str | None:
    """The other version of a line of a hunk, where as many lines were there before it."""
    return lines[at] if at < end else None


def _row(mark: str, line: str, old: int, new: int, widest: int | None, other: str | None = None) -> _Row:
    if widest is None or len(line) <= widest:
        return _Row(f"{mark}{line}\n", old, new)
    line, unended, note = line.partition("\n")  # of a last line without a newline
    at = first_difference(line, other)
    return _Row(f"{mark}{window(line, at, widest)}{unended}{note}\n", old, new, at)


def _grouped(hunks: Iterable[LineHunk], most: int) -> Iterator[list[LineHunk]]:
    """Hunks with at most so many lines between them; those that touch are one, with its removed lines first."""
    group: list[LineHunk] = []
    for hunk in hunks:
        last = group[-1] if group else None
        if last is not None and hunk.old_start - last.old_end > most:
            yield group
            group = [hunk]
        elif last is not None and (last.old_end, last.new_end) == (hunk.old_start, hunk.new_start):
            group[-1] = hull((last, hunk))
        else:
            group.append(hunk)
    if group:
        yield group


def _span(start: int, length: int) -> str:
    """1-based; an empty span is named by the line before it."""
    shown = start + 1 if length else start
    return str(shown) if length == 1 else f"{shown},{length}"


def quoted(path: str) -> str:
    """A path as git writes it in a header with `core.quotePath=false`: in quotes where a character is odd."""
    escaped = "".join(_quoted(c) for c in path)
    return path if escaped == path else f'"{escaped}"'


def _header(prefix: str, path: str | None) -> str:
    if path is None:
        return "/dev/null"
    name = quoted(prefix + path)
    return f"{name}\t" if " " in path and not name.startswith('"') else name


def _quoted(c: str) -> str:
    if c in _ESCAPES:
        return _ESCAPES[c]
    if c.isprintable():
        return c
    return "".join(f"\\{byte:03o}" for byte in c.encode("utf-8", "surrogateescape"))
