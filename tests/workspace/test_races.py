"""Another process exchanges what the path leads through, as fast as it can; nothing outside is read or written."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from orchestrator.core.errors import OrchestratorError
from orchestrator.ports.workspace import ChangedMeanwhile
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from tests.workspace.changes import Make, as_path, carry_out, creating, replacing

pytestmark = pytest.mark.usefixtures("leases", "no_leaks")

READS, WRITES, MOST = 3000, 300, 100_000
INSIDE, SECRET = b"inside", b"secret"

EXCHANGE = """
import ctypes, itertools, os, select, sys
libc = ctypes.CDLL(None)
one, other = (os.fsencode(path) for path in sys.argv[1:])
print("started", flush=True)
pauses_s = itertools.cycle((0, 0.001, 0.02))  # from too fast for any call to too slow for most
while not select.select([0], [], [], next(pauses_s))[0]:
    for _ in range(25):
        if libc.syscall(316 if os.uname().machine == "x86_64" else 276, -100, one, -100, other, 2) != 0:
            sys.exit("no exchange")
"""


@contextmanager
def exchanging(one: Path, other: Path) -> Iterator[None]:
    with subprocess.Popen(
        [sys.executable, "-c", EXCHANGE, str(one), str(other)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        yield
        process.communicate("stop\n", timeout=60)
    assert process.returncode == 0


def build(root: Path) -> Path:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(SECRET)
    (root / "d").mkdir()
    (root / "d/f").write_bytes(INSIDE)
    return outside


def tries(outcomes: Counter[str], least: int) -> Iterator[int]:
    """At least so many, and on until some calls came through and some were refused."""
    for number in range(MOST):
        if number >= least and outcomes["through"] and outcomes["refused"]:
            return
        yield number
    pytest.fail(f"the race was never run: {outcomes}")


def read_all_the_while(workspace: LocalWorkspace) -> None:
    outcomes: Counter[str] = Counter()
    for _ in tries(outcomes, READS):
        try:
            assert workspace.read(as_path("d/f"), most=100).data == INSIDE
            outcomes["through"] += 1
        except OrchestratorError:
            outcomes["refused"] += 1


def test_a_directory_exchanged_with_a_link_while_it_is_read(workspace: LocalWorkspace, root: Path) -> None:
    (root / "link").symlink_to(build(root))
    with exchanging(root / "d", root / "link"):
        read_all_the_while(workspace)


def test_a_file_exchanged_with_a_link_while_it_is_read(workspace: LocalWorkspace, root: Path) -> None:
    (root / "link").symlink_to(build(root) / "f")
    with exchanging(root / "d/f", root / "link"):
        read_all_the_while(workspace)


def test_a_directory_exchanged_with_a_link_while_it_is_written(workspace: LocalWorkspace, root: Path) -> None:
    outside = build(root)
    (root / "link").symlink_to(outside)
    content = INSIDE
    outcomes: Counter[str] = Counter()
    with exchanging(root / "d", root / "link"):
        for number in tries(outcomes, WRITES):
            after = b"written %d" % number
            try:
                carry_out(workspace, replacing("d/f", content, after))
                content = after
                outcomes["through"] += 1
                carry_out(workspace, creating(f"d/n{number}", after))
            except (OrchestratorError, ChangedMeanwhile):
                outcomes["refused"] += 1
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"f": SECRET}
    real = root / "link" if (root / "d").is_symlink() else root / "d"
    assert (real / "f").read_bytes() == content
    assert not list(real.glob(".orchestrator-*"))


def write_once(workspace: LocalWorkspace, before: bytes, after: bytes) -> Literal["through", "refused", "diverged"]:
    """Replace the file as the engine does. What a divergence leaves in the temporary file must have been kept."""
    writing = workspace.atomic_write(replacing("d/f", before, after))
    kept: tuple[bytes, ...] | None = None
    try:
        writing.stage()
        writing.commit()
    except ChangedMeanwhile as displaced:
        if not displaced.diverged:
            return "refused"
        kept = displaced.unexpected
    except OrchestratorError:
        return "refused"
    assert kept is None or before in kept
    assert writing.finish() == ()
    return "through" if kept is None else "diverged"


def test_a_file_exchanged_with_another_while_it_is_written(workspace: LocalWorkspace, root: Path) -> None:
    build(root)
    (root / "other").write_bytes(SECRET)
    ours = INSIDE
    outcomes: Counter[str] = Counter()
    with exchanging(root / "d/f", root / "other"):
        for number in tries(outcomes, WRITES):
            after = b"written %d" % number
            outcome = write_once(workspace, ours, after)
            outcomes[outcome] += 1
            if outcome != "refused":
                ours = after
    assert {path.read_bytes() for path in (root / "d/f", root / "other")} == {ours, SECRET}
    assert workspace.temps() == []


class ExchangingDisk:
    """Two names are exchanged right before the chosen calls that look at or change a name (counted from 0)."""

    def __init__(self, inner: Disk, one: Path, other: Path) -> None:
        self._inner, self._one, self._other = inner, one, other
        self.calls = 0
        self.before: tuple[int, ...] = ()

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._inner, name)
        if name == "sync":
            return lambda handle: None  # what it is for is tested elsewhere, and here it only takes time
        if name not in ("stat_at", "open_at", "rename", "unlink_at"):
            return asked

        def passed_on(*args: Any) -> Any:
            if self.calls in self.before:
                between = self._one.with_name("between")
                self._one.rename(between)
                self._other.rename(self._one)
                between.rename(self._other)
            self.calls += 1
            return asked(*args)

        return passed_on


def test_a_file_exchanged_at_every_moment_of_a_write(make: Make, root: Path, disk: Disk) -> None:
    build(root)
    one, other = root / "d/f", root / "other"
    exchanging_disk = ExchangingDisk(disk, one, other)
    workspace = make(disk=cast(Disk, exchanging_disk))
    outcomes: Counter[str] = Counter()

    def write(before: tuple[int, ...]) -> None:
        one.write_bytes(INSIDE)
        other.write_bytes(SECRET)
        exchanging_disk.calls, exchanging_disk.before = 0, before
        outcome = write_once(workspace, INSIDE, b"written")
        outcomes[outcome] += 1
        ours = INSIDE if outcome == "refused" else b"written"
        assert {one.read_bytes(), other.read_bytes()} == {ours, SECRET}, before
        assert workspace.temps() == [], before

    write(())
    calls = exchanging_disk.calls
    for exchanges in (1, 2, 3):
        for before in combinations(range(calls), exchanges):
            write(before)
    assert min(outcomes[outcome] for outcome in ("through", "refused", "diverged")) > 10
