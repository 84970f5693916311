"""The parameters of its tools. What only its first versions have is taken, and not offered."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api.parameters import OPERATOR_ONLY
from orchestrator.servers.toolsets.tool import OwnRequestId

NOT_OFFERED: dict[str, Any] = {OPERATOR_ONLY: True}

FilePath = Annotated[p.AnyPath, Meta(description="Absolute path of the file.")]
DirectoryPath = Annotated[p.AnyPath, Meta(description="Absolute path of the directory.")]
Pattern = Annotated[str, Meta(description="Text to find.", min_length=1, max_length=p.PATTERN_CHARACTERS)]
ContextLines = Annotated[int, Meta(description="Lines before and after each match.", ge=0, le=50)]
Encoding = Annotated[str | None, Meta(description="Detected.", extra_json_schema=NOT_OFFERED)]
Old = Annotated[p.Content | None, Meta(description="Of the form with one change.", extra_json_schema=NOT_OFFERED)]


class Overview(p.Params, frozen=True):
    absolute_file_path: FilePath
    changed_lines: Annotated[
        tuple[tuple[int | str, ...], ...] | None,
        Meta(description="[start, end] or [start, end, 'added'|'modified'|'removed'] of a diff."),
    ] = None
    encoding: Encoding = None


class Search(p.Params, frozen=True):
    absolute_file_path: FilePath
    pattern: Pattern
    max_results: Annotated[int, Meta(description="Most matches.", ge=1, le=100)] = 20
    context_lines: ContextLines = 2
    fuzzy: Annotated[bool, Meta(description="Also what has typos.")] = True
    regex: Annotated[bool, Meta(description="`pattern` is a regular expression (RE2).")] = False
    case_sensitive: Annotated[bool, Meta(description="Case counts.")] = False
    invert: Annotated[bool, Meta(description="Lines without it.")] = False
    count_only: Annotated[bool, Meta(description="Only how many lines match.")] = False
    encoding: Encoding = None


class Read(p.Params, frozen=True):
    absolute_file_path: FilePath
    offset: Annotated[int, Meta(description="First line, 1-based.", ge=1, le=p.FAR)] = 1
    limit: Annotated[int, Meta(description="Most lines.", ge=1, le=p.FAR)] = 100
    pattern: Annotated[Pattern | None, Meta(description="Read from just above its first match.")] = None
    mode: Annotated[
        str, Meta(description="lines; semantic: the whole function or class; tail: the last `limit`; head: the first.")
    ] = "lines"
    target: Annotated[int | str | None, Meta(description="Line or text.", extra_json_schema=NOT_OFFERED)] = None
    encoding: Encoding = None


class ReadEnclosing(p.Params, frozen=True):
    absolute_file_path: FilePath
    line: Annotated[int, Meta(description="A line in it.", ge=1, le=p.FAR)]
    depth: Annotated[int, Meta(description="1: the innermost; 2: what is around that.", ge=1, le=p.FAR)] = 1
    context_lines: Annotated[int, Meta(description="Lines shown where nothing is around it.", ge=1, le=1000)] = 40


class Replacement(p.Params, frozen=True):
    search: p.Content
    replace: p.Content
    fuzzy: bool | None = None


class Edit(p.Params, frozen=True):
    absolute_file_path: FilePath
    changes: Annotated[tuple[Replacement, ...] | None, Meta(description="{search, replace, fuzzy?}: all or none.")] = (
        None
    )
    fuzzy: Annotated[bool, Meta(description="Other typography or indentation, where policy allows it.")] = True
    preview: Annotated[bool, Meta(description="Only show the diff.")] = True
    search_text: Old = None
    replace_text: Old = None
    encoding: Encoding = None
    request_id: OwnRequestId = None


class Revert(p.Params, frozen=True):
    absolute_file_path: FilePath
    backup_id: Annotated[
        p.Name | None, Meta(description="State to go back to; default: that before your last edit.")
    ] = None
    request_id: OwnRequestId = None


class ListDirectory(p.Params, frozen=True):
    absolute_dir_path: DirectoryPath
    max_depth: Annotated[int, Meta(description="Levels down.", ge=1, le=1000)] = 1
    max_entries: Annotated[p.Count | None, Meta(description="Most entries.")] = None
    include_hidden: Annotated[bool, Meta(description="Also dot files.")] = False


class SearchDirectory(p.Params, frozen=True):
    absolute_dir_path: DirectoryPath
    pattern: Pattern
    include_pattern: Annotated[p.GlobText, Meta(description="Of file names, e.g. '*.py'.", min_length=1)] = "*"
    max_results: Annotated[Annotated[int, Meta(ge=1, le=100)] | None, Meta(description="Most matches.")] = None
    context_lines: ContextLines = 2
    fuzzy: Annotated[bool, Meta(description="Also what has typos.")] = False
    regex: Annotated[bool, Meta(description="`pattern` is a regular expression (RE2).")] = False
    case_sensitive: Annotated[bool, Meta(description="Case counts.")] = False
    invert: Annotated[bool, Meta(description="Lines without it.")] = False
    include_hidden: Annotated[bool, Meta(description="Also dot files.")] = False
