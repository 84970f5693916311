"""Which route a conflict takes, and whom it asks next."""

from __future__ import annotations

import pytest

from orchestrator.core.conflicts.resolution import next_reviewer, route_of
from orchestrator.core.ids import AgentName, Seq, WorkspacePath
from orchestrator.core.policy.rules import PERSON, Route
from orchestrator.core.projections.pending import Review, ReviewState
from tests.regions import region


def taken(*routes: Route) -> Route | None:
    """Of a conflict of alice's over twelve lines."""
    path, regions = WorkspacePath("src/a.py"), (region(0, 1, 0, 12, 0, 2),)
    return route_of(routes, path, regions, agent=AgentName("alice"), agent_class="cloud", same_symbol=False)


@pytest.mark.parametrize(
    ("route", "matches"),
    [
        pytest.param(Route(name="r", reviewers=("x",)), True, id="everything"),
        pytest.param(Route(name="r", reviewers=("x",), paths=("*.py",)), True, id="path"),
        pytest.param(Route(name="r", reviewers=("x",), paths=("*.py", "!src/**")), False, id="path excepted"),
        pytest.param(Route(name="r", reviewers=("x",), max_lines=12), True, id="size, at the limit"),
        pytest.param(Route(name="r", reviewers=("x",), max_lines=11), False, id="too large"),
        pytest.param(Route(name="r", reviewers=("x",), same_symbol=True), False, id="flagged only"),
        pytest.param(Route(name="r", reviewers=("x",), same_symbol=False), True, id="not flagged"),
        pytest.param(Route(name="r", reviewers=("x",), agents=("alice",)), True, id="agent"),
        pytest.param(Route(name="r", reviewers=("x",), agents=("class:local",)), False, id="another class"),
        pytest.param(Route(name="r", reviewers=("x",), agents=("class:cloud",)), True, id="class"),
        pytest.param(Route(name="r", reviewers=("x",), agents=("bob", "carol")), False, id="another agent"),
    ],
)
def test_route_of(route: Route, matches: bool) -> None:
    assert (taken(route) is route) == matches


def test_the_first_route_that_matches_decides() -> None:
    narrow, wide = Route(name="n", reviewers=("x",), paths=("src/",)), Route(name="w", reviewers=("y",))
    assert taken(narrow, wide) is narrow
    assert taken(wide, narrow) is wide


def test_a_region_is_as_large_as_its_longest_side() -> None:
    routes = [Route(name=f"to {n}", max_lines=n, reviewers=("one",)) for n in (8, 9)]
    regions = region(0, 1, 0, 5, 0, 2), region(9, 4, 9, 0, 9, 1)
    agent = AgentName("alice")
    found = route_of(routes, WorkspacePath("a"), regions, agent=agent, agent_class="cloud", same_symbol=False)
    assert found is routes[1]


CHAIN = Route(name="code", reviewers=("one", "two", PERSON, "never"))


def review(reviewer: str, state: ReviewState, code: str = "", route: str = "code") -> Review:
    return Review(Seq(1), reviewer, route, 0, state=state, code=code)


@pytest.mark.parametrize(
    ("reviews", "asked"),
    [
        pytest.param((), "one", id="nobody yet"),
        pytest.param((review("one", "requested"),), None, id="it is being asked"),
        pytest.param((review("one", "answered"),), None, id="it has answered"),
        pytest.param((review("one", "failed", "reviewer_timeout"),), "two", id="too late"),
        pytest.param((review("one", "rejected"),), "two", id="rejects"),
        pytest.param((review("one", "failed", "daemon_restarted"),), "one", id="restart, once more"),
        pytest.param((review("one", "failed", "daemon_restarted"),) * 2, "two", id="restarted twice"),
        pytest.param(
            (review("one", "failed", "reviewer_timeout"), review("two", "failed", "review_reply_invalid")),
            None,
            id="then a person",
        ),
        pytest.param((review("one", "rejected", route="old"),), "one", id="under another route"),
    ],
)
def test_next_reviewer(reviews: tuple[Review, ...], asked: str | None) -> None:
    assert next_reviewer(CHAIN, reviews) == asked
