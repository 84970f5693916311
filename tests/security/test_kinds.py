"""What stands at a path but is no plain file of the workspace's: FAULTS rows 20 to 27 and 32 to 41.

`test_attacks_by_transport.py` tries links, devices and sockets through every operation; here is what is left to see.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.security.hostile_workspace import SECRET, HostileWorkspace

EDIT = [{"search": SECRET, "replace": "x"}]
READS: dict[str, dict[str, Any]] = {
    "read_file": {},
    "read_lines": {"start": 1},
    "get_diff": {},
    "search_content": {"pattern": "outside"},
}
WRITES: dict[str, dict[str, Any]] = {
    "edit_file": {"changes": EDIT},
    "write_file": {"content": "x\n", "mode": "append"},
    "apply_patch": {"patch": f"@@ -1 +1 @@\n-{SECRET}\n+x\n"},
}
BOTH = READS | WRITES
HUGE = {
    **dict.fromkeys(("read_file", "read_lines", "search_content"), "binary_file"),
    "get_diff": "version_not_kept",
}
"""What is said of a file that is one hole: read by pieces it is no text, and it was never hashed."""


@pytest.fixture(scope="module")
def links(hostile: HostileWorkspace) -> Path:
    """Links of every kind, all named by their row."""
    work = hostile.work
    (work / "inner").mkdir()
    (work / "inner" / "plain.txt").write_text("plain\n")
    for name, target in {
        "absolute": "/etc/passwd",
        "to_outside": str(hostile.outside),
        "relative": "../S",
        "inside": "inner/plain.txt",
        "up": "..",
        "evil": str(hostile.twin),
        "inside_dir": "inner",
        "dangling": str(hostile.base / "made-outside.txt"),
        "dangling_dir": str(hostile.base / "made-outside"),
        "loop": "loop",
        "environ": "/proc/self/environ",
        "mem": f"/proc/{hostile.daemon.process.pid if hostile.daemon.process else 0}/mem",
        "cwd": "/proc/self/cwd",
        "descriptor": "/proc/self/fd/0",
        "zero": "/dev/zero",
        "random": "/dev/random",
        "tty": "/dev/tty",
        "journal": str(hostile.daemon.state_dir),
    }.items():
        (work / name).symlink_to(target)
    return work


LINKS = [
    pytest.param("absolute", id="20: an absolute link"),
    pytest.param("to_outside", id="20: a link to a file beside the workspace"),
    pytest.param("relative", id="21: a relative link out"),
    pytest.param("inside", id="22: a link to a file inside"),
    pytest.param("up/S", id="23: a directory link in the middle"),
    pytest.param("up/work-evil/S", id="23: and a folder further"),
    pytest.param("evil/S", id="23: an absolute directory link"),
    pytest.param("inside_dir/plain.txt", id="22: a directory link that stays inside"),
    pytest.param("dangling", id="25: a link to nothing"),
    pytest.param("loop", id="25: a link to itself"),
    pytest.param("environ", id="27: the environment"),
    pytest.param("mem", id="27: the daemon's memory"),
    pytest.param("cwd/etc/passwd", id="27: a magic link to a directory"),
    pytest.param("descriptor", id="27: a magic link to a descriptor"),
    pytest.param("zero", id="35: /dev/zero by link"),
    pytest.param("random", id="35: /dev/random by link"),
    pytest.param("tty", id="35: /dev/tty by link"),
    pytest.param("journal/journal.db", id="58: the daemon's state by link"),
]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("dangling", id="25: the link itself"),
        pytest.param("up/new.txt", id="25: through a link to outside"),
        pytest.param("evil/new.txt", id="25: through an absolute link"),
        pytest.param("dangling_dir/new.txt", id="25: through a link to nothing"),
        pytest.param("inside_dir/new.txt", id="25: through a link that stays inside"),
        pytest.param("loop/new.txt", id="25: through a link to itself"),
    ],
)
@pytest.mark.parametrize("operation", ["write_file", "create_directory", "move_file"])
def test_nothing_is_created_by_links(hostile: HostileWorkspace, links: Path, operation: str, path: str) -> None:
    params: dict[str, Any] = {"path": path}
    if operation == "write_file":
        params |= {"content": "x\n", "mode": "create"}
    elif operation == "move_file":
        params = {"source": "a.txt", "destination": path}
    code = "already_exists" if (operation, path) == ("create_directory", "dangling") else "symlink_refused"
    answer = hostile.refused(operation, code, **params)
    assert path in answer.error["message"], "the path that the caller gave"
    assert not (hostile.base / "made-outside.txt").exists()
    assert not (hostile.base / "made-outside").exists()


@pytest.mark.parametrize("path", ["up", "evil", "cwd", "journal", "inside_dir"])
def test_nothing_is_listed_by_links(hostile: HostileWorkspace, links: Path, path: str) -> None:
    listed = hostile.agent.call("list_files", path=path)
    assert listed.code is not None, listed.raw[:300]
    hostile.tight(listed)


def test_a_tree_is_walked_without_following_links(hostile: HostileWorkspace, links: Path) -> None:
    listed = hostile.agent.call("list_files", recursive=True)
    names = [entry["path"] for entry in listed.result["entries"]]
    assert "up" in names
    assert not [name for name in names if name.startswith(("up/", "evil/", "inside_dir/"))]
    found = hostile.agent.call("search_content", pattern="outside-secret")
    assert (found.result.get("hits", []), SECRET.encode() in found.raw) == ([], False)


def test_33_nobody_opens_a_fifo(hostile: HostileWorkspace) -> None:
    fifo = hostile.work / "fifo"
    os.mkfifo(fifo)
    holder = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(holder, SECRET.encode())
        for operation, more in BOTH.items():
            hostile.refused(operation, "not_a_regular_file", path="fifo", **more)
        assert hostile.agent.done("file_info", path="fifo")["@type"] == "OtherEntry"
        hostile.agent.done("search_content", pattern="outside")
        assert os.read(holder, 100) == SECRET.encode(), "the bytes are still there for who they are meant for"
    finally:
        os.close(holder)
    with pytest.raises(OSError, match="No such device") as nobody:
        os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    assert nobody.value.errno == errno.ENXIO
    fifo.unlink()


@pytest.mark.parametrize("operation", BOTH)
def test_36_a_directory(hostile: HostileWorkspace, operation: str) -> None:
    if operation == "search_content":
        pytest.skip("a directory is what it searches")
    hostile.refused(operation, "not_a_file", path="a", **BOTH[operation])


def test_37_a_sparse_terabyte(hostile: HostileWorkspace) -> None:
    huge = hostile.work / "huge.log"
    huge.touch()
    try:
        os.truncate(huge, 1 << 40)
    except OSError:
        pytest.skip("this file system has no files of that size")
    try:
        for operation, more in BOTH.items():
            hostile.refused(operation, HUGE.get(operation, "too_large"), path="huge.log", **more)
        assert hostile.agent.done("search_content", pattern="outside").get("hits", []) == []
        assert hostile.agent.done("file_info", path="huge.log")["size"] == 1 << 40
    finally:
        huge.unlink()


MOST_GROWN_LINES = 400_000
"""2 MB: a busy machine's daemon still reads that well within a call's time."""


def test_37_a_file_that_grows_while_it_is_read(hostile: HostileWorkspace) -> None:
    growing = hostile.work / "growing.log"
    growing.write_text("begin\n")
    ended = threading.Event()

    def grow() -> None:
        with growing.open("a") as file:
            for _ in range(MOST_GROWN_LINES):
                if ended.is_set():
                    return
                file.write("more\n")
                file.flush()

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        for _ in range(20):
            answer = hostile.agent.call("read_file", path="growing.log", max_tokens=200)
            assert answer.code in (None, "changed_while_read")
            if answer.code is None:
                assert answer.result["text"].startswith("     1\tbegin\n")
    finally:
        ended.set()
        writer.join()
    assert hostile.agent.done("read_file", path="growing.log", max_tokens=200)["total_lines"] == len(
        growing.read_text().splitlines()
    )


def test_32_writing_a_file_with_several_names_leaves_the_others_alone(hostile: HostileWorkspace) -> None:
    twin = hostile.base / "S"
    linked = hostile.work / "linked.txt"
    twin_before = twin.read_text()
    linked.hardlink_to(twin)
    done = hostile.agent.done("write_file", path="linked.txt", mode="append", content="\nmine\n")
    assert done["status"] == "applied"
    assert any("names" in warning for warning in done["warnings"])
    assert twin.read_text() == twin_before
    assert linked.stat().st_ino != twin.stat().st_ino
    linked.unlink()


def test_32_a_hard_link_made_while_a_person_decides(hostile: HostileWorkspace) -> None:
    waiting = hostile.agent.done("write_file", path="Makefile", mode="create", content="all:\n")
    assert waiting["status"] == "waiting"
    (hostile.work / "Makefile").hardlink_to(hostile.outside)
    with hostile.untouched():
        hostile.person.call("approve", approval=waiting["approval"], approver=hostile.approver, unseen=True)
    (hostile.work / "Makefile").unlink()


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o6755, 0o640, 0o600], ids=oct)
def test_41_mode_bits(hostile: HostileWorkspace, mode: int) -> None:
    script = hostile.work / f"run{mode:o}.sh"
    script.write_text("one\n")
    script.chmod(mode)
    done = hostile.agent.done("edit_file", path=script.name, changes=[{"search": "one", "replace": "two"}])
    assert script.read_text() == "two\n"
    assert stat.S_IMODE(script.stat().st_mode) == mode & 0o777
    assert bool(done.get("warnings")) == (mode > 0o777)


def test_41_a_new_file_has_the_users_mode(hostile: HostileWorkspace) -> None:
    hostile.agent.done("write_file", path="fresh.txt", content="x\n", mode="create")
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((hostile.work / "fresh.txt").stat().st_mode) == 0o666 & ~umask
