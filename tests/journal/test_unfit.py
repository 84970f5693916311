"""Nothing is written that could not be read back, whichever event it is and whoever filled it in."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.codec import EventNotSerializable, readable, tag_of
from orchestrator.core.ids import Seq
from orchestrator.ports.journal import AppendBatch, NewEvent
from tests.golden.samples import SAMPLES
from tests.in_memory.journal import MemoryJournal
from tests.journal.conftest import Open
from tests.journal.fixtures import SeededEntropy, SteppingClock

pytestmark = pytest.mark.anyio

FIELDS = [
    pytest.param(event, name, id=f"{tag_of(event)}.{name}") for event in SAMPLES for name in event.__struct_fields__
]
WRONG = [1.5]
"""What no field of any event holds."""

KINDS = [pytest.param(event, id=tag_of(event)) for event in SAMPLES]


def with_wrong(event: Event, name: str, value: object) -> Event:
    """The event, as an untyped caller can make it."""
    return type(event)(**{**{field: getattr(event, field) for field in event.__struct_fields__}, name: value})


def unit(event: Event) -> AppendBatch:
    return AppendBatch((NewEvent("file:a", event),), Origin())


@pytest.mark.parametrize(("event", "name"), FIELDS)
def test_a_value_of_another_type_is_found_in_every_field(event: Event, name: str) -> None:
    with pytest.raises(EventNotSerializable, match=tag_of(event)):
        readable(with_wrong(event, name, WRONG))


@pytest.mark.parametrize("value", [
    pytest.param(10**400, id="no 64 bits"),
    pytest.param(object(), id="no JSON"),
    pytest.param("\ud800", id="no text"),
])  # fmt: skip
def test_values_that_can_t_be_written_are_reported_in_the_same_way(value: object) -> None:
    with pytest.raises(EventNotSerializable, match="nothing was written"):
        readable(with_wrong(SAMPLES[0], "name", value))


def test_a_list_that_holds_itself_is_reported_in_the_same_way() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(EventNotSerializable):
        readable(with_wrong(SAMPLES[0], "name", endless))


@pytest.mark.parametrize("event", KINDS)
async def test_the_journal_refuses_it_and_goes_on(opened: Open, event: Event) -> None:
    journal = await opened()
    wrong = with_wrong(event, event.__struct_fields__[0], WRONG)
    with pytest.raises(EventNotSerializable):
        await journal.append(AppendBatch((NewEvent("file:a", SAMPLES[0]), NewEvent("file:a", wrong)), Origin()))
    assert journal.head == 0
    (kept,) = await journal.append(unit(event))
    assert kept.seq == Seq(1)
    await journal.close()
    again = await opened()
    assert [recorded.event async for recorded in again.events()] == [event]


async def test_the_twin_in_memory_does_so_too() -> None:
    journal = MemoryJournal(clock=SteppingClock(), entropy=SeededEntropy())
    with pytest.raises(EventNotSerializable):
        await journal.append(unit(with_wrong(SAMPLES[0], "name", 5)))
    assert journal.head == 0
    assert msgspec.json.decode(readable(SAMPLES[0]))["event"] == tag_of(SAMPLES[0])
