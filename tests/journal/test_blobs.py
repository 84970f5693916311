"""Large contents: on disk before the event that names them, written once, proven when read."""

from __future__ import annotations

import errno
import os
import tracemalloc
from pathlib import Path

import pytest

from orchestrator.core.errors import DescriptorsExhausted, DiskFull, JournalCorrupt, WritesStopped
from orchestrator.core.ids import Digest
from orchestrator.journal import blobs as blobs_module
from orchestrator.journal.blobs import IN_DATABASE_BYTES
from tests.journal.conftest import Open
from tests.journal.fixtures import digest, looked, unit

pytestmark = pytest.mark.anyio

LARGE = b"0123456789" * 30_000
NAME = digest(LARGE).removeprefix("sha256:")


def place(state_dir: Path) -> Path:
    return state_dir / "blobs" / NAME[:2] / NAME[2:]


@pytest.mark.parametrize("more", [0, 1])
async def test_the_limit_between_database_and_file(state_dir: Path, opened: Open, more: int) -> None:
    data = b"x" * (IN_DATABASE_BYTES + more)
    await (await opened()).append(unit(looked(), blobs=[data]))
    assert [path for path in (state_dir / "blobs").rglob("*") if path.is_file()] == [
        state_dir / "blobs" / digest(data)[7:9] / digest(data)[9:] for _ in range(more)
    ]


async def test_a_large_content_is_synced_before_its_transaction(
    state_dir: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync = os.fsync

    def noting(handle: int) -> None:
        fsync(handle)
        done.append(f"sync {os.readlink(f'/proc/self/fd/{handle}').removeprefix(str(state_dir))}")

    def step(name: str) -> None:
        done.append(f"{name} {place(state_dir).exists()}")

    journal = await opened(step=step)
    monkeypatch.setattr(os, "fsync", noting)
    await journal.append(unit(looked(), blobs=[LARGE]))
    temp = next(line for line in done if "incoming/" in line)
    assert done == [
        "sync /blobs",
        "sync ",
        temp,
        f"sync /blobs/{NAME[:2]}",
        "txn_open:metadata_read True",
        "txn_committed:metadata_read True",
    ]


async def test_a_kept_content_costs_nothing_again(
    state_dir: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = await opened()
    await journal.append(unit(looked(), blobs=[LARGE, b"y" * 100_000]))
    inode = place(state_dir).stat().st_ino

    def refuse(data: bytes, level: int) -> bytes:
        raise AssertionError("packed again")

    monkeypatch.setattr(blobs_module.zstd, "compress", refuse)
    await journal.append(unit(looked(), blobs=[LARGE]))
    await journal.close()
    again = await opened()
    await again.append(unit(looked(), blobs=[LARGE, b"y" * 100_000]))
    assert place(state_dir).stat().st_ino == inode
    assert await again.blob(digest(LARGE)) == LARGE


@pytest.mark.parametrize("left", [b"", b"not zstd", blobs_module.zstd.compress(b"short", 1)])
async def test_a_wrong_file_that_no_row_names_is_replaced(state_dir: Path, opened: Open, left: bytes) -> None:
    journal = await opened()
    place(state_dir).parent.mkdir(parents=True)
    place(state_dir).write_bytes(left)
    await journal.append(unit(looked(), blobs=[LARGE]))
    assert await journal.blob(digest(LARGE)) == LARGE


async def test_leftovers_of_a_crash_are_swept(state_dir: Path, opened: Open) -> None:
    incoming = state_dir / "blobs" / "incoming"
    incoming.mkdir(parents=True)
    (incoming / "1.0").write_bytes(b"half")
    journal = await opened()
    assert list(incoming.iterdir()) == []
    await journal.append(unit(looked(), blobs=[LARGE]))
    assert list(incoming.iterdir()) == []


@pytest.mark.parametrize("how", ["gone", "cut", "altered", "longer"])
async def test_a_spoilt_file_is_found(state_dir: Path, opened: Open, how: str) -> None:
    journal = await opened()
    await journal.append(unit(looked(), blobs=[LARGE]))
    path = place(state_dir)
    match how:
        case "gone":
            path.unlink()
        case "cut":
            path.write_bytes(path.read_bytes()[:-5])
        case "altered":
            path.write_bytes(blobs_module.zstd.compress(LARGE[:-1] + b"!", 1))
        case _:
            path.write_bytes(blobs_module.zstd.compress(LARGE * 100, 1))
    with pytest.raises(JournalCorrupt, match=digest(LARGE)):
        await journal.blob(digest(LARGE))
    (problem,) = (await journal.verify()).problems
    assert digest(LARGE) in problem


def test_no_more_is_unpacked_than_the_row_says(state_dir: Path) -> None:
    bomb = blobs_module.zstd.compress(bytes(64 * 1024 * 1024), 1)
    tracemalloc.start()
    try:
        with pytest.raises(JournalCorrupt):
            blobs_module.Blobs(state_dir).read(digest(b"small"), 5, bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * 1024 * 1024


@pytest.mark.parametrize(
    ("number", "error"),
    [
        pytest.param(errno.ENOSPC, DiskFull, id="no space"),
        pytest.param(errno.EDQUOT, DiskFull, id="no quota"),
        pytest.param(errno.EIO, WritesStopped, id="failed sync"),
    ],
)
async def test_a_content_that_cannot_be_kept_fails_its_unit(
    state_dir: Path, opened: Open, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    journal = await opened()

    def failing(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", failing)
        with pytest.raises(error):
            await journal.append(unit(looked(), blobs=[LARGE]))
    assert journal.head == 0
    assert not place(state_dir).exists()
    if error is WritesStopped:
        with pytest.raises(WritesStopped):
            await journal.append(unit(looked()))
    else:
        await journal.append(unit(looked(), blobs=[LARGE]))
        assert await journal.blob(digest(LARGE)) == LARGE


@pytest.mark.parametrize(
    ("number", "error"),
    [
        pytest.param(errno.EMFILE, DescriptorsExhausted, id="no descriptor"),
        pytest.param(errno.EIO, WritesStopped, id="failed read"),
    ],
)
async def test_a_content_that_cannot_be_looked_at_before_the_commit_fails_its_unit(
    opened: Open, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    journal = await opened()

    def failing(blobs: blobs_module.Blobs, blob: blobs_module.StoredBlob) -> bool:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as broken:
        broken.setattr(blobs_module.Blobs, "is_there", failing)
        with pytest.raises(error):
            await journal.append(unit(looked(), blobs=[LARGE]))
    assert journal.head == 0
    if error is WritesStopped:
        with pytest.raises(WritesStopped):
            await journal.append(unit(looked()))
    else:
        await journal.append(unit(looked(), blobs=[LARGE]))
        assert await journal.blob(digest(LARGE)) == LARGE


async def test_a_digest_is_never_a_way_out_of_the_folder(opened: Open) -> None:
    from orchestrator.core.events.base import Origin
    from orchestrator.ports.journal import AppendBatch

    journal = await opened()
    with pytest.raises(JournalCorrupt, match="no digest"):
        await journal.append(AppendBatch((), Origin(), ((Digest("sha256:../../x"), LARGE),)))
