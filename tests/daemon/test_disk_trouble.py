"""FAULTS rows 19 and 20 at the journal: its disk is full, or refuses a sync. Writes stop, and say so; reads go on."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.api.administration import StatusInfo
from orchestrator.api.journal_operations import JournalEntry
from orchestrator.api.parameters import Replacement
from orchestrator.clients.python import FileAccess, RemoteError
from orchestrator.journal.state_files import RESERVE_NAME
from orchestrator.servers.blocks import text_block
from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.failing import fill

pytestmark = pytest.mark.anyio

TEXT = "one\n"


class Troubled(RunningDaemon):
    """A daemon on a disk with a switch."""

    def __init__(self, base: Path, *at: str) -> None:
        self.switch = base / "trouble"
        super().__init__(base, module=("-m", "tests.daemon.failing", str(self.switch), *at))
        (self.workspace / "a.txt").write_text(TEXT)


async def refused(files: FileAccess, name: str = "b.txt", request_id: str | None = None) -> RemoteError:
    """Why a file can't be written now."""
    with pytest.raises(RemoteError) as met:
        await files.write_file(name, "two\n", "create", request_id=request_id)
    return met.value


async def written_until_refused(files: FileAccess) -> tuple[str, RemoteError]:
    """The log may have some room of its own left."""
    for number in range(200):
        try:
            await files.write_file(f"{number}.txt", f"{number}" * 2000, "create")
        except RemoteError as error:
            return f"{number}.txt", error
    raise AssertionError("the disk never was full")


async def reads_go_on(daemon: RunningDaemon) -> StatusInfo:
    """On connections that come in now, an agent's that is new and a person's."""
    async with daemon.client("new") as files:
        assert (await files.read_file("a.txt")).text.endswith("one\n")
        assert (await files.list_files(".")).entries
        assert (await files.search_content("one")).total >= 1
        assert (await files.file_history("a.txt")).versions
        with pytest.raises(RemoteError) as absent:
            await files.read_file("absent.txt")
        assert absent.value.code == "not_found", "a refusal keeps its own code"
    async with daemon.client() as person:
        status = await person.status()
    assert status.health.state == "writes_stopped"
    return status


async def records_agree(daemon: RunningDaemon) -> None:
    async with daemon.client() as person:
        assert (await person.journal_verify()).problems == ()
        assert (await person.workspace_check()).differences == ()
        assert (await person.status()).health.state == "ok"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 MB."""
    place = tmp_path / "state"
    place.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", place], check=False, capture_output=True, text=True
    )
    if mount.returncode:
        pytest.skip(f"no small disk can be mounted here: {mount.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


async def test_a_full_disk_stops_writes_until_there_is_space(small: Path, tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path)
    (daemon.workspace / "a.txt").write_text(TEXT)
    daemon.start()
    async with daemon.client("alice") as files:
        await files.read_file("a.txt")
        fill(small / "filler")
        path, why = await written_until_refused(files)
        assert why.code == "disk_full"
        assert not (daemon.workspace / path).exists()
        status = await reads_go_on(daemon)
        assert any("the disk that holds the journal is full" in note for note in status.health.notes)
        assert (await refused(files)).code == "disk_full"
        code, said = command(daemon, "status")
        assert (code, said["health"]["state"]) == (0, "writes_stopped")
        (small / "filler").unlink()
        assert (await files.write_file("b.txt", "two\n", "create")).status == "applied"
    await records_agree(daemon)
    assert daemon.stop() == 0


async def test_a_full_disk_hides_nothing_from_who_reads_what_another_program_wrote(small: Path, tmp_path: Path) -> None:
    """On a terminal, and with the watcher that meets the change too."""
    daemon = RunningDaemon(tmp_path)
    (daemon.workspace / "a.txt").write_text(TEXT)
    daemon.start()
    async with daemon.client("alice") as files:
        known = await files.read_file("a.txt")
        fill(small / "filler")
        await written_until_refused(files)
    (daemon.workspace / "a.txt").write_text(TEXT + "m" * 60_000 + "\n")  # more than the log has of its own
    for words in (
        ("open", "a.txt"),
        ("log", "a.txt"),
        ("blame", "a.txt"),
        ("search", "one"),
        ("diff", "a.txt"),
        ("diff", "--from", known.version_id, "--to", "working"),
    ):
        code, said = command(daemon, *words)
        assert code == 0, (words, said)
    code, said = command(daemon, "open", "a.txt")
    assert (said["version_id"], len(said["warnings"])) == ("@0", 1)
    (small / "filler").unlink()
    async with daemon.client("alice") as files:
        assert (await files.read_file("a.txt")).version_id not in ("@0", known.version_id)
    daemon.stop()


@pytest.mark.parametrize("end", [RunningDaemon.stop, RunningDaemon.kill])
async def test_a_start_on_a_full_disk_serves_reads_until_the_next_one(
    small: Path, tmp_path: Path, end: Callable[[RunningDaemon], object]
) -> None:
    """The room that is held back opens the journal; the next start does the rest."""
    daemon = RunningDaemon(tmp_path)
    (daemon.workspace / "a.txt").write_text(TEXT)
    daemon.start()
    async with daemon.client("alice") as files:
        await files.write_file("b.txt", "two\n", "create")
    end(daemon)
    (daemon.workspace / "c.txt").write_text("came while no daemon ran\n")
    fill(small / "filler")
    assert daemon.start()["ok"]
    status = await reads_go_on(daemon)
    assert any("the start could not be finished" in note for note in status.health.notes)
    async with daemon.client("alice") as files:
        assert (await files.read_file("b.txt")).text.endswith("two\n")
        assert (await files.read_file("c.txt")).text.endswith("came while no daemon ran\n")
        met = await refused(files, "d.txt")
        assert (met.code, "restart the daemon" in met.hint) == ("writes_stopped", True)
        assert not (daemon.workspace / "d.txt").exists()
        assert command(daemon, "status")[0] == 0
    (small / "filler").unlink()
    assert daemon.stop() == 0
    daemon.start()
    async with daemon.client("alice") as files:
        assert (await files.write_file("d.txt", "four\n", "create")).status == "applied"
        assert (await files.file_history("c.txt")).versions
        async with daemon.client() as person:
            agents = [line.agent for line in (await person.status()).sessions]
        assert agents.count("alice") == 1, "who was there before is not connected"
    await records_agree(daemon)
    assert daemon.stop() == 0


def test_a_start_without_any_room_says_what_to_do(small: Path, tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path)
    daemon.start()
    assert daemon.stop() == 0
    (small / RESERVE_NAME).unlink()
    fill(small / "filler")
    said = daemon.start()
    assert (said["ok"], said["code"]) == (False, "disk_full")
    assert "Free some space" in str(said["hint"])
    assert daemon.wait() == 1


def test_a_state_directory_that_takes_no_writes_is_not_called_corrupt(small: Path, tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path)
    daemon.start()
    assert daemon.stop() == 0
    subprocess.run(["mount", "-o", "remount,ro", small], check=True)
    said = daemon.start()
    assert (said["ok"], said["code"]) == (False, "state_directory_unusable")
    assert str(small) in str(said["message"])
    assert "writable" in str(said["hint"])
    assert daemon.wait() == 1
    assert "Traceback" not in daemon.log
    code, reported = command(daemon, "journal", "verify", "--state-dir", str(small))
    assert (code, reported["code"]) == (1, "state_directory_unusable")


async def test_the_outcome_of_a_change_gets_the_room_that_is_held_back(small: Path, tmp_path: Path) -> None:
    filler = small / "filler"
    daemon = RunningDaemon(tmp_path, module=("-m", "tests.daemon.failing", str(filler), "--at", "written", "fill"))
    (daemon.workspace / "a.txt").write_text(TEXT)
    daemon.start()
    assert (small / RESERVE_NAME).stat().st_blocks > 0
    async with daemon.client("alice") as files:
        answer = await files.write_file("b.txt", "two\n", "create")
        assert answer.status == "applied", "the disk was full before its outcome"
        assert not (small / RESERVE_NAME).exists()
        assert (await refused(files, "c.txt")).code == "disk_full"
        await reads_go_on(daemon)
        filler.unlink()
        assert (await files.write_file("c.txt", "two\n", "create")).status == "applied"
    assert (small / RESERVE_NAME).stat().st_blocks > 0, "held back again"
    await records_agree(daemon)
    assert daemon.stop() == 0


async def test_an_outcome_that_finds_no_room_at_all_is_noted_when_there_is_some(tmp_path: Path) -> None:
    daemon = Troubled(tmp_path, "--at", "written", "full")
    daemon.start()
    async with daemon.client("alice") as files:
        met = await refused(files, request_id="r")
        assert met.code == "writes_stopped"
        assert "it is noted when it has" in met.message
        assert (daemon.workspace / "b.txt").read_text() == "two\n"
        assert (await refused(files, "c.txt")).code == "disk_full"
        await reads_go_on(daemon)
        daemon.switch.unlink()
        again = await files.write_file("b.txt", "two\n", "create", request_id="r")
        assert again.status == "applied"
        assert (await files.write_file("c.txt", "three\n", "create")).status == "applied"
    events = [entry.kind for entry in await entries(daemon)]
    assert events.count("change_applied") == 2
    assert not [kind for kind in events if "outside" in kind], "the daemon's own write is nobody else's"
    await records_agree(daemon)
    assert daemon.stop() == 0


async def entries(daemon: RunningDaemon) -> tuple[JournalEntry, ...]:
    async with daemon.client() as person:
        return (await person.journal_query(limit=500)).entries


async def test_the_daemon_ends_while_an_outcome_is_owed(tmp_path: Path) -> None:
    daemon = Troubled(tmp_path, "--at", "written", "full")
    daemon.start()
    async with daemon.client("alice") as files:
        assert (await refused(files, request_id="r")).code == "writes_stopped"
    daemon.kill()
    daemon.switch.unlink()
    after = RunningDaemon(tmp_path)
    after.start()
    async with after.client("alice") as files:
        assert (await files.write_file("b.txt", "two\n", "create", request_id="r")).status == "applied"
    assert [entry.kind for entry in await entries(after)].count("change_applied") == 1
    await records_agree(after)
    assert after.stop() == 0


@pytest.mark.parametrize("at", ["change_intended", "change_applied"])
async def test_a_failed_sync_stops_writes_until_a_restart(tmp_path: Path, at: str) -> None:
    """No second sync is believed: what is on the disk is read again by the next start."""
    daemon = Troubled(tmp_path, "--at", f"txn_open:{at}", "sync")
    daemon.start()
    async with daemon.client("alice") as files:
        assert (await refused(files, request_id="r")).code == "writes_stopped"
        assert (daemon.workspace / "b.txt").exists() == (at == "change_applied")
        daemon.switch.unlink()
        assert (await refused(files, "c.txt")).code == "writes_stopped", "the disk works again, and is not believed"
        status = await reads_go_on(daemon)
        assert any("disk I/O error" in note for note in status.health.notes)
    code, said = command(daemon, "status")
    assert (code, said["health"]["state"]) == (0, "writes_stopped")
    async with daemon.client() as person:
        await person.stop()
    assert daemon.wait() == 0
    after = RunningDaemon(tmp_path)
    after.start()
    async with after.client("alice") as files:
        assert (await files.write_file("b.txt", "two\n", "create", request_id="r")).status == "applied"
    assert [entry.kind for entry in await entries(after)].count("change_applied") == 1
    await records_agree(after)
    assert after.stop() == 0


async def test_a_file_that_changed_meanwhile_is_shown_without_a_version(tmp_path: Path) -> None:
    """New content would need an event: the bytes are shown, and said to be in no version; nothing is built on them."""
    daemon = Troubled(tmp_path)
    daemon.start("--no-watch")
    async with daemon.client("alice") as files:
        known = await files.read_file("a.txt")
        daemon.switch.write_text("full")
        (daemon.workspace / "a.txt").write_text("another\n")
        (daemon.workspace / "new.txt").write_text("one, in a new file\n")
        now = await files.read_file("a.txt")
        assert (now.text, now.version_id) == ("     1\tanother\n", "@0")
        assert len(now.warnings) == 1
        assert "disk_full" in now.warnings[0]
        assert (text_block(now) or "").endswith(f"\n[{now.warnings[0]}]")
        fresh = await files.read_file("new.txt")
        assert (fresh.text, fresh.version_id) == ("     1\tone, in a new file\n", "@0")
        assert (await files.read_file("a.txt", at=known.version_id)).text.endswith("one\n")
        assert (await files.file_info("a.txt")).version_id is None
        found = await files.search_content("another")
        assert ([hit.text for hit in found.hits], found.versions, len(found.warnings)) == (
            ["another"],
            {"a.txt": "@0"},
            1,
        )
        logged = await files.file_history("a.txt")
        assert ([v.version_id for v in logged.versions], len(logged.warnings)) == ([known.version_id], 1)
        blamed = await files.blame("a.txt")
        assert (blamed.version_id, len(blamed.warnings)) == (known.version_id, 1)
        changed = await files.get_diff("a.txt")
        assert (changed.from_version, changed.to_version) == (known.version_id, "@0")
        assert "-one\n+another\n" in changed.diff
        assert changed.warnings
        tree = await files.get_diff(from_=known.version_id, to="working")
        assert len(tree.warnings) == 1
        with pytest.raises(RemoteError) as based:
            await files.edit_file("a.txt", [Replacement(search="another", replace="mine")], base=now.version_id)
        assert based.value.code == "disk_full"
        daemon.switch.unlink()
        with pytest.raises(RemoteError) as based:
            await files.edit_file("a.txt", [Replacement(search="another", replace="mine")], base=now.version_id)
        assert based.value.code == "stale_base"
        again = await files.read_file("a.txt")
        assert again.text.endswith("another\n")
        assert again.version_id not in ("@0", known.version_id)
        assert not again.warnings
    sessions = [entry.kind for entry in await entries(daemon) if entry.kind.startswith("session_")]
    assert sessions.count("session_opened") == 1
    assert daemon.stop() == 0
