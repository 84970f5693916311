"""All conflicts that wait, page by page."""

from __future__ import annotations

from orchestrator.api.conflicts import ConflictInfo
from orchestrator.clients.python import FileAccess


async def all_conflicts(files: FileAccess) -> dict[str, ConflictInfo]:
    """Those that a caller may see, by number, with the contents that they propose."""
    found: dict[str, ConflictInfo] = {}
    cursor = None
    while True:
        page = await files.list_conflicts(limit=100, max_tokens=10_000_000, cursor=cursor)
        found |= {info.conflict: info for info in page.conflicts}
        cursor = page.cursor
        if cursor is None:
            return found
