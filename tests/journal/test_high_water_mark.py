"""No acknowledged event vanishes silently: whatever becomes of the log, a start has all of them or refuses."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from orchestrator.core.errors import JournalBehind
from orchestrator.journal.high_water_mark import LINE_BYTES, HighWaterMark, HighWaterMarkFile
from orchestrator.journal.sqlite import SqliteJournal
from tests.journal.fixtures import SeededEntropy, SteppingClock, looked, unit

pytestmark = pytest.mark.anyio

EVENTS = 60


async def opened(folder: Path, mark: Path) -> SqliteJournal:
    return await SqliteJournal.open(folder, clock=SteppingClock(), entropy=SeededEntropy(), mark=mark)


async def test_an_event_that_was_acknowledged_is_there_or_missed(tmp_path: Path) -> None:
    """The process is killed, and the end of its log is lost, or a byte in it."""
    live, mark = tmp_path / "live", tmp_path / "w.mark"
    journal = await opened(live, mark)
    for number in range(EVENTS):
        await journal.append(unit(looked(f"{number}")))
    crashed = tmp_path / "crashed"
    shutil.copytree(live, crashed, ignore=shutil.ignore_patterns("*-shm"))
    marked = mark.read_bytes()
    await journal.close()
    log = (crashed / "journal.db-wal").read_bytes()
    rng = random.Random(17)
    refused = 0
    damages = [("cut", len(log))] + [(how, rng.randrange(1, len(log))) for _ in range(40) for how in ("cut", "flip")]
    for number, (how, at) in enumerate(damages):
        folder, its_mark = tmp_path / f"{number}", tmp_path / f"{number}.mark"
        shutil.copytree(crashed, folder)
        its_mark.write_bytes(marked)
        damaged = log[:at] if how == "cut" else log[:at] + bytes((log[at] ^ 1,)) + log[at + 1 :]
        (folder / "journal.db-wal").write_bytes(damaged)
        try:
            again = await opened(folder, its_mark)
        except JournalBehind:
            refused += 1
        else:
            assert again.head == EVENTS, (how, at)
            await again.close()
    assert refused > len(damages) // 2, "most of these lose events"


async def test_a_mark_that_a_start_could_not_write_is_written_at_the_end(tmp_path: Path) -> None:
    mark = tmp_path / "w.mark"
    draft = tmp_path / f"w.mark.{os.getpid()}"
    draft.mkdir()  # no file can be made there
    journal = await opened(tmp_path / "state", mark)
    draft.rmdir()
    await journal.append(unit(looked("a")))
    await journal.close()
    known = HighWaterMarkFile(mark).read()
    assert (known and known.head) == 1


def test_a_line_that_was_torn_is_not_read(tmp_path: Path) -> None:
    file = HighWaterMarkFile(tmp_path / "w.mark")
    first, later = HighWaterMark("j", 200, "aa"), HighWaterMark("j", 207, "bb")
    file.write(first)
    file.advance(later, durably=False)
    whole = (tmp_path / "w.mark").read_bytes()
    assert file.read() == later
    for kept in range(LINE_BYTES):
        (tmp_path / "w.mark").write_bytes(whole[: LINE_BYTES + kept] + bytes(LINE_BYTES - kept))
        assert file.read() in (first, later)
    (tmp_path / "w.mark").write_bytes(bytes(LINE_BYTES) + whole[LINE_BYTES:])
    assert file.read() == later, "the next commit overwrites the other line"
    file.close()


@pytest.mark.parametrize("content", [b"\xff\xfe\x00mark", b"", b"{}", b"[1]\n", b"\n\n"], ids=repr)
def test_a_mark_that_can_not_be_read_says_how_to_go_on(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w.mark").write_bytes(content)
    with pytest.raises(JournalBehind) as refused:
        HighWaterMarkFile(tmp_path / "w.mark").read()
    assert "w.mark" in refused.value.message
    assert "journal adopt" in refused.value.hint
