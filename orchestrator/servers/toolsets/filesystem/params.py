"""The parameters of its tools."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from orchestrator.api import parameters as p
from orchestrator.servers.toolsets.tool import OwnRequestId

PathGiven = Annotated[p.AnyPath, Meta(description="Path of a file or directory.")]
Patterns = Annotated[tuple[p.GlobText, ...], Meta(description="Globs of what to leave out.", max_length=p.MOST_ENTRIES)]


Lines = Annotated[int, Meta(ge=0, le=p.FAR)]
"""0 is as good as none: some models send every parameter."""


class OnePath(p.Params, frozen=True):
    path: PathGiven


class ReadText(OnePath, frozen=True):
    tail: Annotated[Lines | None, Meta(description="Only the last N lines.")] = None
    head: Annotated[Lines | None, Meta(description="Only the first N lines.")] = None
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
