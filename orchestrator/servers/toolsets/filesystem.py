"""The tools of the reference server `@modelcontextprotocol/server-filesystem`."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Annotated, Any, Literal

import mcp_types as types
from msgspec import Meta, field

from orchestrator.api import operations as o
from orchestrator.api import parameters as p
from orchestrator.api.results import Result
from orchestrator.core.errors import FileNotFound, NotAvailable, OrchestratorError, ParameterInvalid
from orchestrator.core.text.answer_space import size
from orchestrator.servers.toolsets import texts
from orchestrator.servers.toolsets.name_patterns import NamePatterns
from orchestrator.servers.toolsets.tool import Calls, OwnRequestId, Tool, ToolAnswer, ToolsetEntry, sentence

DIFF_CONTEXT = 4
"""Lines around each change, as its diffs have them."""

PathGiven = Annotated[p.AnyPath, Meta(description="Path of a file or directory.")]
Patterns = Annotated[tuple[p.GlobText, ...], Meta(description="Globs of what to leave out.", max_length=p.MOST_ENTRIES)]


class OnePath(p.Params, frozen=True):
    path: PathGiven


class ReadText(OnePath, frozen=True):
    tail: Annotated[p.Count | None, Meta(description="Only the last N lines.")] = None
    head: Annotated[p.Count | None, Meta(description="Only the first N lines.")] = None
    start: Annotated[p.Count, Meta(description="First line, to read on where an answer was cut.")] = 1


class ReadMany(p.Params, frozen=True):
    paths: Annotated[
        tuple[p.AnyPath, ...], Meta(description="Paths of files.", min_length=1, max_length=p.MOST_ENTRIES)
    ]


class Write(OnePath, frozen=True):
    content: Annotated[p.Content, Meta(description="The whole new text.")]
    request_id: OwnRequestId = None


class TextEdit(p.Params, frozen=True):
    old_text: Annotated[p.Content, Meta(description="Text to search for; it must stand there once.")] = field(
        name="oldText"
    )
    new_text: Annotated[p.Content, Meta(description="Text to put in its place.")] = field(name="newText")


class Edit(OnePath, frozen=True):
    edits: Annotated[tuple[TextEdit, ...], Meta(description="All or none.", min_length=1, max_length=p.MOST_CHANGES)]
    dry_run: Annotated[bool, Meta(description="Only show the diff.")] = field(default=False, name="dryRun")
    request_id: OwnRequestId = None


class MakeDirectory(OnePath, frozen=True):
    request_id: OwnRequestId = None


class ListSized(OnePath, frozen=True):
    sort_by: Annotated[Literal["name", "size"], Meta(description="Order of the entries.")] = field(
        default="name", name="sortBy"
    )


class Tree(OnePath, frozen=True):
    exclude: Patterns = field(default=(), name="excludePatterns")


class Search(OnePath, frozen=True):
    pattern: Annotated[p.GlobText, Meta(description="Glob of the path, e.g. '**/*.py'.", min_length=1)]
    exclude: Patterns = field(default=(), name="excludePatterns")


class Move(p.Params, frozen=True):
    source: PathGiven
    destination: Annotated[p.AnyPath, Meta(description="New path; nothing may be there.")]
    request_id: OwnRequestId = None


def _said(text: str, *notes: str) -> ToolAnswer:
    return ToolAnswer(text, {"content": text}, notes=notes)


async def _read(calls: Calls, params: ReadText) -> ToolAnswer:
    path, start, end = calls.absolute(params.path), params.start, params.head
    if params.head is not None and params.tail is not None:
        raise ParameterInvalid("head", "cannot be given together with tail")
    if params.tail is not None:
        start = -params.tail
    elif end is not None:
        end += start - 1
    shown = await texts.text_of(calls, path, start, end)
    text = shown.text.removesuffix("\n") if end is not None and shown.end == end else shown.text
    follow = f"; read_text_file with start={shown.end + 1} goes on"
    return _said(text, *texts.cut_note(shown, end=end, how=follow))


async def _read_many(calls: Calls, params: ReadMany) -> ToolAnswer:
    parts, notes = list[str](), list[str]()
    whole = calls.room
    for place, raw in enumerate(params.paths):
        calls.room = whole.less(sum(size(part) + 10 for part in parts))
        if not calls.room.holds(" " * texts.CUT_BYTES * 2):
            notes.append(f"[cut: the last {len(params.paths) - place} of {len(params.paths)} files are not shown]")
            break
        try:
            shown = await texts.text_of(calls, calls.absolute(raw))
        except OrchestratorError as error:
            parts.append(f"{raw}: Error - {_refused(error, calls.root)}")
        else:
            parts.append(f"{raw}:\n{shown.text}\n")
            notes += [f"{raw}: {note}" for note in texts.cut_note(shown)]
    calls.room = whole
    return _said("\n---\n".join(parts), *notes)


async def _read_media(calls: Calls, params: OnePath) -> ToolAnswer:
    path = calls.absolute(params.path)
    known = await texts.facts(calls, path)
    text = known.exists and not known.is_binary  # nothing of it is read: its lines would count as seen
    shown = None if text else await calls.make(o.READ_FILE, path=path, line_numbers=False, delta=False)
    if shown is None or shown.image is None:
        raise NotAvailable("read_media_file shows PNG, JPEG, GIF and WebP", hint="read_text_file reads text.")
    data, kind = b64encode(shown.image.data).decode(), shown.image.media_type
    typed = {"content": [{"type": "image", "data": data, "mimeType": kind}]}
    return ToolAnswer(None, typed, blocks=(types.ImageContent(data=data, mime_type=kind),), notes=shown.warnings)


async def _write(calls: Calls, params: Write) -> ToolAnswer:
    path = calls.absolute(params.path)
    answer = await calls.change(
        o.WRITE_FILE, path=path, content=params.content, mode="truncate", request_id=params.request_id
    )
    return _said(f"Successfully wrote to {params.path}", *answer.warnings)


async def _edit(calls: Calls, params: Edit) -> ToolAnswer:
    path = calls.absolute(params.path)
    changes = [{"search": edit.old_text, "replace": edit.new_text} for edit in params.edits]
    answer = await calls.change(
        o.EDIT_FILE, path=path, changes=changes, preview=params.dry_run, request_id=params.request_id
    )
    notes = list(answer.warnings)
    if answer.status == "preview" and answer.would_be != "applied":
        notes.append(f"[sent without dryRun, this would be: {answer.would_be}]")
    diff, cut = await texts.change_diff(calls, answer, DIFF_CONTEXT)
    return _said(fenced_diff(path, diff), *notes, *cut)


def fenced_diff(path: str, diff: str) -> str:
    """The hunks of a diff below the head lines that the reference server writes."""
    hunks = diff[at:] if (at := diff.find("@@")) >= 0 else ""
    head = f"Index: {path}\n{'=' * 67}\n--- {path}\toriginal\n+++ {path}\tmodified\n"
    ticks = "```"
    while ticks in hunks:
        ticks += "`"
    return f"{ticks}diff\n{head}{hunks}{ticks}\n\n"


async def _make_directory(calls: Calls, params: MakeDirectory) -> ToolAnswer:
    path = calls.absolute(params.path)
    present = await texts.facts(calls, path)
    if present.type != "DirectoryEntry":
        await calls.change(o.CREATE_DIRECTORY, path=path, request_id=params.request_id)
    return _said(f"Successfully created directory {params.path}")


def _mark(kind: str) -> str:
    return "[DIR]" if kind == "DirectoryEntry" else "[FILE]"


async def _list(calls: Calls, params: OnePath) -> ToolAnswer:
    rows = texts.Rows(calls.room)
    async for entry in texts.entries(calls, calls.absolute(params.path)):
        rows.add(f"{_mark(entry.type)} {entry.name}")
    return _said("\n".join(rows.rows), *rows.notes)


async def _list_sized(calls: Calls, params: ListSized) -> ToolAnswer:
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
    return _said(
        "\n".join((*rows.rows, "", total, f"Combined size: {texts.human_size(sum(sizes.values()))}")), *rows.notes
    )


async def _tree(calls: Calls, params: Tree) -> ToolAnswer:
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
    return _said(text, *([note] if cut else []))


async def _search(calls: Calls, params: Search) -> ToolAnswer:
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
    return _said("\n".join(rows.rows) or "No matches found", *rows.notes)


async def _move(calls: Calls, params: Move) -> ToolAnswer:
    source, destination = calls.absolute(params.source), calls.absolute(params.destination)
    answer = await calls.change(o.MOVE_FILE, source=source, destination=destination, request_id=params.request_id)
    return _said(f"Successfully moved {params.source} to {params.destination}", *answer.warnings)


async def _info(calls: Calls, params: OnePath) -> ToolAnswer:
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
    return _said("\n".join(rows))


async def _allowed(calls: Calls, params: p.Params) -> ToolAnswer:
    await texts.facts(calls, calls.root)
    return _said(f"Allowed directories:\n{calls.root}")


def _refused(error: OrchestratorError, root: str) -> str:
    path = str(error.details.get("path", ""))
    absolute = path if path.startswith("/") else f"{root.rstrip('/')}/{path}"
    match error.code:
        case "path_absolute" | "outside_workspace":
            return f"Access denied - path outside allowed directories: {absolute} not in {root}"
        case "symlink_refused":
            return f"Access denied - {sentence(error)}"
        case "not_found":
            return f"ENOENT: no such file or directory, open '{absolute}'"
        case "search_not_found":
            return f"Could not find exact match for edit: {sentence(error)}"
        case "already_exists":
            return f"Destination already exists: {absolute}"
        case _:
            return sentence(error)


def _tool(name: str, params: type[p.Params], summary: str, run: Any, *uses: Any, **more: Any) -> Tool:
    return Tool(name, params, Result, summary, run=run, uses=uses, **more)


_READS = "Read a text file: all of it, its first lines (head) or its last ones (tail)."

FILESYSTEM = ToolsetEntry(
    (
        _tool("read_file", ReadText, f"{_READS} Deprecated: use read_text_file.", _read, o.READ_FILE),
        _tool("read_text_file", ReadText, _READS, _read, o.READ_FILE),
        _tool("read_media_file", OnePath, "Read an image or audio file.", _read_media, o.READ_FILE),
        _tool("read_multiple_files", ReadMany, "Read several text files at once.", _read_many, o.READ_FILE),
        _tool(
            "write_file",
            Write,
            "Create a file, or replace one that you have read whole.",
            _write,
            o.WRITE_FILE,
            writes=True,
            destructive=True,
        ),
        _tool(
            "edit_file",
            Edit,
            "Replace passages of a text file, all or none; answers with the diff.",
            _edit,
            o.EDIT_FILE,
            writes=True,
            destructive=True,
        ),
        _tool(
            "create_directory",
            MakeDirectory,
            "Make a directory and those above it; that it is there already is no error.",
            _make_directory,
            o.CREATE_DIRECTORY,
            writes=True,
        ),
        _tool("list_directory", OnePath, "List a directory: [FILE] or [DIR] and the name.", _list, o.LIST_FILES),
        _tool(
            "list_directory_with_sizes", ListSized, "List a directory with sizes and totals.", _list_sized, o.LIST_FILES
        ),
        _tool("directory_tree", Tree, "All that is below a directory, as a JSON tree.", _tree, o.LIST_FILES),
        _tool(
            "move_file", Move, "Move or rename a file or directory; never overwrites.", _move, o.MOVE_FILE, writes=True
        ),
        _tool(
            "search_files",
            Search,
            "Find files and directories by a glob of their path: '*.py' right there, '**/*.py' at any depth.",
            _search,
            o.LIST_FILES,
        ),
        _tool("get_file_info", OnePath, "Size, time, kind and permissions of a path.", _info, o.FILE_INFO),
        _tool("list_allowed_directories", p.Params, "The directory in which these tools work.", _allowed, o.FILE_INFO),
    ),
    _refused,
)
