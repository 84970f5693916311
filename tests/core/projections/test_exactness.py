"""What makes a projection exact: the rules that need no store. Those that do are in tests/journal."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from orchestrator.core.content import LineRange
from orchestrator.core.events.base import Event, Recorded
from orchestrator.core.events.codec import EVENTS, tag_of
from orchestrator.core.events.codec import decode as decode_event
from orchestrator.core.events.codec import encode as encode_event
from orchestrator.core.events.files import ExternalFileChanged, FileRead
from orchestrator.core.events.sessions import LeaseGranted, SessionOpened
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath
from orchestrator.core.projections.state import Head, State, decode, encode, first_difference, freeze
from tests.core.projections.histories import events, histories, record
from tests.golden.samples import GROWN, SAMPLES

SESSION = SessionId("s-1f")
AGENT = AgentName("claude")
GOLDEN = Path(__file__).parents[2] / "golden" / "snapshot.txt"


def folded(history: list[Recorded], state: State | None = None) -> State:
    state = state or State()
    for recorded in history:
        state.apply(recorded)
    return state


def stored(recorded: Recorded) -> Recorded:
    event = decode_event(encode_event(recorded.event), tag=tag_of(recorded.event), seq=recorded.seq)
    return msgspec.structs.replace(recorded, event=event)


@pytest.mark.soak
@pytest.mark.parametrize("kind", EVENTS, ids=tag_of)
def test_every_kind_of_event_is_in_the_histories(kind: type[Event]) -> None:
    any_one = settings(phases=[Phase.generate], max_examples=5_000, database=None)
    assert isinstance(find(events, lambda event: isinstance(event, kind), settings=any_one), kind)


# --- rule 4: a rebuild is equal, from the first event or from any snapshot ---------------


@settings(max_examples=300, deadline=None)
@given(history=histories, data=st.data())
def test_a_rebuild_from_any_snapshot_and_its_tail_is_equal(history: list[Recorded], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(history)), label="snapshot after")
    live = folded(history)
    from_snapshot = folded(
        [stored(recorded) for recorded in history[at:]], decode(encode(freeze(folded(history[:at]))))
    )
    assert first_difference(live.plain(), from_snapshot.plain()) is None
    assert encode(freeze(live)) == encode(freeze(from_snapshot)), "the order of entries differs"
    assert live.pending.open_intents() == from_snapshot.pending.open_intents()
    assert (live.head, live.tip) == (from_snapshot.head, from_snapshot.tip)


@settings(max_examples=100, deadline=None)
@given(history=histories)
def test_a_frozen_state_is_not_moved_by_what_comes_after(history: list[Recorded]) -> None:
    half = len(history) // 2
    state = folded(history[:half])
    frozen = freeze(state)
    then = encode(frozen)
    folded(history[half:], state)
    assert encode(frozen) == then


def test_a_frozen_state_shares_nothing_that_moves() -> None:
    """More lines of the same version, and a newer version: both alter what the session saw."""
    opened = next(event for event in SAMPLES if isinstance(event, SessionOpened))
    seen = next(event.seen for event in SAMPLES if isinstance(event, FileRead))
    more = msgspec.structs.replace(seen, cut=False, ranges=(LineRange(50, 60),))
    newer = msgspec.structs.replace(more, version=Seq(9))
    shown = [FileRead(operation="read_file", seen=item, bytes=1, tokens=1) for item in (seen, more, newer)]
    history = [record(at, event, SESSION, None) for at, event in enumerate((opened, *shown), 1)]
    state = folded(history[:2])
    frozen = freeze(state)
    then = encode(frozen)
    folded(history[2:], state)
    assert encode(freeze(state)) != then
    assert encode(frozen) == then


# --- rule 5: every prefix is what it was then ----------------------------------------------


@settings(max_examples=60, deadline=None)
@given(history=histories)
def test_the_digest_at_every_event_is_found_again(history: list[Recorded]) -> None:
    live, digests = State(), []
    for recorded in history:
        live.apply(recorded)
        digests.append(hashlib.sha256(encode(freeze(live))).digest())
    replayed = State()
    for recorded, digest in zip(history, digests, strict=True):
        replayed.apply(stored(recorded))
        assert hashlib.sha256(encode(freeze(replayed))).digest() == digest, recorded.seq


def test_another_past_gives_another_digest() -> None:
    """Equal entries, but the event that they reflect is another one."""
    one, other = record(1, SAMPLES[7], None, None), record(1, SAMPLES[8], None, None)
    other = msgspec.structs.replace(other, hash=bytes(32))
    assert folded([one]).plain() == folded([other]).plain()
    assert encode(freeze(folded([one]))) != encode(freeze(folded([other])))


# --- rule 2: the fold is pure --------------------------------------------------------------

CHILD = """
import hashlib, sys
from orchestrator.core.projections.state import encode, freeze
from tests.core.projections.test_exactness import folded, long_history
print(hashlib.sha256(encode(freeze(folded(long_history())))).hexdigest())
"""


def long_history() -> list[Recorded]:
    """Every sample several times; at the end a session has read a file that was changed then."""
    opening = [event for event in SAMPLES if tag_of(event) in ("session_opened", "agent_added")]
    kinds = [*opening, *(*SAMPLES, *GROWN) * 3]
    granted = next(event for event in SAMPLES if isinstance(event, LeaseGranted))
    reported = [(event, None) for event in kinds] + [(granted, AGENT)] * 2
    opened = next(event for event in SAMPLES if isinstance(event, SessionOpened))
    read = next(event for event in SAMPLES if isinstance(event, FileRead))
    changed = next(event for event in SAMPLES if isinstance(event, ExternalFileChanged))
    path, version = WorkspacePath("read.txt"), Seq(len(reported) + 2)
    changed = msgspec.structs.replace(changed, path=path)
    seen = msgspec.structs.replace(read.seen, path=path, version=version, cut=False)
    reported += [(event, None) for event in (opened, changed, msgspec.structs.replace(read, seen=seen), changed)]
    return [record(seq, event, SESSION, agent) for seq, (event, agent) in enumerate(reported, 1)]


def test_hash_seeds_of_the_interpreter_play_no_part() -> None:
    """A set or a dict that is walked in hash order would give another state in another process."""
    said = {
        subprocess.run(
            [sys.executable, "-c", CHILD],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(said) == 1
    assert len(said.pop().strip()) == 64


@settings(max_examples=100, deadline=None)
@given(history=histories)
def test_an_event_that_no_projection_names_changes_none(history: list[Recorded]) -> None:
    """`folds` leaves nothing out: shown every event, each projection is the same."""
    named, all_shown = folded(history), State()
    for recorded in history:
        for projection in all_shown.projections.values():
            projection.apply(recorded)
    assert named.plain() == all_shown.plain()


# --- rules 3 and 9: no gaps, and a version on what is kept -----------------------------------


@pytest.mark.parametrize("seq", [0, 1, 3], ids=["before", "again", "a gap"])
def test_a_position_out_of_order_is_refused(seq: int) -> None:
    state = folded([record(1, SAMPLES[7], None, None)])
    before = encode(freeze(state))
    with pytest.raises(ValueError, match=f"@{seq} after @1"):
        state.apply(record(seq, SAMPLES[7], None, None))
    assert encode(freeze(state)) == before


def test_a_state_in_another_form_has_another_version() -> None:
    """The bytes of a history of all samples. A new sample moves the numbers; if a fold did, its version is raised."""
    data = encode(freeze(folded(long_history())))
    head = msgspec.json.decode(GOLDEN.read_bytes().split(b"\n", 1)[0], type=Head)
    store = f"store this as {GOLDEN.name} in tests/golden, without a line end at its end:\n{data.decode()}"
    if head.version != State().version:
        pytest.fail(store)
    if data != GOLDEN.read_bytes():
        pytest.fail(
            f"unless it is for a new sample alone, raise the version of the projection that changed; then {store}"
        )


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{}", id="no head"),
        pytest.param(b'{"seq":1,"hash":"00","version":"x"}\nfuture {}', id="an unknown projection"),
        pytest.param(b'{"seq":1,"hash":"00","version":"x"}\nregistry.files [1]', id="another form"),
        pytest.param(b'{"seq":1,"hash":"00","version":"x"}\nregistry.files {"a.txt":', id="cut"),
    ],
)
def test_what_is_no_snapshot_is_recognised(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(data)
