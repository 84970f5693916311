"""Commands that agents ran through us."""

from __future__ import annotations

from typing import ClassVar

from orchestrator.core.annotations import NewContent, Redactable
from orchestrator.core.commands import CommandStatus, Mode
from orchestrator.core.events.base import Event, Outcome
from orchestrator.core.ids import Digest, Seq, WorkspacePath


class CommandStarted(Event, frozen=True, kw_only=True, tag="command_started"):
    """A command is about to run; CommandEnded follows, if need be at the next start."""

    argv: tuple[Redactable[str], ...]
    cwd: WorkspacePath
    mode: Mode
    environment: tuple[Redactable[str], ...] = ()  # what its caller set, as NAME=value
    timeout_s: int
    rule: str  # that allowed it, or asked about it
    approval: Seq | None = None  # by which a person allowed it, once
    lease: Seq | None = None  # on the workspace, for as long as it runs in place
    reason: Redactable[str] = ""


class CommandEnded(Event, frozen=True, kw_only=True, tag="command_ended"):
    """A command ended, with all that it had started."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("answered",)

    command: Seq  # the CommandStarted
    status: CommandStatus
    exit_code: int | None = None
    signal: int | None = None  # that ended it
    output: NewContent[Digest | None] = None  # what is kept of its output: the beginning and the end
    output_bytes: int = 0  # of all that it wrote
    output_head: int = 0  # bytes of the beginning that are kept
    group: Seq | None = None  # the ExternalBatchOpened, or the ChangeIntended, of what it changed; None: nothing
    changes: int = 0  # files in that group
    confined_by: str = ""
