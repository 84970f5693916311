"""A journal that can't be vouched for: the daemon says what is wrong and where, and does not start; nor does `up`."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from orchestrator.core.errors import OrchestratorError
from tests.daemon.cli import adopt, command
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.damage import alter, append_of_the_future
from tests.journal.altered_journal import mistype

pytestmark = pytest.mark.anyio

LARGE = "0123456789\n" * 30_000


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(base)
    assert daemon.start()["ok"]
    yield daemon
    daemon.stop()


def cut(state_dir: Path) -> None:
    path = state_dir / "journal.db"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def spoil_a_page(state_dir: Path) -> None:
    """One that neither the start nor a call needs."""
    path = state_dir / "journal.db"
    with closing(sqlite3.connect(path)) as journal:
        (number,) = journal.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'file_modes'").fetchone()
    data = bytearray(path.read_bytes())
    data[4096 * (number - 1) : 4096 * number] = b"\x5a" * 4096
    path.write_bytes(data)


def of_another_program(state_dir: Path) -> None:
    (state_dir / "journal.db").unlink()
    with closing(sqlite3.connect(state_dir / "journal.db")) as other:
        other.execute("CREATE TABLE mine (x)")
        other.commit()


def spoil_the_mark(state_dir: Path) -> None:
    (mark,) = (state_dir.parent / "home" / ".local" / "state" / "orchestrator").glob("*.mark")
    mark.write_bytes(b"\xff\xfe no UTF-8\n")


DAMAGES = [
    pytest.param(
        lambda state_dir: mistype(state_dir / "journal.db", "events", "payload", "TEXT"),
        "journal_corrupt",
        "event @1 cannot be read: its payload is str",
        id="bytes that became a text",
    ),
    pytest.param(spoil_the_mark, "journal_behind", ".mark", id="mark"),
    pytest.param(
        alter("UPDATE events SET payload = x'7b7d' WHERE seq = 3"),
        "journal_corrupt",
        "payload of event @3",
        id="payload",
    ),
    pytest.param(alter("UPDATE events SET at = 1 WHERE seq = 3"), "journal_corrupt", "of event @3", id="envelope"),
    pytest.param(alter("DELETE FROM events WHERE seq = 3"), "journal_corrupt", "before event @4: @3", id="row gone"),
    pytest.param(append_of_the_future, "journal_too_new", "'wished_for'", id="unknown event"),
    pytest.param(alter("PRAGMA user_version = 99"), "journal_too_new", "schema 99", id="newer schema"),
    pytest.param(of_another_program, "journal_corrupt", "another program", id="another program"),
    pytest.param(cut, "journal_corrupt", "journal", id="database cut"),
    pytest.param(
        lambda state_dir: (state_dir / "journal.db").write_text("not SQL\n" * 1000),
        "journal_corrupt",
        "journal.db",
        id="no database",
    ),
    pytest.param(lambda state_dir: (state_dir / "journal.db").unlink(), "journal_behind", "no journal in", id="gone"),
    pytest.param(
        lambda state_dir: (state_dir / "journal.db").write_bytes(b""), "journal_behind", "no journal in", id="empty"
    ),
]


@pytest.mark.parametrize(("spoil", "code", "place"), DAMAGES)
async def test_what_the_start_refuses(
    daemon: RunningDaemon, spoil: Callable[[Path], None], code: str, place: str
) -> None:
    async with daemon.client("bot") as files:
        await files.write_file("a.txt", LARGE, mode="create")
    assert daemon.stop() == 0
    spoil(daemon.state_dir)
    kept = daemon.base / "kept"
    shutil.copytree(daemon.state_dir, kept)

    said = daemon.start()
    assert (said["ok"], said["code"]) == (False, code), said
    assert place in str(said["message"])
    assert said["hint"]
    assert daemon.wait() == 1
    exit_code, reported = command(daemon, "up")
    assert (exit_code, reported["code"], place in reported["message"]) == (1, code, True), reported
    journal = daemon.state_dir / "journal.db"
    assert journal.exists() is (kept / "journal.db").exists()  # nothing new was begun in its place
    assert (daemon.workspace / "a.txt").read_text() == LARGE


async def test_a_spoilt_page_is_found(daemon: RunningDaemon) -> None:
    """By the check beside the service, and by `journal verify`."""
    async with daemon.client("bot") as files:
        await files.write_file("a.txt", LARGE, mode="create")
    assert daemon.stop() == 0
    spoil_a_page(daemon.state_dir)
    assert daemon.start()["ok"]
    async with daemon.client() as person:
        report = await person.journal_verify()
        assert any("malformed" in problem or "page" in problem for problem in report.problems), report.problems
        with anyio.fail_after(60):
            while (checked := (await person.status()).health.checked) == "running":
                await anyio.lowlevel.checkpoint()
        assert checked.startswith("failed: ")


async def test_a_missing_content_is_named_when_it_is_needed_and_by_verify(daemon: RunningDaemon) -> None:
    async with daemon.client("bot") as files:
        made = await files.write_file("a.txt", LARGE, mode="create")
        await files.write_file("a.txt", "two\n", mode="truncate")
    daemon.stop()
    (blob,) = [path for path in (daemon.state_dir / "blobs").rglob("*") if path.is_file()]
    blob.unlink()
    assert daemon.start()["ok"]
    async with daemon.client() as person:
        report = await person.journal_verify()
        assert not report.ok
        assert blob.parent.name + blob.name in report.problems[0]
        with pytest.raises(OrchestratorError) as refused:
            await person.get_diff("a.txt", from_=made.version_id or "", to="current")
        assert blob.name in refused.value.message
        assert (await person.read_file("a.txt")).version_id


@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
async def test_a_cut_log_leaves_the_events_before_it(daemon: RunningDaemon, share: float) -> None:
    """Behind the mark it is refused; else what is there is served."""
    async with daemon.client("bot") as files:
        for number in range(6):
            await files.write_file(f"{number}.txt", "x\n", mode="create")
        daemon.kill()
    log = daemon.state_dir / "journal.db-wal"
    data = log.read_bytes()
    log.write_bytes(data[: int(len(data) * share)])
    (daemon.state_dir / "journal.db-shm").unlink(missing_ok=True)
    said = daemon.start()
    if not said["ok"]:
        assert said["code"] == "journal_behind"
        daemon.wait()
        assert adopt(daemon)[0] == 0
        assert daemon.start()["ok"]
    async with daemon.client() as person:
        assert (await person.journal_verify()).ok
        assert (await person.workspace_check()).ok
        for number in range(6):
            assert (await person.read_file(f"{number}.txt")).version_id


async def test_a_lost_row_of_a_content_comes_back_from_a_backup_as_the_guide_says(daemon: RunningDaemon) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    found = re.search(r"`sqlite3 STATE/journal.db \"(ATTACH [^`]+)\"`", guide)
    assert found is not None
    (daemon.workspace / "a.txt").write_text("kept\n")
    async with daemon.client("alice") as files:
        first = await files.read_file("a.txt")
        assert first.content_hash
        (daemon.workspace / "a.txt").write_text("another\n")
        await files.read_file("a.txt")
    assert command(daemon, "journal", "backup", str(daemon.base / "backup"))[0] == 0
    daemon.stop()
    alter("DELETE FROM blobs WHERE digest = ?", first.content_hash)(daemon.state_dir)
    problems = command(daemon, "journal", "verify", "--state-dir", str(daemon.state_dir))[1]["problems"]
    assert [first.content_hash in problem and "a backup may have it" in problem for problem in problems] == [True]
    script = found[1].replace("BACKUP", str(daemon.base / "backup")).replace("sha256:…", first.content_hash)
    with closing(sqlite3.connect(daemon.state_dir / "journal.db", isolation_level=None)) as journal:
        journal.executescript(script)
    assert command(daemon, "journal", "verify", "--state-dir", str(daemon.state_dir))[1]["ok"]
    assert daemon.start()["ok"]
    async with daemon.client("alice") as files:
        assert (await files.read_file("a.txt", at=first.version_id)).text.endswith("kept\n")
