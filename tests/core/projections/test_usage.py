"""Usage: what counts, by session and by day."""

from __future__ import annotations

import msgspec

from orchestrator.core.change import Provenance
from orchestrator.core.content import SeenLines
from orchestrator.core.events.base import Event, SlimRecorded
from orchestrator.core.events.files import CallRefused, ChangeApplied, ChangeIntended, FileRead
from orchestrator.core.events.sessions import BudgetExceeded
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath
from orchestrator.core.projections.usage import DAY_MS, MOST_SESSIONS, Usage, Used

ALICE, S1 = AgentName("alice"), SessionId("s-1")
READ = FileRead(operation="read_file", seen=SeenLines(WorkspacePath("a"), Seq(1), (), 0), bytes=9, tokens=7)
WROTE = ChangeApplied(change=Seq(1), provenance=Provenance(operation="write_file", brought=5), paths=())
GRANTED = msgspec.structs.replace(WROTE, provenance=Provenance(operation="write_file", brought=5, approval=Seq(9)))
INTENDED = ChangeIntended(provenance=WROTE.provenance, paths=())
REFUSED = CallRefused(operation="x", code="y", message="z")


def usage(*events: Event, at: int = DAY_MS, session: SessionId | None = S1) -> Usage:
    folded = Usage()
    for seq, event in enumerate(events, 1):
        folded.apply(SlimRecorded(Seq(seq), at, session, ALICE, event, b""))
    return folded


def test_what_counts() -> None:
    used = usage(READ, INTENDED, WROTE, GRANTED, REFUSED)
    assert used.of_session(S1) == Used(calls=3, tokens=7, bytes=10)
    assert used.of_day(ALICE, DAY_MS) == Used(calls=3, tokens=7, bytes=10, day=1)


def test_a_day_begins_anew() -> None:
    used = usage(READ, at=2 * DAY_MS - 1)
    assert used.of_day(ALICE, 2 * DAY_MS) == Used(day=2)
    used.apply(SlimRecorded(Seq(2), 2 * DAY_MS, S1, ALICE, READ, b""))
    assert used.of_day(ALICE, 2 * DAY_MS).tokens == 7
    assert used.of_session(S1).tokens == 14


def test_a_spent_budget_is_known_by_period_and_limit() -> None:
    used = usage(BudgetExceeded(budget="calls", period="day", most=3, used=3))
    assert used.of_day(ALICE, DAY_MS).noted == ("calls 3",)
    assert used.of_session(S1).noted == ()


def test_sessions_are_bounded() -> None:
    used = usage(READ)
    for n in range(MOST_SESSIONS):
        used.apply(SlimRecorded(Seq(n + 2), DAY_MS, SessionId(f"t-{n}"), ALICE, READ, b""))
    assert len(used.table("sessions")) == MOST_SESSIONS
    assert used.of_session(S1) == Used()
