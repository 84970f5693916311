"""What a durable change leaves as it was, and what it refuses."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.core.content import digest_of
from orchestrator.core.errors import FileBusy, WritesStopped
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.ports.workspace import ChangedMeanwhile, DiskChange
from orchestrator.workspace.atomic_write import LocalAtomicWrite
from orchestrator.workspace.disk import Disk, ignore_lease_breaks
from orchestrator.workspace.local import LocalWorkspace

TEMP = ".orchestrator-1.tmp"
OLD, NEW = b"old\r\ncontent", b"new\r\ncontent, longer"


@pytest.fixture(autouse=True)
def leases() -> Iterator[None]:
    before = signal.getsignal(signal.SIGIO)
    ignore_lease_breaks()
    yield
    signal.signal(signal.SIGIO, before)


def replacing(path: str = "a", before: bytes = OLD, after: bytes = NEW) -> DiskChange:
    return DiskChange(path=WorkspacePath(path), before=digest_of(before), after=digest_of(after), data=after, temp=TEMP)


def carried_out(workspace: LocalWorkspace, change: DiskChange) -> LocalAtomicWrite:
    writing = workspace.atomic_write(change)
    writing.stage()
    writing.commit()
    assert writing.finish() == ()
    return writing


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o444])
def test_mode_owner_and_attributes_stay(workspace: LocalWorkspace, root: Path, mode: int) -> None:
    file = root / "a"
    file.write_bytes(OLD)
    file.chmod(mode)
    try:
        os.setxattr(file, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    if os.getuid() == 0:
        os.chown(file, 12345, 23456)
    before = file.stat()
    writing = carried_out(workspace, replacing())
    after = file.stat()
    assert file.read_bytes() == NEW
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert os.getxattr(file, "user.note") == b"kept"
    assert writing.warnings == ()
    assert os.listdir(root) == ["a"]


def test_setuid_is_dropped_with_a_warning(workspace: LocalWorkspace, root: Path) -> None:
    file = root / "a"
    file.write_bytes(OLD)
    file.chmod(0o4755)
    writing = carried_out(workspace, replacing())
    assert file.stat().st_mode & 0o7777 == 0o755
    assert "setuid" in " ".join(writing.warnings)


def test_a_hard_link_is_broken_with_a_warning(workspace: LocalWorkspace, root: Path) -> None:
    outside = root.parent / "outside"
    outside.write_bytes(OLD)
    os.link(outside, root / "a")
    writing = carried_out(workspace, replacing())
    assert outside.read_bytes() == OLD
    assert (root / "a").read_bytes() == NEW
    assert "names" in " ".join(writing.warnings)


def test_create_makes_parents_and_never_overwrites(workspace: LocalWorkspace, root: Path) -> None:
    deep = DiskChange(
        path=WorkspacePath("x/y/a"),
        before=None,
        after=digest_of(NEW),
        data=NEW,
        temp=TEMP,
        parents=(WorkspacePath("x"), WorkspacePath("x/y")),
    )
    carried_out(workspace, deep)
    assert (root / "x/y/a").read_bytes() == NEW

    writing = workspace.atomic_write(
        DiskChange(path=WorkspacePath("b"), before=None, after=digest_of(NEW), data=NEW, temp=TEMP)
    )
    writing.stage()
    (root / "b").write_bytes(b"somebody else's")
    with pytest.raises(ChangedMeanwhile):
        writing.commit()
    assert (root / "b").read_bytes() == b"somebody else's"
    assert sorted(os.listdir(root)) == ["b", "x"]


def test_delete_and_move(workspace: LocalWorkspace, root: Path) -> None:
    (root / "a").write_bytes(OLD)
    carried_out(workspace, DiskChange(path=WorkspacePath("a"), before=digest_of(OLD), after=None, temp=TEMP))
    assert os.listdir(root) == []

    (root / "a").write_bytes(OLD)
    moving = DiskChange(path=WorkspacePath("b"), before=None, after=digest_of(OLD), moved_from=WorkspacePath("a"))
    carried_out(workspace, moving)
    assert (root / "b").read_bytes() == OLD

    (root / "a").write_bytes(b"another")
    again = DiskChange(path=WorkspacePath("a"), before=None, after=digest_of(OLD), moved_from=WorkspacePath("b"))
    writing = workspace.atomic_write(again)
    writing.stage()
    with pytest.raises(ChangedMeanwhile):
        writing.commit()
    assert (root / "a").read_bytes() == b"another"
    assert (root / "b").read_bytes() == OLD


def foreign_before_the_swap(root: Path, name: str = "a") -> Disk:
    """A disk under which another program writes the file in the instant before the swap."""

    class Meddling(Disk):
        def rename(self, from_dir: int, old: str, to_dir: int, new: str, how: object) -> None:
            if not self.done:
                self.done = True
                (root / name).write_bytes(b"foreign")
            super().rename(from_dir, old, to_dir, new, how)  # type: ignore[arg-type]

        done = False

    return Meddling()


@pytest.mark.parametrize("after", [NEW, None], ids=["replace", "delete"])
def test_row_30_foreign_content_in_the_last_instant_survives(root: Path, after: bytes | None) -> None:
    (root / "a").write_bytes(OLD)
    workspace = LocalWorkspace(str(root), disk=foreign_before_the_swap(root))
    digest: Digest | None = digest_of(after) if after is not None else None
    change = DiskChange(path=WorkspacePath("a"), before=digest_of(OLD), after=digest, data=after, temp=TEMP)
    writing = workspace.atomic_write(change)
    writing.stage()
    with pytest.raises(ChangedMeanwhile) as displaced:
        writing.commit()
    assert not displaced.value.diverged
    assert (root / "a").read_bytes() == b"foreign"
    assert os.listdir(root) == ["a"]
    workspace.close()


def test_row_11b_a_file_that_somebody_is_writing_is_busy(workspace: LocalWorkspace, root: Path) -> None:
    (root / "a").write_bytes(OLD)
    with (root / "a").open("r+b") as writer:
        try:
            fcntl.fcntl(os.open(root, os.O_RDONLY), fcntl.F_GETLEASE)
        except OSError:
            pytest.skip("this file system has no leases")
        writing = workspace.atomic_write(replacing())
        writing.stage()
        with pytest.raises(FileBusy):
            writing.commit()
        writer.write(b"mine")
    assert (root / "a").read_bytes() == b"mine" + OLD[4:]
    assert os.listdir(root) == ["a"]


def test_bytes_that_come_after_the_proof_are_handed_over(workspace: LocalWorkspace, root: Path) -> None:
    (root / "a").write_bytes(OLD)
    writing = workspace.atomic_write(replacing())
    writing.stage()
    writing.commit()
    (root / TEMP).unlink()
    (root / TEMP).write_bytes(b"late")
    assert writing.finish() == (b"late",)
    assert (root / TEMP).exists()
    assert writing.finish() == ()
    assert os.listdir(root) == ["a"]


def test_a_directory_that_something_is_in_by_now_is_left_to_the_next_start(
    workspace: LocalWorkspace, root: Path
) -> None:
    writing = workspace.atomic_write(DiskChange(path=WorkspacePath("d"), before=None, after=None, directory="made"))
    writing.stage()
    writing.commit()
    (root / "d" / "theirs").write_bytes(b"x")
    with pytest.raises(WritesStopped):
        writing.roll_back()
    assert (root / "d" / "theirs").read_bytes() == b"x"
