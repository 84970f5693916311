"""The operations on commands: run one, read what it wrote, list them, stop one."""

from __future__ import annotations

from typing import NamedTuple

import anyio
from anyio.abc import TaskGroup, TaskStatus

from orchestrator.api import commands as a
from orchestrator.core.errors import (
    CommandRunning,
    NotPermitted,
    ParameterInvalid,
    VersionNotKept,
    VersionUnknown,
    plural,
)
from orchestrator.core.events.base import ExternalChange
from orchestrator.core.events.commands import CommandEnded, CommandStarted
from orchestrator.core.events.files import ChangeApplied, ChangeIntended
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.paths import ROOT
from orchestrator.core.positions import parse_seq
from orchestrator.core.projections.commands import Command
from orchestrator.core.text.answer_space import AnswerSpace
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.commands.execution import Execution, Executor, signal_name
from orchestrator.engine.commands.kept_output import from_place
from orchestrator.engine.commands.output_text import first_bytes, shown
from orchestrator.engine.commands.permission import CommandPermissions, Waits, check_directory, check_words
from orchestrator.engine.external.batches import members
from orchestrator.engine.services import Services

ANSWERED_WITHIN_S = 45.0
"""A command that runs for longer goes on in the background: MCP clients give up on a call after a minute."""

TAIL_BYTES = 12_000
"""Of the output in the answer: some 3,000 tokens."""

TOKEN_BYTES = 4
"""Of output, for one token of a budget."""

LISTED_CHANGES = 50


class Output(NamedTuple):
    """What is kept of an output."""

    kept: bytes
    head: int
    total: int


class CommandService:
    """Commands of all callers."""

    def __init__(self, services: Services, executor: Executor) -> None:
        self._s, self.executor = services, executor
        self._permissions = CommandPermissions(services)
        self._tasks: TaskGroup | None = None

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """While the daemon serves; what runs when this is cancelled is stopped, and its end recorded."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            await anyio.sleep_forever()

    # --- operations ---------------------------------------------------------------------

    async def run_command(self, caller: Caller, call: Call, params: a.RunCommand) -> a.CommandAnswer:
        cwd = self._directory(params)
        rules = self._s.permissions.policy.commands
        if params.timeout_s > rules.timeout_s:
            raise ParameterInvalid("timeout_s", f"policy lets a command run for {rules.timeout_s} s at most")
        environment = self._permissions.environment(params.env)
        asked = await self._permissions.ask(caller, call, params, cwd, environment)
        if isinstance(asked, Waits):
            number = show(asked.approval)
            return a.CommandAnswer(
                status="waiting",
                message=f"running this waits for a person's yes as {number}: {asked.rule}. Go on with other work; "
                "once it is granted, send the same call again.",
                approval=number,
                mode=asked.line.mode,
                next=f"await_change('{number}')",
            )
        if self._tasks is None:
            raise CommandRunning("the daemon is about to stop")
        execution = Execution(caller, asked.line, params.timeout_s, rules.output_bytes)

        async def run(*, task_status: TaskStatus[None]) -> None:
            await self.executor.run(execution, call, asked, task_status=task_status)

        await self._tasks.start(run)
        if not params.background:
            with anyio.move_on_after(ANSWERED_WITHIN_S):
                await execution.over.wait()
        return await self._answer(caller, execution.started, call.room, execution)

    async def command_output(self, caller: Caller, call: Call, params: a.CommandOutput) -> a.CommandText:
        command = self._own(caller, params)
        output = await self._output(command)
        start = params.start if params.start >= 0 else max(0, output.total + params.start)
        piece = from_place(output.kept, output.head, output.total, start)
        data = first_bytes(piece.data, min(params.max_tokens * TOKEN_BYTES, call.room.framed().bytes // 2))
        at = piece.start if piece.start < output.head else len(output.kept) - (output.total - piece.start)
        text = await shown(self._s.redaction, caller, output.kept, at, data, start=piece.start)
        more = text.end < output.total or command.ended is None
        return a.CommandText(
            command=show(command.seq),
            status=command.status or "running",
            start=text.start,
            end=text.end,
            output_bytes=output.total,
            output=text.text,
            not_kept=max(0, piece.start - max(start, output.head)),
            next=_reads_on(command.seq, text.end) if more else None,
        )

    async def list_commands(self, caller: Caller, call: Call, params: a.ListCommands) -> a.CommandList:
        known = [item for item in self._s.state.commands.all() if self._may_see(caller, item)]
        found = [item for item in known if item.ended is None or not params.running]
        newest = sorted(found, key=lambda item: -item.seq)[: params.limit]
        return a.CommandList(commands=tuple([await self._info(caller, item) for item in newest]), total=len(found))

    async def stop_command(self, caller: Caller, call: Call, params: a.CommandId) -> a.CommandAnswer:
        command = self._own(caller, params)
        execution = self.executor.running.get(command.seq)
        if execution is not None:
            execution.stop()
            await execution.over.wait()
        return await self._answer(caller, command.seq, call.room, execution)

    async def present(self, caller: Caller, started: Seq) -> a.CommandAnswer:
        """What became of a command, for the call that started it, sent again."""
        execution = self.executor.running.get(started)
        return await self._answer(caller, started, AnswerSpace(), execution)

    # --- what they are about --------------------------------------------------------------

    def _directory(self, params: a.RunCommand) -> WorkspacePath:
        """Raises ParameterInvalid, NotADirectory, FileNotFound and the PathError family."""
        check_words(params.argv)
        cwd = self._s.paths.either(params.cwd)
        check_directory(self._s.workspace, cwd)
        return cwd

    def _own(self, caller: Caller, params: a.CommandId) -> Command:
        """Raises VersionUnknown, NotPermitted."""
        number = parse_seq(params.command, parameter="command")
        command = self._s.state.commands.get(number)
        if command is None:
            raise VersionUnknown(f"{show(number)} is no command that is known still", hint="list_commands names them.")
        if not self._may_see(caller, command):
            raise NotPermitted(f"{show(number)} is not a command of {caller.agent}", hint="list_commands names yours.")
        return command

    @staticmethod
    def _may_see(caller: Caller, command: Command) -> bool:
        return caller.is_person or command.agent == caller.agent

    async def _output(self, command: Command) -> Output:
        """Raises VersionNotKept."""
        execution = self.executor.running.get(command.seq)
        if execution is not None:
            return Output(execution.output.kept(), execution.output.head_bytes, execution.output.total)
        ended = await self._s.notes.event(command.ended, CommandEnded)
        if ended is None or ended.output is None:
            return Output(b"", 0, 0)
        kept = await self._s.contents.get(ended.output)
        if not isinstance(kept, bytes):
            raise VersionNotKept(f"the output of {show(command.seq)} is kept no more")
        return Output(kept, ended.output_head, ended.output_bytes)

    # --- answers ------------------------------------------------------------------------

    async def _answer(
        self, caller: Caller, started: Seq, room: AnswerSpace, execution: Execution | None
    ) -> a.CommandAnswer:
        command = self._s.state.commands.get(started)
        if command is None:
            raise VersionUnknown(f"{show(started)} is no command that is known still")
        ended = await self._s.notes.event(command.ended, CommandEnded)
        output = await self._output(command)
        most = min(TAIL_BYTES, room.framed().bytes // 3)
        start = max(0, output.total - most)
        piece = from_place(output.kept, output.head, output.total, start)
        data = piece.data
        if start and (line := data.find(b"\n") + 1):
            piece, data = piece._replace(start=piece.start + line), data[line:]
        at = len(output.kept) - len(data)
        text = await shown(self._s.redaction, caller, output.kept, at, data, start=output.total - len(data))
        listed = self._s.access.listed(caller, await self._changes(ended, execution))
        return a.CommandAnswer(
            status=command.status or "running",
            message=_message(command, ended, len(listed)),
            command=show(started),
            exit_code=ended.exit_code if ended is not None else None,
            signal=signal_name(ended.signal) if ended is not None and ended.signal is not None else None,
            output=text.text,
            output_bytes=output.total,
            left_out=text.start,
            next=_reads_on(started, text.end if ended is None else 0) if ended is None or text.start else None,
            mode=command.mode,
            confined_by=execution.confined_by if execution is not None else ended.confined_by if ended else "",
            group=show(ended.group) if ended is not None and ended.group is not None else None,
            changes=tuple(a.CommandChange(path=path, change=show(seq)) for path, seq in listed[:LISTED_CHANGES]),
            more_changes=max(0, len(listed) - LISTED_CHANGES),
            warnings=tuple(execution.warnings) if execution is not None else (),
        )

    async def _changes(
        self, ended: CommandEnded | None, execution: Execution | None
    ) -> list[tuple[WorkspacePath, Seq]]:
        """All of them, once it has ended."""
        if ended is None or ended.group is None:
            return []
        if execution is not None:
            return list(execution.changed.items())
        found = dict[WorkspacePath, Seq]()
        opened = await self._s.journal.event(ended.group)
        if opened is None:
            return []  # it is in an archive
        if isinstance(opened.event, ChangeIntended):
            outcome = await self._s.notes.outcome(opened)
            paths = outcome.event.paths if outcome is not None and isinstance(outcome.event, ChangeApplied) else ()
            return [(item.path, outcome.seq) for item in paths if outcome is not None]
        async for recorded in members(self._s.journal, ended.group):
            if isinstance(recorded.event, ExternalChange):
                found[recorded.event.path] = recorded.seq
        return list(found.items())

    async def _info(self, caller: Caller, command: Command) -> a.CommandInfo:
        started = await self._s.notes.event(command.seq, CommandStarted)
        ended = await self._s.notes.event(command.ended, CommandEnded)
        execution = self.executor.running.get(command.seq)
        return a.CommandInfo(
            command=show(command.seq),
            argv=started.argv if started is not None else (),
            cwd=started.cwd if started is not None else ROOT,
            agent=command.agent,
            mode=command.mode,
            status=command.status or "running",
            exit_code=ended.exit_code if ended is not None else None,
            since=command.at,
            output_bytes=execution.output.total if execution else ended.output_bytes if ended else 0,
            group=show(ended.group) if ended is not None and ended.group is not None else None,
            change_count=len(self._s.access.listed(caller, await self._changes(ended, execution))),
        )


def _reads_on(command: Seq, start: int) -> str:
    return f"command_output(command='{show(command)}', start={start})"


def _message(command: Command, ended: CommandEnded | None, changed: int) -> str:
    """`changed`: the files that who asks may know of."""
    if ended is None:
        return f"{show(command.seq)} runs; stop_command ends it"
    took = f"after {((command.ended_at or command.at) - command.at) / 1000:.1f} s"
    match ended.status:
        case "done" if ended.signal is not None:
            how = f"ended by {signal_name(ended.signal)} {took}"
        case "done":
            how = f"exit code {ended.exit_code} {took}"
        case "timed_out":
            how = f"its time was over: ended {took}, with all that it had started"
        case "stopped":
            how = f"stopped {took}, with all that it had started"
        case "failed":
            how = "it could not be started"
        case "lost":
            how = "the daemon ended while it ran, and it with the daemon; its output is lost"
    if ended.group is None:
        return f"{how}; no file changed"
    return f"{how}; {plural(changed, 'file')} changed, and revert(change='{show(ended.group)}') undoes that"
