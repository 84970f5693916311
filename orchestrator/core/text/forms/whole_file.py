"""A whole file in a Markdown fence, with its path."""

from __future__ import annotations

from orchestrator.core.text.forms.rows import Rows, closes, fence_of, left_out, path_in
from orchestrator.core.text.hunks import FilePatch


def parse_whole_file(rows: Rows, path: str | None) -> FilePatch | None:
    """The one fenced block, named by the row above it, behind its marks, or by `path`; None where there is no fence.

    Raises PatchInvalid for a fence that does not close, a file without a name and lines that stand for
    others; PatchAmbiguous for several blocks.
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
    named = _named(rows, top, behind) or path
    if named is None:
        raise rows.refused(
            "a whole file needs its path", top, hint="Write the path on the line above the fence, or send `path`."
        )
    body = rows.rows[top + 1 : end]
    gap = next((at for at, row in enumerate(body) if left_out(row)), None)
    if gap is not None:
        raise rows.refused(
            f"{body[gap].strip()[:60]!r} stands for lines that were left out",
            top + 1 + gap,
            hint="Send the whole file, or a patch of what changes.",
        )
    return FilePatch(named, named, (), whole="".join(f"{row}\n" for row in body))


def _named(rows: Rows, top: int, behind: str) -> str | None:
    for word in reversed(behind.replace(":", " ").replace("=", " ").split()):
        inside = path_in(word)
        if inside is not None:
            return inside
    above = next((row for row in reversed(rows.rows[:top]) if row.strip()), "")
    return path_in(above)
