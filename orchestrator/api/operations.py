"""The catalogue: every operation, its parameters, its answer, and who may call it.

MCP tools, the socket protocol, the Python client, the CLI and the tables of
docs/reference all come from here; it is the contract as code.
"""

from __future__ import annotations

from typing import Literal

from orchestrator.api import audit, blame, checkpoints, leases, maintenance, rollback, stale_readers, time_travel
from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import CHANGES, PATHS, READS, Operation, Shape
from orchestrator.core import errors as e

__all__ = ["BY_NAME", "CHANGES", "OPERATIONS", "PATHS", "PLANNED", "READS", "Operation", "Shape", "toolset"]

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="list_files",
        params=p.ListFiles,
        result=r.Listing,
        shape="text",
        core=True,
        summary="List a directory: kind, size and version of each entry, without ignored files.",
        raises=(*PATHS, e.FileNotFound, e.Denied),
    ),
    Operation(
        name="find_files",
        params=p.FindFiles,
        result=r.Listing,
        shape="text",
        core=True,
        summary="Find files by a glob on their path.",
        raises=(*PATHS, e.FileNotFound, e.Denied),
    ),
    Operation(
        name="file_info",
        params=p.FileInfo,
        result=r.FileFacts,
        summary="Facts about one path: size, kind, encoding, line ends, version, hash. A missing file is no error.",
        raises=(*PATHS, e.Denied),
    ),
    Operation(
        name="search_content",
        params=p.SearchContent,
        result=r.SearchResult,
        shape="text",
        core=True,
        summary="Find an exact text in one file or below a directory; shows lines with context.",
        raises=READS,
        planned=("mode=regex", "mode=fuzzy", "max_edits"),
    ),
    Operation(
        name="read_file",
        params=p.ReadFile,
        result=r.FileText,
        shape="text",
        core=True,
        summary="Read a text file, or lines of it, within a token budget. Ends with the call that reads on.",
        raises=(*READS, e.BinaryFile, e.VersionNotKept),
        planned=("delta",),
    ),
    Operation(
        name="read_lines",
        params=p.ReadLines,
        result=r.FileText,
        shape="text",
        summary="Read exactly these lines of a text file.",
        raises=(*READS, e.BinaryFile, e.VersionNotKept),
    ),
    Operation(
        name="edit_file",
        params=p.EditFile,
        result=r.ChangeAnswer,
        writes=True,
        core=True,
        summary="Change passages of one file by search and replace, by line numbers or by symbol. "
        "A stale edit is rebased where that is safe, else it becomes a conflict.",
        raises=(
            *CHANGES,
            e.FileNotFound,
            e.SearchNotFound,
            e.ExpectMismatch,
            e.SearchAmbiguous,
            e.SymbolNotFound,
            e.SymbolAmbiguous,
            e.SymbolExists,
            e.ChangesOverlap,
            e.NothingToChange,
        ),
    ),
    Operation(
        name="apply_patch",
        params=p.ApplyPatch,
        result=r.ChangeAnswer,
        writes=True,
        core=True,
        summary="Apply a patch of one or several files, all or none; it can create, delete and rename.",
        raises=(
            *CHANGES,
            e.FileNotFound,
            e.PatchInvalid,
            e.PatchAmbiguous,
            e.SearchNotFound,
            e.SearchAmbiguous,
            e.BaseRequired,
        ),
    ),
    Operation(
        name="write_file",
        params=p.WriteFile,
        result=r.ChangeAnswer,
        writes=True,
        destructive=True,
        core=True,
        summary="Create a file, append to one, or replace one that this session has read whole.",
        raises=(*CHANGES, e.FileExists, e.BaseRequired, e.CharacterNotEncodable),
    ),
    Operation(
        name="move_file",
        params=p.MoveFile,
        result=r.ChangeAnswer,
        writes=True,
        destructive=True,
        core=True,
        summary="Move or rename a file or a folder; never overwrites.",
        raises=(*CHANGES, e.FileNotFound, e.FileExists),
    ),
    Operation(
        name="delete_file",
        params=p.DeleteFile,
        result=r.ChangeAnswer,
        writes=True,
        destructive=True,
        core=True,
        summary="Delete a file, or a folder with all in it; revert brings it back.",
        raises=(*CHANGES, e.FileNotFound),
    ),
    Operation(
        name="create_directory",
        params=p.CreateDirectory,
        result=r.ChangeAnswer,
        writes=True,
        summary="Make a directory, and those above it.",
        raises=(*CHANGES, e.FileExists),
    ),
    Operation(
        name="file_history",
        params=p.FileHistory,
        result=r.History,
        shape="text",
        core=True,
        summary="The versions of a file, newest first: who, when, by which operation, why.",
        raises=(*PATHS, e.FileNotFound, e.Denied),
    ),
    Operation(
        name="get_diff",
        params=p.GetDiff,
        result=r.Diff,
        shape="text",
        core=True,
        summary="The difference between two versions of a file, whole; without path, of all files, paged.",
        raises=(*READS, e.VersionNotKept, e.VersionUnknown),
    ),
    Operation(
        name="revert",
        params=p.Revert,
        result=r.ChangeAnswer,
        writes=True,
        destructive=True,
        core=True,
        summary="Undo one change, whenever it was made; later changes of others are kept.",
        raises=(*CHANGES, e.VersionUnknown, e.RevertImpossible),
    ),
    *rollback.OPERATIONS,
    Operation(
        name="session_status",
        params=p.SessionStatus,
        result=r.SessionInfo,
        core=True,
        summary="What this session has read (stale reads marked), what waits, what it changed, its tasks.",
    ),
    Operation(
        name="begin_task",
        params=p.BeginTask,
        result=r.TaskAnswer,
        writes=True,
        summary="Say what you work on; your changes carry the task until it ends.",
    ),
    Operation(
        name="end_task",
        params=p.EndTask,
        result=r.TaskAnswer,
        writes=True,
        summary="Say that a task is over, and what came of it.",
        raises=(e.VersionUnknown,),
    ),
    Operation(
        name="list_conflicts",
        params=p.ListConflicts,
        result=r.Conflicts,
        summary="The changes that fitted nowhere and wait: base, current and proposed content of each.",
    ),
    Operation(
        name="resolve_conflict",
        params=p.ResolveConflict,
        result=r.ChangeAnswer,
        writes=True,
        destructive=True,
        summary="Settle a conflict: the current content, the proposed one, or another. For reviewers and approvers.",
        raises=(*CHANGES, e.VersionUnknown, e.NotPermitted, e.ApproverCodeNeeded),
    ),
    Operation(
        name="await_change",
        params=p.AwaitChange,
        result=r.ChangeAnswer,
        core=True,
        summary="Wait for the final answer of a change that waits for an approval or lies in conflict.",
        raises=(e.VersionUnknown, e.Aborted),
    ),
    Operation(
        name="journal_query",
        params=p.JournalQuery,
        result=r.JournalPage,
        summary="Events of the journal, newest first: your own session's, or all of them for a person.",
        raises=(e.NotPermitted, e.VersionUnknown, *PATHS),
    ),
    *blame.OPERATIONS,
    *time_travel.OPERATIONS,
    *(
        Operation(name=name, params=params, result=result, summary=summary, operator_only=True, writes=writes)
        for name, params, result, summary, writes in (
            ("status", p.Status, r.StatusInfo, "What the daemon is doing.", False),
            (
                "approvals_list",
                p.ApprovalsList,
                r.Approvals,
                "Changes that wait for a yes, without diffs.",
                False,
            ),
            ("approvals_show", p.ApprovalsShow, r.ApprovalInfo, "One of them, with its diff.", False),
            ("approve", p.Approve, r.ChangeAnswer, "Say yes: the daemon applies the change.", True),
            ("deny", p.Deny, r.Done, "Say no.", True),
            ("agent_add", p.AgentAdd, r.AgentToken, "Make an agent and show its token once.", True),
            ("agent_revoke", p.AgentRevoke, r.Done, "Take an agent's token away.", True),
            ("agent_list", p.AgentList, r.Agents, "Who may call.", False),
            ("approver_create", p.ApproverCreate, r.ApproverCode, "Make the approver code, once.", True),
            ("approver_reset", p.ApproverReset, r.ApproverCode, "Replace the approver code.", True),
            ("policy_check", p.PolicyCheck, r.PolicyReport, "Check the text of a policy file.", False),
            ("policy_reload", p.PolicyReload, r.PolicyReport, "Read the policy file again.", True),
            ("journal_verify", p.JournalVerify, r.VerifyAnswer, "Check the chain, the payloads and the blobs.", False),
            ("journal_rebuild", p.JournalRebuild, r.RebuildAnswer, "Replay everything and compare.", False),
            ("workspace_check", p.WorkspaceCheck, r.WorkspaceReport, "Compare the disk with the journal.", False),
            ("stop", p.Stop, r.Done, "End the daemon.", True),
        )
    ),
    *leases.OPERATIONS,
    *audit.OPERATIONS,
    *checkpoints.OPERATIONS,
    *maintenance.OPERATIONS,
    *stale_readers.OPERATIONS,
)

BY_NAME: dict[str, Operation] = {operation.name: operation for operation in OPERATIONS}

PLANNED: frozenset[str] = frozenset(
    (
        "directory_stats",
        "get_overview",
        "related_files",
        "read_files",
        "read_content",
        "read_symbol",
        "get_excerpt",
        "summarize_file",
        "run_command",
    )
)
"""In the contract, not in this version: a call answers `not_available`."""


def toolset(name: Literal["core", "full"]) -> tuple[Operation, ...]:
    """The operations that an MCP door offers, in catalogue order. `resolve_conflict` is never in `core`."""
    return tuple(op for op in OPERATIONS if not op.operator_only and (op.core or name == "full"))
