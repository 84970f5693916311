"""Search and replace blocks: `<<<<<<< SEARCH`, `=======`, `>>>>>>> REPLACE`, the file named before the block."""

from __future__ import annotations

import re

from orchestrator.core.text.diff import diff
from orchestrator.core.text.forms.rows import Rows, fence_of, left_out, path_in
from orchestrator.core.text.hunks import FilePatch, PatchHunk, Tag

_SEARCH = re.compile(r"(<{5,9}|-{5,9}) ?(?:SEARCH|ORIGINAL)\b *:?(.*)\Z")
_REPLACE = re.compile(r"([>+]{5,9}) ?(?:REPLACE|UPDATED)\b.*\Z")


def begins(row: str) -> bool:
    """Whether a block begins at a row."""
    return _SEARCH.match(row) is not None


def parse_search_replace(rows: Rows, path: str | None) -> tuple[FilePatch, ...]:
    """Read all blocks, each file's together. A block without a name is of the file before, the first of `path`.

    Raises PatchInvalid for a block that does not end, PatchAmbiguous for one in which the dividing row
    stands twice.
    """
    blocks: dict[str | None, list[PatchHunk]] = {}
    created: set[str | None] = set()
    name = path
    bound = 0  # the first row behind the last block
    for top in iter(lambda: _next(rows), None):
        name = _named(rows, bound, top) or name
        search, replace = _block(rows, top)
        bound = rows.at
        if name in created or (not search and name in blocks):
            raise rows.refused(f"{name} is created by one block and changed by another", top)
        if not search and name is None:
            raise rows.refused("a block with nothing to search for makes a file, and none is named", top)
        if not search:
            created.add(name)
        blocks.setdefault(name, []).append(PatchHunk(None, _lines(search, replace)))
    if None in blocks and len(blocks) > 1:
        raise rows.refused("the first block names no file, but others do", 0, hint="Name each block's file above it.")
    return tuple(
        FilePatch(None if name in created else name, name, tuple(hunks), headed=name is not None)
        for name, hunks in blocks.items()
    )


def _next(rows: Rows) -> int | None:
    """The next block's first row; what stands before it must not be of a patch."""
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
    width = len(rows.row) - len(rows.row.lstrip(rows.row[0]))
    divider = "=" * width
    sides: list[list[str]] = [[]]
    sought: set[str] = set()
    rows.at += 1
    while True:
        if rows.at >= len(rows) or begins(rows.row):
            raise rows.refused("the search/replace block does not end with '>>>>>>> REPLACE'", top)
        row = rows.row
        end = _REPLACE.match(row)
        if end is not None and len(end[1]) == width and len(sides) > 1:
            break
        if row.rstrip() == divider:
            sought = sought or set(sides[0])
            sides.append([])
        elif len(sides) > 1 and left_out(row) and row not in sought:
            raise rows.refused(
                f"{row.strip()[:60]!r} stands for lines that were left out",
                hint="Write every line of both sides, or send several short blocks.",
            )
        else:
            sides[-1].append(row)
        rows.at += 1
    if len(sides) > 2:
        raise rows.ambiguous(f"{divider!r} stands {len(sides) - 1} times in the block", top, hint=_OTHER_WAY)
    rows.at += 1
    return sides[0], sides[1]


_OTHER_WAY = "Use edit_file, whose search and replace are parameters, or a unified diff."


def _lines(search: list[str], replace: list[str]) -> tuple[tuple[Tag, str], ...]:
    """Only what differs is removed and added."""
    lines: list[tuple[Tag, str]] = []
    at = 0
    for hunk in diff(search, replace):
        lines += ((" ", text) for text in search[at : hunk.old_start])
        at = hunk.old_start + hunk.old_len
        lines += (("-", text) for text in search[hunk.old_start : at])
        lines += (("+", text) for text in replace[hunk.new_start : hunk.new_end])
    lines += ((" ", text) for text in search[at:])
    return tuple(lines)
