"""Who holds which path, by the events alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.events.base import Event, Recorded
from orchestrator.core.events.sessions import LeaseExpired, LeaseGranted, LeaseReleased, LeaseRenewed
from orchestrator.core.globs import Globs
from orchestrator.core.ids import AgentName, Seq, WorkspacePath
from orchestrator.core.leases import Leases
from tests.core.projections.histories import AGENTS, PATHS, histories, record

ALICE, BOB = AGENTS
SRC = WorkspacePath("src/c.py")


def granted(*globs: str, mode: str = "exclusive", until: int = 10_000) -> LeaseGranted:
    return LeaseGranted(globs=globs, mode=mode, expires_at=until)  # type: ignore[arg-type]


def folded(*events: tuple[AgentName | None, Event]) -> Leases:
    leases = Leases()
    for at, (agent, event) in enumerate(events, 1):
        leases.apply(record(at, event, None, agent))
    return leases


@pytest.mark.parametrize(
    ("events", "holder"),
    [
        pytest.param([(ALICE, granted("src"))], (ALICE, 1), id="a directory holds for what lies in it"),
        pytest.param([(ALICE, granted("*.py"))], (ALICE, 1), id="at any depth"),
        pytest.param([(ALICE, granted("/*.py"))], None, id="in the root only"),
        pytest.param([(ALICE, granted("src", "!*.py"))], None, id="excepted"),
        pytest.param([(ALICE, granted("src", mode="shared"))], None, id="shared"),
        pytest.param([(None, granted("src"))], None, id="by nobody"),
        pytest.param([(ALICE, granted("src")), (ALICE, granted("*.py"))], (ALICE, 1), id="twice by one: the oldest"),
        pytest.param([(ALICE, granted("src")), (BOB, granted("*.py"))], None, id="by two"),
        pytest.param([(ALICE, granted("src")), (ALICE, LeaseReleased(lease=Seq(1), by="x"))], None, id="released"),
        pytest.param([(ALICE, granted("src")), (ALICE, LeaseExpired(lease=Seq(1)))], None, id="expired"),
        pytest.param([(ALICE, granted("src")), (BOB, LeaseExpired(lease=Seq(7)))], (ALICE, 1), id="another lapsed"),
    ],
)
def test_holder_of(events: list[tuple[AgentName | None, Event]], holder: tuple[AgentName, Seq] | None) -> None:
    assert folded(*events).holder_of(SRC) == holder


def test_a_lease_ends_by_the_clock_that_is_given() -> None:
    leases = folded((ALICE, granted("src", until=5_000)))
    assert leases.holder_of(SRC, at_ms=4_999) == (ALICE, 1)
    assert leases.holder_of(SRC, at_ms=5_000) is None
    assert leases.live(5_000) == ()
    renewed = folded((ALICE, granted("src", until=5_000)), (ALICE, LeaseRenewed(lease=Seq(1), expires_at=9_000)))
    assert renewed.holder_of(SRC, at_ms=5_000) == (ALICE, 1)


@given(history=histories, path=st.sampled_from(PATHS))
def test_covering_is_what_the_globs_say(history: list[Recorded], path: WorkspacePath) -> None:
    leases = Leases()
    for recorded in history:
        leases.apply(recorded)
        leases.covering(path)  # asked at any time, it changes nothing of what is answered later
    named = [lease.seq for lease in leases.live() if Globs(lease.globs).match(path)]
    assert [lease.seq for lease in leases.covering(path)] == named
