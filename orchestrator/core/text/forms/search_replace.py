"""Parses blocks of `<<<<<<< SEARCH`, `=======`, `>>>>>>> REPLACE`, with the file named above."""

from __future__ import annotations

import re

from orchestrator.core.text.diff import diff
from orchestrator.core.text.forms.rows import Rows, fence_of, path_in
from orchestrator.core.text.hunks import FilePatch, PatchHunk, Tag

_SEARCH = re.compile(r"(<{5,9}|-{5,9}) ?(?:SEARCH|ORIGINAL)\b *:?(.*)\Z")
_REPLACE = re.compile(r"([>+]{5,9}) ?(?:REPLACE|UPDATED)\b.*\Z")
_DIVIDER = re.compile(r"={5,9}[ \t]*\Z")
_START = re.compile(r":start_line: *(\d{1,9}) *\Z")
_STATED = re.compile(r":(?:start|end)_line: *\d{1,9} *\Z")
_DASHES = re.compile(r"-{5,9} *\Z")


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
        name = _named(rows, bound, top) or name
        search, replace = _block(rows, top)
        start, search = _stated(search)
        bound = rows.at
        if name in created or (not search and name in blocks):
            raise rows.refused(f"{name} is created by one block and changed by another", top)
        if not search and name is None:
            raise rows.refused("a block with an empty search creates a file, but names none", top)
        if not search:
            created.add(name)
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


def _named(rows: Rows, bound: int, top: int) -> str | None:
    """The file's name: behind SEARCH, on the row before, or before or behind the fence that begins there."""
    found = _SEARCH.match(rows.rows[top])
    if found is not None and found[2].strip():
        return path_in(found[2])
    for at in range(top - 1, bound - 1, -1):
        row = rows.rows[at]
        fence = fence_of(row)
        if fence is not None:
            inside = path_in(fence[1].split(":")[-1].split()[-1]) if fence[1] else None
            if inside is not None:
                return inside
        elif row.strip():
            return path_in(row)
    return None


def _block(rows: Rows, top: int) -> tuple[list[str], list[str]]:
    """Both sides. Marks as long as the first one count; others, of 5 to 9 signs, where there are none of its length."""
    width = len(rows.row) - len(rows.row.lstrip(rows.row[0]))
    end = _end(rows, top, width)
    body = rows.rows[top + 1 : end]
    exact = [at for at, row in enumerate(body) if row.rstrip() == "=" * width]
    dividers = exact or [at for at, row in enumerate(body) if _DIVIDER.match(row)]
    if not dividers:
        raise rows.refused("the search/replace block has no row '======='", top)
    if len(dividers) > 1:
        divider = body[dividers[0]].rstrip()
        raise rows.ambiguous(f"{divider!r} occurs {len(dividers)} times in the block", top, hint=_OTHER_WAY)
    search, replace = list(body[: dividers[0]]), list(body[dividers[0] + 1 :])
    rows.at = end + 1
    return search, replace


def _end(rows: Rows, top: int, width: int) -> int:
    """The row that ends a block: as long a mark as the first one, else the first of another length."""
    other: int | None = None
    divided = False
    for at in range(top + 1, len(rows)):
        row = rows.rows[at]
        if begins(row):
            break
        divided = divided or _DIVIDER.match(row) is not None
        if (end := _REPLACE.match(row)) is not None and divided:
            if len(end[1]) == width:
                return at
            other = at if other is None else other
    if other is None:
        raise rows.refused("the search/replace block does not end with '>>>>>>> REPLACE'", top)
    return other


def _stated(search: list[str]) -> tuple[int | None, list[str]]:
    """The 0-based line that rows like `:start_line:12` name, with a row of dashes below, and the lines behind them."""
    start: int | None = None
    at = 0
    while at < len(search) and _STATED.match(search[at]):
        if (found := _START.match(search[at])) is not None and int(found[1]) > 0:
            start = int(found[1]) - 1
        at += 1
    if at and at < len(search) and _DASHES.match(search[at]):
        at += 1
    return start, search[at:]


_OTHER_WAY = "Use edit_file, whose search and replace are parameters, or a unified diff."


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
