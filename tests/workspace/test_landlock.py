"""Landlock as the second belt: what the threads that change files, and the workers, can't do even where they try."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.workspace import landlock
from orchestrator.workspace.change_threads import ChangeThreads
from orchestrator.workspace.disk import Disk
from tests.daemon.daemon_process import running

pytestmark = pytest.mark.anyio

COMPUTING = """
import errno, os, socket, subprocess, sys
from orchestrator.workspace.landlock import compute_only
compute_only()
def refused(work):
    try:
        work()
    except OSError as error:
        return error.errno in (errno.EACCES, errno.EPERM)
    return False
folder, port = sys.argv[1], int(sys.argv[2])
print([
    refused(lambda: open(folder + "/new", "w")),
    refused(lambda: open(folder + "/there", "a")),
    refused(lambda: os.unlink(folder + "/there")),
    refused(lambda: os.rename(folder + "/there", folder + "/gone")),
    refused(lambda: subprocess.run([sys.executable, "-c", ""])),
    open(folder + "/there").read(),
])
print([refused(lambda: socket.create_connection(("127.0.0.1", port))), refused(lambda: os.kill(os.getppid(), 0))])
"""


@pytest.fixture
def threads(tmp_path: Path) -> Iterator[ChangeThreads]:
    (tmp_path / "work" / "folder").mkdir(parents=True)
    (tmp_path / "work" / "file").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("outside")
    root = os.open(tmp_path / "work", os.O_RDONLY)
    made = ChangeThreads(root)
    if made.landlock != "on":
        pytest.skip(f"no Landlock here: {made.landlock}")
    yield made
    made.close()
    os.close(root)


def write(path: Path) -> None:
    with path.open("r+") as file:
        file.write("x")


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda base: (base / "outside/new").touch(), id="make"),
        pytest.param(lambda base: write(base / "outside/file"), id="write"),
        pytest.param(lambda base: os.truncate(base / "outside/file", 0), id="cut"),
        pytest.param(lambda base: (base / "outside/file").unlink(), id="remove"),
        pytest.param(lambda base: (base / "outside/new").mkdir(), id="make a folder"),
        pytest.param(lambda base: (base / "outside/new").symlink_to("x"), id="make a link"),
        pytest.param(lambda base: (base / "work/file").rename(base / "outside/new"), id="move out"),
        pytest.param(lambda base: (base / "outside/file").rename(base / "work/new"), id="move in"),
        pytest.param(lambda base: os.link(base / "outside/file", base / "work/new"), id="another name inside"),
    ],
)
async def test_nothing_outside_is_changed(tmp_path: Path, threads: ChangeThreads, work: Callable[[Path], None]) -> None:
    with pytest.raises(OSError, match=r"Permission denied|cross-device"):
        await threads.run(lambda: work(tmp_path))
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["file"]
    assert (tmp_path / "outside" / "file").read_text() == "outside"
    work(tmp_path)  # this thread may


async def test_a_folder_that_was_moved_out_is_not_written_to(tmp_path: Path, threads: ChangeThreads) -> None:
    """Its handle was opened inside, by all the rules."""
    handle = os.open(tmp_path / "work" / "folder", os.O_RDONLY)
    (tmp_path / "work" / "folder").rename(tmp_path / "outside" / "folder")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    with pytest.raises(PermissionError):
        await threads.run(lambda: Disk().open_at(handle, "new", flags, 0o600))
    assert not [*(tmp_path / "outside" / "folder").iterdir()]
    os.close(handle)


async def test_what_a_change_takes_works_below_the_root(tmp_path: Path, threads: ChangeThreads) -> None:
    work, disk = tmp_path / "work", Disk()

    def change() -> None:
        root, folder = (os.open(path, os.O_RDONLY) for path in (work, work / "folder"))
        disk.make_directory(folder, "d")
        os.close(disk.open_at(folder, "new", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        disk.rename(root, "file", folder, "new", "exchange")
        disk.rename(folder, "new", root, "moved", "noreplace")
        os.truncate(work / "moved", 2)
        disk.unlink_at(root, "file")
        disk.remove_directory(folder, "d")
        os.close(root)
        os.close(folder)

    await threads.run(change)
    assert (work / "moved").read_text() == "in"
    assert [*(work / "folder").iterdir()] == []


async def test_what_the_work_raises_is_raised(threads: ChangeThreads) -> None:
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: print(1 // 0))


async def test_without_landlock_it_works_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "LEAST_ABI", 1000)
    root = os.open(tmp_path, os.O_RDONLY)
    threads = ChangeThreads(root)
    assert await threads.run(lambda: 7) == 7
    assert threads.landlock == "off: this system has none"
    threads.close()
    os.close(root)


def test_a_worker_reads_and_computes_only(tmp_path: Path, threads: ChangeThreads) -> None:
    (tmp_path / "there").write_text("text")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        done = subprocess.run(
            [sys.executable, "-c", COMPUTING, str(tmp_path), str(listening.getsockname()[1])],
            capture_output=True,
            text=True,
            check=False,
        )
    files, others = done.stdout.splitlines() or ["", done.stderr]
    assert files == "[True, True, True, True, True, 'text']"
    assert others == "[True, True]" or landlock.abi() < 6, "older ones know of files only"


async def test_the_daemon_says_so_and_programs_that_it_starts_are_free(base: Path, threads: ChangeThreads) -> None:
    """The first thread starts what a policy names. Landlock takes a bit that the kernel shows of each thread."""
    with running(base) as daemon:
        assert daemon.process is not None
        async with daemon.client("alice") as alice, daemon.client() as person:
            assert (await alice.write_file("a.txt", "a\n", mode="create")).status == "applied"
            assert (await person.status()).health.landlock == "on"
        tasks = Path(f"/proc/{daemon.process.pid}/task")
        restricted = {task.name for task in tasks.iterdir() if "NoNewPrivs:\t1" in (task / "status").read_text()}
        assert restricted
        assert str(daemon.process.pid) not in restricted
