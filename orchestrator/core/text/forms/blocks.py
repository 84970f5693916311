"""Parses blocks that a path names: search/replace blocks, and a whole file in a fence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

from orchestrator.core.errors import PatchAmbiguous
from orchestrator.core.text.diff import diff
from orchestrator.core.text.forms.hunks import FilePatch, PatchHunk, Tag
from orchestrator.core.text.forms.rows import Rows, closes, fence_of, only_prose, path_in

_SEARCH = re.compile(r"(<{5,9}|-{5,9}) ?(?:SEARCH|ORIGINAL)\b *:?(.*)\Z")
_REPLACE = re.compile(r"([>+]{5,9}) ?(?:REPLACE|UPDATED)\b.*\Z")
_STATED = re.compile(r":(?:start|end)_line: *\d{1,9} *\Z")
_DASHES = re.compile(r"-{5,9} *\Z")
_OTHER_WAY = "Use edit_file, whose search and replace are parameters, or a unified diff."
_OF_DIFFS = frozenset({"diff", "patch", "udiff"})
_OTHER_WAYS = (
    "Send write_file(mode=truncate) if it is the whole file; else a search/replace block of the passage, or a diff."
)


def begins(row: str) -> bool:
    """Whether a block begins at a row."""
    return _SEARCH.match(row) is not None


def parse_search_replace(rows: Rows, path: str | None) -> tuple[FilePatch, ...]:
    """Read all blocks, each file's together. A block without a name is of the file before, the first of `path`.

    Raises PatchInvalid for a block that does not end, PatchAmbiguous for one in which the dividing row
    occurs twice.
    """
    blocks: dict[str | None, list[PatchHunk]] = {}
    created: set[str | None] = set()
    name = path
    bound = 0  # the first row behind the last block
    for top in iter(lambda: _next(rows), None):
        behind = (_SEARCH.match(rows.row) or [""] * 3)[2]
        name = (path_in(behind) if behind.strip() else _path_above(rows, top - 1, bound)) or name
        search, replace = _block(rows, top)
        bound = rows.at
        if name in created or (not search and name in blocks):
            raise rows.refused(f"{name} is created by one block and changed by another", top)
        if not search and name is None:
            raise rows.refused("a block with an empty search creates a file, but names none", top)
        if not search:
            created.add(name)
        start, search = _stated(search)
        lines = _lines(search, replace)
        bare = frozenset(range(len(lines)))  # no blank of a diff is before any
        blocks.setdefault(name, []).append(PatchHunk(start, lines, bare=bare))
    if None in blocks and len(blocks) > 1:
        raise rows.refused("the first block names no file, but others do", 0, hint="Name each block's file above it.")
    return tuple(
        FilePatch(None if name in created else name, name, tuple(hunks), headed=name is not None)
        for name, hunks in blocks.items()
    )


def _next(rows: Rows) -> int | None:
    """The next block's first row; what is before it must not be of a patch."""
    while rows.at < len(rows):
        if begins(rows.row):
            return rows.at
        if _REPLACE.match(rows.row):
            raise rows.ambiguous(
                "a block ends here that did not begin, or one holds such rows itself", rows.at, hint=_OTHER_WAY
            )
        rows.at += 1
    return None


def _path_above(rows: Rows, top: int, bound: int = 0) -> str | None:
    """The path behind the marks of the nearest fence from a row upwards, or on the first row that is not blank."""
    for row in reversed(rows.rows[bound : top + 1]):
        fence = fence_of(row)
        if fence is not None:
            words = fence[1].replace(":", " ").replace("=", " ").split()
            inside = next(filter(None, map(path_in, reversed(words))), None)
            if inside is not None:
                return inside
        elif row.strip():
            return path_in(row)
    return None


def _block(rows: Rows, top: int) -> tuple[list[str], list[str]]:
    """Both sides. Its three marks have the same number of signs, so that it may hold lines like them."""
    width = len(rows.row) - len(rows.row.lstrip(rows.row[0]))
    end = _end(rows, top, width)
    body = rows.rows[top + 1 : end]
    dividers = [at for at, row in enumerate(body) if row.rstrip() == "=" * width]
    if not dividers:
        raise rows.refused(f"the search/replace block has no row '{'=' * width}'", top)
    if len(dividers) > 1:
        divider = body[dividers[0]].rstrip()
        raise rows.ambiguous(f"{divider!r} occurs {len(dividers)} times in the block", top, hint=_OTHER_WAY)
    search, replace = list(body[: dividers[0]]), list(body[dividers[0] + 1 :])
    rows.at = end + 1
    return search, replace


def _end(rows: Rows, top: int, width: int) -> int:
    """The row that ends a block: as long a mark as the first one."""
    for at in range(top + 1, len(rows)):
        row = rows.rows[at]
        if begins(row):
            break
        if (end := _REPLACE.match(row)) is not None and len(end[1]) == width:
            return at
    raise rows.refused(f"the search/replace block does not end with '{'>' * width} REPLACE'", top)


def _lines(search: list[str], replace: list[str]) -> tuple[tuple[Tag, str], ...]:
    """Only what differs is removed and added."""
    lines: list[tuple[Tag, str]] = []
    at = 0
    for hunk in diff(search, replace):
        lines += ((" ", text) for text in search[at : hunk.old_start])
        at = hunk.old_end
        lines += (("-", text) for text in search[hunk.old_start : at])
        lines += (("+", text) for text in replace[hunk.new_start : hunk.new_end])
    lines += ((" ", text) for text in search[at:])
    return tuple(lines)


def parse_whole_file(rows: Rows, path: str | None) -> FilePatch | None:
    """The one fenced block, named by the row above it, behind its marks, or by `path`; None where there is no fence.

    Raises PatchInvalid for a fence that does not close and a file without a name; PatchAmbiguous for several
    blocks, and for rows that may be of a list or of a diff.
    """
    top = next((at for at, row in enumerate(rows.rows) if fence_of(row)), None)
    if top is None:
        return None
    marks, behind = fence_of(rows.rows[top]) or ("", "")
    end = next((at for at in range(top + 1, len(rows)) if closes(rows.rows[at], marks)), None)
    if end is None:
        raise rows.refused("the fence is not closed, so the file may be cut off", top)
    other = next((at for at in range(end + 1, len(rows)) if fence_of(rows.rows[at])), None)
    if other is not None:
        raise rows.ambiguous(
            "there is another fence behind the first", other, hint="Send one file in one fence, or use write_file."
        )
    named = _path_above(rows, top) or path
    if named is None:
        raise rows.refused(
            "a whole file needs its path", top, hint="Write the path on the line above the fence, or send `path`."
        )
    body = rows.rows[top + 1 : end]
    if not _OF_DIFFS.isdisjoint(behind.lower().replace(":", " ").split()) or _marked(body):
        raise rows.ambiguous("the fence may hold a file, a list or a diff without '@@'", top, hint=_OTHER_WAYS)
    return FilePatch(named, named, (), whole="".join(f"{row}\n" for row in body))


def _marked(body: Sequence[str]) -> bool:
    """Whether every row begins as a hunk's do, and one at least is a changed one; blank rows may lack their blank."""
    return all(row[:1] in {" ", "+", "-", ""} for row in body) and any(row[:1] in {"+", "-"} for row in body)


def check_whole(content: str, present: Sequence[str]) -> None:
    """Refuse a fence that is hardly all of the file whose lines are given. Raises PatchAmbiguous.

    Half of the lines that are not blank must be in it, and no new one may look like a row of a diff.
    Indentation and order are left out of account.
    """
    rows = content.split("\n")
    there = Counter(filter(None, map(str.strip, present)))
    kept = (there & Counter(filter(None, map(str.strip, rows)))).total()
    if 2 * kept < there.total():
        raise PatchAmbiguous(
            f"the fence holds {kept} of the file's {there.total()} lines; it may be a part of the file or all of it.",
            hint=_OTHER_WAYS,
        )
    known = set(present)
    sign = next((row for row in rows if row[:1] in {"+", "-"} and row not in known and not only_prose((row,))), None)
    if sign is not None:
        raise PatchAmbiguous(
            f"{sign[:60]!r} in the fence may be a row of a diff or a line of the file.", hint=_OTHER_WAYS
        )


def _stated(search: list[str]) -> tuple[int | None, list[str]]:
    """The 0-based line that rows like `:start_line:12` name, with a row of dashes below, and the lines behind them."""
    stated = list(takewhile(_STATED.match, search))
    start = next((int(row.split(":")[2]) for row in stated if row.startswith(":start")), 0)
    behind = len(stated) + bool(stated and _DASHES.match("".join(search[len(stated) : len(stated) + 1])))
    return start - 1 if start > 0 else None, search[behind:]
