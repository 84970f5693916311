"""Parses a whole file in a Markdown fence, with its path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from orchestrator.core.errors import PatchAmbiguous
from orchestrator.core.text.forms.bodies import Header, read_hunk
from orchestrator.core.text.forms.rows import Rows, closes, fence_of, only_prose, path_in
from orchestrator.core.text.hunks import FilePatch, PatchHunk

_OF_DIFFS = frozenset({"diff", "patch", "udiff"})
_OTHER_WAYS = (
    "Send write_file(mode=truncate) if it is the whole file; else a search/replace block of the passage, or a diff."
)


def parse_whole_file(rows: Rows, path: str | None) -> FilePatch | None:
    """The one fenced block, named by the row above it, behind its marks, or by `path`; None where there is no fence.

    Raises PatchInvalid for a fence that does not close and a file without a name; PatchAmbiguous for several
    blocks, and for rows that may be of a list or of a diff. A fence of a diff, by its tag or its rows, is a
    hunk without header.
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
    inside = _named(rows, top, behind)
    named = inside or path
    if named is None:
        raise rows.refused(
            "a whole file needs its path", top, hint="Write the path on the line above the fence, or send `path`."
        )
    body = rows.rows[top + 1 : end]
    if _tagged(behind) or _marked(body):
        hunk = _hunk(rows, top + 1, end, sure=_tagged(behind))
        return FilePatch(inside, inside, (hunk,), headed=inside is not None)
    return FilePatch(named, named, (), whole="".join(f"{row}\n" for row in body))


def _tagged(behind: str) -> bool:
    return any(word.lower() in _OF_DIFFS for word in behind.replace(":", " ").split())


def _marked(body: Sequence[str]) -> bool:
    """Whether every row begins as a hunk's do, and one at least is a changed one; blank rows may lack their blank."""
    return all(row[:1] in {" ", "+", "-", ""} for row in body) and any(row[:1] in {"+", "-"} for row in body)


def _hunk(rows: Rows, top: int, end: int, *, sure: bool) -> PatchHunk:
    """The rows as those of one hunk; unless it is sure, they must add something, and be no list in Markdown or YAML."""
    rows.at = top
    hunk = read_hunk(rows, Header(), lambda at: at >= end)
    if hunk is None:
        raise rows.refused("the fence is empty", top)
    adds = any(tag == "+" for tag, _ in hunk.lines)
    if not sure and (not adds or only_prose(rows.rows[top:end])):
        raise rows.ambiguous("the fence may hold a list or a diff", top, hint=_OTHER_WAYS)
    return hunk


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


def _named(rows: Rows, top: int, behind: str) -> str | None:
    for word in reversed(behind.replace(":", " ").replace("=", " ").split()):
        inside = path_in(word)
        if inside is not None:
            return inside
    above = next((row for row in reversed(rows.rows[:top]) if row.strip()), "")
    return path_in(above)
