"""The composition root of the serving daemon: the one place that names concrete classes."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus

from orchestrator.api import locations, processes, sockets
from orchestrator.api.framing import rejection
from orchestrator.api.processes import hold_root, hold_state
from orchestrator.core.errors import InternalError, OrchestratorError, WorkspaceNested, escaped
from orchestrator.core.system_errors import leaves, refusal_in, state_trouble
from orchestrator.daemon_config import Config, parse
from orchestrator.embedding.index_program import IndexProgram
from orchestrator.engine.administration import DaemonFacts
from orchestrator.engine.engine import Engine
from orchestrator.engine.services import Services
from orchestrator.extensions.manager import Extensions
from orchestrator.journal.maintenance import SqliteMaintenance
from orchestrator.journal.signatures import KeyFile
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.journal.state_files import RESERVE_BYTES
from orchestrator.logs import logger, start_logging
from orchestrator.machine import (
    SystemClock,
    SystemEntropy,
    give_memory_back,
    raise_descriptor_limit,
    spare_the_collector,
    switch_threads_often,
)
from orchestrator.offline import opened
from orchestrator.ports.machine import Step
from orchestrator.ports.reviewers import Reviewer
from orchestrator.review.reviewer_pool import Reviewers, program_reviewer
from orchestrator.servers.auth import Authenticator
from orchestrator.servers.dispatch import Dispatcher
from orchestrator.servers.socket import SocketServer, bind, import_mcp
from orchestrator.version import VERSION
from orchestrator.workspace.command_confinement import find_confinement
from orchestrator.workspace.confined_command import ConfinedCommands
from orchestrator.workspace.disk import Disk, ignore_lease_breaks
from orchestrator.workspace.scratch_check import ScratchChecker
from orchestrator.workspace.scratch_tree import LocalScratchTrees

LAST_CALLS_S = 3.0
"""How long calls that are open get when the daemon is to stop."""

REACHABLE_CHECK_S = 1.0
"""How often the daemon looks whether its socket and its location file are there."""


class Starter:
    """Whoever started the daemon and waits at a pipe for one report of how that went; `fd` None: nobody waits."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    def report(self, what: object) -> None:
        """One line, once. A starter that is gone is no reason to end."""
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(OSError), open(fd, "wb") as ready:  # noqa: PTH123  # a descriptor has no path
                ready.write(msgspec.json.encode(what) + b"\n")


class Daemon:
    """One workspace, served until it is stopped."""

    def __init__(self, config: Config, *, step: Step = lambda name: None) -> None:
        self._config, self._step = config, step
        self._log = logger("daemon")
        self._stopping = anyio.Event()
        self._http_url: str | None = None
        self._ended: locations.State = "ended"
        self.starter = Starter(config.ready_fd)
        self._places = locations.own_places(config.state_dir, config.socket)

    async def run(self) -> None:
        """Serve. Raises OrchestratorError when the workspace can't be served."""
        async with AsyncExitStack() as stack:
            self._hold(stack)
            http_sockets = self._bind_http(stack)
            runner = ConfinedCommands(
                await to_thread.run_sync(find_confinement),
                workspace=self._config.workspace,
                own=self._places,
                name=self._config.workspace_id,
                caches=f"{self._config.state_dir}/command_caches",
            )
            services, extensions, engine = await self._assembled(stack, runner)
            await stack.enter_async_context(engine.running())
            self._listener = await bind(self._config.socket)
            authenticator = Authenticator(
                services.notes,
                services.state,
                services.entropy,
                services.clock,
                engine.lifecycle,
                uid=os.getuid(),
                is_command=runner.holds,
            )
            dispatcher = Dispatcher(engine)
            server = SocketServer(engine, authenticator, dispatcher, workspace=self._config.workspace)
            async with anyio.create_task_group() as tasks:
                await tasks.start(self._watch_signals)
                tasks.start_soon(server.serve, self._listener)
                tasks.start_soon(self._keep_reachable, server, tasks)
                if http_sockets:
                    tasks.start_soon(self._serve_http, engine, authenticator, dispatcher, http_sockets)
                tasks.start_soon(extensions.run)
                tasks.start_soon(self._rest, engine)
                with suppress(OSError):  # a full disk; it is found by its process, and this is tried again
                    locations.write_location(self._location("running"))
                spare_the_collector()
                self._report_ready()
                await self._stopping.wait()
                with suppress(OSError):  # on a full disk a client finds out by itself
                    locations.write_location(self._location(self._ended))
                await self._listener.aclose()
                with anyio.move_on_after(LAST_CALLS_S):
                    await dispatcher.idle()
                with suppress(OSError):  # it, or its directory, may be gone
                    os.unlink(self._config.socket)  # noqa: PTH108  # no blocking pathlib in async code
                tasks.cancel_scope.cancel()
        self._log.info("stopped")

    def stop(self) -> None:
        """End when the calls that are open are answered: a person stopped it, and only a person starts it again."""
        self._ended = "stopped"
        self._stopping.set()

    # --- what is held while serving -----------------------------------------------------

    def _hold(self, stack: AsyncExitStack) -> None:
        """Take the locks that keep a second daemon away; see that none is nested."""
        sockets.socket_path(self._config.workspace_id, self._config.socket)
        locations.refuse_own(self._config.workspace, self._places)
        locations.make_state_root()
        state_dir = Path(self._config.state_dir)
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        state_dir.chmod(0o700)
        stack.callback(os.close, hold_state(str(state_dir)))
        stack.callback(os.close, hold_root(self._config.workspace))
        # After our own lock: of two that start at once one sees the other.
        other = processes.nested(self._config.workspace) or locations.nested(self._config.workspace)
        if other is not None:
            inside = len(other.workspace) > len(os.path.realpath(self._config.workspace))
            raise WorkspaceNested(
                f"a daemon (process {other.pid}) serves {other.workspace}, which is "
                f"{'inside' if inside else 'around'} {self._config.workspace}",
                hint=f"Use it, or end it with `orchestrator stop` there; it keeps its state in {other.state_dir}.",
            )

    async def _assembled(self, stack: AsyncExitStack, runner: ConfinedCommands) -> tuple[Services, Extensions, Engine]:
        """The parts of the daemon, each closed with the stack."""
        config, watcher = self._config, None
        clock, entropy = SystemClock(), SystemEntropy()
        journal = await SqliteJournal.open(
            config.state_dir,
            clock=clock,
            entropy=entropy,
            step=self._step,
            mark=Path(locations.mark_file(config.workspace_id)),
            reserve_bytes=RESERVE_BYTES,
        )
        stack.push_async_callback(journal.close)
        services, workspace, policies, loaded, notes = await opened(
            stack,
            journal,
            config.workspace,
            state_dir=config.state_dir,
            places=self._places,
            system_policy=config.system_policy,
            step=self._step,
        )
        if config.watch:
            watcher = workspace.watcher()
            stack.callback(watcher.close)
        extensions = Extensions(services.permissions.policy.plugins)
        await extensions.load()
        services.journal.subscribe(extensions.observe)
        facts = DaemonFacts(
            pid=os.getpid(),
            version=VERSION,
            socket=config.socket,
            http=self._http_url,
            workspace_id=config.workspace_id,
            state_dir=config.state_dir,
            landlock=workspace.landlock,
            commands=runner.health,
            notes=notes,
            plugins=extensions.notes,
            failed_plugins=extensions.failures,
            policies=policies,
            loaded=loaded,
            stop=self.stop,
        )
        engine = Engine(
            services,
            facts=facts,
            watcher=watcher,
            signer=KeyFile(Path(config.state_dir)),
            keeper=SqliteMaintenance(journal),
            reviewers=self._reviewers(services),
            runner=runner,
            scratch=LocalScratchTrees(
                workspace, services.ignore, Path(config.state_dir) / "scratch", Disk(), layered=runner.mounts_layers
            ),
            environment=os.environ,
            semantic=IndexProgram(Path(config.state_dir), os.environ, config.variables_fd),
            checker=ScratchChecker(services.workspace, _scratch(config), dict(os.environ)),
            summaries=extensions,
        )
        return services, extensions, engine

    def _reviewers(self, services: Services) -> Mapping[str, Reviewer]:
        """Of the policy; tests give the daemon others here."""
        program = partial(
            program_reviewer,
            clock=services.clock,
            environment=os.environ,
            variables_fd=self._config.variables_fd,
            workspace=self._config.workspace,
        )
        return Reviewers(lambda: services.permissions.policy, program)

    # --- HTTP: what serves it is imported only where it is on -----------------------------

    def _bind_http(self, stack: AsyncExitStack) -> list[socket.socket]:
        if self._config.http_port is None:
            return []
        from orchestrator.servers.http_connections import bind_loopback

        sockets = bind_loopback(self._config.http_port)
        for one in sockets:
            stack.callback(one.close)
        self._http_url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/mcp"
        return sockets

    async def _serve_http(
        self, engine: Engine, authenticator: Authenticator, dispatcher: Dispatcher, sockets: list[socket.socket]
    ) -> None:
        await to_thread.run_sync(import_mcp)
        from orchestrator.servers.http import HttpServer

        await HttpServer(engine, authenticator, dispatcher).serve(sockets)

    # --- the outside --------------------------------------------------------------------

    async def _watch_signals(self, *, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
            task_status.started()
            async for number in received:
                self._log.info("asked to stop", signal=signal.Signals(number).name)
                self._stopping.set()

    async def _keep_reachable(self, server: SocketServer, tasks: TaskGroup) -> None:
        """Where the socket or the location file was removed, put it back: nobody would find the daemon any more."""
        config, identity = self._config, self._config.workspace_id
        while True:
            await anyio.sleep(REACHABLE_CHECK_S)
            if self._stopping.is_set():
                return
            try:
                if not os.path.lexists(config.socket):  # noqa: ASYNC240  # as a stat: microseconds
                    sockets.socket_path(identity, config.socket)  # its directory may be gone, too
                    old, self._listener = self._listener, await bind(config.socket)
                    await old.aclose()
                    tasks.start_soon(server.serve, self._listener)
                    self._log.warning("the socket was removed; it is there again", socket=config.socket)
                if locations.read_location(identity) is None:
                    locations.write_location(self._location("running"))
            except (OSError, OrchestratorError) as error:
                self._log.error("the socket or the location file can't be put back", error=str(error))

    @staticmethod
    async def _rest(engine: Engine) -> None:
        """Once all files were looked at."""
        await engine.looked_at_all()
        await to_thread.run_sync(give_memory_back)

    def _location(self, state: locations.State) -> locations.Location:
        config = self._config
        return locations.Location(config.workspace, config.state_dir, config.socket, os.getpid(), state)

    def _report_ready(self) -> None:
        self.starter.report({"ok": True, **self._location("running").plain()})


def _scratch(config: Config) -> Path:
    """Where checks run; what a killed daemon left there goes."""
    folder = Path(config.state_dir) / "checks"
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # on a full disk reads are served all the same
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def main(argv: list[str]) -> int:
    """`orchestrator daemon`: what `up` starts. Exit codes as the command line's."""
    config = parse(argv)
    start_logging()
    ignore_lease_breaks()
    raise_descriptor_limit()
    return serve(Daemon(config))


def serve(daemon: Daemon) -> int:
    """Run to the end; a refusal is reported to whoever started us."""
    switch_threads_often()
    try:
        anyio.run(daemon.run, backend_options={"use_uvloop": True})
    except Exception as error:  # noqa: BLE001  # whatever ended it is reported by a stable code, and logged
        refused = why_not_served(error)
        daemon.starter.report(rejection(refused))
        if isinstance(refused, InternalError):
            logger("daemon").exception("not served", code=refused.code)
        else:
            logger("daemon").error("not served", code=refused.code, message=refused.message)
        return 1
    return 0


def why_not_served(error: Exception) -> OrchestratorError:
    """What ended the daemon, as a refusal with a stable code; task groups hide it in groups of their own."""
    refused = refusal_in(error, "the daemon can't serve")
    if refused is not None:
        return refused
    causes = list(leaves(error))
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            return state_trouble(cause, "a file of the daemon")
    return InternalError(
        f"the daemon failed ({type(causes[0]).__name__}: {escaped(str(causes[0]))[:300]})",
        hint="Its log, daemon.log in the state directory, has the trace. Please report it.",
    )
