"""Commands: programs that agents run through us, with what they write, and what they change."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import PATHS, SHORT_BYTES, Operation
from orchestrator.core import errors as e
from orchestrator.core.commands import CommandStatus, Mode

LONGEST_S = 3600
MOST_ARGUMENTS = 10_000
ARGUMENT_CHARACTERS = 100_000
"""Of one argument; Linux takes 128 KiB."""

Status = Literal["running", "waiting"] | CommandStatus


Words = tuple[Annotated[str, Meta(max_length=ARGUMENT_CHARACTERS, extra=p.GIVEN)], ...]


class RunCommand(p.Params, frozen=True):
    argv: Annotated[
        Words, Meta(description="Program and arguments; no shell.", min_length=1, max_length=MOST_ARGUMENTS)
    ]
    cwd: p.DirectoryText = "."
    mode: Annotated[Mode | None, Meta(description="scratch: in a copy.")] = None
    timeout_s: Annotated[int, Meta(description="Its time.", ge=1, le=LONGEST_S)] = 120
    env: Annotated[
        tuple[Annotated[str, Meta(max_length=ARGUMENT_CHARACTERS)], ...],
        Meta(description="'NAME=value', as policy lets.", max_length=100),
    ] = ()
    background: Annotated[bool, Meta(description="Don't wait.")] = False
    reason: p.Reason = ""
    request_id: p.RequestId = None


class CommandId(p.Params, frozen=True):
    command: Annotated[p.Version, Meta(description="'@N'.")]


class CommandOutput(CommandId, frozen=True):
    start: Annotated[int, Meta(description="First byte; -9: the last 9.", ge=-(10**12), le=10**12)] = 0
    max_tokens: Annotated[int, Meta(description="Token budget.", ge=50, le=100_000)] = 4000


class CommandChange(r.Result, frozen=True, kw_only=True):
    path: str
    change: str  # what file_history and revert call it


class CommandAnswer(r.Result, frozen=True, kw_only=True):
    """`output` is the last of what it wrote so far; `next` the call that shows the rest."""

    status: Status
    message: str
    command: str | None = None
    approval: str | None = None  # with `waiting`
    exit_code: int | None = None
    signal: str | None = None
    output: str = ""
    output_bytes: int = 0
    left_out: int = 0  # bytes of the output before `output`
    next: str | None = None
    mode: Mode | None = None
    confined_by: str = ""
    group: str | None = None  # revert(group) undoes all of `changes`
    changes: tuple[CommandChange, ...] = ()
    more_changes: int = 0
    warnings: tuple[str, ...] = ()


class CommandText(r.Result, frozen=True, kw_only=True):
    """Bytes `start` to before `end` of what a command wrote."""

    command: str
    status: Status
    start: int
    end: int
    output_bytes: int  # of all that it wrote so far
    output: str = ""
    not_kept: int = 0  # bytes between its kept beginning and end that `start` was in, or was before
    next: str | None = None


class CommandInfo(r.Result, frozen=True, kw_only=True):
    command: str
    argv: tuple[str, ...] = ()
    cwd: str
    agent: str | None = None
    mode: Mode
    status: Status
    exit_code: int | None = None
    since: int
    output_bytes: int = 0
    group: str | None = None
    change_count: int = 0


class CommandList(r.Result, frozen=True, kw_only=True):
    commands: tuple[CommandInfo, ...] = ()  # newest first
    total: int = 0


class ListCommands(p.Params, frozen=True):
    running: Annotated[bool, Meta(description="Only those that run.")] = False
    limit: Annotated[int, Meta(description="Most entries.", ge=1, le=200)] = 20


RUN_COMMAND = Operation(
    "run_command",
    RunCommand,
    CommandAnswer,
    "Run a program, such as the tests; what it changes is reverted as one. status 'running': command_output reads "
    "on; 'waiting': after a person's yes, send the same call again.",
    writes=True,
    destructive=True,
    core=True,
    waits=True,
    raises=(
        *PATHS,
        e.Denied,
        e.FileNotFound,
        e.ParameterInvalid,
        e.ProgramNotFound,
        e.CommandRunning,
        e.PathReserved,
        e.RequestIdReused,
        e.WritesStopped,
    ),
    command="command run",
)

COMMAND_OUTPUT = Operation(
    "command_output",
    CommandOutput,
    CommandText,
    "Read what a command wrote, also while it runs.",
    core=True,
    opens_session=False,
    raises=(e.VersionUnknown, e.NotPermitted, e.VersionNotKept),
    command="command output",
)

LIST_COMMANDS = Operation(
    "list_commands",
    ListCommands,
    CommandList,
    "The commands that you ran.",
    opens_session=False,
    most_bytes=SHORT_BYTES,
    command="command list",
)

STOP_COMMAND = Operation(
    "stop_command",
    CommandId,
    CommandAnswer,
    "End a command that runs, with all that it started.",
    writes=True,
    waits=True,
    unmetered=True,
    raises=(e.VersionUnknown, e.NotPermitted),
    command="command stop",
)
