"""What the journal keeps of a call: on the unit's first event, covered by the chain, and silent when redacted."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.events import chain
from orchestrator.core.events.base import CallDetails, Origin
from orchestrator.journal.database_file import FILE_NAME, sql
from orchestrator.journal.event_rows import ChainWalk
from tests.in_memory.journal import MemoryJournal
from tests.journal.conftest import Open
from tests.journal.fixtures import SeededEntropy, SteppingClock, by, looked, unit

pytestmark = pytest.mark.anyio

CALL = CallDetails(operation="read_file", arguments={"path": "a", "start": 3}, started_us=1_700_000_000_000_000)


def calling(call: CallDetails = CALL) -> Origin:
    return msgspec.structs.replace(by(), call=call)


async def filled(opened: Open) -> None:
    """@1 without a call, @2 and @3 of one call, @4 without."""
    journal = await opened()
    await journal.append(unit(looked("1")))
    await journal.append(unit(looked("2"), looked("3"), origin=calling()))
    await journal.append(unit(looked("4")))
    await journal.close()


def rows(state_dir: Path) -> list[Any]:
    connection = sqlite3.connect(state_dir / FILE_NAME)
    found = connection.execute(sql("all_events")).fetchall()
    connection.close()
    return found


def alter(state_dir: Path, statement: str) -> None:
    connection = sqlite3.connect(state_dir / FILE_NAME)
    connection.execute(statement)
    connection.commit()
    connection.close()


async def test_the_first_event_of_a_unit_carries_the_call_and_the_time_it_took(opened: Open) -> None:
    clock = SteppingClock()
    for journal in (await opened(), MemoryJournal(clock=clock, entropy=SeededEntropy())):
        first, second = await journal.append(unit(looked("a"), looked("b"), origin=calling()))
        assert first.origin.call == CallDetails(operation="read_file", arguments=CALL.arguments, took_us=1000)
        assert second.origin == by()
        assert [await journal.event(1), await journal.event(2)] == [first, second]
        assert (await journal.verify()).problems == ()


async def test_events_without_a_call_keep_the_first_header(opened: Open, state_dir: Path) -> None:
    await filled(opened)
    stored = rows(state_dir)
    assert [row[18] is not None for row in stored] == [False, True, False, False]
    assert [row[19] is not None for row in stored] == [False, True, False, False]
    for row in stored:
        old = chain.link(row[16], chain.header(row[:13]), row[15])
        assert (old == row[17]) == (row[19] is None)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        pytest.param(
            """UPDATE events SET details = CAST(replace(details, '"a"', '"b"') AS BLOB) WHERE seq = 2""",
            "details of the call of event @2 were altered",
            id="altered",
        ),
        pytest.param(
            "UPDATE events SET details = x'00' WHERE seq = 2", "details of the call of event @2 were altered", id="junk"
        ),
        pytest.param(
            "UPDATE events SET details = NULL WHERE seq = 2", "details of the call of event @2 were altered", id="gone"
        ),
        pytest.param(
            "UPDATE events SET details = NULL, details_hash = NULL WHERE seq = 2",
            "envelope of event @2 was altered",
            id="gone with their hash",
        ),
        pytest.param(
            "UPDATE events SET details = CAST('{}' AS BLOB) WHERE seq = 3",
            "details of the call of event @3 were altered",
            id="made up",
        ),
        pytest.param(
            "UPDATE events SET details = (SELECT details FROM events WHERE seq = 2), "
            "details_hash = (SELECT details_hash FROM events WHERE seq = 2) WHERE seq = 3",
            "details of the call of event @3 were altered",
            id="another's",
        ),
        pytest.param(
            "UPDATE events SET details_hash = zeroblob(32) WHERE seq = 2",
            "details of the call of event @2 were altered",
            id="hash",
        ),
    ],
)
async def test_altered_details_are_found(opened: Open, state_dir: Path, statement: str, problem: str) -> None:
    await filled(opened)
    alter(state_dir, statement)
    with pytest.raises(JournalCorrupt, match=problem):
        await opened()
    journal = await opened(readonly=True)
    assert any(problem in found for found in (await journal.verify()).problems)


async def test_redacted_details_are_no_problem(opened: Open, state_dir: Path) -> None:
    await filled(opened)
    alter(state_dir, "UPDATE events SET details = NULL, salt = zeroblob(24) WHERE seq = 2")
    assert list(map(ChainWalk().take, rows(state_dir))) == [None] * 4
