"""The paths in the text of a `*** Begin Patch`, as the workspace has them."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.clients.hooks.event import Unreadable

HEADS = ("*** Add File:", "*** Update File:", "*** Delete File:")
MOVE = "*** Move to:"
FRAME = ("*** Begin Patch", "*** End Patch")


def within(patch: str, place: Callable[[str], str | None]) -> str:
    """The patch with the paths that `place` gives, without the files that it has none for; "" where none is left.

    Raises Unreadable where a file is moved into the workspace or out of it, or a head may be taken for a line.
    """
    kept, inside, found = list[str](), True, False
    for row in patch.splitlines(keepends=True):
        head = next((head for head in (*HEADS, MOVE) if row.startswith(head)), None)
        if head is None:
            if not inside and row[:1] not in "+-" and row.strip().startswith(HEADS):
                raise Unreadable(f"{row.strip()[:80]!r} in the patch has blanks before it")
            if inside or row.strip() in FRAME:
                kept.append(row)
            continue
        path = place(row[len(head) :].strip())
        if head == MOVE and (path is not None) != inside:
            raise Unreadable("the patch moves a file into the workspace, or out of it")
        inside = path is not None
        found = found or inside
        if inside:
            kept.append(f"{head} {path}\n")
    return "".join(kept) if found else ""
