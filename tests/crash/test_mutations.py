"""Each precaution of a durable change, and what is lost without it: the same test passes with it and fails without."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.core.content import digest_of
from orchestrator.core.errors import FileBusy
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.ports.machine import Step
from orchestrator.ports.workspace import ChangedMeanwhile, DiskChange
from orchestrator.workspace import disk as kernel
from orchestrator.workspace.atomic_write import LocalAtomicWrite
from orchestrator.workspace.local import LocalWorkspace
from tests.crash.lost_writes import (
    LosingDisk,
    NoDirectorySync,
    NoFileSync,
    NoLease,
    NoSyncOfParents,
    Overwriting,
)

OLD, NEW, FOREIGN = b"old content\n", b"new content\n", b"of somebody else\n"
TEMP = ".orchestrator-test.tmp"


@pytest.fixture(autouse=True)
def leases() -> Iterator[None]:
    """Leases are taken in this process too, as in the daemon; put back after."""
    before, allowed = signal.getsignal(signal.SIGIO), kernel._Leases.allowed
    kernel.ignore_lease_breaks()
    yield
    signal.signal(signal.SIGIO, before)
    kernel._Leases.allowed = allowed


class PowerGone(Exception):
    """Nothing after this step was carried out."""


def change(before: bytes | None, after: bytes | None, path: str = "file") -> DiskChange:
    return DiskChange(
        path=WorkspacePath(path),
        before=_digest(before),
        after=_digest(after),
        data=after,
        temp=TEMP,
        parents=tuple(WorkspacePath(above) for above in ("a", "a/b")) if "/" in path else (),
    )


def _digest(content: bytes | None) -> Digest | None:
    return digest_of(content) if content is not None else None


def atomic_write(base: Path, disk: LosingDisk, wanted: DiskChange, step: Step = lambda name: None) -> LocalAtomicWrite:
    if wanted.before is not None and not (base / wanted.path).exists():
        (base / wanted.path).write_bytes(OLD)
    return LocalWorkspace(str(base), disk=disk, step=step).atomic_write(wanted)


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


# --- the order of calls -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            OLD,
            NEW,
            ["create", "write", "sync file", "exchange", "lease", "read", "sync directory", "unlink"],
            id="edit",
        ),
        pytest.param(None, NEW, ["create", "write", "sync file", "noreplace", "sync directory"], id="create"),
        pytest.param(OLD, None, ["read", "noreplace", "lease", "read", "sync directory", "unlink"], id="delete"),
    ],
)
def test_the_order(base: Path, before: bytes | None, after: bytes | None, expected: list[str]) -> None:
    disk = LosingDisk()
    writing = atomic_write(base, disk, change(before, after))
    writing.stage()
    writing.commit()
    assert "unlink" not in disk.calls  # what was swapped out stays until the outcome is committed
    writing.finish()
    calls = iter(disk.calls)
    assert [call for call in expected if call in calls] == expected, disk.calls  # in this order, others between
    assert content(base / "file") == after
    assert not (base / TEMP).exists()


# --- power fails ---------------------------------------------------------------------------


def survives(base: Path, disk: LosingDisk, wanted: DiskChange, at: str, *, names: bool) -> bytes | None:
    """What stands at the path when power fails at a step (or `answered`, after all of them)."""

    def step(name: str) -> None:
        if name == at:
            raise PowerGone(name)

    writing = atomic_write(base, disk, wanted, step)
    try:
        writing.stage()
        writing.commit()
    except PowerGone:
        pass
    disk.power_fails(names=names)
    return content(base / wanted.path)


STEPS = ("temp_synced", "hash_rechecked", "swapped", "directory_synced", "answered")


@pytest.mark.parametrize("names", [False, True], ids=["names kept", "names lost"])
@pytest.mark.parametrize("at", STEPS)
@pytest.mark.parametrize("before", [OLD, None], ids=["edit", "create"])
def test_power_fails(base: Path, before: bytes | None, at: str, names: bool) -> None:
    """The old content or the new one, whole; the new one from the moment on that success may be answered."""
    stands = survives(base, LosingDisk(), change(before, NEW), at, names=names)
    assert stands in ((NEW,) if at in ("directory_synced", "answered") else (before, NEW))


def test_power_fails_after_a_file_below_new_directories(base: Path) -> None:
    assert survives(base, LosingDisk(), change(None, NEW, "a/b/file"), "answered", names=True) == NEW


def test_without_the_sync_of_the_file(base: Path) -> None:
    assert survives(base, NoFileSync(), change(OLD, NEW), "swapped", names=False) == b""


def test_without_the_sync_of_the_directory(base: Path) -> None:
    assert survives(base, NoDirectorySync(), change(OLD, NEW), "answered", names=True) == OLD


def test_without_the_sync_of_new_parents(base: Path) -> None:
    assert survives(base, NoSyncOfParents(), change(None, NEW, "a/b/file"), "answered", names=True) is None


def test_a_parent_that_another_change_has_just_made_is_synced(base: Path) -> None:
    disk = LosingDisk()
    workspace = LocalWorkspace(str(base), disk=disk)
    disk.make_directory(workspace._at.root, "a")  # by a change that has not come to its sync yet
    writing = workspace.atomic_write(change(None, NEW, "a/b/file"))
    writing.stage()
    writing.commit()
    disk.power_fails(names=True)
    assert content(base / "a/b/file") == NEW


# --- another program in between -------------------------------------------------------------


def meddled(
    base: Path, disk: LosingDisk, wanted: DiskChange, *, by: Callable[[Path], object], proof: bool = True
) -> str:
    """Carry a change out, while somebody does something to the path right before the swap."""

    def step(name: str) -> None:
        if name == "hash_rechecked":
            by(base / wanted.path)

    writing = atomic_write(base, disk, wanted, step)
    if not proof:
        writing._verify = lambda *_: None  # type: ignore[method-assign]
    writing.stage()
    try:
        writing.commit()
    except ChangedMeanwhile as displaced:
        writing.abandon()
        return "diverged" if displaced.diverged or (base / TEMP).exists() else "displaced"
    writing.finish()
    return "applied"


def write_in_place(path: Path) -> None:
    path.write_bytes(FOREIGN)


def write_and_rename(path: Path) -> None:
    beside = path.with_name("beside")
    beside.write_bytes(FOREIGN)
    beside.rename(path)


HANDS = [write_in_place, write_and_rename]


@pytest.mark.parametrize("by", HANDS)
@pytest.mark.parametrize("after", [NEW, None], ids=["edit", "delete"])
def test_a_write_before_the_swap(base: Path, after: bytes | None, by: Callable[[Path], object]) -> None:
    assert meddled(base, LosingDisk(), change(OLD, after), by=by) == "displaced"
    assert content(base / "file") == FOREIGN


@pytest.mark.parametrize("by", HANDS)
@pytest.mark.parametrize("after", [NEW, None], ids=["edit", "delete"])
def test_without_the_proof(base: Path, after: bytes | None, by: Callable[[Path], object]) -> None:
    assert meddled(base, LosingDisk(), change(OLD, after), by=by, proof=False) == "applied"
    assert content(base / "file") == after  # what the other program wrote stands nowhere


@pytest.mark.parametrize("by", HANDS)
def test_a_file_made_before_ours_gets_the_name(base: Path, by: Callable[[Path], object]) -> None:
    assert meddled(base, LosingDisk(), change(None, NEW), by=by) == "displaced"
    assert content(base / "file") == FOREIGN


@pytest.mark.parametrize("by", HANDS)
def test_without_noreplace(base: Path, by: Callable[[Path], object]) -> None:
    assert meddled(base, Overwriting(), change(None, NEW), by=by) == "applied"
    assert content(base / "file") == NEW


def edit_while_open(base: Path, disk: LosingDisk) -> str:
    (base / "file").write_bytes(OLD)
    editor = os.open(base / "file", os.O_RDWR)
    try:
        writing = atomic_write(base, disk, change(OLD, NEW))
        writing.stage()
        try:
            writing.commit()
            reported = "applied"
            writing.finish()
        except FileBusy:
            reported = "busy"
            writing.abandon()
        os.pwrite(editor, b"OLD", 0)
    finally:
        os.close(editor)
    assert not (base / TEMP).exists()
    return reported


def test_an_editor_that_has_the_file_open(base: Path) -> None:
    assert edit_while_open(base, LosingDisk()) == "busy"
    assert content(base / "file") == b"OLD content\n"


def test_without_the_lease(base: Path) -> None:
    assert edit_while_open(base, NoLease()) == "applied"
    assert content(base / "file") == NEW  # what the editor wrote stands nowhere


def test_what_is_written_to_the_old_content_before_it_is_unlinked_is_kept(base: Path) -> None:
    """Where leases can't be had: hashed once more, and handed over before it goes."""
    writing = atomic_write(base, NoLease(), change(OLD, NEW))
    writing.stage()
    writing.commit()
    (base / TEMP).write_bytes(FOREIGN)
    assert writing.finish() == (FOREIGN,)
    assert (base / TEMP).exists()
    assert writing.finish() == ()
    assert not (base / TEMP).exists()


# --- the stat that is handed back ------------------------------------------------------------


@pytest.mark.parametrize("by", HANDS)
def test_a_write_right_after_the_swap_is_not_taken_for_ours(base: Path, by: Callable[[Path], object]) -> None:
    """The stat is remembered as that of the new content; it must not be the one of what came after."""

    def step(name: str) -> None:
        if name == "directory_synced":
            by(base / "file")

    writing = atomic_write(base, LosingDisk(), change(OLD, NEW), step)
    writing.stage()
    stat = writing.commit()
    workspace = LocalWorkspace(str(base), disk=LosingDisk())
    now = workspace.stat(WorkspacePath("file"))
    assert stat is not None
    assert now is not None
    assert stat.signature != now.signature
    assert content(base / "file") == FOREIGN


def test_a_file_deleted_right_after_the_swap(base: Path) -> None:
    def step(name: str) -> None:
        if name == "directory_synced":
            (base / "file").unlink()

    writing = atomic_write(base, LosingDisk(), change(OLD, NEW), step)
    writing.stage()
    assert writing.commit() is None
