"""What was said to be done outlives a power cut, for the files that are not SQLite's: each sync of ours is needed."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from orchestrator.api import locations
from orchestrator.core.events.base import Origin
from orchestrator.core.events.journal_maintenance import ContentRedacted
from orchestrator.core.ids import Seq
from orchestrator.journal.backup import MANIFEST, make_backup, restore_backup, set_aside
from orchestrator.journal.blobs import Blobs
from orchestrator.journal.database_file import FILE_NAME
from orchestrator.journal.high_water_mark import HighWaterMark, HighWaterMarkFile
from orchestrator.journal.maintenance import SqliteMaintenance
from orchestrator.journal.segments import ARCHIVE
from orchestrator.journal.signatures import KeyFile
from orchestrator.journal.sqlite import SqliteJournal
from tests.journal.conftest import Open
from tests.journal.durable import DurableFiles
from tests.journal.fixtures import SeededEntropy, SteppingClock, aborted, digest, intended, looked, unit

pytestmark = pytest.mark.anyio

LARGE = os.urandom(300_000)
"""It does not pack, so it has a file of its own."""


def files_in(folder: Path, below: str = "") -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and str(path.relative_to(folder)).startswith(below)
    }


async def with_content(opened: Open) -> SqliteJournal:
    """A journal with events and a content that has a file of its own."""
    journal = await opened()
    for number in range(8):
        await journal.append(unit(looked(f"{number}"), blobs=(LARGE,) if number == 3 else ()))
    return journal


async def test_a_backup(opened: Open, state_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = await with_content(opened)
    await SqliteMaintenance(journal, most_events=4).archive(Seq(4), Origin())
    (tmp_path / "backups").mkdir()
    durable = DurableFiles(tmp_path / "backups", monkeypatch)
    make_backup(state_dir, tmp_path / "backups" / "copy")
    made = files_in(tmp_path / "backups")
    assert {name.split("/")[1] for name in made} >= {"journal.db", "archive", "blobs", MANIFEST}
    assert durable.left() == made


async def test_a_restored_backup(
    opened: Open, state_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = await with_content(opened)
    make_backup(state_dir, tmp_path / "copy")
    await journal.close()
    durable = DurableFiles(state_dir, monkeypatch)
    _, aside = restore_backup(tmp_path / "copy", state_dir, now_ms=1)
    assert aside is not None
    assert durable.left() == files_in(state_dir)


async def test_a_journal_that_was_set_aside(opened: Open, state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await (await with_content(opened)).close()
    before = files_in(state_dir)
    durable = DurableFiles(state_dir, monkeypatch)
    aside = set_aside(state_dir, now_ms=1)
    assert aside is not None
    assert durable.left() == {f"{aside.name}/{name}": data for name, data in before.items()}


async def test_a_new_journals_name(state_dir: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    state_dir.mkdir(exist_ok=True)
    durable = DurableFiles(state_dir, monkeypatch)
    await opened()
    assert FILE_NAME in durable.left()


async def test_a_new_state_directorys_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of the directories above it, which the daemon makes before it opens the journal."""
    durable = DurableFiles(tmp_path, monkeypatch)
    state_dir = tmp_path / "state" / "w1"
    state_dir.mkdir(parents=True)
    journal = await SqliteJournal.open(state_dir, clock=SteppingClock(), entropy=SeededEntropy())
    await journal.close()
    assert f"state/w1/{FILE_NAME}" in durable.left()


def test_a_contents_folder_whose_maker_crashed_before_its_name_was_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable = DurableFiles(tmp_path, monkeypatch)
    name = Blobs(tmp_path).name_of(digest(LARGE))
    for folder in (tmp_path / "blobs" / "incoming", (tmp_path / name).parent):
        folder.mkdir(parents=True)
    Blobs(tmp_path).prepare([(digest(LARGE), LARGE)])
    assert durable.left().keys() == {name}


def test_a_content_whose_publisher_crashed_before_its_name_was_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever needs that content next finds it published, and has to make its name durable."""
    blobs = Blobs(tmp_path)
    name = tmp_path / blobs.name_of(digest(LARGE))
    blobs.prepare([(digest(LARGE), LARGE)])
    data = name.read_bytes()
    name.unlink()
    durable = DurableFiles(tmp_path, monkeypatch)
    with name.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    assert durable.left() == {}
    blobs.prepare([(digest(LARGE), LARGE)])
    assert durable.left() == {blobs.name_of(digest(LARGE)): data}


async def test_a_redacted_content_does_not_come_back(
    opened: Open, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer says that nothing of it is left, which must hold after a power cut too."""
    journal = await with_content(opened)
    durable = DurableFiles(state_dir, monkeypatch)
    assert files_in(state_dir, "blobs")
    redaction = await journal.forget(ContentRedacted(digest=digest(LARGE), size=len(LARGE), by="ada"), Origin())
    assert redaction.scrubbed
    assert not [name for name in durable.left() if name.startswith("blobs")]


async def test_an_archived_segment(opened: Open, state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = await with_content(opened)
    durable = DurableFiles(state_dir, monkeypatch)
    await SqliteMaintenance(journal, most_events=4).archive(Seq(4), Origin())
    archived = files_in(state_dir, ARCHIVE)
    assert archived
    assert archived.items() <= durable.left().items()


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda folder: HighWaterMarkFile(folder / "w.mark").write(HighWaterMark("j", 7, "aa")), id="mark"),
        pytest.param(lambda folder: KeyFile(folder).sign(b"x"), id="key"),
        pytest.param(lambda folder: Blobs(folder).prepare([(digest(LARGE), LARGE)]), id="content"),
    ],
)
def test_a_file_put_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object]) -> None:
    durable = DurableFiles(tmp_path, monkeypatch)
    make(tmp_path)
    made = files_in(tmp_path)
    assert made
    assert durable.left() == made


def test_a_location_file_is_never_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power cut no daemon runs, so the old one or none will do; half of one will not."""
    monkeypatch.setenv("HOME", str(tmp_path))
    durable = DurableFiles(tmp_path, monkeypatch)
    location = locations.Location(workspace=str(tmp_path), state_dir="/s", socket="/r/s", pid=1, state="running")
    locations.write_location(location)
    path = Path(locations.location_file(locations.workspace_id(location.workspace)))
    assert durable.content(path) == path.read_bytes()


async def test_the_mark_knows_of_every_acknowledged_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut leaves the mark at least there, so a log that lost its end is missed."""
    mark = tmp_path / "m" / "w.mark"
    mark.parent.mkdir()
    open_it = partial(SqliteJournal.open, clock=SteppingClock(), entropy=SeededEntropy(), mark=mark)
    async with AsyncExitStack() as closing:
        journal = await open_it(tmp_path / "state")
        closing.push_async_callback(journal.close)  # an open one would keep the process from ending
        durable = DurableFiles(mark.parent, monkeypatch)
        after_cut = tmp_path / "after.mark"
        for number in range(5):
            (opening,) = await journal.append(unit(intended(b"a", b"b"), stream=f"file:{number}"))
            outcome = unit(aborted(opening.seq), stream=f"file:{number}")
            await journal.append(type(outcome)(outcome.events, outcome.origin, (), closes=True))
            after_cut.write_bytes(durable.left()["w.mark"])
            kept = HighWaterMarkFile(after_cut).read()
            assert kept is not None
            assert kept.head == journal.head
