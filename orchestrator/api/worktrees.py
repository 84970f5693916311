"""Worktrees: copies of the workspace in which an agent works by itself; what it made comes back as one change."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.commands import CommandChange
from orchestrator.api.operation import PATHS, Operation
from orchestrator.core import errors as e


class CloseWorktree(p.Params, frozen=True):
    worktree: Annotated[p.Name, Meta(description="As open_worktree named it.")]
    drop: Annotated[bool, Meta(description="Bring nothing back.")] = False
    reason: p.Reason = ""


class Worktree(r.Result, frozen=True, kw_only=True):
    """A copy of the files that its agent may read, as they are at `at`."""

    worktree: str
    folder: str
    at: str


class WorktreeAnswer(r.Result, frozen=True, kw_only=True):
    """What came back: applied, or waiting for a yes, or in conflict, as `warnings` say."""

    message: str
    change: str | None = None  # revert(change) undoes all of `changes`
    changes: tuple[CommandChange, ...] = ()
    more_changes: int = 0
    warnings: tuple[str, ...] = ()


OPEN_WORKTREE = Operation(
    "open_worktree",
    p.Params,
    Worktree,
    "Copy the workspace into a folder of its own, for an agent that works there by itself.",
    tool=False,
    weight="tree",
    raises=(e.DiskFull, e.FileTooLarge),
)

CLOSE_WORKTREE = Operation(
    "close_worktree",
    CloseWorktree,
    WorktreeAnswer,
    "Bring back what was made of a worktree, as one change by policy, merging and conflicts; then remove it.",
    tool=False,
    writes=True,
    unmetered=True,
    weight="tree",
    raises=(*PATHS, e.VersionUnknown, e.NotPermitted, e.WritesStopped),
    command="worktree close",
)
