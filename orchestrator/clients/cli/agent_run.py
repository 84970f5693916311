"""One run of an agent, from the command line's process: a client of the daemon, and the agent's parent."""

from __future__ import annotations

import os
import signal
from typing import NamedTuple

import anyio

from orchestrator.agents.launcher import Launcher, Outcome, Run
from orchestrator.agents.permissions import YesTo
from orchestrator.agents.profiles import Profile, environment
from orchestrator.agents.transcript import Transcript
from orchestrator.agents.wire import StdioServer, Variable
from orchestrator.api import results as r
from orchestrator.api.worktrees import Worktree, WorktreeAnswer
from orchestrator.clients.cli.agent_gate import RESTART_S, DaemonGate
from orchestrator.clients.cli.agent_screen import SilentScreen, TerminalScreen
from orchestrator.clients.cli.connect import program
from orchestrator.clients.cli.context import TERMINAL, Settings
from orchestrator.clients.cli.daemon_link import DaemonLink
from orchestrator.clients.connect.templates import SERVER
from orchestrator.clients.python import FileAccess
from orchestrator.core.errors import OrchestratorError, escaped, plural

INTERRUPTED = 130
MOST_TITLE = 500
START_S = 120.0
"""An agent may have MCP servers of its own to start."""


class AgentStart(NamedTuple):
    """What a person wants to be run. `token_file`: where `token` is from; empty: from the environment."""

    client: str
    profile: Profile
    command: tuple[str, ...]
    name: str
    token: str | None
    token_file: str
    task: str
    yes_to: YesTo
    worktree: bool
    timeout_s: float
    most_calls: int | None
    most_tokens: int | None
    authentication: str | None
    resume: str | None


class RunAnswer(r.Result, frozen=True, kw_only=True):
    """How a run ended. `unmade`: files whose edits the agent reported, and that don't have them."""

    agent: str
    session: str
    task: str
    stop_reason: str
    tool_calls: int
    tokens: int | None = None  # of its context at the end, as it counts them
    allowed: int  # requests for permission
    rejected: int
    transcript: str
    unmade: tuple[str, ...] = ()
    brought_back: WorktreeAnswer | None = None  # of a run in a worktree
    conversation: str | None = None  # for `--resume`

    @property
    def ok(self) -> bool:
        """Whether the agent came to an end by itself."""
        return self.stop_reason == "end_turn"


def follow(settings: Settings, start: AgentStart) -> int:
    """Run it, and show what came of it; the exit code. Starts the daemon if none runs."""
    return anyio.run(_follow, settings, start)


async def _follow(settings: Settings, start: AgentStart) -> int:
    location, _ = settings.daemon().ensure()
    root, socket = location.workspace, location.socket
    code = 0
    async with FileAccess.connect(root, socket=socket) as person:
        claimed = None if start.token else start.name
        async with FileAccess.connect(root, agent=claimed, token=start.token, socket=socket) as files:
            screen = SilentScreen() if settings.json else TerminalScreen(TERMINAL)
            tree = await files.open_worktree() if start.worktree else None
            run = Run(
                profile=start.profile,
                command=start.command,
                environment=environment(start.profile, os.environ),
                root=tree.folder if tree else files.workspace,
                task=start.task,
                server=_server(start, files, location.state_dir) if tree is None else None,
                yes_to=start.yes_to,
                timeout_s=start.timeout_s,
                start_timeout_s=min(START_S, start.timeout_s),
                authentication=start.authentication,
                most_calls=start.most_calls,
                most_tokens=start.most_tokens,
                isolated=tree is not None,
                resume=start.resume,
            )
            with Transcript(f"{location.state_dir}/runs", files.agent) as transcript:
                link = DaemonLink(settings.daemon(), files, agent=claimed, token=start.token)
                known = DaemonLink(settings.daemon(), person, agent=None, token=None)
                gate = DaemonGate(start.client, run.root, link, known, screen)
                task = _Task(link, screen, transcript, tree)
                answer = await task.run(run, Launcher(run, gate, screen, transcript))
            code = settings.show(answer, _summary(answer))
    return INTERRUPTED if answer.stop_reason == "cancelled" else code


def _server(start: AgentStart, files: FileAccess, state_dir: str) -> StdioServer:
    """Ours, for the agent to start: it resumes the session that the task belongs to."""
    names = ("--token-file", start.token_file) if start.token_file else ("--agent", start.name)
    words = (*program(), "mcp", "--workspace", files.workspace, *names, "--state-dir", state_dir)
    variables = {"ORCHESTRATOR_SESSION": files.session}
    if start.token and not start.token_file:
        variables["ORCHESTRATOR_TOKEN"] = start.token
    env = tuple(Variable(name=name, value=value) for name, value in variables.items())
    return StdioServer(name=SERVER, command=words[0], args=words[1:], env=env)


class _Task:
    """The agent's own, which begins and ends with the run."""

    def __init__(
        self,
        files: DaemonLink,
        screen: SilentScreen,
        transcript: Transcript,
        tree: Worktree | None,
    ) -> None:
        self._files, self._screen, self._transcript, self._tree = files, screen, transcript, tree

    async def run(self, run: Run, launcher: Launcher) -> RunAnswer:
        files, transcript, title = self._files, self._transcript, run.task.strip()[:MOST_TITLE]
        task = (await files.call(lambda daemon: daemon.begin_task(title))).task
        transcript.add("started", command=run.command, agent=files.agent, session=files.session, task=task)
        self._screen.note(f"{files.agent} works on {task}; the transcript is {transcript.path}")
        ended, back = "failed", None
        try:
            outcome = await _until_interrupted(launcher)
            ended = outcome.stop_reason
            if ended == "end_turn":
                back = await self._bring_back(title)
        except OrchestratorError as error:
            ended = error.code
            transcript.add("failed", code=error.code, message=error.message)
            raise
        finally:
            with anyio.CancelScope(shield=True):
                self._screen.end()
                if self._tree is not None and back is None:
                    name, folder = self._tree.worktree, escaped(self._tree.folder)
                    self._screen.note(f"nothing came back of {folder}: orchestrator worktree close {name}, or --drop")
                try:
                    await self._files.call(lambda daemon: daemon.end_task(task, ended))
                except OrchestratorError as error:
                    self._screen.note(f"the task {task} could not be ended: {escaped(error.message)}")
        return RunAnswer(
            agent=files.agent,
            session=files.session,
            task=task,
            stop_reason=outcome.stop_reason,
            tool_calls=outcome.calls,
            tokens=outcome.tokens,
            allowed=outcome.allowed,
            rejected=outcome.rejected,
            transcript=transcript.path,
            unmade=outcome.unmade,
            brought_back=back,
            conversation=outcome.conversation,
        )

    async def _bring_back(self, title: str) -> WorktreeAnswer | None:
        if (tree := self._tree) is None:
            return None
        back = await self._files.call(
            lambda daemon: daemon.close_worktree(tree.worktree, reason=title), patience_s=RESTART_S
        )
        for line in (back.message, *back.warnings):
            self._screen.note(escaped(line))
        return back


def _summary(answer: RunAnswer) -> list[str]:
    asked = f", {answer.allowed} allowed and {answer.rejected} refused" if answer.allowed or answer.rejected else ""
    return [
        f"{answer.agent}: {answer.stop_reason}, {plural(answer.tool_calls, 'tool call')}{asked}",
        f"What it changed: orchestrator log --task {answer.task}",
    ]


async def _until_interrupted(launcher: Launcher) -> Outcome:
    interrupted = anyio.Event()
    outcome: Outcome | None = None
    failure: Exception | None = None

    async def launch() -> None:
        nonlocal outcome, failure
        try:
            outcome = await launcher.run(interrupted)
        except OrchestratorError as error:
            failure = error
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            tasks.start_soon(launch)
            async for _ in signals:
                interrupted.set()
    if failure is not None:
        raise failure
    assert outcome is not None
    return outcome
