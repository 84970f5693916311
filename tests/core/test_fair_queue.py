"""The order in which several owners are served."""

from __future__ import annotations

import pytest

from orchestrator.core.fair_queue import FairQueue


def anybody(owner: str) -> bool:
    return True


def filled(items: str) -> FairQueue[str]:
    """`a1 b1 a2`: an owner's letter, and the item's number."""
    queue: FairQueue[str] = FairQueue()
    for item in items.split():
        queue.put(item[0], item)
    return queue


def drained(queue: FairQueue[str]) -> str:
    taken = []
    while (following := queue.take(anybody)) is not None:
        assert following[0] == following[1][0]
        taken.append(following[1])
    return " ".join(taken)


@pytest.mark.parametrize(
    ("items", "served"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("a1 a2 a3", "a1 a2 a3", id="one owner: in the order of arrival"),
        pytest.param("a1 a2 a3 b1", "a1 b1 a2 a3", id="who came late waits for one item of the other"),
        pytest.param("a1 a2 b1 c1 b2 a3", "a1 b1 c1 a2 b2 a3", id="owners in turn"),
    ],
)
def test_owners_are_served_in_turn(items: str, served: str) -> None:
    assert drained(filled(items)) == served


def test_an_owner_that_may_not_is_passed_over_and_keeps_its_place() -> None:
    queue = filled("a1 b1 a2 b2")
    assert queue.take(lambda owner: owner == "b") == ("b", "b1")
    assert queue.take(lambda owner: False) is None
    assert drained(queue) == "a1 b2 a2"


def test_the_turn_goes_on_after_one_that_was_served() -> None:
    """Who was just served does not come first again by putting in more."""
    queue = filled("a1 b1 c1")
    queue.take(anybody)
    queue.put("a", "a2")
    assert drained(queue) == "b1 c1 a2"


def test_what_is_taken_back_is_not_served() -> None:
    queue = filled("a1 a2 b1")
    assert queue.remove("a", "a1")
    assert not queue.remove("a", "a1")
    assert not queue.remove("c", "c1")
    assert queue.remove("b", "b1")
    assert not queue.waits("b")
    assert queue
    assert drained(queue) == "a2"
    assert not queue
