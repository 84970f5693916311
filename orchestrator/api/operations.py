"""The catalogue: every operation, its parameters, its answer, and who may call it.

MCP tools, the socket protocol, the Python client, the CLI and the tables of
docs/reference all come from here; it is the contract as code.
"""

from __future__ import annotations

from itertools import chain

from orchestrator.api import (
    administration,
    briefing,
    commands,
    conflicts,
    context,
    directory_stats,
    grants,
    history,
    journal_checks,
    journal_operations,
    native_edits,
    policies,
    relations,
    reported_calls,
    session_operations,
    structure,
    tags,
    worktrees,
)
from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import CHANGES, PATHS, READS, SHORT_BYTES, AnyOperation, Operation
from orchestrator.api.toolsets import DROP_IN, OwnToolset
from orchestrator.core import errors as e

EDITS = (*CHANGES, e.FileNotFound, e.SearchNotFound, e.SearchAmbiguous)

LIST_FILES = Operation(
    "list_files",
    p.ListFiles,
    r.Listing,
    "List a directory: kind, size and version of each entry, without ignored files.",
    core=True,
    opens_session=False,
    raises=(*PATHS, e.FileNotFound, e.Denied),
    command="files",
)

FIND_FILES = Operation(
    "find_files",
    p.FindFiles,
    r.Listing,
    "Find files by a glob on their path.",
    core=True,
    opens_session=False,
    raises=(*PATHS, e.FileNotFound, e.Denied),
    command="files --recursive --glob",
)

FILE_INFO = Operation(
    "file_info",
    p.FileInfo,
    r.FileFacts,
    "Facts about one path: size, kind, encoding, line ends, version, hash. A missing file is no error.",
    opens_session=False,
    inline=True,
    raises=(*PATHS, e.Denied),
    command="info",
)

SEARCH_CONTENT = Operation(
    "search_content",
    p.SearchContent,
    r.SearchResult,
    "Find a text or regular expression in one file or below a directory; shows lines with context.",
    core=True,
    weight="search",
    raises=(*READS, e.BinaryFile, e.VersionNotKept, e.TextTooCostly, e.SemanticSearchOff, e.EmbeddingFailed),
    command="search",
)

READ_FILE = Operation(
    "read_file",
    p.ReadFile,
    r.FileText,
    "Read a text file, or lines of it, within a token budget. Ends with the call that reads on. Shows images, too.",
    core=True,
    inline=True,
    raises=(*READS, e.BinaryFile, e.VersionNotKept, e.LinesNotCounted),
    weight="lines",
    command="open",
)

READ_LINES = Operation(
    "read_lines",
    p.ReadLines,
    r.FileText,
    "Read exactly these lines of a text file.",
    inline=True,
    raises=(*READS, e.BinaryFile, e.VersionNotKept, e.LinesNotCounted),
    weight="lines",
)

EDIT_FILE = Operation(
    "edit_file",
    p.EditFile,
    r.ChangeAnswer,
    "Change passages of one file by search and replace, by line numbers or by symbol. "
    "A stale edit is rebased where that is safe, else it becomes a conflict.",
    writes=True,
    core=True,
    raises=(
        *EDITS,
        e.ExpectMismatch,
        e.SymbolNotFound,
        e.SymbolAmbiguous,
        e.ChangesOverlap,
        e.NothingToChange,
    ),
    command="edit",
)

APPLY_PATCH = Operation(
    "apply_patch",
    p.ApplyPatch,
    r.ChangeAnswer,
    "Apply a patch of one or several files, all or none; it can create, delete and rename.",
    writes=True,
    core=True,
    weight="patch",
    most_bytes=SHORT_BYTES,
    raises=(*EDITS, e.PatchInvalid, e.PatchAmbiguous, e.BaseRequired),
    command="patch",
)

WRITE_FILE = Operation(
    "write_file",
    p.WriteFile,
    r.ChangeAnswer,
    "Create a file, append to one, or replace one that this session has read whole.",
    writes=True,
    destructive=True,
    core=True,
    raises=(*CHANGES, e.FileExists, e.BaseRequired, e.CharacterNotEncodable),
    command="write",
)

MOVE_FILE = Operation(
    "move_file",
    p.MoveFile,
    r.ChangeAnswer,
    "Move or rename a file or a folder; never overwrites.",
    writes=True,
    destructive=True,
    most_bytes=SHORT_BYTES,
    core=True,
    raises=(*CHANGES, e.FileNotFound, e.FileExists),
)

DELETE_FILE = Operation(
    "delete_file",
    p.DeleteFile,
    r.ChangeAnswer,
    "Delete a file, or a folder with all in it; revert brings it back.",
    writes=True,
    destructive=True,
    most_bytes=SHORT_BYTES,
    core=True,
    raises=(*CHANGES, e.FileNotFound),
)

CREATE_DIRECTORY = Operation(
    "create_directory",
    p.CreateDirectory,
    r.ChangeAnswer,
    "Make a directory, and those above it.",
    writes=True,
    raises=(*CHANGES, e.FileExists),
)

FILE_HISTORY = Operation(
    "file_history",
    p.FileHistory,
    r.History,
    "The versions of a file, newest first: who, when, by which operation, why.",
    core=True,
    opens_session=False,
    raises=(*PATHS, e.FileNotFound, e.Denied),
    command="log",
)

GET_DIFF = Operation(
    "get_diff",
    p.GetDiff,
    r.Diff,
    "The difference between two versions of a file; without path, of all files, paged.",
    core=True,
    weight="search",
    inline=True,
    raises=(*READS, e.VersionNotKept, e.VersionTooLarge, e.VersionUnknown),
    command="diff",
)

REVERT = Operation(
    "revert",
    p.Revert,
    r.ChangeAnswer,
    "Undo one change, whenever it was made; later changes of others are kept.",
    writes=True,
    destructive=True,
    most_bytes=SHORT_BYTES,
    core=True,
    raises=(*CHANGES, e.VersionUnknown, e.RevertImpossible),
    command="revert",
)


AWAIT_CHANGE = Operation(
    "await_change",
    p.AwaitChange,
    r.ChangeAnswer,
    "Wait for the final answer of a change that waits for an approval or lies in conflict.",
    core=True,
    unmetered=True,
    waits=True,
    raises=(e.VersionUnknown, e.Aborted),
)


MODULES = (
    briefing,
    structure,
    relations,
    directory_stats,
    context,
    history,
    session_operations,
    commands,
    conflicts,
    administration,
    grants,
    policies,
    journal_operations,
    journal_checks,
    tags,
    native_edits,
    reported_calls,
    worktrees,
)
"""Those that declare further operations."""

OPERATIONS: tuple[AnyOperation, ...] = tuple(
    declared
    for declarations in (globals(), *map(vars, MODULES))
    for declared in tuple(declarations.values())
    if isinstance(declared, Operation)
)
"""Every operation of this module and those, in the order in which they are written down."""

BY_NAME: dict[str, AnyOperation] = {operation.name: operation for operation in OPERATIONS}


def toolset(name: OwnToolset, *, reviewer: bool = False) -> tuple[AnyOperation, ...]:
    """The operations that an MCP transport offers, in catalogue order. `resolve_conflict` is never in `core`.

    `reviewer`: with what people do and agents of class review may do too.
    """
    offered = (op for op in OPERATIONS if op.tool and (not op.operator_only or (reviewer and op.reviewers)))
    return tuple(op for op in offered if op.core or name == "full")


TOOLS = frozenset((*(operation.name for operation in toolset("full", reviewer=True)), *chain(*DROP_IN.values())))
"""The names that a profile may switch off."""
