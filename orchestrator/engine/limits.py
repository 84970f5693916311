"""What a profile lets an agent do: tools that it has, bytes of a change, calls per minute; and its answers' room."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from orchestrator.api.parameters import ApplyPatch, EditFile, Params, WriteFile
from orchestrator.api.session_operations import BudgetInfo
from orchestrator.core.errors import CallerError
from orchestrator.core.events.sessions import Budget, BudgetExceeded, Period
from orchestrator.core.ids import AgentName
from orchestrator.core.policy.profiles import NO_PROFILE, OverLimit, Profile
from orchestrator.core.projections.state import State
from orchestrator.core.projections.usage import DAY_MS, Used
from orchestrator.core.text.answer_space import AnswerSpace
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.notes import Notes
from orchestrator.engine.permissions import Permissions
from orchestrator.ports.machine import Clock

MINUTE_US = 60_000_000

TOKEN_BYTES = 4
"""Of an answer, for each token of `max_answer_tokens`; reads count what they show more exactly."""


class Limits:
    """Asked before each call; of an agent without a profile it costs one look."""

    def __init__(self, permissions: Permissions, state: State, notes: Notes, clock: Clock) -> None:
        self._permissions, self._usage, self._notes, self._clock = permissions, state.usage, notes, clock
        self._recent: dict[AgentName, deque[int]] = {}

    async def admit(self, caller: Caller, call: Call) -> None:
        """Raises ToolSwitchedOff, TooManyCalls, OverLimit, BudgetSpent."""
        profile = self._permissions.profile(caller)
        if profile is NO_PROFILE:
            return
        self.check_switched_on(caller, call.operation.name)
        if profile.max_calls_per_minute is not None:
            self._pace(caller.agent, profile, profile.max_calls_per_minute)
        if profile.max_change_bytes is not None and (brought := bytes_brought(call.params)) > profile.max_change_bytes:
            raise OverLimit(
                f"the change brings {brought} bytes, and {caller.agent} may bring {profile.max_change_bytes} at once",
                hint=f"Send it in parts of at most {profile.max_change_bytes} bytes: passages by edit_file, "
                'further lines by write_file(mode="append").',
                limit=f"profile.{profile.name}.max_change_bytes",
                most=profile.max_change_bytes,
                asked=brought,
            )

        if not call.operation.unmetered:
            await self._check_budgets(caller, call)

    async def _check_budgets(self, caller: Caller, call: Call) -> None:
        """Tokens are refused to what reads, bytes to what changes, calls to both."""
        kept = "tokens" if call.operation.writes else "bytes"
        for budget, noted in self._budgets(caller):
            if budget.left > 0 or budget.budget == kept:
                continue
            if not noted:
                event = BudgetExceeded(**_spent_of(budget))
                await self._notes.note(caller.origin(), (f"session:{caller.session}", event))
            raise BudgetSpent(caller, budget)

    def budgets(self, caller: Caller) -> tuple[BudgetInfo, ...]:
        """What the caller's profile lets it take in its session and today, and what is left of it."""
        return tuple(budget for budget, _ in self._budgets(caller))

    def _budgets(self, caller: Caller) -> Iterator[tuple[BudgetInfo, bool]]:
        """Each with whether it is noted that it is spent."""
        profile, now = self._permissions.profile(caller), self._clock.now_ms()
        if profile is NO_PROFILE:
            return
        periods: tuple[tuple[Period, Used, int | None], ...] = (
            ("session", self._usage.of_session(caller.session), None),
            ("day", self._usage.of_day(caller.agent, now), (now // DAY_MS + 1) * DAY_MS),
        )
        for period, used, resets_at in periods:
            for budget, spent in _spent(used):
                if (most := getattr(profile, f"max_{budget}_per_{period}")) is not None:
                    left = max(0, most - spent)
                    info = BudgetInfo(
                        budget=budget, period=period, most=most, used=spent, left=left, resets_at=resets_at
                    )
                    yield info, f"{budget} {most}" in used.noted

    def _pace(self, agent: AgentName, profile: Profile, most: int) -> None:
        recent = self._recent.get(agent)
        if recent is None or recent.maxlen != most:
            recent = self._recent[agent] = deque(recent or (), maxlen=most)
        now = self._clock.ticks_us()
        left_us = recent[0] + MINUTE_US - now if len(recent) == most else 0
        if left_us > 0:
            seconds = -(-left_us // 1_000_000)
            raise TooManyCalls(
                f"{agent} may make {most} calls in a minute, and made them",
                hint=f"Call again in {seconds} s.",
                details={
                    "rule": f"profile.{profile.name}.max_calls_per_minute",
                    "most": most,
                    "retry_after_s": seconds,
                },
            )
        recent.append(now)

    def check_switched_on(self, caller: Caller, tool: str) -> None:
        """Raises ToolSwitchedOff."""
        profile = self._permissions.profile(caller)
        if tool in (profile.tools_off or ()):
            raise ToolSwitchedOff(
                f"{tool} is switched off for {caller.agent} by the profile '{profile.name}'",
                details={"rule": f"profile.{profile.name}.tools_off"},
            )

    def switched_off(self, caller: Caller) -> frozenset[str]:
        """The tools that the caller's profile takes away."""
        return frozenset(self._permissions.profile(caller).tools_off or ())

    def room(self, caller: Caller, room: AnswerSpace) -> AnswerSpace:
        """The room of an answer, where the caller's profile gives it less."""
        profile = self._permissions.profile(caller)
        lines, tokens = profile.max_answer_lines, profile.max_answer_tokens
        if lines is None and tokens is None:
            return room
        most = room.bytes if tokens is None else min(room.bytes, tokens * TOKEN_BYTES)
        return AnswerSpace(most, room.lines if lines is None else min(room.lines, lines), room.typed)


def _spent(used: Used) -> tuple[tuple[Budget, int], ...]:
    return (("tokens", used.tokens), ("bytes", used.bytes), ("calls", used.calls))


def bytes_brought(params: Params) -> int:
    """Of the texts that a call brings for files."""
    match params:
        case WriteFile(content=content):
            return _size(content)
        case ApplyPatch(patch=patch):
            return _size(patch)
        case EditFile(changes=changes):
            return sum(_size(change.replace) + _size(change.content) for change in changes)
        case _:
            texts = (getattr(params, name, None) for name in ("content", "regions"))
            return sum(
                _size(text) if isinstance(text, str) else len(msgspec.json.encode(text)) for text in texts if text
            )


def _size(text: str | None) -> int:
    return 0 if text is None else len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _spent_of(budget: BudgetInfo) -> dict[str, Any]:
    return {name: getattr(budget, name) for name in BudgetExceeded.__struct_fields__}


class BudgetSpent(CallerError, code="budget_exceeded"):
    """The agent's profile lets it take less in its session, or in a day."""

    def __init__(self, caller: Caller, budget: BudgetInfo) -> None:
        at = datetime.fromtimestamp(budget.resets_at / 1000, UTC) if budget.resets_at is not None else None
        until = f"at {at:%Y-%m-%d %H:%M} UTC" if at is not None else "with a new session"
        done = {"tokens": "was shown", "bytes": "brought", "calls": "made"}[budget.budget]
        taken = f"{budget.used} {budget.budget} of the {budget.most} that it may in a {budget.period}"
        super().__init__(
            f"{caller.agent} {done} {taken}",
            hint=f"That resets {until}. session_status shows what is left; a person can raise the limit.",
            details=_spent_of(budget),
        )


class ToolSwitchedOff(
    CallerError, code="tool_switched_off", hint="Use the other tools; a person can change the policy."
):
    """The agent's profile does not let it use this tool."""


class TooManyCalls(CallerError, code="too_many_calls"):
    """The agent's profile lets it make fewer calls in a minute."""
