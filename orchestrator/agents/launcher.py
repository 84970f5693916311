"""One run of one agent: started, given its task, answered, and ended with all that it started."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any, NamedTuple

import anyio
from anyio.abc import ByteReceiveStream, Process

from orchestrator import supervised_process
from orchestrator.agents import wire
from orchestrator.agents.budget import Budget
from orchestrator.agents.connection import (
    AgentConnection,
    AgentEnded,
    AgentFailed,
    AgentInvalid,
    AgentRefused,
    AgentTimeout,
)
from orchestrator.agents.permissions import YesTo
from orchestrator.agents.ports import Gate, Screen
from orchestrator.agents.profiles import Profile
from orchestrator.agents.requests import AgentRequests, Terms
from orchestrator.agents.tool_calls import ToolCalls
from orchestrator.agents.transcript import Transcript
from orchestrator.core.errors import OperatorError, escaped
from orchestrator.version import VERSION

CANCEL_S = 5.0
"""What an agent gets to end its turn when it is told to."""

LAST_WORDS_BYTES = 2000
"""Of what the agent wrote to stderr: so much of its end is shown when it fails."""


class AgentNotInstalled(OperatorError, code="agent_not_installed"):
    """The agent's program is not there."""


class AgentNeedsLogin(AgentFailed, code="agent_needs_login"):
    """The agent wants its user to log in first."""


class AgentCannotResume(
    AgentFailed, code="agent_cannot_resume", hint="Start it without --resume: it finds the files as they are now."
):
    """The agent does not offer to go on with an earlier conversation."""


class Run(NamedTuple):
    """What is to be run."""

    profile: Profile
    command: tuple[str, ...]
    environment: Mapping[str, str]
    root: str
    task: str
    server: wire.StdioServer | None
    yes_to: YesTo
    timeout_s: float
    start_timeout_s: float
    authentication: str | None = None
    most_calls: int | None = None
    most_tokens: int | None = None
    isolated: bool = False  # `root` is a copy of its own, of which the daemon takes the outcome
    resume: str | None = None  # an earlier conversation, by the agent's own id


class Outcome(NamedTuple):
    """How a run ended. `unmade`: files whose reported edits are not on disk. `conversation`: see `Run.resume`."""

    stop_reason: wire.StopReason
    calls: int
    allowed: int
    rejected: int
    unmade: tuple[str, ...]
    tokens: int | None = None  # of its context at the end, as it counts them
    conversation: str | None = None  # None: it can't be resumed


class Launcher:
    """Runs one agent once."""

    def __init__(self, run: Run, gate: Gate, screen: Screen, transcript: Transcript) -> None:
        self._run, self._screen, self._transcript = run, screen, transcript
        delegates = run.profile.delegates_files and not run.isolated
        self._calls = ToolCalls(run.root, gate, screen, reports=not run.isolated)
        self._budget = Budget(run.most_calls, run.most_tokens)
        terms = Terms(run.root, run.yes_to, delegates, run.isolated)
        self._requests = AgentRequests(gate, screen, transcript, self._calls, self._budget, terms)
        self._scope = anyio.CancelScope()
        self._failure: AgentFailed | None = None
        self._stop_reason: wire.StopReason | None = None
        self._last_words = b""
        self._conversation: str | None = None

    async def run(self, interrupted: anyio.Event) -> Outcome:
        """Until the agent's turn ends; `interrupted`: a person wants it to. Raises AgentNotInstalled, AgentFailed."""
        process = await self._start()
        try:
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stderr is not None
            self._connection = AgentConnection(process.stdout, process.stdin, self._requests, self._fail)
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._connection.receive)
                    tasks.start_soon(self._listen, process.stderr)
                    tasks.start_soon(self._calls.report)
                    tasks.start_soon(self._converse)
                    tasks.start_soon(self._out_of_time)
                    tasks.start_soon(self._over_budget)
                    tasks.start_soon(self._interrupted, interrupted)
        finally:
            with anyio.CancelScope(shield=True):
                ended = await _end(process)
        unmade = await self._calls.finish()
        for path in unmade:
            self._screen.note(f"the agent reported an edit of {escaped(path)} that is not on disk")
            self._transcript.add("edit_not_on_disk", path=path)
        if self._conversation is not None:
            self._screen.note(f"the agent can go on from here: --resume {escaped(self._conversation)}")
        if self._failure is not None:
            raise self._with_last_words(self._failure, ended)
        asked = self._requests
        reason, tokens = self._stop_reason or "cancelled", self._budget.tokens
        return Outcome(reason, self._calls.count, asked.allowed, asked.rejected, unmade, tokens, self._conversation)

    async def _start(self) -> Process:
        try:
            return await supervised_process.start(
                self._run.command,
                cwd=self._run.root,
                env=self._run.environment,
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                spares=self._run.root,
            )
        except OSError as error:
            raise AgentNotInstalled(
                f"{escaped(self._run.command[0])} can't be started: {error.strerror}",
                hint=f"Install what speaks ACP for {self._run.profile.title}, or name it: --command 'PROGRAM …'.",
            ) from error

    def _fail(self, failure: AgentFailed) -> None:
        """The first one counts."""
        if self._failure is None and self._stop_reason is None:
            self._failure = failure
        self._scope.cancel()

    def _with_last_words(self, failure: AgentFailed, code: int | None) -> AgentFailed:
        if isinstance(failure, AgentEnded):
            failure.message += f" (exit code {code})" if code is not None else ""
        said = self._last_words.decode("utf-8", "replace").strip()
        if said:
            failure.message += ". Its last words: " + escaped(said)
        return failure

    async def _listen(self, stderr: ByteReceiveStream) -> None:
        try:
            async for piece in stderr:
                self._last_words = (self._last_words + piece)[-LAST_WORDS_BYTES:]
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    # --- the conversation ---------------------------------------------------------------

    async def _converse(self) -> None:
        try:
            with anyio.fail_after(self._run.start_timeout_s):
                self._requests.session = await self._begin()
            self._transcript.add("prompt", text=self._run.task)
            params = {"sessionId": self._requests.session, "prompt": [{"type": "text", "text": self._run.task}]}
            ended = await self._connection.request("session/prompt", params, wire.PromptEnded)
            self._transcript.add("stopped", reason=ended.stop_reason)
            self._stop_reason = self._stop_reason or ended.stop_reason
        except TimeoutError:
            self._fail(AgentTimeout(f"the agent was not ready after {self._run.start_timeout_s:g} s"))
        except AgentFailed as failure:
            self._fail(failure)
        self._scope.cancel()

    async def _begin(self) -> str:
        """The id of a session."""
        files = self._run.profile.delegates_files and not self._run.isolated
        params: dict[str, Any] = {
            "protocolVersion": wire.PROTOCOL,
            "clientCapabilities": {"fs": {"readTextFile": files, "writeTextFile": files}, "terminal": False},
            "clientInfo": {"name": "orchestrator", "version": VERSION},
        }
        agent = await self._connection.request("initialize", params, wire.Initialized)
        if agent.protocol_version != wire.PROTOCOL:
            raise AgentInvalid(f"the agent speaks ACP {agent.protocol_version}, and we speak ACP {wire.PROTOCOL}")
        if self._run.authentication:
            await self._connection.request("authenticate", {"methodId": self._run.authentication}, Any)
        new = {"cwd": self._run.root, "mcpServers": [self._run.server] if self._run.server else []}
        loads, id = agent.agent_capabilities.load_session, self._run.resume
        if id is not None and not loads:
            raise AgentCannotResume(f"{self._run.profile.title} does not offer to go on with an earlier conversation")
        try:
            if id is None:
                id = (await self._connection.request("session/new", new, wire.NewSession)).session_id
            else:  # what the agent tells again meanwhile is of no session of ours, and is passed over
                await self._connection.request("session/load", {"sessionId": id, **new}, Any)
        except AgentRefused as refused:
            if refused.rpc_code != wire.AUTH_REQUIRED:
                raise
            methods = ", ".join(escaped(method.id) for method in agent.auth_methods) or "none"
            raise AgentNeedsLogin(
                f"{self._run.profile.title} wants a login; its methods: {methods}",
                hint="Log in with the agent's own program, or name a method: --auth METHOD.",
            ) from refused
        self._conversation = id if loads and not self._run.isolated else None
        self._transcript.add("conversation", id=id, resumed=self._run.resume is not None)
        return id

    async def _out_of_time(self) -> None:
        await anyio.sleep(self._run.timeout_s)
        if self._requests.session is None:
            return  # the start has its own time
        await self._stop(AgentTimeout(f"the agent's turn was not over after {self._run.timeout_s:g} s"))

    async def _over_budget(self) -> None:
        await self._budget.spent.wait()
        await self._stop(self._budget.failure)

    async def _interrupted(self, interrupted: anyio.Event) -> None:
        await interrupted.wait()
        self._screen.note("cancelled: the agent is told to end its turn")
        await self._stop(None)

    async def _stop(self, failure: AgentFailed | None) -> None:
        """Tell the agent to end its turn; it gets a little time for that."""
        if failure is None:
            self._stop_reason = self._stop_reason or "cancelled"
        self._failure = self._failure or failure
        self._transcript.add("cancel")
        if self._requests.session is not None:
            with anyio.move_on_after(CANCEL_S):
                try:
                    await self._connection.notify("session/cancel", {"sessionId": self._requests.session})
                except AgentFailed as failed:
                    self._fail(failed)
                self._requests.cancel_questions()
                await anyio.sleep_forever()
        self._scope.cancel()


async def _end(process: Process) -> int | None:
    """End the agent with all that it started; its exit code where it ended by itself."""
    assert process.stdin is not None
    await process.stdin.aclose()
    with anyio.move_on_after(supervised_process.PATIENCE_S / 10):
        await process.wait()
    code = process.returncode
    await supervised_process.end(process)
    return code
