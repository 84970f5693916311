"""How a conflict stood at each version: the last of its states is the one that the projection has."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.conflicts.conflict_versions import standing_at, standings
from orchestrator.core.events.conflicts import ConflictFound, ConflictRegion
from orchestrator.core.events.reviews import ConflictRebased
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.projections.pending import Pending
from tests.core.projections.histories import record

digests = st.sampled_from("abc").map(Digest)
versions = st.none() | st.integers(1, 9).map(Seq)
regions = st.lists(st.builds(ConflictRegion, *[st.integers(0, 9)] * 6), max_size=2).map(tuple)
sides = {
    "base": digests,
    "base_version": versions,
    "current": digests,
    "current_version": versions,
    "proposed": digests,
    "regions": regions,
}
founds = st.builds(ConflictFound, path=st.just(WorkspacePath("a.txt")), **sides)
rebases = st.lists(st.builds(ConflictRebased, conflict=st.just(Seq(10)), fits=st.booleans(), **sides), max_size=4)


@given(founds, rebases)
def test_the_last_state_is_that_of_the_projection(found: ConflictFound, events: list[ConflictRebased]) -> None:
    pending = Pending()
    for seq, event in enumerate([found, *events], 10):
        pending.apply(record(seq, event, None, None))
    conflict = pending.conflict(10)
    assert conflict is not None
    assert standings(found, events)[-1] == conflict.found


@given(founds, rebases)
def test_a_version_names_a_state_that_had_it(found: ConflictFound, events: list[ConflictRebased]) -> None:
    states = standings(found, events)
    assert len(states) == 1 + len(events)
    for state in states:
        named = standing_at(states, state.current_version or Seq(0))
        assert named in states
        assert named is not None
        assert named.current_version == state.current_version
    assert standing_at(states, Seq(10)) is None
