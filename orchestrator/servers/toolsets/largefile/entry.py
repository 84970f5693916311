"""Its eight tools, in their order."""

from __future__ import annotations

from orchestrator.api import operations as o
from orchestrator.api.results import Result
from orchestrator.api.structure import GET_OVERVIEW, READ_ENCLOSING
from orchestrator.servers.toolsets.largefile import edits, listings, params, reads, searches
from orchestrator.servers.toolsets.largefile.answers import refused
from orchestrator.servers.toolsets.tool import Tool, ToolsetEntry

LARGEFILE = ToolsetEntry(
    (
        Tool(
            "get_overview",
            params.Overview,
            Result,
            "Lines, size, encoding and outline of a file; no content. Begin with it.",
            run=reads.overview,
            uses=(GET_OVERVIEW,),
        ),
        Tool(
            "search_content",
            params.Search,
            Result,
            "Find a text in a file, also with typos or as a regular expression; shows lines with context.",
            run=searches.search,
            uses=(o.SEARCH_CONTENT,),
        ),
        Tool(
            "read_content",
            params.Read,
            Result,
            "Read lines of a file: by number, around a match, a whole function, or from either end.",
            run=reads.read,
            uses=(o.READ_FILE,),
        ),
        Tool(
            "read_enclosing",
            params.ReadEnclosing,
            Result,
            "Read the whole function or class around a line.",
            run=reads.read_enclosing,
            uses=(READ_ENCLOSING,),
        ),
        Tool(
            "edit_content",
            params.Edit,
            Result,
            "Replace passages of a file, all or none. Shows the diff alone unless preview is false.",
            run=edits.edit,
            uses=(o.EDIT_FILE,),
            writes=True,
            destructive=True,
        ),
        Tool(
            "revert_edit",
            params.Revert,
            Result,
            "Undo your last edit of a file, or go back to an earlier state; lists the states.",
            run=edits.revert,
            uses=(o.REVERT,),
            writes=True,
            destructive=True,
        ),
        Tool(
            "list_directory",
            params.ListDirectory,
            Result,
            "List a directory: names, kinds, sizes, and how many are in each folder.",
            run=listings.list_directory,
            uses=(o.LIST_FILES,),
        ),
        Tool(
            "search_directory",
            params.SearchDirectory,
            Result,
            "Find a text in the files of a directory; matches by file.",
            run=searches.search_directory,
            uses=(o.SEARCH_CONTENT,),
        ),
    ),
    refused,
)
