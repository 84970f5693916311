"""No way out: links, devices and other strange files are refused, whichever way paths are opened."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.core.errors import (
    FileNotFound,
    FileTooLarge,
    NotADirectory,
    NotAFile,
    NotARegularFile,
    OrchestratorError,
    PathTooLong,
    SymlinkRefused,
)
from orchestrator.core.ids import WorkspacePath
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from orchestrator.workspace.own_files import OwnFiles

MOST = 1024 * 1024
SECRET = "the secret outside"


def outside_of(root: Path) -> Path:
    secret = root.parent / "secret"
    secret.write_text(SECRET)
    return secret


def link_to_secret(root: Path) -> None:
    (root / "x").symlink_to(outside_of(root))


def relative_link(root: Path) -> None:
    outside_of(root)
    (root / "x").symlink_to("../secret")


def link_inside(root: Path) -> None:
    (root / "real").write_text("inside")
    (root / "x").symlink_to("real")


def dangling(root: Path) -> None:
    (root / "x").symlink_to(root.parent / "nothing")


def link_to_proc(root: Path) -> None:
    (root / "x").symlink_to("/proc/self/environ")


def fifo(root: Path) -> None:
    os.mkfifo(root / "x")


def unix_socket(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "x"))


def device(root: Path) -> None:
    try:
        os.mknod(root / "x", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("making a device node needs CAP_MKNOD")


def directory(root: Path) -> None:
    (root / "x").mkdir()


@pytest.mark.parametrize(
    ("make", "error"),
    [
        pytest.param(link_to_secret, SymlinkRefused, id="20: absolute link out"),
        pytest.param(relative_link, SymlinkRefused, id="21: relative link out"),
        pytest.param(link_inside, SymlinkRefused, id="22: link inside"),
        pytest.param(dangling, SymlinkRefused, id="25: dangling link"),
        pytest.param(link_to_proc, SymlinkRefused, id="27: link into /proc"),
        pytest.param(fifo, NotARegularFile, id="33: FIFO"),
        pytest.param(device, NotARegularFile, id="35: device"),
        pytest.param(unix_socket, NotARegularFile, id="36: socket"),
        pytest.param(directory, NotAFile, id="36: directory"),
    ],
)
def test_what_is_not_read(
    workspace: LocalWorkspace, root: Path, make: Callable[[Path], None], error: type[OrchestratorError]
) -> None:
    make(root)
    with pytest.raises(error):
        workspace.read(WorkspacePath("x"), most=MOST)


def test_a_link_in_the_middle_is_refused(workspace: LocalWorkspace, root: Path) -> None:
    outside_of(root)
    (root / "up").symlink_to("..")
    for ask in (lambda p: workspace.read(p, most=MOST), workspace.stat, workspace.names):
        with pytest.raises(SymlinkRefused):
            ask(WorkspacePath("up/secret"))


def test_a_file_in_the_middle_is_no_directory(workspace: LocalWorkspace, root: Path) -> None:
    (root / "a").write_text("a")
    with pytest.raises(NotADirectory):
        workspace.read(WorkspacePath("a/b"), most=MOST)
    with pytest.raises(FileNotFound):
        workspace.read(WorkspacePath("no/b"), most=MOST)
    assert workspace.stat(WorkspacePath("no/b")) is None


def test_dot_dot_never_leaves(root: Path, disk: Disk) -> None:
    """Paths with `..` are refused before they come here; should one come, the kernel holds."""
    outside_of(root)
    handle = disk.open_root(str(root))
    try:
        with pytest.raises(OSError, match="cross-device"):
            disk.open_beneath(handle, "../secret", os.O_RDONLY)
    finally:
        os.close(handle)


def test_a_name_too_long(workspace: LocalWorkspace) -> None:
    with pytest.raises(PathTooLong):
        workspace.read(WorkspacePath("x" * 256), most=MOST)


def test_a_sparse_file_of_a_terabyte_is_refused_by_its_size(workspace: LocalWorkspace, root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(FileTooLarge):
        workspace.read(WorkspacePath("huge"), most=MOST)


def test_the_daemons_own_state_is_as_if_absent(root: Path, disk: Disk) -> None:
    state = root / "state"
    state.mkdir()
    (state / "journal.db").write_text("x")
    (state / "deep").mkdir()
    (state / "deep" / "blob").write_text("x")
    os.link(state / "journal.db", root / "hard")
    workspace = LocalWorkspace(str(root), disk=disk, own=OwnFiles((str(state),)))
    try:
        for path in ("state/journal.db", "state/deep/blob", "hard"):
            with pytest.raises(FileNotFound):
                workspace.read(WorkspacePath(path), most=MOST)
        assert workspace.stat(WorkspacePath("state")) is None
        assert workspace.stat(WorkspacePath("hard")) is None
        assert workspace.names(WorkspacePath(".")) == []
        assert workspace.scan().files == ()
    finally:
        workspace.close()


def test_no_descriptor_is_left_open(workspace: LocalWorkspace, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "a").write_text("a")
    (root / "link").symlink_to("d")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        workspace.read(WorkspacePath("d/a"), most=MOST)
        workspace.names(WorkspacePath("d"))
        workspace.scan()
        for path in ("link/a", "d/missing", "d/a/b", "missing/x"):
            with pytest.raises(OrchestratorError):
                workspace.read(WorkspacePath(path), most=MOST)
    assert len(os.listdir("/proc/self/fd")) == before
