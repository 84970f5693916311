"""Profiles: what agents of one kind may take at once and in a day, and how their changes are treated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from orchestrator.core.content import Rung
from orchestrator.core.errors import CallerError
from orchestrator.core.policy.tables import Agents, Name

OnLeaseOverlap = Literal["warn", "deny", "queue", "merge"]
OverLimitRule = Literal["refuse", "ask", "summary"]
"""Of a read over a limit. `ask`: it waits for a yes that lifts the limit once. `summary`: of a whole file a summary is
shown in its place; a read that names an end asks."""
Redaction = Literal["off", "tokens", "all"]

Most = Annotated[int, Meta(ge=1, le=1_000_000_000_000)]


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is left out limits nothing, or is as for everybody.

    A read that asks for more than `max_read_…` is refused; an answer beyond `max_answer_…` is cut, and names the
    call that goes on. Bytes of a change are those of the texts that it brings.
    """

    name: Name
    agents: Agents
    max_read_lines: Most | None = None
    max_read_bytes: Most | None = None
    max_answer_lines: Annotated[int, Meta(ge=40, le=1_000_000)] | None = None
    max_answer_tokens: Annotated[int, Meta(ge=1000, le=1_000_000)] | None = None
    max_change_bytes: Most | None = None
    max_calls_per_minute: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    max_tokens_per_session: Most | None = None  # that reads and searches showed
    max_tokens_per_day: Most | None = None
    max_bytes_per_session: Most | None = None  # that changes brought
    max_bytes_per_day: Most | None = None
    max_calls_per_session: Most | None = None
    max_calls_per_day: Most | None = None
    redaction: Redaction = "tokens"  # of secrets in what it is shown
    lowest_rung: Rung | None = None  # the stricter of this one and [edits] holds
    on_overlap: OnLeaseOverlap | None = None  # in place of that of [leases]
    tools_off: Annotated[tuple[Name, ...], Meta(min_length=1)] | None = None
    delta_reads: bool = False  # a read of what the session has seen shows only what changed, unless it says otherwise
    over_limit: OverLimitRule = "refuse"

    def given(self) -> Iterator[str]:
        """What the profile limits, each as in a file."""
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            if not field.required and value != field.default:
                yield f"{field.name} = {msgspec.json.encode(value).decode()}"

    @property
    def limits_reads(self) -> bool:
        """Whether a read may ask for too much."""
        return self.max_read_lines is not None or self.max_read_bytes is not None

    def first_lines(self, lines: Sequence[str]) -> int:
        """How many of these lines one read may ask for, from the first on; one at least, so that it gets on."""
        most = len(lines) if self.max_read_lines is None else min(len(lines), self.max_read_lines)
        if self.max_read_bytes is not None:
            sizes = accumulate(len(line.encode("utf-8", "surrogatepass")) + 1 for line in lines[:most])
            most = sum(1 for size in sizes if size <= self.max_read_bytes)
        return max(most, min(1, len(lines)))


NO_PROFILE: Final = Profile(name="none", agents=("*",))


def profile_for(profiles: Iterable[Profile], agent: str, agent_class: str) -> Profile:
    """The first that names the agent, else the first of its class, else the first for everybody."""
    profiles = tuple(profiles)
    for who in (agent, f"class:{agent_class}", "*"):
        for profile in profiles:
            if who in profile.agents:
                return profile
    return NO_PROFILE


def size_of(lines: Sequence[str]) -> int:
    """The bytes of lines, with their ends."""
    return sum(len(line.encode("utf-8", "surrogatepass")) + 1 for line in lines)


class OverLimit(CallerError, code="over_limit"):
    """The agent's profile lets it take or bring less in one call."""

    def __init__(self, message: str, *, hint: str, limit: str, most: int, asked: int, part: str = "") -> None:
        """`part`: the call that reads as much as it may."""
        super().__init__(message, hint=hint, details={"rule": limit, "most": most, "asked": asked})
        self.part = part
