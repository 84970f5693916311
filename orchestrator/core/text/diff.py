"""Differences of lines: as hunks to compute with, and as a unified diff to read."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.core.content import LineHunk
from orchestrator.core.text.align import align
from orchestrator.core.text.regions import hull

_ESCAPES = {"\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r"}
_ESCAPES |= {'"': '\\"', "\\": "\\\\"}
NO_NEWLINE = "\\ No newline at end of file"
_UNENDED = "\n"  # no line holds one, so that a last line without newline differs from one with it


def diff(a: Sequence[str], b: Sequence[str]) -> list[LineHunk]:
    """The changes from `a` to `b`, ascending, with at least one common line between two hunks.

    Lines are compared as given: a caller to whom line endings matter passes them along. The
    hunks are git's (`git diff --no-indent-heuristic`), see `align`, which tells the cost too.
    """
    gone, come = align(a, b)
    removed, added = dict(gone), dict(come)
    hunks: list[LineHunk] = []
    minus = plus = 0
    for gap in sorted({*removed, *added}):
        old_len, new_len = removed.get(gap, 0), added.get(gap, 0)
        hunks.append(LineHunk(gap + minus, old_len, gap + plus, new_len))
        minus, plus = minus + old_len, plus + new_len
    return hunks


def counts(hunks: Sequence[LineHunk]) -> tuple[int, int]:
    """How many lines the hunks add, and how many they remove."""
    return sum(hunk.new_len for hunk in hunks), sum(hunk.old_len for hunk in hunks)


def unified(
    before: Sequence[str],
    after: Sequence[str],
    *,
    path_before: str | None,
    path_after: str | None,
    context: int = 3,
    final_newline_before: bool = True,
    final_newline_after: bool = True,
    hunks: Sequence[LineHunk] | None = None,
) -> str:
    r"""A unified diff as git writes it; `""` where nothing differs.

    Lines come without endings; the flags say whether the last one has one. A path of None is
    `/dev/null`. Odd characters in a path are quoted as in git with `core.quotePath=false`, and a
    path with a blank is followed by a tab. Hunks with at most twice `context` lines between them
    are shown as one. Who knows the `hunks` already saves the search for them. Raises ValueError on
    a negative `context`.
    """
    if context < 0:
        raise ValueError(f"context: {context} is negative")
    old, new = _ended(before, final_newline_before), _ended(after, final_newline_after)
    known = hunks is not None and final_newline_before == final_newline_after
    hunks = _joined(hunks) if known and hunks is not None else diff(old, new)
    if not hunks:
        return ""
    rows = [f"--- {_header('a/', path_before)}", f"+++ {_header('b/', path_after)}"]
    for group in _grouped(hunks, 2 * context):
        rows += _rows(old, new, group, context)
    return "\n".join(rows) + "\n"


def cut(text: str, max_lines: int) -> tuple[str, bool]:
    """The first `max_lines` lines of a diff, and whether that left some out."""
    rows = text.split("\n", max_lines)
    if len(rows) <= max_lines or not rows[max_lines]:
        return text, False
    return "\n".join(rows[:max_lines]) + "\n", True


def _joined(hunks: Sequence[LineHunk]) -> list[LineHunk]:
    """Hunks that touch, as one: removed lines are before added ones."""
    joined: list[LineHunk] = []
    for hunk in hunks:
        last = joined[-1] if joined else None
        if last is not None and last.old_end == hunk.old_start and last.new_end == hunk.new_start:
            joined[-1] = hull((last, hunk))
        else:
            joined.append(hunk)
    return joined


def _ended(lines: Sequence[str], final_newline: bool) -> Sequence[str]:
    return lines if final_newline or not lines else [*lines[:-1], lines[-1] + _UNENDED]


def _grouped(hunks: Sequence[LineHunk], most: int) -> list[list[LineHunk]]:
    groups = [[hunks[0]]]
    for hunk in hunks[1:]:
        if hunk.old_start - groups[-1][-1].old_end <= most:
            groups[-1].append(hunk)
        else:
            groups.append([hunk])
    return groups


def _rows(old: Sequence[str], new: Sequence[str], group: Sequence[LineHunk], context: int) -> list[str]:
    first, last = group[0], group[-1]
    lead = min(context, first.old_start)
    trail = min(context, len(old) - last.old_end)
    old_start, new_start = first.old_start - lead, first.new_start - lead
    old_len, new_len = last.old_end + trail - old_start, last.new_end + trail - new_start
    rows = [f"@@ -{_span(old_start, old_len)} +{_span(new_start, new_len)} @@"]
    at = old_start
    for hunk in group:
        rows += [f" {line}" for line in old[at : hunk.old_start]]
        rows += [f"-{line}" for line in old[hunk.old_start : hunk.old_end]]
        rows += [f"+{line}" for line in new[hunk.new_start : hunk.new_end]]
        at = hunk.old_end
    rows += [f" {line}" for line in old[at : at + trail]]
    return [row + NO_NEWLINE if row.endswith(_UNENDED) else row for row in rows]


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
