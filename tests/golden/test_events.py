"""Every event that was ever released can still be read, and its stored bytes never change."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from orchestrator.core.events.base import CallDetails, Event, Origin
from orchestrator.core.events.codec import EVENTS, decode, encode, tag_of
from orchestrator.core.ids import AgentName, Seq, SessionId
from orchestrator.journal.append_validation import AppendValidator
from orchestrator.ports.journal import AppendBatch, NewEvent
from tests.golden.samples import ASKED, GROWN, HINTED, MOVED, SAMPLES, TELLING

HERE = Path(__file__).parent
EVENT_FILES = HERE / "events"
CHAIN_FILE = HERE / "chain.v1.txt"
CALLS_FILE = HERE / "calls.v2.txt"

ORIGIN = Origin(
    session=SessionId("s-1f"),
    agent=AgentName("claude"),
    owner="ada",
    request_id="r-1",
    request_digest="00ff",
    cause=Seq(1),
    trace_id="4bf92f35",
    client_call_id="toolu_01",
)


class FixedClock:
    def now_ms(self) -> int:
        return 1_700_000_000_000

    def ticks_us(self) -> int:
        return 5_000_000


class CountingEntropy:
    """Salts 1, 2, 3 …"""

    def __init__(self) -> None:
        self.count = 0

    def bytes(self, count: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(count, "big")


def test_every_event_has_a_sample() -> None:
    missing = {tag_of(event) for event in EVENTS} - {tag_of(event) for event in SAMPLES}
    assert not missing, f"add one of each to tests/golden/samples.py, with a value in every field: {sorted(missing)}"


FILES = {
    **{f"{tag_of(event)}.v1.json": event for event in SAMPLES},
    **{f"{tag_of(event)}.v1.grown.json": event for event in GROWN},
    **{f"{tag_of(event)}.v1.moved.json": event for event in MOVED},
    **{f"{tag_of(event)}.v1.hinted.json": event for event in HINTED},
    **{f"{tag_of(event)}.v1.asked.json": event for event in ASKED},
    **{f"{tag_of(event)}.v1.told.json": event for event in TELLING},
}


def test_every_stored_sample_is_still_looked_at() -> None:
    assert {path.name for path in EVENT_FILES.iterdir()} == FILES.keys()


@pytest.mark.parametrize(("name", "event"), [pytest.param(name, event, id=name) for name, event in FILES.items()])
def test_a_sample_reads_and_writes_as_it_was_released(name: str, event: Event) -> None:
    path = EVENT_FILES / name
    if not path.exists():
        pytest.fail(f"store this line as {path.relative_to(HERE.parent.parent)}:\n{encode(event).decode()}")
    stored = path.read_bytes().removesuffix(b"\n")
    assert decode(stored, tag=tag_of(event), seq=1) == event
    assert encode(event) == stored


@pytest.mark.parametrize("rule", ["clean", "same_change", "list_items", "additions", "disjoint_symbols"])
def test_a_merge_by_any_rule_that_ever_was_is_still_read(rule: str) -> None:
    stored = (EVENT_FILES / "change_applied.v1.json").read_bytes().removesuffix(b"\n")
    by_rule = stored.replace(b'"imports"', b'"%b"' % rule.encode())
    assert encode(decode(by_rule, tag="change_applied", seq=1)) == by_rule != stored


@pytest.mark.parametrize("event", [pytest.param(event, id=tag_of(event)) for event in SAMPLES])
def test_a_sample_fills_every_field_that_is_stored(event: Event) -> None:
    """A field left at its default isn't in the bytes, so the sample would not notice its renaming."""
    stored = "".join(encode(sample).decode() for sample in FILES.values() if tag_of(sample) == tag_of(event))
    assert [name for name in event.__struct_fields__ if f'"{name}":' not in stored] == []


def test_the_chain_over_all_samples_is_as_it_was_released() -> None:
    """Format of header, salt and link. A new event goes to the end of SAMPLES, and its line to the end of the file."""
    ledger = AppendValidator(
        clock=FixedClock(), entropy=CountingEntropy(), version_of=lambda stream: 0, claim_of=lambda agent, request: None
    )
    recorded, _ = ledger.validate(AppendBatch(tuple(NewEvent("file:größe", event) for event in SAMPLES), ORIGIN))
    lines = [f"{tag_of(event.event)} {event.hash.hex()}" for event in recorded]
    stored = CHAIN_FILE.read_text(encoding="utf-8").splitlines() if CHAIN_FILE.exists() else []
    assert lines[: len(stored)] == stored, "a released event's place in the chain has changed"
    if lines != stored:
        pytest.fail("add these lines to tests/golden/chain.v1.txt:\n" + "\n".join(lines[len(stored) :]))


def test_the_chain_over_calls_is_as_it_was_released() -> None:
    """Header version 2, and the stored form of a call's details."""
    ledger = AppendValidator(
        clock=FixedClock(), entropy=CountingEntropy(), version_of=lambda stream: 0, claim_of=lambda agent, request: None
    )
    call = CallDetails(operation="read_file", arguments={"path": "größe", "start": 3}, started_us=4_000_000)
    lines = []
    for event in SAMPLES[:3]:
        recorded, rows = ledger.validate(AppendBatch((NewEvent("file:größe", event),) * 2, replace(ORIGIN, call=call)))
        lines += [
            f"{one.hash.hex()} {(row[18] or b'').decode()}".strip() for one, row in zip(recorded, rows, strict=True)
        ]
    stored = CALLS_FILE.read_text(encoding="utf-8").splitlines() if CALLS_FILE.exists() else []
    assert lines == stored, "store these lines in tests/golden/calls.v2.txt:\n" + "\n".join(lines)
