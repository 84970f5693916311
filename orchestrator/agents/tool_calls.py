"""The calls of an agent's own tools, as it tells of them; those that change files are reported to the daemon."""

from __future__ import annotations

import anyio

from orchestrator.agents import claims, wire
from orchestrator.agents.permissions import inside
from orchestrator.agents.ports import Edit, Gate, Screen
from orchestrator.core.errors import OrchestratorError, escaped

MOST_CALLS = 2000
"""That are remembered, and that wait to be reported; the oldest are forgotten."""

LAST_REPORTS_S = 10.0
"""For one report, and for what is still to be reported when the agent has ended."""


class ToolCalls:
    """All of one run. `reports`: the agent works in the workspace, so the daemon is told what it changes by itself."""

    def __init__(self, root: str, gate: Gate, screen: Screen, *, reports: bool) -> None:
        self._root, self._gate, self._screen, self._reports = root, gate, screen, reports
        self._calls: dict[str, wire.ToolCall] = {}
        self._begun: dict[str, wire.ToolCall] = {}  # as they were reported
        self._unproven: dict[str, wire.Content] = {}
        self._send, self._receive = anyio.create_memory_object_stream[wire.ToolCall | anyio.Event](MOST_CALLS)
        self._turn = anyio.Lock()
        self.count = 0

    def merged(self, new: wire.ToolCall) -> wire.ToolCall:
        """A call with all that was said of it."""
        before = self._calls.get(new.tool_call_id)
        return before.updated(new) if before else new

    def edits(self, call: wire.ToolCall) -> list[Edit]:
        """Those of files in the workspace."""
        found = ((inside(self._root, diff.path), diff) for diff in call.diffs)
        return [Edit(path, diff.old_text, diff.new_text) for path, diff in found if path is not None]

    def deleted(self, call: wire.ToolCall) -> set[str]:
        """The files in the workspace of which its edits leave nothing."""
        found = ((inside(self._root, diff.path), diff) for diff in call.diffs)
        return {path for path, diff in found if path is not None and claims.takes_all(self._root, path, diff)}

    def update(self, new: wire.ToolCall) -> None:
        """What the agent says of a call: shown, and queued for the daemon."""
        before = self._calls.pop(new.tool_call_id, None)
        call = self._calls[new.tool_call_id] = before.updated(new) if before else new
        if len(self._calls) > MOST_CALLS:
            del self._calls[next(iter(self._calls))]
        self.count += before is None
        ended = call.over and not (before and before.over)
        edits = bool(call.diffs and not (before and before.diffs))
        if before is None or ended or edits:
            self._screen.call(call, edits=edits)
        if ended and call.status == "completed":
            for diff in call.diffs:
                path = inside(self._root, diff.path)
                if path is not None and claims.missing(self._root, path, diff):
                    self._unproven[path] = diff
        if self._reports and (ended or self._changes(call)):
            try:
                self._send.send_nowait(call)
            except anyio.WouldBlock:
                self._screen.note(f"too many tool calls at once: {escaped(call.title or 'one')} is not recorded")

    def _changes(self, call: wire.ToolCall) -> bool:
        """Whether it says which files it changes. A command does not; it counts once it was asked about."""
        return bool(call.diffs) or (call.kind in ("delete", "move") and bool(call.paths))

    async def report(self) -> None:
        """Report what is queued, in its order, as long as the run lasts."""
        async for item in self._receive:
            if isinstance(item, anyio.Event):
                item.set()
            else:
                with anyio.move_on_after(LAST_REPORTS_S, shield=True):  # the agent may end meanwhile
                    await self.reported(item)

    async def settle(self) -> None:
        """Return when all that the agent has told of until now is reported."""
        reached = anyio.Event()
        await self._send.send(reached)
        await reached.wait()

    async def reported(self, call: wire.ToolCall, *, anew: bool = False) -> None:
        """Tell the daemon of a call that is about to change files, or is over; returns when it knows.

        `anew`: the agent goes on with it now. The daemon is told again, as it may have restarted since.
        """
        if not self._reports:
            return
        async with self._turn:
            known, edits, told = self._begun.get(call.tool_call_id), self.edits(call), self._changes(call)
            try:
                if call.over and (known is not None or told):
                    self._begun.pop(call.tool_call_id, None)
                    await self._gate.ended(call, edits)
                elif not call.over and (
                    (anew and (told or call.kind == "execute"))
                    or (told and (known is None or (known.diffs, known.paths) != (call.diffs, call.paths)))
                ):
                    self._begun[call.tool_call_id] = call
                    await self._gate.begun(call, edits)
            except OrchestratorError as error:
                self._screen.note(f"{escaped(call.title or 'an edit')} is not recorded as the agent's: {error.message}")

    async def finish(self) -> tuple[str, ...]:
        """The agent has ended, and with it all its calls. The files whose reported edits are not on disk."""
        self._send.close()
        with anyio.move_on_after(LAST_REPORTS_S, shield=True):
            await self.report()
            for call in tuple(self._begun.values()):
                await self.reported(call.updated(wire.ToolCall(tool_call_id=call.tool_call_id, status="failed")))
        self._receive.close()
        return tuple(path for path, diff in self._unproven.items() if claims.missing(self._root, path, diff))
