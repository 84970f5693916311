"""Its fourteen tools, in their order."""

from __future__ import annotations

from typing import Any

from orchestrator.api import operations as o
from orchestrator.api.parameters import Params
from orchestrator.api.results import Result
from orchestrator.servers.toolsets.filesystem import edits, listings, reads
from orchestrator.servers.toolsets.filesystem import params as p
from orchestrator.servers.toolsets.filesystem.answers import refused
from orchestrator.servers.toolsets.tool import Tool, ToolsetEntry

TEXT = {"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]}
_BLOCK = {"type": {"type": "string", "enum": ["image"]}, "data": {"type": "string"}, "mimeType": {"type": "string"}}
_BLOCKS = {"type": "array", "items": {"type": "object", "properties": _BLOCK, "required": list(_BLOCK)}}
IMAGES = {"type": "object", "properties": {"content": _BLOCKS}, "required": ["content"]}


def _tool(name: str, params: type[Params], summary: str, run: Any, *uses: Any, **more: Any) -> Tool:
    title = name.replace("_", " ").title().replace(" With ", " with ")
    return Tool(name, params, Result, summary, run=run, uses=uses, **{"title": title, "output_schema": TEXT, **more})


_READS = "Read a text file: all of it, its first lines (head) or its last ones (tail)."

FILESYSTEM = ToolsetEntry(
    (
        _tool(
            "read_file",
            p.ReadText,
            f"{_READS} Deprecated: use read_text_file.",
            reads.read,
            o.READ_FILE,
            title="Read File (Deprecated)",
        ),
        _tool("read_text_file", p.ReadText, _READS, reads.read, o.READ_FILE),
        _tool(
            "read_media_file",
            p.OnePath,
            "Read an image.",
            reads.read_media,
            o.READ_FILE,
            output_schema=IMAGES,
        ),
        _tool("read_multiple_files", p.ReadMany, "Read several text files at once.", reads.read_many, o.READ_FILE),
        _tool(
            "write_file",
            p.Write,
            "Create a file, or replace one that you have read whole.",
            edits.write,
            o.WRITE_FILE,
            writes=True,
            destructive=True,
            idempotent=True,
        ),
        _tool(
            "edit_file",
            p.Edit,
            "Replace passages of a text file, all or none; answers with the diff.",
            edits.edit,
            o.EDIT_FILE,
            writes=True,
            destructive=True,
        ),
        _tool(
            "create_directory",
            p.MakeDirectory,
            "Make a directory and those above it; that it is there already is no error.",
            edits.make_directory,
            o.CREATE_DIRECTORY,
            writes=True,
            idempotent=True,
        ),
        _tool(
            "list_directory",
            p.OnePath,
            "List a directory: [FILE] or [DIR] and the name.",
            listings.list_directory,
            o.LIST_FILES,
        ),
        _tool(
            "list_directory_with_sizes",
            p.ListSized,
            "List a directory with sizes and totals.",
            listings.list_sized,
            o.LIST_FILES,
        ),
        _tool("directory_tree", p.Tree, "All that is below a directory, as a JSON tree.", listings.tree, o.LIST_FILES),
        _tool(
            "move_file",
            p.Move,
            "Move or rename a file or directory; never overwrites.",
            edits.move,
            o.MOVE_FILE,
            writes=True,
            destructive=True,
        ),
        _tool(
            "search_files",
            p.Search,
            "Find files and directories by a glob of their path: '*.py' right there, '**/*.py' at any depth.",
            listings.search_names,
            o.LIST_FILES,
        ),
        _tool(
            "get_file_info", p.OnePath, "Size, time, kind and permissions of a path.", listings.file_info, o.FILE_INFO
        ),
        _tool(
            "list_allowed_directories",
            Params,
            "The directory in which these tools work.",
            listings.allowed_directories,
            o.FILE_INFO,
        ),
    ),
    refused,
)
