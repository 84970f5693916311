"""The folds: pure, the same after a round through the codec, and blind to what may be redacted."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings

from orchestrator.core.annotations import Mark, fields_with
from orchestrator.core.change import Fit, PathChange, Provenance
from orchestrator.core.content import FoundFile, LineRange, SeenLines, Signature, digest_of
from orchestrator.core.events import visibility
from orchestrator.core.events.base import Event, Recorded
from orchestrator.core.events.codec import decode, encode, tag_of
from orchestrator.core.events.files import ChangeApplied, FileRead, FilesFound
from orchestrator.core.events.sessions import SessionClosed, SessionOpened
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath
from orchestrator.core.projections.state import State, first_difference
from tests.core.projections.histories import histories, record

PATH = WorkspacePath("a.txt")
S1 = SessionId("s-1")
ALICE = AgentName("alice")


def folded(history: list[Recorded]) -> State:
    state = State()
    for recorded in history:
        state.apply(recorded)
    return state


def stored(recorded: Recorded) -> Recorded:
    """As it comes back from the journal."""
    event = decode(encode(recorded.event), tag=tag_of(recorded.event), seq=recorded.seq)
    return msgspec.structs.replace(recorded, event=event)


@settings(max_examples=200, deadline=None)
@given(history=histories)
def test_a_rebuild_from_stored_events_is_the_same(history: list[Recorded]) -> None:
    live = folded(history)
    rebuilt = folded([stored(recorded) for recorded in history])
    assert first_difference(live.plain(), rebuilt.plain()) is None


@settings(max_examples=60, deadline=None)
@given(history=histories)
def test_every_prefix_is_what_it_was_then(history: list[Recorded]) -> None:
    live = State()
    for count, recorded in enumerate(history, 1):
        live.apply(recorded)
        then = msgspec.json.encode(live.plain())
        assert then == msgspec.json.encode(folded(history[:count]).plain())


EDIT = Provenance(operation="edit_file")


def blanked(event: Event) -> Event:
    """What redaction leaves of an event."""
    rest = visibility.blanked(encode(event), fields_with(type(event), Mark.REDACTABLE))
    return decode(rest, tag=tag_of(event), seq=1)


@settings(max_examples=150, deadline=None)
@given(history=histories)
def test_no_fold_reads_what_may_be_redacted(history: list[Recorded]) -> None:
    redacted = [msgspec.structs.replace(recorded, event=blanked(recorded.event)) for recorded in history]
    assert first_difference(folded(history).plain(), folded(redacted).plain()) is None


def test_a_gap_stops_the_fold() -> None:
    state = State()
    state.apply(record(1, FilesFound(entries=()), None, None))
    with pytest.raises(ValueError, match="@3 after @1"):
        state.apply(record(3, FilesFound(entries=()), None, None))


def test_first_difference_names_the_place() -> None:
    left = {"registry": {"files": {"a": {"version": 3}}}}
    right = {"registry": {"files": {"a": {"version": 4}}}}
    assert first_difference(left, right) == "/registry/files/a/version: 3 and 4"
    assert first_difference(left, left) is None
    assert first_difference([1], [1, 2], "/x") == "/x: [1] and [1, 2]"
    assert first_difference({"a": 1}, {}) == "/a: 1 and None"


# --- the registry ------------------------------------------------------------------------

SIGNATURE = Signature(3, 1, 1, 7)
ONE, TWO = digest_of(b"one"), digest_of(b"two")


def test_a_digest_learned_later_keeps_the_version() -> None:
    found = FilesFound(entries=(FoundFile(PATH, SIGNATURE, 0o644),))
    learned = FilesFound(entries=(FoundFile(PATH, SIGNATURE, 0o644, ONE, True, 1),))
    entry = folded([record(1, found, None, None), record(2, learned, None, None)]).registry.get(PATH)
    assert entry is not None
    assert (entry.version, entry.digest, entry.kept) == (1, ONE, True)


def test_a_late_digest_of_an_old_version_does_not_come_over_a_newer_one() -> None:
    history = [
        record(1, FilesFound(entries=(FoundFile(PATH, SIGNATURE, 0o644),)), None, None),
        record(2, ChangeApplied(change=Seq(1), provenance=EDIT, paths=(PathChange(PATH, ONE, TWO),)), S1, ALICE),
    ]
    entry = folded(history).registry.get(PATH)
    assert entry is not None
    assert (entry.version, entry.digest) == (2, TWO)


# --- what a session has seen -----------------------------------------------------------------


def opened() -> Recorded:
    return record(1, SessionOpened(session=S1, agent=ALICE, agent_class="cloud", transport="rpc"), S1, ALICE)


def read(seq: int, version: int, ranges: list[tuple[int, int]], total: int, *, cut: bool = False) -> Recorded:
    lines = tuple(LineRange(a, b) for a, b in ranges)
    seen = SeenLines(path=PATH, version=Seq(version), ranges=lines, total_lines=total, cut=cut)
    return record(seq, FileRead(operation="read_file", seen=seen, bytes=0, tokens=0), S1, ALICE)


@pytest.mark.parametrize(
    ("reads", "whole"),
    [
        pytest.param([[(1, 10)]], 7, id="in one answer"),
        pytest.param([[(1, 4)], [(5, 10)]], 7, id="in two"),
        pytest.param([[(6, 10)], [(1, 7)]], 7, id="overlapping, in any order"),
        pytest.param([[(1, 4)], [(6, 10)]], None, id="but for one line"),
        pytest.param([[(2, 10)]], None, id="not from the top"),
    ],
)
def test_seen_whole_means_every_line(reads: list[list[tuple[int, int]]], whole: int | None) -> None:
    history = [opened(), *(read(at, 7, ranges, 10) for at, ranges in enumerate(reads, 2))]
    session = folded(history).sessions.get(S1)
    assert session is not None
    assert session.seen[PATH].newest == 7
    assert session.seen[PATH].newest_whole == whole


def test_a_shortened_line_is_not_seen_whole() -> None:
    session = folded([opened(), read(2, 7, [(1, 10)], 10, cut=True)]).sessions.get(S1)
    assert session is not None
    assert (session.seen[PATH].newest, session.seen[PATH].newest_whole) == (7, None)


def test_an_answer_that_shows_no_line_is_no_base() -> None:
    """Else a change that quotes an older version would be judged against one whose lines its author never saw."""
    session = folded([opened(), read(2, 7, [(1, 10)], 10), read(3, 8, [], 10)]).sessions.get(S1)
    assert session is not None
    assert session.seen[PATH].newest == 7


@pytest.mark.parametrize("on_seen_whole", [True, False])
def test_an_own_change_is_seen_whole_only_on_a_version_seen_whole(on_seen_whole: bool) -> None:
    event = ChangeApplied(
        change=Seq(2), provenance=EDIT, paths=(PathChange(PATH, ONE, TWO),), fit=Fit(on_seen_whole=on_seen_whole)
    )
    session = folded([opened(), record(2, event, S1, ALICE)]).sessions.get(S1)
    assert session is not None
    assert session.seen[PATH].newest == 2
    assert session.seen[PATH].newest_whole == (2 if on_seen_whole else None)


def test_a_closed_session_keeps_what_may_be_a_base() -> None:
    """It may be resumed. Of versions that are neither the newest nor seen whole nobody asks again."""
    reads = [read(2, 5, [(1, 10)], 10), read(3, 6, [(1, 4)], 10), read(4, 7, [(2, 3)], 10)]
    history = [opened(), *reads, record(5, SessionClosed(session=S1), S1, ALICE)]
    session = folded(history).sessions.get(S1)
    assert session is not None
    assert list(session.seen[PATH].versions) == [5, 7]
