"""A durable change: what comes out is proven, what is foreign stays, and nothing is left behind."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import pytest

from orchestrator.core.content import digest_of
from orchestrator.core.errors import (
    DiskFull,
    FileBusy,
    FileExists,
    NotADirectory,
    OrchestratorError,
    WritesStopped,
)
from orchestrator.ports.workspace import ChangedMeanwhile, DiskChange
from orchestrator.workspace.confine import BLOCK_BYTES, digest_from
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from tests.workspace.changes import (
    TEMP,
    Make,
    as_path,
    carry_out,
    creating,
    deleting,
    moving,
    replacing,
    tree,
)
from tests.workspace.recording import RecordingDisk

pytestmark = pytest.mark.usefixtures("leases", "no_leaks")

OLD, NEW, FOREIGN = b"old content", b"new", b"somebody else's"
STEPS = [
    "temp_created",
    "temp_half_written",
    "temp_half_written",
    "temp_synced",
    "hash_rechecked",
    "swapped",
    "directory_synced",
]


class At:
    """A step that does something when it comes to a name, and remembers all names."""

    def __init__(self, name: str = "", act: Callable[[], object] = lambda: None) -> None:
        self.name, self.act, self.met = name, act, list[str]()

    def __call__(self, name: str) -> None:
        self.met.append(name)
        if name == self.name:
            self.name = ""
            self.act()


class Twice(At):
    """Another program writes before the exchange, and does something more before the swap back."""

    def __init__(self, path: Path, then: Callable[[], object]) -> None:
        super().__init__("swapped_stale", then)
        self.path = path

    def __call__(self, name: str) -> None:
        if name == "hash_rechecked":
            self.path.write_bytes(FOREIGN)
        super().__call__(name)


@contextmanager
def writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a file open for writing; a line on its stdin is written to it."""
    code = (
        "import sys\nf = open(sys.argv[1], 'r+b', 0)\nprint('open', flush=True)\n"
        "for line in sys.stdin:\n    f.write(line.encode()); print('written', flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        assert process.stdin is not None
        process.stdin.close()


def test_replace(make: Make, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    step = At()
    workspace = make(step=step)
    writing = workspace.atomic_write(replacing("f", OLD, NEW))
    writing.stage()
    stat = writing.commit()
    assert tree(root) == {TEMP: OLD, "f": NEW}
    assert stat == workspace.stat(as_path("f"))
    assert writing.finish() == ()
    assert tree(root) == {"f": NEW}
    assert step.met == [*STEPS, "unlinked"]
    assert writing.warnings == ()
    writing.abandon()
    assert tree(root) == {"f": NEW}


def test_create_with_its_parents(make: Make, root: Path) -> None:
    step = At()
    workspace = make(step=step)
    writing = workspace.atomic_write(creating("a/b/f", NEW, parents=("a", "a/b")))
    writing.stage()
    assert writing.commit() == workspace.stat(as_path("a/b/f"))
    assert writing.finish() == ()
    assert tree(root) == {"a": None, "a/b": None, "a/b/f": NEW}
    assert step.met == [*STEPS, "unlinked"]


@pytest.mark.parametrize("change", [replacing("d/f", OLD, NEW), deleting("d/f", OLD)], ids=["replace", "delete"])
def test_another_directory_has_its_name_after_the_release(
    workspace: LocalWorkspace, root: Path, change: DiskChange
) -> None:
    """What is changed is changed in the directory that was looked at, though the other holds the same."""
    (root / "d").mkdir()
    (root / "d/f").write_bytes(OLD)
    writing = workspace.atomic_write(change)
    writing.stage()
    writing.release()
    (root / "d").rename(root / "away")
    (root / "d").mkdir()
    (root / "d/f").write_bytes(OLD)
    with pytest.raises(ChangedMeanwhile):
        writing.commit()
    writing.abandon()
    assert (root / "d/f").read_bytes() == (root / "away/f").read_bytes() == OLD


def test_it_is_moved_away_before_it_is_rolled_back(workspace: LocalWorkspace, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d/f").write_bytes(OLD)
    writing = workspace.atomic_write(replacing("d/f", OLD, NEW))
    writing.stage()
    writing.commit()
    writing.release()
    (root / "d").rename(root / "away")
    with pytest.raises(ChangedMeanwhile):
        writing.roll_back()
    assert writing.finish() == ()
    writing.abandon()
    assert tree(root) == {"away": None, "away/f": NEW, f"away/{TEMP}": OLD}


def test_delete(workspace: LocalWorkspace, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    writing = workspace.atomic_write(deleting("f", OLD))
    writing.stage()
    assert writing.commit() is None
    assert tree(root) == {TEMP: OLD}
    assert writing.finish() == ()
    assert tree(root) == {}


def test_move_keeps_the_file_itself(workspace: LocalWorkspace, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    inode = (root / "f").stat().st_ino
    writing = workspace.atomic_write(moving("f", "d/g", OLD, parents=("d",)))
    writing.stage()
    assert writing.commit() == workspace.stat(as_path("d/g"))
    assert writing.finish() == ()
    assert tree(root) == {"d": None, "d/g": OLD}
    assert (root / "d/g").stat().st_ino == inode
    with open(root / "d/g", "ab"):  # no lease is left that would hold a writer up
        pass


def test_make_directory(workspace: LocalWorkspace, root: Path) -> None:
    change = DiskChange(path=as_path("a/b"), before=None, after=None, directory="made", parents=(as_path("a"),))
    writing = workspace.atomic_write(change)
    writing.stage()
    stat = writing.commit()
    assert stat is not None
    assert stat.kind == "directory"
    assert writing.finish() == ()
    again = workspace.atomic_write(change)
    again.stage()
    with pytest.raises(FileExists):
        again.commit()


@pytest.mark.parametrize("directory", ["made", "removed"])
def test_a_directory_stays_as_it_is_where_the_one_above_it_was_moved_away(
    workspace: LocalWorkspace, root: Path, tmp_path: Path, directory: Literal["made", "removed"]
) -> None:
    (root / "a" / "b").mkdir(parents=True)
    if directory == "made":
        (root / "a" / "b").rmdir()
    writing = workspace.atomic_write(DiskChange(path=as_path("a/b"), before=None, after=None, directory=directory))
    writing.stage()
    (root / "a").rename(tmp_path / "away")
    with pytest.raises(ChangedMeanwhile):
        writing.commit()
    assert (tmp_path / "away" / "b").exists() == (directory == "removed")


@pytest.mark.parametrize("size", [0, 1, 2, 3_000_001])
def test_any_size(size: int, workspace: LocalWorkspace, root: Path) -> None:
    data = os.urandom(size)
    carry_out(workspace, creating("f", data))
    assert (root / "f").read_bytes() == data
    carry_out(workspace, replacing("f", data, data + b"\n"))
    assert (root / "f").read_bytes() == data + b"\n"


# --- somebody else's content --------------------------------------------------------------


def _overwrite(path: Path) -> None:
    path.write_bytes(FOREIGN)


def _exchange(path: Path) -> None:
    (path.parent / "swap").write_bytes(FOREIGN)
    (path.parent / "swap").rename(path)


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


FOREIGN_WAYS = [_overwrite, _exchange, _link, _pipe, _directory, Path.unlink]
CHANGES = [
    pytest.param(lambda: replacing("f", OLD, NEW), id="replace"),
    pytest.param(lambda: deleting("f", OLD), id="delete"),
    pytest.param(lambda: moving("f", "g", OLD), id="move"),
]


@pytest.mark.parametrize("meddle", FOREIGN_WAYS)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", ["temp_synced", "hash_rechecked"])
def test_what_comes_between_hash_and_swap_stays(
    when: str, change: Callable[[], DiskChange], meddle: Callable[[Path], object], make: Make, root: Path
) -> None:
    (root / "f").write_bytes(OLD)
    found: list[dict[str, bytes | None]] = []

    def act() -> None:
        meddle(root / "f")
        found.append({name: data for name, data in tree(root).items() if name != TEMP})

    writing = make(step=At(when, act)).atomic_write(change())
    writing.stage()
    if not found and when == "temp_synced":
        act()  # no temporary file is needed, so there is no such step
    with pytest.raises((ChangedMeanwhile, OrchestratorError)) as refused:
        writing.commit()
    if when == "hash_rechecked":
        assert isinstance(refused.value, ChangedMeanwhile)
        assert not refused.value.diverged
    writing.abandon()
    assert tree(root) == found[0]


@pytest.mark.parametrize("change", [creating("f", NEW), moving("g", "f", OLD)], ids=["create", "move"])
def test_what_takes_the_name_first_stays(change: DiskChange, make: Make, root: Path) -> None:
    (root / "g").write_bytes(OLD)
    writing = make(step=At("hash_rechecked", lambda: _overwrite(root / "f"))).atomic_write(change)
    writing.stage()
    with pytest.raises(ChangedMeanwhile):
        writing.commit()
    assert tree(root) == {"f": FOREIGN, "g": OLD}


def test_what_takes_the_name_of_a_deleted_file_that_goes_back_stays(make: Make, root: Path) -> None:
    (root / "f").write_bytes(OLD)

    writing = make(step=Twice(root / "f", lambda: (root / "f").write_bytes(b"third"))).atomic_write(deleting("f", OLD))
    writing.stage()
    with pytest.raises(ChangedMeanwhile) as displaced:
        writing.commit()
    assert displaced.value.diverged
    assert displaced.value.unexpected == (b"third", FOREIGN)
    assert tree(root) == {TEMP: FOREIGN, "f": b"third"}
    assert writing.finish() == ()
    assert tree(root) == {"f": b"third"}


def test_a_second_writer_before_the_swap_back_diverges(make: Make, root: Path) -> None:
    (root / "f").write_bytes(OLD)

    writing = make(step=Twice(root / "f", lambda: (root / "f").write_bytes(b"third"))).atomic_write(
        replacing("f", OLD, NEW)
    )
    writing.stage()
    with pytest.raises(ChangedMeanwhile) as displaced:
        writing.commit()
    assert displaced.value.diverged
    assert displaced.value.unexpected == (FOREIGN, b"third")
    assert tree(root) == {TEMP: b"third", "f": FOREIGN}
    (root / TEMP).write_bytes(b"fourth")
    assert writing.finish() == (b"fourth",)
    assert writing.finish() == ()
    assert tree(root) == {"f": FOREIGN}


def test_a_link_that_took_the_name_before_the_swap_back_has_it(make: Make, root: Path) -> None:
    (root / "f").write_bytes(OLD)

    def link() -> None:
        (root / "f").unlink()
        (root / "f").symlink_to("elsewhere")

    writing = make(step=Twice(root / "f", link)).atomic_write(replacing("f", OLD, NEW))
    writing.stage()
    with pytest.raises(ChangedMeanwhile) as displaced:
        writing.commit()
    assert displaced.value.diverged
    assert displaced.value.unexpected == (FOREIGN,)
    assert (root / "f").readlink() == Path("elsewhere")
    assert (root / TEMP).read_bytes() == FOREIGN
    assert writing.finish() == ()
    assert not (root / TEMP).exists()


def test_our_content_deleted_before_the_swap_back(make: Make, root: Path) -> None:
    (root / "f").write_bytes(OLD)

    writing = make(step=Twice(root / "f", (root / "f").unlink)).atomic_write(replacing("f", OLD, NEW))
    writing.stage()
    with pytest.raises(ChangedMeanwhile) as displaced:
        writing.commit()
    assert not displaced.value.diverged
    assert tree(root) == {"f": FOREIGN}


@pytest.mark.parametrize("change", CHANGES)
def test_a_writer_that_holds_the_file_open_makes_it_busy(
    change: Callable[[], DiskChange], workspace: LocalWorkspace, root: Path
) -> None:
    (root / "f").write_bytes(OLD)
    with writer(root / "f"):
        writing = workspace.atomic_write(change())
        writing.stage()
        with pytest.raises(FileBusy):
            writing.commit()
        assert tree(root) == {"f": OLD}
    carry_out(workspace, change())


def test_no_writer_gets_at_what_was_swapped_out(workspace: LocalWorkspace, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    writing = workspace.atomic_write(replacing("f", OLD, NEW))
    writing.stage()
    writing.commit()
    with pytest.raises(BlockingIOError):  # the lease: a writer waits until it is given back
        os.open(root / TEMP, os.O_WRONLY | os.O_NONBLOCK)
    writing.finish()


def test_without_leases_a_late_write_is_handed_over(make: Make, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.workspace.disk._Leases.allowed", False)
    (root / "f").write_bytes(OLD)
    workspace = make()
    assert any("leases" in sentence for sentence in workspace.features)
    with writer(root / "f") as process:
        writing = workspace.atomic_write(replacing("f", OLD, NEW))
        writing.stage()
        writing.commit()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("late\n")
        process.stdin.flush()
        assert process.stdout.readline() == "written\n"
        late = b"late\n" + OLD[5:]
        assert writing.finish() == (late,)
        assert tree(root) == {TEMP: late, "f": NEW}
        assert writing.finish() == ()
        assert tree(root) == {"f": NEW}


def test_a_change_right_after_the_write_shows_as_another_stat(make: Make, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    workspace = make(step=At("directory_synced", lambda: _exchange(root / "f")))
    writing = workspace.atomic_write(replacing("f", OLD, NEW))
    writing.stage()
    stat = writing.commit()
    writing.finish()
    now = workspace.stat(as_path("f"))
    assert stat is not None
    assert now is not None
    assert stat.signature != now.signature


def test_a_parent_that_is_moved_away_takes_nothing_with_it(make: Make, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d/f").write_bytes(OLD)

    def act() -> None:
        (root / "d").rename(root / "gone")
        (root / "d").symlink_to(root.parent)

    for change in (replacing("d/f", OLD, NEW), deleting("d/f", OLD), creating("d/g", NEW)):
        for when in ("hash_rechecked", "swapped"):
            writing = make(step=At(when, act)).atomic_write(change)
            writing.stage()
            with pytest.raises(ChangedMeanwhile):
                writing.commit()
            assert tree(root) == {"d": None, "gone": None, "gone/f": OLD}
            (root / "d").unlink()
            (root / "gone").rename(root / "d")


# --- trouble with the disk ----------------------------------------------------------------


def _failing(make: Make, root: Path, sentence: str, number: int) -> LocalWorkspace:
    recording = RecordingDisk(Disk(), str(root))
    recording.fail = lambda reported: OSError(number, os.strerror(number)) if reported == sentence else None
    return make(disk=recording.disk)


@pytest.mark.parametrize("call", ["create", "write", "sync"])
def test_a_full_disk_leaves_nothing_behind(call: str, make: Make, root: Path) -> None:
    workspace = _failing(make, root, f"{call} a/b/{TEMP}", errno.ENOSPC)
    writing = workspace.atomic_write(creating("a/b/f", NEW, parents=("a", "a/b")))
    with pytest.raises(DiskFull):
        writing.stage()
    writing.abandon()
    writing.abandon()
    assert tree(root) == {}


def test_a_failed_sync_of_the_temp_stops_writes(make: Make, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    writing = _failing(make, root, f"sync {TEMP}", errno.EIO).atomic_write(replacing("f", OLD, NEW))
    with pytest.raises(WritesStopped):
        writing.stage()
    assert tree(root) == {"f": OLD}


@pytest.mark.parametrize("change", CHANGES)
def test_a_failed_sync_of_the_directory_stops_writes(change: Callable[[], DiskChange], make: Make, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    writing = _failing(make, root, "sync .", errno.EIO).atomic_write(change())
    writing.stage()
    with pytest.raises(WritesStopped):
        writing.commit()
    writing.abandon()


def test_trouble_after_the_swap_leaves_both_contents(make: Make, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    disk = RecordingDisk(Disk(), str(root))
    writing = make(disk=disk.disk).atomic_write(replacing("f", OLD, NEW))
    writing.stage()
    disk.fail = lambda sentence: OSError(errno.EIO, "broken") if sentence == f"read {TEMP}" else None
    with pytest.raises(WritesStopped):
        writing.commit()
    writing.abandon()
    assert tree(root) == {TEMP: OLD, "f": NEW}


def test_short_writes_are_continued(make: Make, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    whole = disk.write
    monkeypatch.setattr(disk, "write", lambda handle, data: whole(handle, data[:7]))
    data = os.urandom(1000)
    carry_out(make(disk=disk), creating("f", data))
    assert (root / "f").read_bytes() == data


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS])
def test_where_exchange_cannot_be_had(number: int, make: Make, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    syscall, renameat2 = disk._libc.syscall, disk._renameat2

    def refuse(called: ctypes.c_long, *values: object) -> int:
        if called.value != renameat2:
            return int(syscall(called, *values))
        ctypes.set_errno(number)
        return -1

    monkeypatch.setattr(disk, "_libc", SimpleNamespace(syscall=refuse))
    workspace = make(disk=disk)
    carry_out(workspace, creating("f", OLD))
    assert carry_out(workspace, replacing("f", OLD, NEW)) == ()
    carry_out(workspace, moving("f", "g", NEW))
    (root / "h").write_bytes(FOREIGN)
    writing = workspace.atomic_write(creating("h", NEW))
    writing.stage()
    with pytest.raises(ChangedMeanwhile):
        writing.commit()
    assert tree(root) == {"g": NEW, "h": FOREIGN}
    assert len([s for s in workspace.features if "rename" in s]) == 2
    carry_out(workspace, deleting("g", NEW))
    assert tree(root) == {"h": FOREIGN}


def test_parents_that_are_not_directories(workspace: LocalWorkspace, root: Path) -> None:
    (root / "a").write_bytes(OLD)
    writing = workspace.atomic_write(creating("a/f", NEW, parents=("a",)))
    with pytest.raises(NotADirectory):
        writing.stage()
    assert tree(root) == {"a": OLD}


# --- recovery -----------------------------------------------------------------------------


def test_leftovers(workspace: LocalWorkspace, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / TEMP).write_bytes(FOREIGN)
    (root / "d/f").write_bytes(NEW)
    (root / ".orchestrator-2.tmp").symlink_to("d/f")
    (root / ".orchestrator-3.tmp").mkdir()
    (root / ".gitignore").write_bytes(b"d\n")
    temps = workspace.temps()
    assert temps == [f"d/{TEMP}"]
    read = workspace.read_temp(temps[0], most=1 << 20)
    assert read is not None
    assert read.digest == digest_of(FOREIGN)
    workspace.exchange_back(temps[0], as_path("d/f"))
    assert (root / "d/f").read_bytes() == FOREIGN
    workspace.unlink_temp(temps[0])
    workspace.unlink_temp(temps[0])
    assert workspace.read_temp(temps[0], most=1 << 20) is None
    assert workspace.temps() == []
    workspace.sync_directory(as_path("d/f"))


def test_another_users_leftover_is_not_ours(make: Make, root: Path) -> None:
    (root / TEMP).write_bytes(FOREIGN)
    workspace = make(uid=os.getuid() + 1)
    assert workspace.temps() == []
    ours = make().temps()[0]
    assert workspace.read_temp(ours, most=1 << 20) is None
    workspace.unlink_temp(ours)
    assert (root / TEMP).exists()


WHOLE = bytes(range(256)) * (BLOCK_BYTES // 256) + b"and a little more"
"""Of more than one block."""


@pytest.mark.parametrize(
    ("stands", "same"),
    [
        pytest.param(WHOLE, True, id="the content"),
        pytest.param(WHOLE[:-1], False, id="its beginning"),
        pytest.param(WHOLE + b"!", False, id="it and more"),
        pytest.param(WHOLE[:BLOCK_BYTES], False, id="its first block"),
        pytest.param(b"x" + WHOLE[1:], False, id="another first byte"),
        pytest.param(WHOLE[:-1] + b"!", False, id="another last byte"),
        pytest.param(b"", False, id="nothing"),
    ],
)
def test_what_is_met_is_held_against_the_whole_content(root: Path, stands: bytes, same: bool) -> None:
    (root / "a").write_bytes(stands)
    with (root / "a").open("rb") as file:
        assert (digest_from(Disk(), file.fileno()) == digest_of(WHOLE)) == same
