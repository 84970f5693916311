"""Files beyond the size that is held in memory, moved, deleted, replaced, undone and compared, through the daemon."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.python import FileAccess, RemoteError
from orchestrator.core.errors import DaemonRestarted
from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

POLICY = """
name = "ours"
default = "allow"
[limits]
in_memory_bytes = 262144
change_bytes = 4194304
[[rule]]
name = "careful"
agents = ["alice"]
actions = ["delete"]
paths = ["**"]
verdict = "ask"
"""


@pytest.fixture
def large_policy() -> str:
    """No file over 256 KiB is held in memory, and none over 4 MiB changed."""
    return POLICY


@pytest.fixture
async def person(large: RunningDaemon) -> AsyncIterator[FileAccess]:
    async with large.client() as files:
        yield files


def content(seed: int, size: int = 2_000_000) -> bytes:
    """Bytes that no packing makes much smaller."""
    blocks = (hashlib.sha256(b"%d %d" % (seed, number)).hexdigest().encode() + b"\n" for number in range(size // 65))
    return b"".join(blocks)


def kept(daemon: RunningDaemon) -> set[str]:
    """The names of the contents that have a file."""
    blobs = daemon.state_dir / "blobs"
    return {f"{file.parent.name}{file.name}" for file in blobs.rglob("*") if file.is_file()}


def made(answer: ChangeAnswer) -> str:
    """The version of a change that was made."""
    assert answer.change is not None
    return answer.change


async def test_a_deleted_file_comes_back(large: RunningDaemon, person: FileAccess) -> None:
    data, file = content(1), large.workspace / "big.bin"
    file.write_bytes(data)
    deleted = await person.delete_file("big.bin")
    assert deleted.status == "applied"
    assert not file.exists()
    assert hashlib.sha256(data).hexdigest() in kept(large)
    undone = await person.revert(made(deleted))
    assert undone.status == "applied", undone.message
    assert file.read_bytes() == data
    assert (await person.workspace_check()).ok
    assert (await person.journal_verify()).ok


async def test_an_old_version_is_exported_piece_by_piece(large: RunningDaemon, person: FileAccess) -> None:
    data = content(12)
    (large.workspace / "big.bin").write_bytes(data)
    before = (await person.delete_file("big.bin")).base or f"@{int((await person.status()).head[1:]) - 2}"
    read, offset = b"", 0
    while True:
        part = await person.content_at("big.bin", at=before, offset=offset, limit=300_000)
        read += part.data
        if part.next is None:
            break
        offset = part.next
    assert read == data
    middle = await person.content_at("big.bin", at=before, offset=1_000_001, limit=10)
    assert middle.data == data[1_000_001:1_000_011]
    lines = data.decode().splitlines(keepends=True)
    shown = await person.read_lines("big.bin", start=20_000, end=20_002, at=before, line_numbers=False)
    assert (shown.text, shown.total_lines) == ("".join(lines[19_999:20_002]), len(lines))


async def test_a_moved_file_is_the_same(large: RunningDaemon, person: FileAccess) -> None:
    data, file = content(2), large.workspace / "big.bin"
    file.write_bytes(data)
    inode = file.stat().st_ino
    moved = await person.move_file("big.bin", "else/where.bin")
    there = large.workspace / "else/where.bin"
    assert (moved.status, there.stat().st_ino, there.read_bytes() == data) == ("applied", inode, True)
    assert (await person.revert(made(moved))).status == "applied"
    assert file.read_bytes() == data


async def test_a_whole_file_is_replaced_and_brought_back(large: RunningDaemon, person: FileAccess) -> None:
    data, file = content(3), large.workspace / "big.bin"
    file.write_bytes(data)
    with pytest.raises(RemoteError) as refused:
        await person.write_file("big.bin", "small\n", mode="truncate")
    assert refused.value.code == "base_required"
    base = f"sha256:{hashlib.sha256(data).hexdigest()}"
    written = await person.write_file("big.bin", "small\n", mode="truncate", base=base)
    assert (written.status, file.read_text()) == ("applied", "small\n")
    assert (await person.revert(made(written))).status == "applied"
    assert file.read_bytes() == data


async def test_a_file_over_the_limit_of_changes_stays(large: RunningDaemon, person: FileAccess) -> None:
    file = large.workspace / "huge.bin"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 36)
    for change in (
        person.delete_file("huge.bin"),
        person.move_file("huge.bin", "b.bin"),
        person.write_file("huge.bin", "more\n", mode="append"),
    ):
        with pytest.raises(RemoteError) as refused:
            await change
        assert refused.value.code == "too_large"
        assert "limits.change_bytes" in (refused.value.hint or "")
    assert file.exists()
    assert (await person.file_info("huge.bin")).size == 1 << 36


async def test_what_others_do_to_large_files_is_noted(large: RunningDaemon, person: FileAccess) -> None:
    file = large.workspace / "big.bin"
    file.write_bytes(content(5))
    first = (await person.file_info("big.bin")).version_id
    file.write_bytes(content(6))
    second = await person.file_info("big.bin")
    assert second.version_id != first
    deleted = await person.delete_file("big.bin")
    other = large.workspace / "other.bin"
    other.write_bytes(content(6))
    os.replace(other, file)
    assert (await person.revert(made(deleted))).status in ("conflict", "applied")
    assert file.read_bytes() == content(6)


async def test_a_change_by_others_in_between_is_kept_apart(large: RunningDaemon, person: FileAccess) -> None:
    file = large.workspace / "big.bin"
    file.write_bytes(content(7))
    deleted = await person.delete_file("big.bin")
    file.write_bytes(content(8))
    answer = await person.revert(made(deleted))
    assert answer.status == "conflict"
    assert file.read_bytes() == content(8)


async def test_an_agent_waits_and_a_person_sees_size_and_hash(large: RunningDaemon, person: FileAccess) -> None:
    data = content(9)
    (large.workspace / "big.bin").write_bytes(data)
    async with large.client("alice") as alice:
        waiting = await alice.delete_file("big.bin")
        assert waiting.status == "waiting"
        assert waiting.approval is not None
        shown = await person.approvals_show(waiting.approval)
        assert f"sha256:{hashlib.sha256(data).hexdigest()}, {len(data)} bytes" in (shown.diff or "")
        await person.approve(waiting.approval, approver=await large.make_approver())
    assert not (large.workspace / "big.bin").exists()


async def test_the_journal_compares_them_piece_by_piece(large: RunningDaemon, person: FileAccess) -> None:
    file = large.workspace / "big.bin"
    file.write_bytes(content(10))
    moved = await person.move_file("big.bin", "there/big.bin")
    there = large.workspace / "there/big.bin"
    assert moved.status == "applied"
    assert (await person.replay_check()).ok
    found = there.stat()
    with there.open("r+b") as changed:  # the stat stays, so only the content tells
        changed.write(b"!")
    os.utime(there, ns=(found.st_atime_ns, found.st_mtime_ns))
    differing = await person.workspace_check()
    assert [item.kind for item in differing.differences] in (["content"], [])
    ended, _ = command(large, "journal", "verify")
    assert ended == 0


@pytest.mark.parametrize("step", ["temp_half_written", "temp_synced", "swapped", "written"])
async def test_a_crash_leaves_nothing_half_done(base: Path, step: str) -> None:
    """The daemon is killed while it brings a large file back; the next start finds before or after, never between."""
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(POLICY)
    data = content(11)
    with running(base) as daemon:
        file = daemon.workspace / "big.bin"
        file.write_bytes(data)
        async with daemon.client() as person:
            deleted = await person.delete_file("big.bin")
    ending = RunningDaemon(base, module=("-m", "tests.crash.crashing", "--at", step))
    assert ending.start()["ok"]
    async with ending.client() as person:
        with pytest.raises(DaemonRestarted):
            await person.revert(made(deleted))
    ending.kill()
    with running(base) as daemon, anyio.fail_after(60):
        assert {path.name for path in daemon.workspace.iterdir()} <= {"big.bin"}
        assert not file.exists() or file.read_bytes() == data
        async with daemon.client() as person:
            if not file.exists():
                assert (await person.revert(made(deleted))).status == "applied"
            assert file.read_bytes() == data
            assert (await person.replay_check()).ok
            assert (await person.journal_verify()).ok
