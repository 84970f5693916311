"""FileSystemTool: safe exploration; list, read, exists and info, each as JSON or as text."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from orchestrator.api import operations as o
from orchestrator.api import parameters as p
from orchestrator.api.results import Entry, FileFacts, Result
from orchestrator.core.errors import FileNotFound, OrchestratorError
from orchestrator.servers.toolsets import texts
from orchestrator.servers.toolsets.tool import Calls, Tool, ToolAnswer, ToolsetEntry, sentence

_ENCODER = msgspec.json.Encoder()

KINDS = {
    "FileEntry": "file",
    "DirectoryEntry": "directory",
    "SymbolicLinkEntry": "symlink",
    "OtherEntry": "other",
}

Form = Annotated[Literal["json", "text"], Meta(description="Form of the answer.")]


class OnePath(p.Params, frozen=True):
    path: Annotated[p.AnyPath, Meta(description="Absolute path, or one relative to the project's root.")]
    format: Form = "text"


class List(p.Params, frozen=True):
    path: Annotated[p.AnyPath, Meta(description="A directory.")] = "."
    recursive: Annotated[bool, Meta(description="Also below.")] = False
    glob: Annotated[p.GlobText | None, Meta(description="Only what it names.")] = None
    format: Form = "text"


class Read(OnePath, frozen=True):
    offset: Annotated[int, Meta(description="Lines to pass over.", ge=0, le=p.FAR)] = 0
    lines: Annotated[p.Count | None, Meta(description="Most lines.")] = None


async def _list(calls: Calls, params: List) -> ToolAnswer:
    path = calls.absolute(params.path)
    globs = (params.glob,) if params.glob is not None else ()
    rows = texts.Rows(calls.room)
    async for entry in texts.entries(calls, path, globs=globs, recursive=params.recursive):
        rows.add(_json(_facts(calls, entry)) if params.format == "json" else _row(calls, path, entry))
    text = "[" + ",\n".join(rows.rows) + "]" if params.format == "json" else "\n".join(rows.rows)
    return ToolAnswer(text, notes=rows.notes)


def _row(calls: Calls, directory: str, entry: Entry) -> str:
    size = texts.human_size(entry.size, digits=1) if entry.size is not None and entry.type == "FileEntry" else "-"
    end = "/" if entry.type == "DirectoryEntry" else ""
    return f"{size:>10}  {texts.moment(entry.last_modified):%Y-%m-%d %H:%M}  {calls.below(directory, entry.path)}{end}"


async def _read(calls: Calls, params: Read) -> ToolAnswer:
    path, start = calls.absolute(params.path), params.offset + 1
    end = None if params.lines is None else params.offset + params.lines
    shown = await texts.text_of(calls, path, start, end)
    notes = texts.cut_note(shown, end=end, how=f"; offset={shown.end} goes on")
    if params.format == "text":
        return ToolAnswer(shown.text, notes=notes)
    about = {
        "path": path,
        "content": shown.text,
        "offset": params.offset,
        "lines": shown.end - shown.start + 1 if shown.end else 0,
        "totalLines": shown.total_lines,
        "encoding": shown.encoding,
    }
    return ToolAnswer(_json(about), notes=notes)


async def _exists(calls: Calls, params: OnePath) -> ToolAnswer:
    path = calls.absolute(params.path)
    known = await texts.facts(calls, path)
    if params.format == "json":
        return ToolAnswer(_json({"path": path, "exists": known.exists}))
    return ToolAnswer("true" if known.exists else "false")


async def _info(calls: Calls, params: OnePath) -> ToolAnswer:
    path = calls.absolute(params.path)
    known = await texts.facts(calls, path)
    if not known.exists:
        raise FileNotFound(path, "there is nothing")
    about = _facts(calls, known) | ({"binary": True} if known.is_binary else {})
    if params.format == "json":
        return ToolAnswer(_json(about))
    return ToolAnswer("\n".join(f"{name}: {value}" for name, value in about.items()))


def _facts(calls: Calls, known: Entry | FileFacts) -> dict[str, Any]:
    """Name, kind, size, time, permissions and absolute path; size and time also as people write them."""
    modified = texts.moment(known.last_modified or 0)
    permissions = known.mode if isinstance(known, FileFacts) else None
    about = {
        "name": known.name or calls.root.rpartition("/")[2],
        "type": KINDS[known.type or "OtherEntry"],
        "size": known.size,
        "sizeHuman": texts.human_size(known.size, digits=1) if known.size is not None else None,
        "modified": known.last_modified,
        "modifiedHuman": f"{modified:%Y-%m-%d %H:%M:%S} UTC",
        "permissions": permissions,
        "path": calls.shown(known.path),
        "target": known.target,
    }
    return {name: value for name, value in about.items() if value is not None}


def _json(value: Any) -> str:
    return _ENCODER.encode(value).decode()


def _refused(error: OrchestratorError, root: str) -> str:
    return sentence(error)


FILESYSTEM_TOOL = ToolsetEntry(
    (
        Tool("filesystem-list", List, Result, "List a directory.", run=_list, uses=(o.LIST_FILES,)),
        Tool("filesystem-read", Read, Result, "Read a text file, or lines of it.", run=_read, uses=(o.READ_FILE,)),
        Tool("filesystem-exists", OnePath, Result, "Whether a path is there.", run=_exists, uses=(o.FILE_INFO,)),
        Tool(
            "filesystem-info",
            OnePath,
            Result,
            "Name, kind, size, time and permissions of a path.",
            run=_info,
            uses=(o.FILE_INFO,),
        ),
    ),
    _refused,
)
