"""Checkpoints through the real daemon: when they are signed, what they prove, and what a changed journal says."""

from __future__ import annotations

import json
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestrator.clients.python import FileAccess, RemoteError
from orchestrator.core.events.chain import parse_checkpoint
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    with running(base) as started:
        yield started


async def checkpoints(person: FileAccess) -> list[dict[str, Any]]:
    page = await person.journal_query(kind="checkpoint_signed", limit=200)
    return [entry.event for entry in page.entries]


def alter(daemon: RunningDaemon, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(daemon.state_dir / "journal.db")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


async def test_a_checkpoint_on_demand_and_its_proof(daemon: RunningDaemon) -> None:
    async with daemon.client() as person:
        made = await person.journal_checkpoint()
        after = await person.journal_verify(checkpoint=made.text)
        again = await person.journal_checkpoint()
    file = parse_checkpoint(made.text)
    assert (f"@{file.seq}", file.hash, file.key) == (made.seq, made.hash, made.key)
    assert again.key == made.key
    assert after.ok, after.problems
    assert any(f"up to {made.seq} no event was altered" in line for line in after.proven)
    assert any(f"events after {made.seq}" in line for line in after.unchecked)
    key = daemon.state_dir / "journal.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert not list(daemon.workspace.rglob("*.key"))
    assert b"PRIVATE" not in (daemon.state_dir / "journal.db").read_bytes()


async def test_an_agent_signs_and_redacts_nothing(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as agent:
        for call in (agent.journal_checkpoint(), agent.journal_redact(event="@1")):
            with pytest.raises(RemoteError) as refused:
                await call
            assert refused.value.code == "not_permitted"


async def test_a_clean_stop_signs_what_is_new_and_an_idle_run_signs_nothing(base: Path) -> None:
    with running(base) as daemon:
        async with daemon.client("alice") as agent:
            await agent.list_files()
    for _ in range(2):
        daemon.start()
        assert daemon.stop() == 0
    with running(base) as daemon:
        async with daemon.client() as person:
            signed = await checkpoints(person)
            report = await person.journal_verify()
    assert report.ok, report.problems
    assert len(signed) == 1


async def test_a_thousand_events_are_signed_by_themselves(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.txt").write_text("a\n")
    async with daemon.client() as person, daemon.client("alice") as agent:
        for _ in range(11):
            async with anyio.create_task_group() as calls:
                for _ in range(100):
                    calls.start_soon(agent.file_info, "a.txt")
        with anyio.fail_after(60):
            while not (signed := await checkpoints(person)):
                await agent.file_info("a.txt")
        report = await person.journal_verify()
    assert signed[0]["head"] >= 1000
    assert report.ok, report.problems


async def test_a_checkpoint_of_another_journal_is_refused(base: Path, daemon: RunningDaemon) -> None:
    other = base / "other"
    other.mkdir()
    with running(other) as foreign:
        async with foreign.client() as person:
            made = await person.journal_checkpoint()
    async with daemon.client() as person:
        with pytest.raises(RemoteError) as refused:
            await person.journal_verify(checkpoint=made.text)
        assert refused.value.code == "checkpoint_of_another_journal"
        with pytest.raises(RemoteError) as malformed:
            await person.journal_verify(checkpoint="{}")
        assert malformed.value.code == "checkpoint_invalid"


async def _stopped_with_checkpoint(daemon: RunningDaemon) -> str:
    (daemon.workspace / "a.txt").write_text("a\n")
    async with daemon.client("alice") as agent:
        for _ in range(5):
            await agent.read_file("a.txt")
    async with daemon.client() as person:
        made = await person.journal_checkpoint()
    assert daemon.stop() == 0
    file = daemon.base / "checkpoint.json"
    file.write_text(made.text)
    return str(file)


async def test_a_stopped_journal_is_verified_too(daemon: RunningDaemon) -> None:
    file = await _stopped_with_checkpoint(daemon)
    code, said = cli(daemon, "journal", "verify", "--checkpoint", file, "--json")
    answer = json.loads(said)
    assert code == 0, said
    assert len(answer["proven"]) == 2
    code, said = cli(daemon, "journal", "verify")
    assert code == 0, said
    daemon.start()
    daemon.kill()
    code, said = cli(daemon, "journal", "verify")  # after a crash, with a log that nobody folded
    assert code == 0, said
    daemon.start()


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        pytest.param("DELETE FROM events WHERE seq > 3", "the journal ends at @3; event @", id="cut off"),
        pytest.param("UPDATE events SET hash = zeroblob(32) WHERE seq = {seq}", "event @{seq} has another", id="hash"),
        pytest.param("DELETE FROM events WHERE seq = {seq}", "which the checkpoint is of, is not there", id="gone"),
    ],
)
async def test_a_rewritten_journal_does_not_fit_its_checkpoint(
    daemon: RunningDaemon, statement: str, place: str
) -> None:
    file = await _stopped_with_checkpoint(daemon)
    seq = parse_checkpoint(Path(file).read_text()).seq
    alter(daemon, statement.format(seq=seq))
    code, said = cli(daemon, "journal", "verify", "--checkpoint", file)
    assert code == 1
    assert place.format(seq=seq) in said, said
    assert "proven" not in said


async def test_an_altered_checkpoint_file_proves_nothing(daemon: RunningDaemon) -> None:
    file = Path(await _stopped_with_checkpoint(daemon))
    made = json.loads(file.read_text())
    file.write_text(json.dumps({**made, "seq": made["seq"] - 1}))
    code, said = cli(daemon, "journal", "verify", "--checkpoint", str(file))
    assert (code, "signature does not hold" in said) == (1, True), said


async def test_a_checkpoint_inside_that_was_forged_is_found(daemon: RunningDaemon) -> None:
    await _stopped_with_checkpoint(daemon)
    forged = 'CAST(replace(CAST(payload AS TEXT), \'"signature":"\', \'"signature":"00\') AS BLOB)'
    alter(daemon, f"UPDATE events SET payload = {forged} WHERE tag = 'checkpoint_signed'")
    code, said = cli(daemon, "journal", "verify")
    assert code == 1
    assert "has a signature that does not hold" in said, said


async def test_a_checkpoint_is_written_to_a_file_or_kept_as_a_git_note(daemon: RunningDaemon) -> None:
    def git(*arguments: str, given: str = "") -> str:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        command = ("git", "-C", str(daemon.workspace), *identity, *arguments)
        return subprocess.run(command, check=True, capture_output=True, text=True, env=daemon.env, input=given).stdout

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    code, printed = cli(daemon, "journal", "checkpoint")
    assert code == 0, printed
    git("notes", "--ref=orchestrator", "append", "--file=-", given=printed)
    out = daemon.base / "out.json"
    out.write_text(git("notes", "--ref=orchestrator", "show", "HEAD"))
    code, said = cli(daemon, "journal", "verify", "--checkpoint", str(out))
    assert (code, "proven:       up to" in said) == (0, True), said


# --- what verify looks at -------------------------------------------------------------


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        pytest.param("DELETE FROM requests", "missing in the requests table", id="requests gone"),
        pytest.param("UPDATE requests SET digest = 'x'", "what no event says", id="requests altered"),
        pytest.param("DELETE FROM meta", "lacks epoch and journal", id="no meta"),
    ],
)
async def test_verify_looks_at_every_table(base: Path, statement: str, said: str, stopped: bool) -> None:
    daemon = RunningDaemon(base)
    assert daemon.start()["ok"]
    try:
        async with daemon.client("alice") as alice:
            assert (await alice.write_file("a.txt", "one\n", mode="create")).status == "applied"
        if stopped:
            daemon.stop()
        alter(daemon, statement)
        code, reported = cli(daemon, "journal", "verify")
        assert code == 1, reported
        assert said in reported
        assert "journal_corrupt" in reported or "not ok" in reported
    finally:
        daemon.stop()


async def test_verify_finds_bytes_behind_a_content(daemon: RunningDaemon) -> None:
    large = "0123456789\n" * 30_000
    async with daemon.client("alice") as alice:
        await alice.write_file("a.txt", large, mode="create")
        (file,) = (path for path in (daemon.state_dir / "blobs").rglob("*") if path.is_file())
        with file.open("ab") as content:
            content.write(b"more")
        code, reported = cli(daemon, "journal", "verify")
        assert (code, "bytes behind it" in reported) == (1, True), reported
