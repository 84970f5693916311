"""Listings, searches for names, and what is known of a path."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.api.parameters import Params
from orchestrator.core.errors import FileNotFound
from orchestrator.core.text.answer_space import size
from orchestrator.servers.toolsets import texts
from orchestrator.servers.toolsets.filesystem import params as p
from orchestrator.servers.toolsets.filesystem.answers import said
from orchestrator.servers.toolsets.name_patterns import NamePatterns
from orchestrator.servers.toolsets.tool import Calls, ToolAnswer


def _mark(kind: str) -> str:
    return "[DIR]" if kind == "DirectoryEntry" else "[FILE]"


async def list_directory(calls: Calls, params: p.OnePath) -> ToolAnswer:
    """Names with their kind."""
    rows = texts.Rows(calls.room)
    async for entry in texts.entries(calls, calls.absolute(params.path)):
        rows.add(f"{_mark(entry.type)} {entry.name}")
    return said("\n".join(rows.rows), *rows.notes)


async def list_sized(calls: Calls, params: p.ListSized) -> ToolAnswer:
    """Names with sizes and their sum."""
    entries = [entry async for entry in texts.entries(calls, calls.absolute(params.path))]
    folders = sum(entry.type == "DirectoryEntry" for entry in entries)
    sizes = {entry.path: entry.size or 0 for entry in entries if entry.type != "DirectoryEntry"}
    if params.sort_by == "size":
        entries.sort(key=lambda entry: -sizes.get(entry.path, 0))
    else:
        entries.sort(key=lambda entry: (entry.name.casefold(), entry.name))
    rows = texts.Rows(calls.room)
    for entry in entries:
        human = f"{texts.human_size(sizes[entry.path]):>10}" if entry.path in sizes else ""
        rows.add(f"{_mark(entry.type)} {entry.name:<30} {human}")
    total = f"Total: {len(sizes)} files, {folders} directories"
    return said(
        "\n".join((*rows.rows, "", total, f"Combined size: {texts.human_size(sum(sizes.values()))}")), *rows.notes
    )


async def tree(calls: Calls, params: p.Tree) -> ToolAnswer:
    """All that is below a directory, as nested JSON."""
    path, left_out = calls.absolute(params.path), NamePatterns(params.exclude, loose=True)
    top: list[dict[str, Any]] = []
    folders, left, cut = {"": top}, calls.room.bytes - texts.CUT_BYTES, False
    async for entry in texts.entries(calls, path, recursive=True):
        below = calls.below(path, entry.path)
        above, _, name = below.rpartition("/")
        directory = entry.type == "DirectoryEntry"
        if above not in folders or left_out.match(below, directory=directory):
            continue
        node: dict[str, Any] = {"name": name, "type": "directory" if directory else "file"}
        left -= size(name) + 60 + 10 * (below.count("/") + 1)
        if left <= 0:
            cut = True
            break
        if directory:
            node["children"] = folders[below] = []
        folders[above].append(node)
    text = json.dumps(top, indent=2, ensure_ascii=False)
    note = "[cut: more is there; name a directory further down, or send excludePatterns]"
    return said(text, *([note] if cut else []))


async def search_names(calls: Calls, params: p.Search) -> ToolAnswer:
    """Paths that a glob names."""
    path = calls.absolute(params.path)
    wanted, left_out = NamePatterns((params.pattern,)), NamePatterns(params.exclude)
    rows, gone = texts.Rows(calls.room), set[str]()
    async for entry in texts.entries(calls, path, globs=() if params.exclude else wanted.globs, recursive=True):
        below, directory = calls.below(path, entry.path), entry.type == "DirectoryEntry"
        if below.rpartition("/")[0] in gone or left_out.match(below, directory=directory):
            if directory:
                gone.add(below)
            continue
        if wanted.match(below, directory=directory):
            rows.add(calls.shown(entry.path))
    return said("\n".join(rows.rows) or "No matches found", *rows.notes)


async def file_info(calls: Calls, params: p.OnePath) -> ToolAnswer:
    """What is known of a path."""
    path = calls.absolute(params.path)
    known = await texts.facts(calls, path)
    if not known.exists:
        raise FileNotFound(path, "there is nothing")
    modified = f"{texts.moment(known.last_modified or 0):%a %b %d %Y %H:%M:%S} GMT+0000 (Coordinated Universal Time)"
    rows = (
        *([f"size: {known.size}"] if known.size is not None else []),
        f"modified: {modified}",
        f"isDirectory: {str(known.type == 'DirectoryEntry').lower()}",
        f"isFile: {str(known.type == 'FileEntry').lower()}",
        f"permissions: {(known.mode or '')[-3:]}",
    )
    return said("\n".join(rows))


async def allowed_directories(calls: Calls, params: Params) -> ToolAnswer:
    """The workspace."""
    await texts.facts(calls, calls.root)
    return said(f"Allowed directories:\n{calls.root}")
