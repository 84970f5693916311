"""What an agent that was started asks of us, asked of the daemon: policy, people's approvals, its files, its edits."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import Literal

from orchestrator.agents.permissions import PolicyAction, Verdict, inside
from orchestrator.agents.ports import Edit, Screen
from orchestrator.agents.wire import ToolCall
from orchestrator.api.reported_calls import MOST_PATHS, CallState, ReportedEdit, ToolCallNote
from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.cli.daemon_link import DaemonLink
from orchestrator.core.errors import CallerError, OrchestratorError, escaped

MOST_READ_TOKENS = 200_000
MOST_REASON = 2_000
MOST_NAME = 500

RESTART_S = 30.0
"""For a daemon that restarts while a person is waited for, or a file is written."""


class NotWhole(CallerError, code="not_whole", hint="Use the tools of the orchestrator's MCP server for this file."):
    """A file that can't be given out as one text."""


class NotWritten(CallerError, code="not_written"):
    """A change that the daemon did not make."""


class DaemonGate:
    """The daemon, for one agent: policy, journal and conflicts hold for what it reads and writes through us."""

    def __init__(self, client: str, root: str, files: DaemonLink, person: DaemonLink, screen: Screen) -> None:
        self._client, self._root = client, root
        self._files, self._person, self._screen = files, person, screen

    def _exists(self, path: str) -> bool:
        return os.path.lexists(f"{self._files.workspace}/{path}")

    async def verdict(self, action: PolicyAction, path: str) -> Verdict:
        """What policy says; of what it can't judge, that a person is to be asked."""
        exists = self._exists(path)
        judged = "create" if action == "write" and not exists else action
        try:
            found = await self._person.call(lambda daemon: daemon.policy_explain(judged, path, agent=self._files.agent))
        except OrchestratorError as error:
            return Verdict(path, "ask", error.code)
        return Verdict(path, found.verdict, found.rule)

    async def read(self, path: str) -> str:
        """The whole text, as the agent may see it. Raises NotWhole, RemoteError."""
        text = await self._files.call(
            lambda daemon: daemon.read_file(path, max_tokens=MOST_READ_TOKENS, line_numbers=False, delta=False)
        )
        if text.truncated or text.image is not None or text.summary:
            raise NotWhole(f"{path} is no text, or too large to be read at once")
        return text.text

    async def write(self, path: str, content: str) -> None:
        """Replace or create a file; where a person must say yes first, it waits for that. Raises NotWritten."""
        exists = self._exists(path)
        mode: Literal["truncate", "create"] = "truncate" if exists else "create"
        request_id = f"run-{secrets.token_hex(8)}"
        answer = await self._files.call(
            lambda daemon: daemon.write_file(path, content, mode, request_id=request_id), patience_s=RESTART_S
        )
        if answer.status == "waiting" and answer.approval:
            self._screen.note(f"{path} waits for a yes: orchestrator approvals show {answer.approval}")
        while answer.status in ("waiting", "still_waiting") and (waits := answer.approval or answer.change):
            answer = await self._awaited(waits)
        if not answer.success:
            raise NotWritten(f"{answer.status}: {answer.message}")
        for warning in answer.warnings:
            self._screen.note(escaped(warning))

    async def ask(self, call: ToolCall, paths: Sequence[str], edits: Sequence[Edit], why: str) -> str | None:
        """Put a call into the queue; None where there is no approver, or a person could not be shown all of it."""
        title = call.title or call.kind or "a tool call"
        outside = [path for path in call.paths if inside(self._root, path) is None]
        reason = "\n".join(dict.fromkeys(part for part in (title, call.command, *outside) if part))
        if len(reason) > MOST_REASON or await self._has_no_approver():
            return None
        return (await self._report(call, "asks", edits, paths, f"{reason}\n({why})"[:MOST_REASON])).approval

    async def withdraw(self, call: ToolCall) -> None:
        """Nobody need answer any more."""
        await self._report(call, "withdraws")

    async def granted(self, approval: str) -> bool:
        """Wait for the answer."""
        answer = await self._awaited(approval)
        while answer.status in ("waiting", "still_waiting"):
            answer = await self._awaited(approval)
        self._screen.note(escaped(answer.message))
        return answer.status == "granted"

    async def _awaited(self, number: str) -> ChangeAnswer:
        return await self._files.call(lambda daemon: daemon.await_change(number), patience_s=RESTART_S)

    async def _has_no_approver(self) -> bool:
        return (await self._person.call(lambda daemon: daemon.status())).approver == "missing"

    async def begun(self, call: ToolCall, edits: Sequence[Edit]) -> None:
        """From here on these changes are the agent's."""
        await self._report(call, "begins", edits, self._inside(call))

    async def ended(self, call: ToolCall, edits: Sequence[Edit]) -> None:
        """What it has changed is in the journal now."""
        await self._report(call, "ends", edits, self._inside(call))

    def _inside(self, call: ToolCall) -> list[str]:
        return [path for name in call.paths[:MOST_PATHS] if (path := inside(self._root, name)) is not None]

    async def _report(
        self,
        call: ToolCall,
        state: CallState,
        edits: Sequence[Edit] = (),
        paths: Sequence[str] = (),
        reason: str = "",
    ) -> ToolCallNote:
        tool, id = (call.title or call.kind or "tool")[:MOST_NAME], call.tool_call_id[:MOST_NAME]
        kind, told = call.kind or "other", [ReportedEdit(path=edit.path, old=edit.old, new=edit.new) for edit in edits]
        return await self._files.call(
            lambda daemon: daemon.report_tool_call(self._client, tool, id, state, kind, paths, told, reason)
        )
