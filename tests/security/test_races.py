"""Directories and files that are exchanged while the daemon works: FAULTS rows 28 to 30.

A process of its own exchanges two names as fast as it can; the tests end after so many calls, not
after a time, and count what came through each way.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.security.hostile_workspace import SECRET, HostileWorkspace

READS = 300
WRITES = 120
INSIDE = "inside\n"

EXCHANGER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
first, second = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2])
here, exchange = -100, 2
print("ready", flush=True)
while os.getppid() == int(sys.argv[3]):
    for _ in range(1000):
        if libc.renameat2(here, first, here, second, exchange):
            sys.exit(os.strerror(ctypes.get_errno()))
"""


@contextmanager
def exchanging(first: Path, second: Path) -> Iterator[None]:
    """Two names that hold each other's content, now and now not, for as long as the block runs."""
    arguments = [str(first), str(second), str(os.getpid())]
    racer = subprocess.Popen([sys.executable, "-I", "-c", EXCHANGER, *arguments], stdout=subprocess.PIPE)
    assert racer.stdout is not None
    try:
        assert racer.stdout.readline() == b"ready\n"
        yield
        assert racer.poll() is None, "the racer ran all the time"
    finally:
        racer.kill()
        racer.wait()
        racer.stdout.close()


@pytest.fixture(autouse=True)
def can_exchange(hostile: HostileWorkspace) -> None:
    one, two = hostile.base / "x1", hostile.base / "x2"
    one.touch()
    two.touch()
    if ctypes.CDLL(None, use_errno=True).renameat2(-100, os.fsencode(one), -100, os.fsencode(two), 2):
        pytest.skip("this file system does not exchange names")


@pytest.fixture
def arena(hostile: HostileWorkspace) -> Iterator[tuple[Path, Path]]:
    """A directory of the workspace, and a link beside it that leads to a folder outside with the same names."""
    room, way_out = hostile.work / "room", hostile.work / "way_out"
    room.mkdir()
    (room / "f.txt").write_text(INSIDE)
    trap = hostile.base / "trap"
    trap.mkdir()
    (trap / "f.txt").write_text(SECRET)
    way_out.symlink_to(trap)
    yield room, way_out
    for name in (room, way_out):
        if name.is_symlink():
            name.unlink()
        else:
            shutil.rmtree(name)
    assert [item.name for item in trap.iterdir()] == ["f.txt"], "nothing was made outside"
    assert (trap / "f.txt").read_text() == SECRET, "nothing was changed outside"
    (trap / "f.txt").unlink()
    trap.rmdir()


def test_28_reading_while_the_directory_is_exchanged(hostile: HostileWorkspace, arena: tuple[Path, Path]) -> None:
    outcomes: Counter[str | None] = Counter()
    with exchanging(*arena):
        for turn in range(READS):
            operation, more = [
                ("read_file", {}),
                ("search_content", {"pattern": "i"}),
                ("file_info", {}),
                ("get_diff", {}),
            ][turn % 4]
            path = ("room/f.txt", "way_out/f.txt")[turn // 4 % 2]
            answer = hostile.agent.call(operation, path=path, **more)
            outcomes[answer.code] += 1
            assert SECRET.encode() not in answer.raw, (operation, answer.raw)
        found = hostile.agent.call("search_content", pattern="outside")
        assert SECRET.encode() not in found.raw
    assert set(outcomes) <= {None, "symlink_refused", "changed_while_read", "not_found", "not_a_directory"}, outcomes
    assert outcomes[None], "some got through while the directory was itself"


@pytest.mark.parametrize("other", ["a link", "a directory"])
def test_28_searching_while_a_file_is_exchanged(
    hostile: HostileWorkspace, arena: tuple[Path, Path], other: str
) -> None:
    file, second, trap = arena[0] / "f.txt", arena[0] / "other", hostile.base / "trap"
    if other == "a link":
        second.symlink_to(trap / "f.txt")
    else:
        second.mkdir()
        (second / "below.txt").write_text("below: inside\n")
    found: Counter[str | None] = Counter()
    with exchanging(file, second):
        for turn in range(READS // 3):
            pattern, more = (("side", {}), ("s.de", {"mode": "regex"}), ("inzide", {"mode": "fuzzy"}))[turn % 3]
            answer = hostile.agent.call("search_content", pattern=pattern, globs=["room/**"], **more)
            assert SECRET.encode() not in answer.raw, answer.raw
            found[answer.code] += 1
            found["hits"] += b"inside" in answer.raw
    assert found.keys() <= {None, "hits", "changed_while_read"}, found
    assert found["hits"], "some got through while the file was itself"


def test_28_listing_while_the_directory_is_exchanged(hostile: HostileWorkspace, arena: tuple[Path, Path]) -> None:
    (hostile.base / "trap" / "only-outside").touch()
    try:
        with exchanging(*arena):
            for turn in range(READS // 2):
                if turn % 2:
                    answer = hostile.agent.call("list_files", recursive=True)
                else:
                    answer = hostile.agent.call("list_files", path="room")
                assert b"only-outside" not in answer.raw
    finally:
        (hostile.base / "trap" / "only-outside").unlink()


def test_29_writing_while_the_directory_is_exchanged(hostile: HostileWorkspace, arena: tuple[Path, Path]) -> None:
    outcomes: Counter[str | None] = Counter()
    with exchanging(*arena):
        for turn in range(WRITES):
            path = ("room", "way_out")[turn % 2]
            calls: list[tuple[str, dict[str, Any]]] = [
                ("write_file", {"path": f"{path}/f.txt", "mode": "append", "content": "more\n"}),
                ("write_file", {"path": f"{path}/new{turn}.txt", "mode": "create", "content": "new\n"}),
                (
                    "edit_file",
                    {"path": f"{path}/f.txt", "changes": [{"search": "inside", "replace": "inside x"}]},
                ),
                ("create_directory", {"path": f"{path}/d{turn}/e"}),
            ]
            operation, params = calls[turn // 2 % len(calls)]
            answer = hostile.agent.call(operation, **params)
            outcomes[answer.code] += 1
            assert SECRET.encode() not in answer.raw
            assert answer.code != "internal", answer.raw
    assert outcomes[None], outcomes
    assert outcomes.total() == WRITES


def test_29_a_directory_is_exchanged_while_a_person_decides(
    hostile: HostileWorkspace, arena: tuple[Path, Path]
) -> None:
    room, way_out = arena
    with exchanging(room, way_out):
        for turn in range(WRITES // 6):
            asked = hostile.agent.call(
                "write_file", path=f"room/Makefile.{turn}/Makefile", mode="create", content="x\n"
            )
            if asked.code is None:
                hostile.person.call(
                    "approve", approval=asked.result["approval"], approver=hostile.approver, unseen=True
                )
    assert [item.name for item in (hostile.base / "trap").iterdir()] == ["f.txt"]


def test_29_one_exchange_while_a_person_decides(hostile: HostileWorkspace, arena: tuple[Path, Path]) -> None:
    """The same without any luck: the directory is the link to outside when the yes comes."""
    room, way_out = arena
    asked = hostile.agent.done("write_file", path="room/setup.py", mode="create", content="x\n")
    room.rename(hostile.work / "kept")
    way_out.rename(room)
    answer = hostile.person.call("approve", approval=asked["approval"], approver=hostile.approver, unseen=True)
    assert answer.code is not None or not answer.result.get("success", False), answer.raw
    assert [item.name for item in (hostile.base / "trap").iterdir()] == ["f.txt"]
    room.rename(way_out)
    (hostile.work / "kept").rename(room)


def test_30_foreign_bytes_survive_a_write_that_comes_between(hostile: HostileWorkspace) -> None:
    """A file is exchanged with another one all the time: what the daemon did not see, it does not lose."""
    mine, theirs = hostile.work / "mine.txt", hostile.work / "theirs.txt"
    mine.write_text("mine\n")
    theirs.write_text("theirs, never seen\n")
    outcomes: Counter[str | None] = Counter()
    with exchanging(mine, theirs):
        for turn in range(WRITES):
            answer = hostile.agent.call(
                "edit_file", path="mine.txt", changes=[{"search": "mine\n", "replace": f"mine\n{turn}\n"}]
            )
            outcomes[answer.code] += 1
            assert answer.code != "internal", answer.raw
    texts = sorted((mine.read_text(), theirs.read_text()))
    assert texts[1] == "theirs, never seen\n", "nobody changed it, so it is as it was"
    assert texts[0].startswith("mine\n")


def test_the_records_agree_after_all_races(hostile: HostileWorkspace) -> None:
    assert hostile.person.done("journal_verify")["ok"]
    rebuilt = hostile.person.done("journal_rebuild")
    assert rebuilt["ok"], rebuilt["first_difference"]
    assert hostile.person.done("status")["health"]["state"] == "ok"
