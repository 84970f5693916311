"""Thirty seconds of races: links, folders and files change places under paths that agents use by every transport.

`make soak` runs it for that long, `RACE_S=600 make soak` for longer.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.security.hostile_workspace import SECRET, HostileWorkspace
from tests.security.transports import NAMES, Transport, transport

pytestmark = pytest.mark.soak

RACE_S = float(os.environ.get("RACE_S", "30"))
INSIDE = "inside\n"
NOT_MADE = "only-outside.txt"

SWAPPER = """
import ctypes, os, random, sys, time
libc = ctypes.CDLL(None, use_errno=True)
work = os.open(sys.argv[1], os.O_RDONLY)
room, links = (os.open(name, os.O_RDONLY, dir_fd=work) for name in ("room", "links"))
pairs = [
    (work, b"room", work, b"way_out"),   # a folder and a link to one outside
    (room, b"f.txt", links, b"f.txt"),   # a file and a link to one outside
    (room, b"deep", links, b"deep"),     # a folder further down
    (room, b"f.txt", room, b"g.txt"),    # two files
    (room, b"deep", room, b"g.txt"),     # a folder and a file
]
print("ready", flush=True)
sys.stdin.readline()  # all have opened the real folders by then
chance = random.Random(int(sys.argv[3]))
while os.getppid() == int(sys.argv[2]):
    for one, first, other, second in chance.choices(pairs, k=25):
        if libc.renameat2(one, first, other, second, 2) and ctypes.get_errno() != 2:
            sys.exit(os.strerror(ctypes.get_errno()))
    time.sleep(chance.choice((0, 0.001, 0.02)))  # from too fast for any call to too slow for most
"""


@pytest.fixture
def trap(hostile: HostileWorkspace) -> Path:
    """A folder outside with the names that the agents ask for, and links to it all over the workspace."""
    trap = hostile.base / "trap"
    (trap / "deep").mkdir(parents=True)
    room, links = hostile.work / "room", hostile.work / "links"
    (room / "deep").mkdir(parents=True)
    links.mkdir()
    for name in ("f.txt", "g.txt", "deep/f.txt"):
        (trap / name).write_text(SECRET)
        (room / name).write_text(INSIDE)
    (trap / "deep" / NOT_MADE).touch()
    (hostile.work / "way_out").symlink_to(trap)
    (links / "f.txt").symlink_to(trap / "f.txt")
    (links / "deep").symlink_to("../../trap/deep")
    return trap


@contextmanager
def swapping(work: Path) -> Iterator[None]:
    """Two processes that swap names as fast as they can."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-I", "-c", SWAPPER, str(work), str(os.getpid()), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for seed in (1, 2)
    ]
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == b"ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write(b"go\n")
            racer.stdin.flush()
        yield
        assert [racer.poll() for racer in racers] == [None, None], "they swapped all the time"
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()


def as_it_is(trap: Path) -> dict[str, object]:
    """Names, contents and times: a file that was made there and removed again shows in its folder's time."""
    found: dict[str, object] = {}
    for path in (trap, *trap.rglob("*")):
        stat = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(trap))] = (stat.st_mode, stat.st_mtime_ns, stat.st_ino, content)
    return found


def calls(chance: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """What an agent may do with such paths, without end."""
    folders = ("room", "way_out", "room/deep", "way_out/deep", "links/deep", "links")
    for number in range(1 << 40):
        path = f"{chance.choice(folders)}/{chance.choice(('f.txt', 'g.txt'))}"
        new = f"{chance.choice(folders)}/n{chance.randrange(20)}.txt"
        change = {"search": "inside", "replace": f"inside {number}"}
        yield chance.choice(
            (
                ("read_file", {"path": path}),
                ("file_info", {"path": path}),
                ("search_content", {"path": path, "pattern": "."}),
                ("list_files", {"path": chance.choice(folders), "recursive": True}),
                ("write_file", {"path": new, "mode": "create", "content": "new\n"}),
                ("write_file", {"path": path, "mode": "append", "content": "more\n"}),
                ("edit_file", {"path": path, "changes": [change]}),
                ("move_file", {"source": new, "destination": f"{new}.moved"}),
                ("move_file", {"source": f"{new}.moved", "destination": new}),
                ("delete_file", {"path": new}),
                ("create_directory", {"path": f"{chance.choice(folders)}/made{number}/below"}),
            )
        )


def race(caller: Transport, seed: int) -> Counter[str]:
    """Calls until the time is over; how many came through, and how many were refused by which code."""
    outcomes: Counter[str] = Counter()
    chance, end = random.Random(seed), time.monotonic() + RACE_S
    for operation, params in calls(chance):
        if time.monotonic() > end:
            break
        ways = caller.ways(operation)
        if not ways:
            continue  # no command does it
        answer = caller.call(chance.choice(ways), **params)
        outcomes[answer.code or "through"] += 1
        assert SECRET.encode() not in answer.raw, (operation, params, answer.raw)
        assert NOT_MADE.encode() not in answer.raw, (operation, params, answer.raw)
        assert answer.code != "internal", (operation, params, answer.raw)
    return outcomes


def test_nothing_outside_is_read_or_changed(hostile: HostileWorkspace, trap: Path) -> None:
    before = as_it_is(trap)
    with ExitStack() as opened, swapping(hostile.work), ThreadPoolExecutor(len(NAMES)) as agents:
        callers = {name: opened.enter_context(transport(name, hostile)) for name in NAMES}
        tasks = {name: agents.submit(race, caller, seed) for seed, (name, caller) in enumerate(callers.items())}
        outcomes = {name: task.result() for name, task in tasks.items()}
    for name, counted in outcomes.items():
        print(f"{name}: {counted.total()} calls, {dict(counted.most_common())}")
        assert counted["through"], f"{name}: some came through"
        assert counted["symlink_refused"], f"{name}: some met a link"
    assert as_it_is(trap) == before
    assert hostile.person.done("journal_verify")["ok"]
    rebuilt = hostile.person.done("journal_rebuild")
    assert rebuilt["ok"], rebuilt["first_difference"]
    assert hostile.person.done("status")["health"]["state"] == "ok"
