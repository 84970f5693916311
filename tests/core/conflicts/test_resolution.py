"""Who may resolve which conflict, and which choices still mean what they meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.change import Provenance
from orchestrator.core.conflicts.resolution import (
    ConflictMoved,
    accepted_review,
    authorize_resolution,
    check_still_applies,
    sides_at,
)
from orchestrator.core.conflicts.sides import Sides
from orchestrator.core.content import Region, Span
from orchestrator.core.errors import CallerError, Denied, NotPermitted, ParameterInvalid, VersionUnknown
from orchestrator.core.events.conflicts import ConflictFound, ConflictRebased, ConflictSides
from orchestrator.core.ids import AgentName, Digest, Seq, SessionId, WorkspacePath
from orchestrator.core.policy.rules import Allow, NeedApproval
from orchestrator.core.projections.pending import Conflict, Pending, Review
from orchestrator.core.text.encoding import Document, new_document
from tests.core.projections.histories import record
from tests.regions import region

PATH, OTHER = WorkspacePath("a.txt"), WorkspacePath("b.txt")
A, B, C, D = map(Digest, "abcd")
FIRST, SECOND = (region(1, 1, 1, 1, 1, 1),), (region(2, 1, 2, 1, 2, 1),)


def sides_of(
    current: Digest | None = B, version: int | None = 5, *, regions: tuple[Region, ...] = FIRST
) -> ConflictSides:
    seq = Seq(version) if version is not None else None
    return ConflictSides(base=A, current=current, proposed=C, base_version=Seq(1), current_version=seq, regions=regions)


EDIT = Provenance(operation="edit_file")


def conflict_of(
    sides: ConflictSides | None = None, *, fits: bool = False, reviews: tuple[Review, ...] = ()
) -> Conflict:
    found = ConflictFound(provenance=EDIT, path=PATH, sides=sides or sides_of(), names=(OTHER,))
    return Conflict(Seq(9), 0, AgentName("bob"), SessionId("s"), found, fits=fits, reviews=reviews)


ALLOW, ASK = Allow("r"), NeedApproval("r", "look first")


@pytest.mark.parametrize(
    ("agent", "choice", "here", "there", "refusal"),
    [
        pytest.param("rev", "proposed", (ALLOW, True), (ALLOW, True), None, id="allowed"),
        pytest.param("rev", "current", (ALLOW, True), (ALLOW, True), None, id="allowed to keep"),
        pytest.param("rev", "proposed", (ALLOW, False), (ALLOW, True), Denied, id="can't read it"),
        pytest.param("rev", "proposed", (ALLOW, True), (ALLOW, False), Denied, id="can't read another name of it"),
        pytest.param("rev", "proposed", (ASK, True), (ALLOW, True), None, id="the change waits for a person"),
        pytest.param("rev", "current", (ASK, True), (ALLOW, True), NotPermitted, id="nothing could wait"),
        pytest.param("rev", "proposed", (ALLOW, True), (ASK, True), NotPermitted, id="asked of another name"),
        pytest.param("bob", "proposed", (ALLOW, True), (ALLOW, True), NotPermitted, id="its own side"),
        pytest.param("bob", "content", (ALLOW, True), (ALLOW, True), NotPermitted, id="its own content"),
        pytest.param("bob", "current", (ALLOW, True), (ALLOW, True), None, id="withdraws"),
    ],
)
def test_authorize_resolution(
    agent: str,
    choice: str,
    here: tuple[Allow | NeedApproval, bool],
    there: tuple[Allow | NeedApproval, bool],
    refusal: type[CallerError] | None,
) -> None:
    access = {PATH: here, OTHER: there}
    if refusal is None:
        authorize_resolution(conflict_of(), choice, AgentName(agent), access)
    else:
        with pytest.raises(refusal):
            authorize_resolution(conflict_of(), choice, AgentName(agent), access)


def text_of(letters: str) -> Document:
    return new_document("".join(f"{letter}\n" for letter in letters))


def texts(base: str, current: str, proposed: str, *, at: int) -> Sides:
    """Texts of a letter a line, in conflict at one of them."""
    return Sides(text_of(base), text_of(current), text_of(proposed), (region(at, 1, at, 1, at, 1),))


OLD = texts("xaxx", "xbxx", "xcxx", at=1)
ELSEWHERE = texts("xaxx", "xbxy", "xcxx", at=1)
CHANGED = texts("xaxx", "xdxx", "xcxx", at=1)
GROWN = Sides(text_of("xaxx"), text_of("nxbxx"), text_of("xcxx"), (region(1, 1, 2, 1, 1, 1),))


@pytest.mark.parametrize(
    ("choice", "version", "then", "now", "old_new", "refusal"),
    [
        pytest.param("current", None, sides_of(), sides_of(D, 7), (OLD, CHANGED), None, id="current loses nothing"),
        pytest.param("current", 5, sides_of(), sides_of(D, 7), (OLD, CHANGED), ConflictMoved, id="current, of others"),
        pytest.param("proposed", None, sides_of(), sides_of(), (OLD, OLD), None, id="nothing moved"),
        pytest.param("proposed", None, sides_of(), sides_of(D, 7), (OLD, ELSEWHERE), None, id="moved elsewhere"),
        pytest.param("proposed", None, sides_of(), sides_of(D, 7), (OLD, GROWN), None, id="moved down"),
        pytest.param("proposed", None, sides_of(), sides_of(D, 7), (OLD, CHANGED), ConflictMoved, id="other lines"),
        pytest.param("proposed", 5, sides_of(), sides_of(D, 7), (OLD, CHANGED), ConflictMoved, id="looked at others"),
        pytest.param("proposed", 5, sides_of(), sides_of(D, 7), (OLD, GROWN), None, id="looked at the same"),
        pytest.param("proposed", None, sides_of(), sides_of(None, None), (OLD, None), ConflictMoved, id="deleted"),
        pytest.param(
            "proposed", None, sides_of(), sides_of(regions=SECOND), (OLD, OLD), ConflictMoved, id="other regions"
        ),
        pytest.param("regions", None, sides_of(), sides_of(), (OLD, OLD), ConflictMoved, id="regions by number"),
        pytest.param("regions", 5, sides_of(), sides_of(), (OLD, OLD), None, id="regions, looked at"),
        pytest.param("regions", 5, sides_of(), sides_of(D, 7), (OLD, None), ConflictMoved, id="no text by now"),
    ],
)
def test_check_still_applies(
    choice: str,
    version: int | None,
    then: ConflictSides,
    now: ConflictSides,
    old_new: tuple[Sides | None, Sides | None],
    refusal: type[CallerError] | None,
) -> None:
    on = Seq(version) if version is not None else None
    if refusal is None:
        check_still_applies(conflict_of(now), choice, on, then, old_new, binary=False)
    else:
        with pytest.raises(refusal):
            check_still_applies(conflict_of(now), choice, on, then, old_new, binary=False)


def test_a_binary_file_is_replaced_only_by_who_names_its_version() -> None:
    check_still_applies(conflict_of(), "proposed", Seq(5), sides_of(), (None, None), binary=True)
    with pytest.raises(ConflictMoved):
        check_still_applies(conflict_of(), "proposed", None, sides_of(), (None, None), binary=True)


def test_what_conflicts_with_nothing_any_more_needs_no_version() -> None:
    now = conflict_of(sides_of(D, 7, regions=()), fits=True)
    check_still_applies(now, "proposed", None, sides_of(), (OLD, CHANGED), binary=False)


def review(seq: int, state: str = "answered") -> Review:
    return Review(Seq(seq), "rev", "r", 0, state=state)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reviews", "named", "outcome"),
    [
        pytest.param((), "@11", None, id="nobody was asked"),
        pytest.param((review(11),), None, ParameterInvalid, id="not named"),
        pytest.param((review(11),), "@12", VersionUnknown, id="another number"),
        pytest.param((review(11, "failed"), review(12)), "@11", ConflictMoved, id="a newer one has come"),
        pytest.param((review(11, "requested"),), "@11", None, id="no answer yet"),
        pytest.param((review(11, "failed"), review(12)), "@12", 12, id="the newest"),
    ],
)
def test_accepted_review(
    reviews: tuple[Review, ...], named: str | None, outcome: int | type[CallerError] | None
) -> None:
    if isinstance(outcome, type):
        with pytest.raises(outcome):
            accepted_review(conflict_of(reviews=reviews), named)
        return
    accepted = accepted_review(conflict_of(reviews=reviews), named)
    assert (accepted.seq if accepted else None) == outcome


digests = st.sampled_from("abc").map(Digest)
versions = st.none() | st.integers(1, 9).map(Seq)
spans = st.builds(Span, st.integers(0, 9), st.integers(0, 9))
any_sides = st.builds(
    ConflictSides,
    base=digests,
    current=digests,
    proposed=digests,
    base_version=versions,
    current_version=versions,
    regions=st.lists(st.builds(lambda one: region(*one), st.tuples(*[st.integers(0, 9)] * 6)), max_size=2).map(tuple),
)


@given(any_sides, st.lists(any_sides, max_size=4))
def test_a_conflict_has_the_sides_of_its_last_move(found: ConflictSides, later: list[ConflictSides]) -> None:
    pending = Pending()
    rebases = [ConflictRebased(conflict=Seq(10), sides=sides) for sides in later]
    for seq, event in enumerate([ConflictFound(provenance=EDIT, path=PATH, sides=found), *rebases], 10):
        pending.apply(record(seq, event, None, None))
    conflict = pending.conflict(10)
    assert conflict is not None
    assert conflict.found.sides == [found, *later][-1]


@given(st.lists(any_sides, min_size=1, max_size=5))
def test_a_version_names_the_newest_state_that_had_it(states: list[ConflictSides]) -> None:
    for state in states:
        named = sides_at(states, state.current_version or Seq(0))
        assert named == [other for other in states if other.current_version == state.current_version][-1]
    assert sides_at(states, Seq(10)) is None
