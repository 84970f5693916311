"""Each call that makes a change durable, or proves it, in its place: drop one and a line is missing here."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from orchestrator.ports.workspace import DiskChange
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from tests.workspace.changes import TEMP, as_path, carry_out, creating, deleting, moving, replacing
from tests.workspace.recording import RecordingDisk

pytestmark = pytest.mark.usefixtures("leases", "no_leaks")

OLD, NEW = b"old content", b"new"


def reported(root: Path, change: DiskChange) -> list[str]:
    recording = RecordingDisk(Disk(), str(root))
    workspace = LocalWorkspace(str(root), disk=recording.disk)
    try:
        carry_out(workspace, change)
    finally:
        workspace.close()
    return recording.reported


@pytest.fixture
def filled(root: Path) -> Path:
    (root / "d").mkdir()
    (root / "d/f").write_bytes(OLD)
    return root


def test_replace(filled: Path) -> None:
    assert reported(filled, replacing("d/f", OLD, NEW)) == [
        f"create d/{TEMP}",
        f"write d/{TEMP}",
        f"write d/{TEMP}",
        f"sync d/{TEMP}",
        f"read d/{TEMP}",
        "read d/f",
        f"rename d/{TEMP} d/f exchange",
        f"lease d/{TEMP}",
        f"read d/{TEMP}",
        "sync d",
        f"read d/{TEMP}",
        f"unlink_at d/{TEMP}",
    ]


def test_create(root: Path) -> None:
    assert reported(root, creating("a/b/f", NEW, parents=("a", "a/b"))) == [
        "make_directory a",
        "sync .",
        "make_directory a/b",
        "sync a",
        f"create a/b/{TEMP}",
        f"write a/b/{TEMP}",
        f"write a/b/{TEMP}",
        f"sync a/b/{TEMP}",
        f"read a/b/{TEMP}",
        f"rename a/b/{TEMP} a/b/f noreplace",
        "sync a/b",
    ]


def test_delete(filled: Path) -> None:
    assert reported(filled, deleting("d/f", OLD)) == [
        "read d/f",
        f"rename d/f d/{TEMP} noreplace",
        f"lease d/{TEMP}",
        f"read d/{TEMP}",
        "sync d",
        f"read d/{TEMP}",
        f"unlink_at d/{TEMP}",
    ]


def test_move(filled: Path) -> None:
    assert reported(filled, moving("d/f", "e/g", OLD, parents=("e",))) == [
        "make_directory e",
        "sync .",
        "read d/f",
        "rename d/f e/g noreplace",
        "lease e/g",
        "read e/g",
        "sync e",
        "sync d",
    ]


def test_make_directory(root: Path) -> None:
    change = DiskChange(path=as_path("a/b"), before=None, after=None, directory="made", parents=(as_path("a"),))
    assert reported(root, change) == ["make_directory a", "sync .", "make_directory a/b", "sync a"]


def test_recovery(filled: Path) -> None:
    (filled / "d" / TEMP).write_bytes(NEW)
    recording = RecordingDisk(Disk(), str(filled))
    workspace = LocalWorkspace(str(filled), disk=recording.disk)
    try:
        temp = workspace.temps()[0]
        workspace.exchange_back(temp, as_path("d/f"))
        workspace.unlink_temp(temp)
        workspace.sync_directory(as_path("d/f"))
    finally:
        workspace.close()
    assert recording.reported == [
        f"rename d/{TEMP} d/f exchange",
        "sync d",
        f"unlink_at d/{TEMP}",
        "sync d",
        "sync d",
    ]


def test_an_equal_signature_saves_the_first_hash_but_not_the_proof(filled: Path) -> None:
    workspace = LocalWorkspace(str(filled), disk=Disk())
    stat = workspace.stat(as_path("d/f"))
    workspace.close()
    assert stat is not None
    calls = reported(filled, msgspec.structs.replace(replacing("d/f", OLD, NEW), signature=stat.signature))
    assert "read d/f" not in calls
    assert f"read d/{TEMP}" in calls[calls.index(f"rename d/{TEMP} d/f exchange") :]
