"""A snapshot that somebody edited: a start does not believe it, status and verify name it."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from orchestrator.core.content import Signature
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.projections.file_rows import FileRow, pack, unpack
from orchestrator.journal.blobs import LEVEL, zstd
from orchestrator.journal.database_file import FILE_NAME
from orchestrator.journal.signatures import KeyFile
from orchestrator.journal.snapshot_table import sealed_bytes
from orchestrator.ports.journal import Snapshot
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio


@pytest.fixture
def stopped(base: Path) -> Iterator[RunningDaemon]:
    """A daemon with some history, stopped cleanly twice, so that there are two snapshots."""
    daemon = RunningDaemon(base)
    (daemon.workspace / "x.txt").write_text("one\n")
    for number in range(2):
        (daemon.workspace / f"{number}.txt").write_text("more\n")
        assert daemon.start()["ok"]
        assert daemon.stop() == 0
    yield daemon
    if daemon.process is not None and daemon.process.poll() is None:
        daemon.kill()


def forge(daemon: RunningDaemon, *, sealed: bool) -> int:
    """Let the newest snapshot say that x.txt is as it is on disk now; its position."""
    path, found = daemon.workspace / "x.txt", (daemon.workspace / "x.txt").stat()
    digest = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    signature = [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
    with closing(sqlite3.connect(daemon.state_dir / FILE_NAME)) as journal:
        seq, hash_, version, packed = journal.execute(
            "SELECT seq, hash, version, data FROM snapshots ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        lines = zstd.decompress(packed).split(b"\n")
        edited = [lines[0], *(_edited(line, digest, signature) for line in lines[1:])]
        assert edited != lines
        data = b"\n".join(edited)
        made = Snapshot(Seq(seq), hash_, hashlib.sha256(data).digest(), version)
        journal.execute(
            "UPDATE snapshots SET digest = ?, data = ? WHERE seq = ?", (made.digest, zstd.compress(data, LEVEL), seq)
        )
        if sealed:
            (identity,) = journal.execute("SELECT value FROM meta WHERE key = 'journal'").fetchone()
            seal = KeyFile(daemon.state_dir).seal(sealed_bytes(identity, made))
            journal.execute("UPDATE snapshots SET seal = ? WHERE seq = ?", (seal, seq))
        journal.commit()
    return int(seq)


def _edited(line: bytes, digest: str, signature: list[int]) -> bytes:
    name, _, text = line.partition(b" ")
    part: dict[str, Any] = json.loads(text)
    if name == b"registry.files" and "x.txt" in part:
        path = WorkspacePath("x.txt")
        entry = unpack(path, msgspec.convert(part[path], FileRow))
        forged = msgspec.structs.replace(entry, digest=Digest(digest), signature=Signature(*signature))
        part[path] = msgspec.to_builtins(pack(forged))
    return name + b" " + json.dumps(part, separators=(",", ":"), ensure_ascii=False).encode()


async def test_an_outside_change_is_noted_although_the_snapshot_hides_it(stopped: RunningDaemon) -> None:
    (stopped.workspace / "x.txt").write_text("changed by another hand\n")
    seq = forge(stopped, sealed=False)
    assert stopped.start()["ok"]
    async with stopped.client() as person:
        newest, *_ = (await person.journal_query(path="x.txt")).entries
        assert newest.kind == "external_file_changed"
        notes = (await person.status()).health.notes
        assert any(f"the snapshot at @{seq} was altered" in note for note in notes), notes
        report = await person.journal_verify()
        assert not report.ok
        assert f"snapshot at @{seq}" in report.problems[0]
    assert stopped.stop() == 0


async def test_verify_names_one_that_was_sealed_with_the_key(stopped: RunningDaemon) -> None:
    """Who has the key can forge a snapshot that a start believes; what the events say is compared by verify."""
    (stopped.workspace / "x.txt").write_text("changed by another hand\n")
    seq = forge(stopped, sealed=True)
    assert stopped.start()["ok"]
    async with stopped.client() as person:
        report = await person.journal_verify()
        assert not report.ok
        assert f"the snapshot at @{seq} is not what the events make" in report.problems[0]
    stopped.stop()


SPOILS: dict[str, Callable[[sqlite3.Connection], object]] = {
    "garbage": lambda journal: journal.execute("UPDATE snapshots SET data = x'00'"),
    "no seal": lambda journal: journal.execute("UPDATE snapshots SET seal = x''"),
    "another seal": lambda journal: journal.execute("UPDATE snapshots SET seal = zeroblob(32)"),
    "an older one's bytes": lambda journal: journal.execute(
        "UPDATE snapshots SET (digest, data) = (SELECT digest, data FROM snapshots ORDER BY seq LIMIT 1)"
    ),
}


@pytest.mark.parametrize("how", SPOILS)
async def test_others_are_passed_over_and_said(stopped: RunningDaemon, how: str) -> None:
    with closing(sqlite3.connect(stopped.state_dir / FILE_NAME)) as journal:
        SPOILS[how](journal)
        journal.commit()
    assert stopped.start()["ok"]
    async with stopped.client() as person:
        assert any("snapshot" in note for note in (await person.status()).health.notes)
        assert (await person.journal_verify()).ok is ("seal" in how)
        assert (await person.workspace_check()).ok
    assert stopped.stop() == 0


async def test_a_key_that_is_new_costs_a_longer_start_only(stopped: RunningDaemon) -> None:
    (stopped.state_dir / "journal.key").unlink()
    assert stopped.start()["ok"]
    async with stopped.client() as person:
        report = await person.journal_verify()
        assert report.ok, report.problems
    assert stopped.stop() == 0
    assert stopped.start()["ok"]
    async with stopped.client() as person:
        assert not [note for note in (await person.status()).health.notes if "snapshot" in note]
    assert stopped.stop() == 0
