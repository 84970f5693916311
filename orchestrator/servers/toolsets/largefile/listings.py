"""Listings of a directory, and of those in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from orchestrator.core.text.answer_space import size
from orchestrator.servers.toolsets import texts
from orchestrator.servers.toolsets.largefile import params as p
from orchestrator.servers.toolsets.largefile.answers import answer, directory, half
from orchestrator.servers.toolsets.largefile.settings import settings_of
from orchestrator.servers.toolsets.tool import Calls, ToolAnswer

ROW_BYTES = 90


class _Folder:
    """A directory while its listing is put in order."""

    def __init__(self) -> None:
        self.folders: dict[str, _Folder] = {}
        self.files: dict[str, int] = {}

    def rows(self, above: str, levels: int) -> Iterator[dict[str, Any]]:
        """Its entries, directories first, each before what is in it."""
        for name, folder in sorted(self.folders.items(), key=lambda item: item[0].lower()):
            inside = len(folder.folders) + len(folder.files)
            yield {"name": f"{above}{name}", "type": "dir", "size_bytes": 0, "child_count": inside}
            if levels > 1:
                yield from folder.rows(f"{above}{name}/", levels - 1)
        for name, taken in sorted(self.files.items(), key=lambda item: item[0].lower()):
            yield {"name": f"{above}{name}", "type": "file", "size_bytes": taken, "child_count": None}


async def list_directory(calls: Calls, params: p.ListDirectory) -> ToolAnswer:
    """Names below a directory, with sizes and how many are in each folder."""
    path, settings = await directory(calls, params.absolute_dir_path), settings_of(calls.settings)
    top, ignored = _Folder(), set(settings.ignored)
    folders = {"": top}
    async for entry in texts.entries(
        calls, path, recursive=True, max_depth=params.max_depth + 1, hidden=params.include_hidden
    ):
        below = calls.below(path, entry.path)
        above, _, name = below.rpartition("/")
        if above not in folders:
            continue
        if entry.type != "DirectoryEntry":
            folders[above].files[name] = entry.size or 0
        elif name not in ignored:
            folders[below] = folders[above].folders[name] = _Folder()
    most, room = params.max_entries or settings.max_dir_entries, half(calls).bytes
    entries, cut_at = list[dict[str, Any]](), None
    for row in top.rows("", params.max_depth):
        room -= size(row["name"]) + ROW_BYTES
        if len(entries) >= most or room < 0:
            cut_at = f"{path}/{row['name']}"
            break
        entries.append(row)
    kinds = Counter(row["type"] for row in entries)
    return answer(
        {
            "path": path,
            "entries": entries,
            "total_files": kinds["file"],
            "total_dirs": kinds["dir"],
            "truncated": cut_at is not None,
            "truncated_at": cut_at,
        }
    )
