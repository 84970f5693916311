"""A walk over archived events and the others, by one process and by several, and what it says of unreadable files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.core.errors import EventArchived
from orchestrator.core.events.base import Origin
from orchestrator.core.events.chain import REDACTED_SALT_BYTES, message
from orchestrator.core.events.journal_maintenance import (
    CheckpointSigned,
    ContentRedacted,
    ContentsCollected,
    PayloadRedacted,
)
from orchestrator.core.ids import Seq
from orchestrator.journal.database_file import FILE_NAME
from orchestrator.journal.maintenance import SqliteMaintenance
from orchestrator.journal.segments import ARCHIVE
from orchestrator.journal.signatures import KeyFile
from orchestrator.journal.sqlite import SqliteJournal
from tests.journal.altered_journal import alter
from tests.journal.conftest import Open
from tests.journal.fixtures import STREAM, TASK, by, digest, found, looked, unit

pytestmark = pytest.mark.anyio

REDACTED, MOST = Seq(3), 5


def keeper_of(journal: SqliteJournal) -> SqliteMaintenance:
    return SqliteMaintenance(journal, most_events=MOST)


async def reported(journal: SqliteJournal, archived: int) -> None:
    """Contents that were redacted and collected, a redacted event, several streams; the first of it archived."""
    await journal.append(unit(found(b"one"), stream="workspace", blobs=[b"one"]))
    await journal.append(unit(found(b"two"), stream="workspace", blobs=[b"two"]))
    await journal.append(unit(TASK, stream="t"))
    await journal.redact(PayloadRedacted(target=REDACTED, fields=("title",), by="ada"), by())
    await journal.forget(ContentRedacted(digest=digest(b"one"), size=3, by="ada"), by())
    for number in range(16):
        await journal.append(unit(looked(str(number)), stream=f"{STREAM}{number % 3}"))
    if archived:
        await keeper_of(journal).archive(Seq(archived), Origin())


@pytest.mark.parametrize("archived", [0, 2, 3, 4, 5, 12, 21])
async def test_what_is_archived_is_checked_with_the_rest(opened: Open, archived: int) -> None:
    journal = await opened()
    await reported(journal, archived)
    report = await journal.verify()
    assert (report.problems, report.events, report.head) == ((), journal.head, journal.head)
    assert any("1 redacted payload," in line for line in report.unchecked)


async def test_a_content_that_was_collected_is_not_missed(opened: Open) -> None:
    journal = await opened()
    await reported(journal, 4)
    collected = await keeper_of(journal).collect(
        needed=frozenset(), as_of=journal.head, before_ms=10**15, origin=Origin(), dry_run=False
    )
    assert collected.digests == (), "the version that stood is needed"
    await journal.append(unit(ContentsCollected(digests=(digest(b"two"),), bytes=3), stream="journal"))
    assert (await journal.verify()).problems == ()


@pytest.mark.parametrize("file", range(4))
async def test_of_a_file_that_is_gone_nothing_is_said_but_that(state_dir: Path, opened: Open, file: int) -> None:
    journal = await opened()
    await reported(journal, 20)
    path = sorted((state_dir / ARCHIVE).iterdir())[file]
    path.unlink()
    await journal.close()
    report = await (await opened(readonly=True)).verify()
    assert report.problems == ()
    assert [line for line in report.unchecked if str(path) in line]
    assert report.events == journal.head - MOST
    assert report.proven == ()


async def test_without_a_file_what_is_not_compared_is_named(state_dir: Path, opened: Open) -> None:
    journal = await opened()
    await reported(journal, 5)
    await journal.append(unit(found(b"new"), stream="workspace", blobs=[b"new"]))
    await journal.close()
    next((state_dir / ARCHIVE).iterdir()).unlink()
    alter(state_dir, f"DELETE FROM blobs WHERE digest = '{digest(b'new')}'")
    report = await (await opened(readonly=True)).verify()
    assert report.problems == ()
    assert [line for line in report.unchecked if "missing contents" in line]


async def test_without_a_file_a_later_payload_that_was_taken_out_is_found(state_dir: Path, opened: Open) -> None:
    journal = await opened()
    await reported(journal, 5)
    await journal.close()
    next((state_dir / ARCHIVE).iterdir()).unlink()
    alter(state_dir, f"UPDATE events SET payload = x'7b7d', salt = zeroblob({REDACTED_SALT_BYTES}) WHERE seq = 9")
    report = await (await opened(readonly=True)).verify()
    assert any("event @9 was taken out" in problem for problem in report.problems), report.problems


@pytest.mark.parametrize("file", range(4))
async def test_a_file_that_was_altered_is_one_problem(state_dir: Path, opened: Open, file: int) -> None:
    journal = await opened()
    await reported(journal, 20)
    await journal.close()
    path = sorted((state_dir / ARCHIVE).iterdir())[file]
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes((data[-1] ^ 1,)))
    report = await (await opened(readonly=True)).verify()
    assert [str(path) in problem for problem in report.problems] == [True]


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        pytest.param("UPDATE segments SET prev_hash = zeroblob(32) WHERE first = 6", "@6 to @10", id="where one hangs"),
        pytest.param("UPDATE segments SET last_hash = zeroblob(32) WHERE first = 6", "@6", id="where one ends"),
        pytest.param("DELETE FROM segments WHERE first = 6", "before event @", id="a file forgotten"),
        pytest.param("DELETE FROM events WHERE seq = 22", "@22", id="an event gone"),
    ],
)
async def test_a_seam_that_was_altered_is_found(state_dir: Path, opened: Open, statement: str, place: str) -> None:
    journal = await opened()
    await reported(journal, 20)
    await journal.close()
    alter(state_dir, statement)
    report = await (await opened(readonly=True)).verify()
    assert any(place in problem for problem in report.problems), report.problems


@pytest.mark.parametrize("true", [True, False])
async def test_a_checkpoint_inside_is_held_against_an_archived_event(state_dir: Path, opened: Open, true: bool) -> None:
    journal = await opened()
    await reported(journal, 0)
    event = await journal.event(7)
    assert event is not None
    said = event.hash.hex() if true else "00" * 32
    key, signature = KeyFile(state_dir).sign(message(journal.id, Seq(7), said))
    signed = CheckpointSigned(journal=journal.id, head=Seq(7), head_hash=said, key=key, signature=signature)
    await journal.append(unit(signed, stream="journal"))
    await keeper_of(journal).archive(Seq(20), Origin())
    report = await journal.verify()
    problem = "the checkpoint @22 does not fit: event @7 has another hash"
    assert report.problems == (() if true else (problem,))
    assert any("1 signed checkpoints" in line for line in report.proven) is true


async def test_an_archived_event_is_not_redacted(state_dir: Path, opened: Open) -> None:
    journal = await opened()
    await journal.append(unit(TASK, stream="t"))
    for number in range(9):
        await journal.append(unit(looked(str(number)), stream=STREAM))
    first, second = await keeper_of(journal).archive(Seq(8), Origin())
    event = PayloadRedacted(target=Seq(1), fields=("title",), by="ada")
    head = journal.head
    with pytest.raises(EventArchived) as refused:
        await journal.redact(event, by())
    assert f"`orchestrator journal unarchive {second.file}`" in (refused.value.hint or "")
    assert journal.head == head
    for file in (second, first):
        await keeper_of(journal).unarchive(file.file, Origin())
    assert (await journal.redact(event, by())).scrubbed
    with closing(sqlite3.connect(state_dir / FILE_NAME)) as connection:
        assert connection.execute("SELECT count(*) FROM segments").fetchone() == (0,)
