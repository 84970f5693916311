"""What an agent sends us: updates, which are shown and kept, and requests, which are answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import anyio
import msgspec

from orchestrator.agents import wire
from orchestrator.agents.budget import Budget
from orchestrator.agents.connection import UNREADABLE, Refused
from orchestrator.agents.permissions import Decision, YesTo, action_of, decide, inside, option_for
from orchestrator.agents.ports import Gate, Screen
from orchestrator.agents.tool_calls import ToolCalls
from orchestrator.agents.transcript import Transcript
from orchestrator.core.errors import OrchestratorError, escaped

Asked = TypeVar("Asked", wire.PermissionRequest, wire.ReadText, wire.WriteText)

MOST_PATHS = 100
"""Of a tool call: with more of them policy is not asked, and a person is."""

WITHDRAW_S = 5.0


class Terms(NamedTuple):
    """Of a run. `root`: where the agent works; `isolated`: that is a copy of its own."""

    root: str
    yes_to: YesTo
    delegates_files: bool
    isolated: bool


class AgentRequests:
    """Answers one agent in one session, which is set once it is there."""

    def __init__(
        self,
        gate: Gate,
        screen: Screen,
        transcript: Transcript,
        calls: ToolCalls,
        budget: Budget,
        terms: Terms,
    ) -> None:
        self._gate, self._screen, self._transcript, self._calls = gate, screen, transcript, calls
        self._root, self._yes_to, self._delegates_files, self._isolated = terms
        self._budget = budget
        self.session: str | None = None
        self.allowed = self.rejected = 0
        self._asking = anyio.Lock()
        self._questions: set[anyio.CancelScope] = set()

    # --- updates --------------------------------------------------------------------------

    def notified(self, method: str, params: msgspec.Raw) -> None:
        """Show and keep an update; what we don't understand is passed over."""
        if method != "session/update":
            return
        try:
            sent = msgspec.json.decode(params, type=wire.SessionUpdate)
            if sent.session_id == self.session:
                self._updated(sent.update)
        except UNREADABLE as error:
            self._transcript.add("not_understood", problem=str(error))

    def _updated(self, update: msgspec.Raw) -> None:
        match kind := msgspec.json.decode(update, type=wire.Update).session_update:
            case "agent_message_chunk" | "agent_thought_chunk":
                said = msgspec.json.decode(update, type=wire.Chunk).content.text
                self._screen.text(said, thought=kind == "agent_thought_chunk")
                self._transcript.piece(kind, said)
            case "tool_call" | "tool_call_update":
                self._calls.update(msgspec.json.decode(update, type=wire.ToolCall))
                self._transcript.add(kind, **_members(update))
                self._budget.used_calls(self._calls.count)
            case "usage_update":
                self._budget.used_tokens(msgspec.json.decode(update, type=wire.Usage).used)
                self._transcript.add(kind, **_members(update))
            case "plan":
                self._screen.plan(msgspec.json.decode(update, type=wire.Plan).entries)
                self._transcript.add(kind, **_members(update))
            case _:
                self._transcript.add("other_update", kind=kind)

    # --- requests -------------------------------------------------------------------------

    async def requested(self, method: str, params: msgspec.Raw) -> Any:
        """Answer the agent; what it told of before is recorded then.

        Raises Refused, OrchestratorError, and what decoding raises.
        """
        await self._calls.settle()
        match method:
            case "session/request_permission":
                return await self._permit(self._of_session(msgspec.json.decode(params, type=wire.PermissionRequest)))
            case "fs/read_text_file" if self._delegates_files:
                return await self._read(self._of_session(msgspec.json.decode(params, type=wire.ReadText)))
            case "fs/write_text_file" if self._delegates_files:
                return await self._write(self._of_session(msgspec.json.decode(params, type=wire.WriteText)))
            case _:
                raise Refused(wire.METHOD_NOT_FOUND, f"{method[:100]} is not offered")

    def cancel_questions(self) -> None:
        """Nobody is asked any more; each question is answered with `cancelled`."""
        for question in tuple(self._questions):
            question.cancel()

    def _of_session(self, asked: Asked) -> Asked:
        if asked.session_id != self.session:
            raise Refused(wire.INVALID_PARAMS, "that is not the session")
        return asked

    # --- permission -----------------------------------------------------------------------

    async def _permit(self, asked: wire.PermissionRequest) -> Any:
        call = self._calls.merged(asked.tool_call)
        decision = await self._decided(call)
        chosen = await self._chosen(call, asked.options, decision)
        allowed = chosen is not None and chosen.kind.startswith("allow")
        self.allowed += allowed
        self.rejected += not allowed
        self._transcript.add(
            "permission",
            tool_call=call.tool_call_id,
            title=call.title,
            paths=call.paths,
            decision=decision.answer,
            why=decision.why,
            option=chosen.kind if chosen else None,
        )
        if allowed:
            await self._calls.reported(call, anew=True)  # before it makes the edit
        if chosen is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": chosen.option_id}}

    async def _decided(self, call: wire.ToolCall) -> Decision:
        if len(call.paths) > MOST_PATHS:
            return Decision("ask", f"it names {len(call.paths)} files")
        action = action_of(call)
        paths = [inside(self._root, path) for path in call.paths]
        if self._isolated and action is not None and paths and None not in paths:
            return Decision("allow", "it is in the run's own copy")
        deleted = self._calls.deleted(call)
        verdicts = [
            await self._gate.verdict("delete" if path in deleted else action, path)
            for path in paths
            if path is not None and action is not None
        ]
        return decide(call, self._yes_to, verdicts, outside=None in paths)

    async def _chosen(
        self, call: wire.ToolCall, options: Sequence[wire.Option], decision: Decision
    ) -> wire.Option | None:
        """The option that is taken; None: cancelled, which every agent takes for a no."""
        reject = option_for(options, "reject_once", "reject_always")
        title = escaped(call.title or "a tool call")
        if decision.answer == "reject":
            self._screen.note(f"refused {title}: {escaped(decision.why)}")
            return reject
        allow = option_for(options, "allow_once")
        if decision.answer == "allow" and allow:
            return allow
        if not options:
            return None
        chosen: str | None = None
        with anyio.CancelScope() as question:
            self._questions.add(question)
            try:
                chosen = await self._asked(call, options, decision.why, allow)
            finally:
                self._questions.discard(question)
        if question.cancelled_caught:
            return None
        if chosen is None:
            self._screen.note(f"refused {title}: nobody said yes ({escaped(decision.why)})")
            return reject
        return next((option for option in options if option.option_id == chosen), reject)

    async def _asked(
        self, call: wire.ToolCall, options: Sequence[wire.Option], why: str, allow: wire.Option | None
    ) -> str | None:
        """What a person chose, at this run's screen or where approvals are given, whichever comes first."""
        answers = list[str | None]()
        approval = await self._queued(call, why) if allow is not None else None

        async def at_the_screen() -> None:
            async with self._asking:
                chosen = await self._screen.ask(call, options, why)
            if chosen is not None or approval is None:
                answers.append(chosen)
                tasks.cancel_scope.cancel()

        async def in_the_queue(approval: str, allow: wire.Option) -> None:
            try:
                answers.append(allow.option_id if await self._gate.granted(approval) else None)
            except OrchestratorError as error:
                self._screen.note(f"{approval} can't be waited for: {escaped(error.message)}")
                return
            tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(at_the_screen)
                if approval is not None and allow is not None:
                    tasks.start_soon(in_the_queue, approval, allow)
        finally:
            if approval is not None:
                await self._withdraw(call)
        return answers[0] if answers else None

    async def _queued(self, call: wire.ToolCall, why: str) -> str | None:
        """Its number among what waits for a person; None where nobody could say yes there."""
        paths = [path for name in call.paths[:MOST_PATHS] if (path := inside(self._root, name)) is not None]
        try:
            approval = await self._gate.ask(call, paths, self._calls.edits(call), why)
        except OrchestratorError as error:
            self._screen.note(f"it can't wait for a yes elsewhere: {escaped(error.message)}")
            return None
        if approval is not None:
            self._screen.note(
                f"{escaped(call.title or 'a tool call')} waits for a yes: orchestrator approvals approve {approval}"
            )
            self._transcript.add("waits", tool_call=call.tool_call_id, approval=approval)
        return approval

    async def _withdraw(self, call: wire.ToolCall) -> None:
        """Nothing happens where the request was answered."""
        with anyio.move_on_after(WITHDRAW_S, shield=True):
            try:
                await self._gate.withdraw(call)
            except OrchestratorError as error:
                self._screen.note(f"the request was not withdrawn: {escaped(error.message)}")

    # --- files that it delegates ------------------------------------------------------------

    async def _read(self, asked: wire.ReadText) -> Any:
        path = self._inside(asked.path)
        try:
            text = await self._gate.read(path)
        except OrchestratorError as error:
            if error.code != "not_found":
                raise
            # Gemini CLI takes an error to this for the end of its edit. What it writes then only ever creates the file.
            text = ""
        self._transcript.add("read", path=path, characters=len(text))
        if asked.line is None and asked.limit is None:
            return {"content": text}
        start = max((asked.line or 1) - 1, 0)
        lines = text.splitlines(keepends=True)[start:]
        return {"content": "".join(lines if asked.limit is None else lines[: max(asked.limit, 0)])}

    async def _write(self, asked: wire.WriteText) -> Any:
        path = self._inside(asked.path)
        await self._gate.write(path, asked.content)
        self._transcript.add("write", path=path, characters=len(asked.content))

    def _inside(self, path: str) -> str:
        found = inside(self._root, path)
        if found is None:
            raise Refused(wire.INVALID_PARAMS, f"{path[:500]} is not an absolute path inside {self._root}")
        return found


def _members(update: msgspec.Raw) -> dict[str, Any]:
    found = msgspec.json.decode(update)
    return {"update": found} if isinstance(found, dict) else {}
