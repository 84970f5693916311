"""Tags: short words that people and agents set on files, for others to see and for policy to go by."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import PATHS, Operation, OperatorOperation
from orchestrator.core import errors as e
from orchestrator.core.paths import MOST_TAGS


class TagFile(p.Params, frozen=True):
    path: p.PathText
    tags: Annotated[tuple[p.Tag, ...], Meta(description="E.g. 'reviewed'.", min_length=1, max_length=MOST_TAGS)]
    remove: Annotated[bool, Meta(description="Take them off.")] = False
    request_id: p.RequestId = None
    approver: p.ApproverCode = None


class ListTags(p.Params, frozen=True):
    path: p.DirectoryText = "."
    tag: Annotated[p.Tag | None, Meta(description="Only files with it.")] = None
    limit: p.Limit = 200
    cursor: p.Cursor = None


class TaggedFile(r.Result, frozen=True, kw_only=True):
    path: str
    tags: tuple[str, ...] = ()  # that were set; those that its name gives are not among them


class TaggedFiles(r.Result, frozen=True, kw_only=True):
    files: tuple[TaggedFile, ...] = ()
    total: int = 0
    cursor: str | None = None


TAG_FILE = Operation(
    "tag_file",
    TagFile,
    TaggedFile,
    "Set tags on a file, or take them off. find_files finds them.",
    writes=True,
    raises=(*PATHS, e.FileNotFound, e.NotAFile, e.NotARegularFile, e.Denied, e.ApproverCodeNeeded, e.WritesStopped),
    command="tag",
)

LIST_TAGS = OperatorOperation(
    "list_tags",
    ListTags,
    TaggedFiles,
    "The files that tags were set on, with these.",
    raises=(*PATHS, e.FileNotFound),
    command="tags",
)
