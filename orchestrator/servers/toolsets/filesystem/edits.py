"""Changes of files, directories and their names."""

from __future__ import annotations

from orchestrator.api.operations import CREATE_DIRECTORY, EDIT_FILE, MOVE_FILE, WRITE_FILE
from orchestrator.core.errors import SearchNotFound
from orchestrator.servers.toolsets import texts
from orchestrator.servers.toolsets.filesystem import params as p
from orchestrator.servers.toolsets.filesystem.answers import said
from orchestrator.servers.toolsets.tool import Calls, ToolAnswer, sentence

DIFF_CONTEXT = 4
"""Lines around each change, as its diffs have them."""


async def write(calls: Calls, params: p.Write) -> ToolAnswer:
    """A whole file."""
    path = calls.absolute(params.path)
    answer = await calls.change(
        WRITE_FILE, path=path, content=params.content, mode="truncate", request_id=params.request_id
    )
    return said(f"Successfully wrote to {params.path}", *answer.warnings)


async def edit(calls: Calls, params: p.Edit) -> ToolAnswer:
    """Passages of a file, or the diff that they would make."""
    path = calls.absolute(params.path)
    changes = [{"search": edit.old_text, "replace": edit.new_text} for edit in params.edits]
    try:
        answer = await calls.change(
            EDIT_FILE, path=path, changes=changes, preview=params.dry_run, request_id=params.request_id
        )
    except SearchNotFound as error:
        missed = params.edits[error.details.get("change", 0)].old_text
        text = f"Could not find exact match for edit:\n{missed}\n\n{sentence(error)}"
        return ToolAnswer(text, shown=error.shown, failed=True)
    notes = list(answer.warnings)
    if answer.status == "preview" and answer.would_be != "applied":
        notes.append(f"[sent without dryRun, this would be: {answer.would_be}]")
    diff, cut = await texts.change_diff(calls, answer, DIFF_CONTEXT)
    return said(fenced_diff(path, diff), *notes, *cut)


def fenced_diff(path: str, diff: str) -> str:
    """The hunks of a diff below the head lines that the reference server writes."""
    hunks = diff[at:] if (at := diff.find("@@")) >= 0 else ""
    head = f"Index: {path}\n{'=' * 67}\n--- {path}\toriginal\n+++ {path}\tmodified\n"
    ticks = "```"
    while ticks in hunks:
        ticks += "`"
    return f"{ticks}diff\n{head}{hunks}{ticks}\n\n"


async def make_directory(calls: Calls, params: p.MakeDirectory) -> ToolAnswer:
    """A directory with those above it."""
    path = calls.absolute(params.path)
    present = await texts.facts(calls, path)
    if present.exists and present.type != "DirectoryEntry":
        return ToolAnswer(f"EEXIST: file already exists, mkdir '{path}'", failed=True)
    if present.type != "DirectoryEntry":
        await calls.change(CREATE_DIRECTORY, path=path, request_id=params.request_id)
    return said(f"Successfully created directory {params.path}")


async def move(calls: Calls, params: p.Move) -> ToolAnswer:
    """Another path for a file or directory."""
    source, destination = calls.absolute(params.source), calls.absolute(params.destination)
    answer = await calls.change(MOVE_FILE, source=source, destination=destination, request_id=params.request_id)
    return said(f"Successfully moved {params.source} to {params.destination}", *answer.warnings)
