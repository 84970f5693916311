"""One command, from its start to its end: recorded before it begins, followed, and what it changed is its caller's."""

from __future__ import annotations

import hashlib
import signal as signals
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import anyio
import msgspec
from anyio.abc import TaskStatus

from orchestrator.core.commands import CommandLine, CommandStatus
from orchestrator.core.errors import CommandRunning, OrchestratorError, ProgramNotFound, escaped
from orchestrator.core.events.base import Origin
from orchestrator.core.events.commands import CommandEnded, CommandStarted
from orchestrator.core.ids import Digest, Seq, WorkspacePath, show
from orchestrator.core.paths import ROOT
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.commands.closed_paths import ClosedPathFinder
from orchestrator.engine.commands.cover import Cover
from orchestrator.engine.commands.kept_output import KeptOutput
from orchestrator.engine.commands.permission import Permitted
from orchestrator.engine.commands.scratch import BroughtBack, ScratchResults
from orchestrator.engine.external.batches import ExternalBatch
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.external.watch import Watching
from orchestrator.engine.leases import Leases
from orchestrator.engine.services import Services
from orchestrator.logs import logger
from orchestrator.ports.commands import CommandRunner, CommandSpec, RunningCommand, ScratchTree, ScratchTrees

TURN_S = 25.0
"""How long a command waits for another one that runs in the workspace itself."""

KEPT_S = 30.0
"""How long a command waits, after the daemon's start, for the contents of the files there are to be kept."""

NOT_KEPT = "not all files are kept yet since the daemon's start: a change of one that is not can't be undone"
"""Where it began all the same."""

LAST_OUTPUT_S = 2.0
"""For what a command wrote to arrive, once it has ended with all that it started."""

LEASE_MORE_S = 30
"""A lease outlasts its command: what that changed is imported under it."""

ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TZ", "USER")
"""What a command is given of the daemon's own; no token, no key."""


class Execution:
    """A command that runs, or has just ended."""

    def __init__(self, caller: Caller, line: CommandLine, timeout_s: int, most_output: int) -> None:
        self.caller, self.line, self.timeout_s = caller, line, timeout_s
        self.output = KeptOutput(most_output)
        self.started = self.ended = Seq(0)
        self.lease: Seq | None = None
        self.over = anyio.Event()
        """Set once its end is recorded, or can't be."""
        self.confined_by = ""
        self.warnings: list[str] = []
        self.changed: Mapping[WorkspacePath, Seq] = {}
        self.cover: Cover | None = None
        self.scope = anyio.CancelScope()
        self.status: CommandStatus = "timed_out"
        """What it ended as, if something else than itself ended it."""

    def stop(self) -> None:
        """Have it ended."""
        self.status = "stopped"
        self.scope.cancel()


class Executor:
    """Runs commands; in the workspace itself one at a time, so that what changes meanwhile is known to be its doing."""

    def __init__(  # made once, by the engine
        self,
        services: Services,
        observer: Observer,
        watching: Watching,
        leases: Leases,
        runner: CommandRunner,
        trees: ScratchTrees,
        results: ScratchResults,
        environment: Mapping[str, str],
    ) -> None:
        self._s, self._observer, self._watching, self._leases = services, observer, watching, leases
        self._runner, self._trees, self._results = runner, trees, results
        self._environment = {name: environment[name] for name in ENVIRONMENT if name in environment}
        self._closed = ClosedPathFinder(services)
        self._turn = anyio.Lock()
        self._in_place: Execution | None = None
        self.running: dict[Seq, Execution] = {}
        self._log = logger("commands")

    async def close_left(self) -> None:
        """End, in the journal, what the last daemon left open: its commands died with it."""
        for command in self._s.state.commands.open():
            origin = Origin(session=command.session, agent=command.agent, cause=command.seq)
            event = CommandEnded(command=command.seq, status="lost")
            await self._s.notes.append(origin, (stream_of(command.session or ""), event))

    async def release_left(self) -> None:
        """Give back the leases of commands that were lost: what those changed is imported by now."""
        for command in self._s.state.commands.all():
            if command.status == "lost" and command.agent is not None:
                origin = Origin(session=command.session, agent=command.agent, cause=command.seq)
                released = self._leases.given_back(command.agent, command.lease)
                if released:
                    await self._s.notes.append(origin, *released)

    async def run(
        self, execution: Execution, call: Call, permitted: Permitted, *, task_status: TaskStatus[None]
    ) -> None:
        """To its end. Until it is told to have started, raises CommandRunning, PathReserved, ProgramNotFound."""
        told = False

        def tell() -> None:
            nonlocal told
            told = True
            task_status.started()

        try:
            if execution.line.mode == "scratch":
                await self._in_copy(execution, call, permitted, tell)
                return
            async with self._alone(execution):
                if not await self._watching.kept(KEPT_S):
                    execution.warnings.append(NOT_KEPT)
                await self._watching.settle()
                seconds = execution.timeout_s + LEASE_MORE_S
                reason = "a command runs in the workspace"
                execution.lease, warning = await self._leases.hold_all(execution.caller, call, seconds, reason)
                execution.warnings += [warning] if warning else []
                try:
                    await self._record(execution, call, permitted)
                    command = await self._start(execution)
                    tell()
                    await self._follow(execution, command)
                finally:
                    left = self._leases.given_back(execution.caller.agent, execution.lease)
                    with anyio.CancelScope(shield=True):
                        if left:  # its end is not recorded
                            await self._s.notes.append(execution.caller.origin(), *left)
        except (OrchestratorError, OSError) as error:
            if not told:
                raise
            execution.warnings.append(str(error))
            self._log.error("the end of a command could not be recorded", command=execution.started, error=str(error))
        finally:
            if execution.cover is not None:
                execution.cover.end()
            self.running.pop(execution.started, None)
            execution.over.set()

    @asynccontextmanager
    async def _alone(self, execution: Execution) -> AsyncIterator[None]:
        """While this one runs in the workspace itself, no other does. Raises CommandRunning."""
        with anyio.move_on_after(TURN_S) as waiting:
            await self._turn.acquire()
        if waiting.cancelled_caught:
            other = self._in_place
            who = f"{show(other.started)} of {other.caller.agent}" if other is not None else "another command"
            raise CommandRunning(f"{who} runs in the workspace")
        self._in_place = execution
        try:
            yield
        finally:
            self._in_place = None
            self._turn.release()

    async def _in_copy(self, execution: Execution, call: Call, permitted: Permitted, tell: Callable[[], None]) -> None:
        """In a copy of what its caller may read; what it makes of that comes back once it has ended by itself."""
        caller = execution.caller
        await self._watching.settle()
        files = self._s.access.contents_of(caller, self._s.state.registry.paths(), ("read",))
        tree = await self._trees.make(files)
        try:
            await self._record(execution, call, permitted)
            command = await self._start(execution, tree)
            tell()
            code: int | None = None
            back = BroughtBack()
            try:
                code = await self._watch(execution, command)
                if code is not None:
                    back = await self._results.bring_back(caller, call, tree)
                    execution.changed = back.changed
                    execution.warnings += back.warnings
            finally:
                with anyio.CancelScope(shield=True):
                    await command.end()
                    status = self._status(execution, code)
                    await self._end(execution, status, code, back.change, len(back.changed))
        finally:
            await tree.remove()

    @staticmethod
    def _status(execution: Execution, code: int | None) -> CommandStatus:
        if code is not None:
            return "done"
        return execution.status if execution.scope.cancel_called else "stopped"  # with the daemon

    async def _record(self, execution: Execution, call: Call, permitted: Permitted) -> None:
        line, caller = execution.line, execution.caller
        event = CommandStarted(
            argv=line.argv,
            cwd=line.cwd,
            mode=line.mode,
            environment=line.environment,
            timeout_s=execution.timeout_s,
            rule=permitted.rule,
            approval=permitted.approval,
            lease=execution.lease,
            reason=getattr(call.params, "reason", ""),
        )
        recorded = await self._s.notes.append(caller.origin(call), (stream_of(caller.session), event))
        execution.started = recorded[0].seq
        self.running[execution.started] = execution

    async def _start(self, execution: Execution, tree: ScratchTree | None = None) -> RunningCommand:
        """In the workspace, or in a copy of it."""
        line, root, rules = execution.line, self._s.workspace.root, self._s.permissions.policy.commands
        folder = tree.folder if tree is not None else root
        cwd = folder if line.cwd == ROOT else f"{folder}/{line.cwd}"
        if tree is not None and line.cwd != ROOT:
            await tree.make_directory(line.cwd)
        cover = Cover(self._s, self._closed, execution.caller, execution.output, execution.stop)
        execution.cover = cover
        closed = await cover.begin(in_place=tree is None)
        given = dict(variable.split("=", 1) for variable in line.environment)
        spec = CommandSpec(
            argv=line.argv,
            cwd=cwd,
            environment={"TERM": "dumb", **self._environment, **given},
            writable=(folder,),
            hidden=tuple(f"{root}/{path}" for path in closed.hidden),
            read_only=tuple(f"{root}/{path}".removesuffix("/.") for path in closed.read_only) if tree is None else (),
            layers=tree.layers if tree is not None else None,
            cache=hashlib.sha256(execution.caller.agent.encode()).hexdigest()[:16],  # none can poison another's
            network=rules.network == "on",
            processes=rules.processes,
        )
        try:
            command = await self._runner.start(spec)
        except OSError as error:
            await self._end(execution, "failed", None, None, 0)
            why = error.strerror or str(error)
            raise ProgramNotFound(f"{escaped(line.argv[0])} can't be started: {why}") from error
        execution.confined_by = command.confined_by
        return command

    async def _follow(self, execution: Execution, command: RunningCommand) -> None:
        """Until it ended, by itself or not; then import what it changed, and record its end."""
        origin = msgspec.structs.replace(execution.caller.origin(), cause=execution.started)
        group = ExternalBatch(self._s, "command", origin)
        execution.changed = group.changed
        code: int | None = None
        try:
            with self._observer.joining(group):
                try:
                    code = await self._watch(execution, command)
                finally:
                    with anyio.CancelScope(shield=True):
                        await command.end()
                        await self._watching.settle(group)
        finally:
            with anyio.CancelScope(shield=True):
                await group.close()
                await self._end(execution, self._status(execution, code), code, group.seq, len(group.changed))

    async def _watch(self, execution: Execution, command: RunningCommand) -> int | None:
        """Its exit code; None where it was ended, or what was closed to it did not stay so. Nothing of it runs then."""
        code: int | None = None
        read, cover = anyio.Event(), execution.cover
        assert cover is not None, "it was started"

        async def take_output() -> None:
            async for data in command.output():
                await cover.take(data)
            read.set()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(take_output)
                tasks.start_soon(cover.keep)
                execution.scope.deadline = anyio.current_time() + execution.timeout_s
                with execution.scope:
                    code = await command.wait()
                if code is None:
                    with anyio.CancelScope(shield=True):
                        await command.end(at_once=bool(cover.fallen))
                with anyio.move_on_after(LAST_OUTPUT_S):
                    await read.wait()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await command.end()
                cover.end()
                await cover.look()
        if cover.fallen:
            execution.warnings.append(cover.fallen)
        return None if cover.fallen else code

    async def _end(
        self, execution: Execution, status: CommandStatus, code: int | None, group: Seq | None, changes: int
    ) -> None:
        output = execution.output
        kept = output.kept()
        digest = Digest(f"sha256:{hashlib.sha256(kept).hexdigest()}") if kept else None
        event = CommandEnded(
            command=execution.started,
            status=status,
            exit_code=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            output=digest,
            output_bytes=output.total,
            output_head=output.head_bytes,
            group=group,
            changes=changes,
            confined_by=execution.confined_by,
        )
        caller = execution.caller
        origin = msgspec.structs.replace(caller.origin(), cause=execution.started)
        blobs = ((digest, kept),) if digest is not None else ()
        released = self._leases.given_back(caller.agent, execution.lease)
        recorded = await self._s.notes.append(origin, (stream_of(caller.session), event), *released, blobs=blobs)
        execution.ended = recorded[0].seq


def stream_of(session: str) -> str:
    """Of the commands of a session."""
    return f"command:{session}"


def signal_name(number: int) -> str:
    """SIGTERM for 15."""
    with suppress(ValueError):
        return signals.Signals(number).name
    return f"signal {number}"
