"""LocalFiles: structured listings, as JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from orchestrator.api import operations as o
from orchestrator.api import parameters as p
from orchestrator.api.results import Entry, Result
from orchestrator.core.errors import OrchestratorError
from orchestrator.servers.toolsets import texts
from orchestrator.servers.toolsets.tool import Calls, Tool, ToolAnswer, ToolsetEntry, sentence

_ENCODER = msgspec.json.Encoder()


class ListDirectory(p.Params, frozen=True):
    path: Annotated[p.AnyPath, Meta(description="Absolute path of a directory.")]


class FindFiles(ListDirectory, frozen=True):
    glob: Annotated[p.GlobText, Meta(description="Of file names or paths, e.g. '**/*.java'.", min_length=1)] = "*"
    recursive: Annotated[bool, Meta(description="Also below.")] = True


async def _list(calls: Calls, params: ListDirectory) -> ToolAnswer:
    return await _answer(calls, texts.entries(calls, calls.absolute(params.path)))


async def _find(calls: Calls, params: FindFiles) -> ToolAnswer:
    path = calls.absolute(params.path)
    return await _answer(calls, texts.found(calls, path, params.glob, recursive=params.recursive))


async def _answer(calls: Calls, entries: AsyncIterator[Entry]) -> ToolAnswer:
    """One list, by name; folders are not apart from files."""
    shown = sorted([_shown(calls, entry) async for entry in entries], key=lambda entry: str(entry["path"]))
    rows = texts.Rows(calls.room)
    for entry in shown:
        rows.add(_ENCODER.encode(entry).decode())
    return ToolAnswer("[" + ",\n".join(rows.rows) + "]", notes=rows.notes)


def _shown(calls: Calls, entry: Entry) -> dict[str, Any]:
    shown = {
        "@type": entry.type,
        "name": entry.name,
        "path": calls.shown(entry.path),
        "size": entry.size,
        "lastModified": entry.last_modified,
        "target": entry.target,
    }
    return {name: value for name, value in shown.items() if value is not None}


def _refused(error: OrchestratorError, root: str) -> str:
    return sentence(error)


LOCAL_FILES = ToolsetEntry(
    (
        Tool(
            "listDirectory",
            ListDirectory,
            Result,
            "List a directory: one sorted list of entries with @type, path, size and time in ms.",
            run=_list,
            uses=(o.LIST_FILES,),
        ),
        Tool(
            "findFiles",
            FindFiles,
            Result,
            "Find files by a glob; the same entries.",
            run=_find,
            uses=(o.FIND_FILES,),
        ),
    ),
    _refused,
)
