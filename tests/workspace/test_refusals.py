"""What a path may lead to: the tables of attack inputs, over both ways of opening."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.core.errors import (
    AccessRefused,
    ChangedWhileRead,
    CrossDevice,
    DiskFull,
    FileNotFound,
    FileTooLarge,
    IoFailed,
    NotADirectory,
    NotAFile,
    NotARegularFile,
    OrchestratorError,
    OutsideWorkspace,
    PathTooLong,
    SymlinkRefused,
)
from orchestrator.core.ids import WorkspacePath
from orchestrator.workspace.confine import refusal
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from orchestrator.workspace.own_files import OwnFiles
from tests.workspace.changes import Make, as_path, carry_out, creating, deleting, moving, replacing, tree
from tests.workspace.recording import RecordingDisk

pytestmark = pytest.mark.usefixtures("leases", "no_leaks")

Build = Callable[[Path, Path], object]
SECRET = b"secret"


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's path has a short limit
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _device(path: Path, kind: int, number: tuple[int, int]) -> None:
    try:
        os.mknod(path, kind | 0o600, os.makedev(*number))
    except PermissionError:
        pytest.skip("device nodes can't be made by this user")


STRANGE = [
    pytest.param("l", lambda w, s: (w / "l").symlink_to("/etc/passwd"), SymlinkRefused, id="20 link to /etc/passwd"),
    pytest.param("l", lambda w, s: (w / "l").symlink_to("../secret"), SymlinkRefused, id="21 relative link outside"),
    pytest.param("l", lambda w, s: (w / "l").symlink_to("f"), SymlinkRefused, id="22 link to an inside file"),
    pytest.param("up/secret", lambda w, s: (w / "up").symlink_to(".."), SymlinkRefused, id="23 directory link"),
    pytest.param("in/f", lambda w, s: (w / "in").symlink_to("d"), SymlinkRefused, id="23 directory link inside"),
    pytest.param("d/in/f", lambda w, s: (w / "d/in").symlink_to("."), SymlinkRefused, id="23 last directory a link"),
    pytest.param("l", lambda w, s: (w / "l").symlink_to("../new"), SymlinkRefused, id="25 dangling link"),
    pytest.param("l", lambda w, s: (w / "l").symlink_to("/proc/self/environ"), SymlinkRefused, id="27 link to environ"),
    pytest.param("p/environ", lambda w, s: (w / "p").symlink_to("/proc/self"), SymlinkRefused, id="27 link to proc"),
    pytest.param("l", lambda w, s: (w / "l").symlink_to("l"), SymlinkRefused, id="link to itself"),
    pytest.param("l", lambda w, s: (w / "l").symlink_to("/dev/zero"), SymlinkRefused, id="35 link to /dev/zero"),
    pytest.param("p", lambda w, s: os.mkfifo(w / "p"), NotARegularFile, id="33 pipe"),
    pytest.param("n", lambda w, s: _device(w / "n", stat.S_IFCHR, (1, 5)), NotARegularFile, id="35 zero's node"),
    pytest.param("n", lambda w, s: _device(w / "n", stat.S_IFBLK, (7, 0)), NotARegularFile, id="36 block device"),
    pytest.param("s", lambda w, s: _socket(w / "s"), NotARegularFile, id="36 socket"),
    pytest.param("d", lambda w, s: None, NotAFile, id="36 directory"),
    pytest.param("f/x", lambda w, s: None, NotADirectory, id="a file in the middle"),
    pytest.param("p/x", lambda w, s: os.mkfifo(w / "p"), NotADirectory, id="a pipe in the middle"),
]


@pytest.fixture
def outside(root: Path) -> Path:
    secret = root.parent / "secret"
    secret.write_bytes(SECRET)
    (root / "f").write_bytes(b"inside")
    (root / "d").mkdir()
    (root / "d/f").write_bytes(b"inside")
    return secret


@pytest.mark.parametrize(("path", "build", "error"), STRANGE)
def test_refused_to_read_and_to_write_alike(
    path: str, build: Build, error: type[OrchestratorError], make: Make, root: Path, outside: Path
) -> None:
    build(root, outside)
    before = tree(root.parent)
    workspace = make()
    with pytest.raises(error):
        workspace.read(as_path(path), most=1000)
    writes = [replacing(path, SECRET, b"mine"), deleting(path, SECRET), moving(path, "moved", SECRET)]
    for change in writes:
        with pytest.raises(error):
            carry_out(workspace, change)
    assert tree(root.parent) == before


@pytest.mark.parametrize("path", ["l/x", "d/l/x"])
def test_nothing_is_made_through_a_link(path: str, make: Make, root: Path, outside: Path) -> None:
    (root / path).parent.symlink_to(root.parent)
    before = tree(root.parent)
    with pytest.raises(SymlinkRefused):
        carry_out(make(), creating(path, b"new", parents=(str(Path(path).parent),)))
    assert tree(root.parent) == before


def test_a_dangling_link_is_not_written_through(workspace: LocalWorkspace, root: Path) -> None:
    (root / "l").symlink_to("../new")
    with pytest.raises(Exception, match="l"):
        carry_out(workspace, creating("l", b"new"))
    assert os.readlink(root / "l") == "../new"
    assert not (root.parent / "new").exists()
    assert tree(root) == {"l": None}


KNOCK = """
import os, select, sys
seen = 0
print("ready", flush=True)
while not select.select([0], [], [], 0)[0]:
    try:
        os.close(os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK))
        seen += 1
    except OSError:
        pass
print(seen)
"""


def test_a_pipe_never_sees_a_reader(workspace: LocalWorkspace, root: Path) -> None:
    os.mkfifo(root / "p")
    # A writer that does not wait fails with ENXIO for as long as no reader has the pipe open.
    watcher = subprocess.Popen(
        [sys.executable, "-c", KNOCK, str(root / "p")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert watcher.stdout is not None
    assert watcher.stdout.readline() == "ready\n"
    for _ in range(300):
        with pytest.raises(NotARegularFile):
            workspace.read(as_path("p"), most=10)
        with pytest.raises(NotARegularFile):
            carry_out(workspace, replacing("p", b"a", b"b"))
    assert watcher.communicate("stop\n", timeout=60)[0] == "0\n"


def test_a_mount_is_another_device(make: Make, root: Path) -> None:
    (root / "m").mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "none", str(root / "m")], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("mounting is not permitted here")
    try:
        (root / "m/f").write_bytes(b"x")
        (root / "m/d").mkdir()
        workspace = make()
        for path in ("m/f", "m/d/f"):
            with pytest.raises(CrossDevice):
                workspace.read(as_path(path), most=10)
            with pytest.raises(CrossDevice):
                carry_out(workspace, creating(path, b"y"))
        with pytest.raises(CrossDevice):
            workspace.names(as_path("m"))
        scanned = workspace.scan()
        assert scanned.files == ()
        assert scanned.skipped == {"on another file system": 1}
    finally:
        subprocess.run(["umount", str(root / "m")], check=True)


def test_a_sparse_giant_is_refused_unread(make: Make, root: Path) -> None:
    with open(root / "giant", "wb") as giant:
        giant.truncate(2**40)
    recording = RecordingDisk(Disk(), str(root))
    with pytest.raises(FileTooLarge):
        make(disk=recording.disk).read(as_path("giant"), most=1000)
    assert recording.reported == []


def test_a_growing_file_is_read_up_to_the_cap(make: Make, root: Path) -> None:
    (root / "f").write_bytes(b"x" * 1000)
    recording = RecordingDisk(Disk(), str(root))

    def grow(sentence: str) -> None:
        if sentence == "read f":
            (root / "f").write_bytes(b"x" * 100_000)

    recording.fail = grow
    with pytest.raises(FileTooLarge):
        make(disk=recording.disk).read(as_path("f"), most=2000)


def test_a_file_that_moves_under_the_read_is_tried_again(make: Make, root: Path) -> None:
    (root / "f").write_bytes(b"0")
    recording = RecordingDisk(Disk(), str(root))
    moves = iter(range(1, 100))

    def write(sentence: str) -> None:
        if sentence == "read f" and (number := next(moves)) < limit:
            (root / "f").write_bytes(b"x" * number)

    recording.fail = write
    workspace = make(disk=recording.disk)
    limit = 3
    assert workspace.read(as_path("f"), most=100).data == b"xx"
    limit = 100
    with pytest.raises(ChangedWhileRead):
        workspace.read(as_path("f"), most=1000)


@pytest.mark.parametrize(("rewritten", "expected"), [(False, b"one\n"), (True, None)])
def test_a_file_that_only_grows_is_read_as_it_was(
    make: Make, root: Path, *, rewritten: bool, expected: bytes | None
) -> None:
    log = root / "log"
    log.write_bytes(b"one\n")
    recording = RecordingDisk(Disk(), str(root))

    def grow(sentence: str) -> None:
        if sentence == "read log":
            old = log.read_bytes()
            log.write_bytes((old.swapcase() if rewritten else old) + b"more\n")

    recording.fail = grow
    workspace = make(disk=recording.disk)
    with pytest.raises(ChangedWhileRead):
        workspace.read(as_path("log"), most=1000)
    log.write_bytes(b"one\n")
    if expected is None:
        with pytest.raises(ChangedWhileRead):
            workspace.read(as_path("log"), most=1000, growing=True)
    else:
        found = workspace.read(as_path("log"), most=1000, growing=True)
        assert (found.data, found.stat.signature.size) == (expected, len(expected))


@pytest.mark.parametrize("length", [256, 5000])
def test_long_names(length: int, workspace: LocalWorkspace) -> None:
    for path in ("n" * length, f"d/{'n' * length}"):
        with pytest.raises((PathTooLong, FileNotFound)):
            workspace.read(as_path(path), most=10)
    with pytest.raises(PathTooLong):
        carry_out(workspace, creating("n" * length, b""))


@pytest.mark.parametrize("path", ["../secret", "d/../../secret", "/etc/passwd"])
def test_the_kernel_judges_what_the_name_rule_would_have_refused(
    path: str, workspace: LocalWorkspace, outside: Path
) -> None:
    with pytest.raises(OutsideWorkspace):
        workspace.read(as_path(path), most=100)


def test_state_directory_is_as_if_absent(make: Make, root: Path, outside: Path) -> None:
    state = root / "d/state"
    (state / "deep").mkdir(parents=True)
    (state / "deep/journal").write_bytes(SECRET)
    (root / "names").mkdir()
    (root / "names/hard").hardlink_to(state / "deep/journal")
    workspace = make(own=OwnFiles((str(state),)))
    for path in ("d/state", "d/state/x", "d/state/deep", "d/state/deep/journal", "names/hard"):
        assert workspace.stat(as_path(path)) is None, path
    for path in ("d/state/deep/journal", "names/hard"):
        with pytest.raises(FileNotFound):
            workspace.read(as_path(path), most=100)
    for directory in ("d/state", "d/state/deep"):
        with pytest.raises(FileNotFound):
            workspace.names(as_path(directory))
        with pytest.raises(FileNotFound):
            carry_out(workspace, creating(f"{directory}/new", b"x"))
    assert [name.name for name in workspace.names(as_path("d"))] == ["f"]
    assert workspace.names(as_path("names")) == []
    assert [file.path for file in workspace.scan().files] == ["d/f", "f"]
    assert workspace.read(as_path("d/f"), most=100).data == b"inside"
    state.rename(root / "elsewhere")
    assert workspace.stat(as_path("elsewhere/deep/journal")) is None


def test_the_root_may_be_reached_by_a_link(root: Path) -> None:
    (root / "f").write_bytes(b"x")
    (root.parent / "link").symlink_to(root)
    workspace = LocalWorkspace(str(root.parent / "link"), disk=Disk())
    try:
        assert workspace.root == os.path.realpath(root)
        assert workspace.read(as_path("f"), most=10).data == b"x"
    finally:
        workspace.close()


@pytest.mark.parametrize(
    ("number", "error"),
    [
        pytest.param(5, IoFailed, id="EIO"),
        pytest.param(13, AccessRefused, id="EACCES"),
        pytest.param(18, CrossDevice, id="EXDEV"),
        pytest.param(28, DiskFull, id="ENOSPC"),
        pytest.param(30, AccessRefused, id="EROFS"),
        pytest.param(36, PathTooLong, id="ENAMETOOLONG"),
        pytest.param(40, SymlinkRefused, id="ELOOP"),
        pytest.param(122, DiskFull, id="EDQUOT"),
    ],
)
def test_errors_of_the_kernel(number: int, error: type[OrchestratorError]) -> None:
    assert type(refusal(WorkspacePath("a"), OSError(number, os.strerror(number)))) is error


def test_a_file_that_another_user_closed_to_us() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    code = """
import os, sys, tempfile
from orchestrator.core.errors import AccessRefused
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from tests.workspace.changes import carry_out, creating, replacing
root = tempfile.mkdtemp(dir="/tmp")
try:
    os.chmod(root, 0o755)
    with open(root + "/f", "w") as f: f.write("x")
    os.chmod(root + "/f", 0o600)
    workspace = LocalWorkspace(root, disk=Disk(walk=sys.argv[1] == "walk"))
    os.setegid(65534); os.seteuid(65534)
    for attempt in (
        lambda: workspace.read("f", most=10),
        lambda: carry_out(workspace, creating("g", b"x")),
        lambda: carry_out(workspace, replacing("f", b"x", b"y")),
    ):
        try:
            attempt()
        except AccessRefused:
            continue
        sys.exit("not refused")
finally:
    os.seteuid(0)
    import shutil; shutil.rmtree(root)
"""
    for way in ("openat2", "walk"):
        done = subprocess.run(
            [sys.executable, "-c", code, way], capture_output=True, text=True, check=False, cwd=os.getcwd()
        )
        assert (done.returncode, done.stderr) == (0, "")
