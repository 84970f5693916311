"""A workspace on a real folder, opened the kernel's way and component by component: both must behave alike."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.workspace import disk as kernel
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from tests.workspace.changes import Make


@pytest.fixture(params=["openat2", "walk"])
def disk(request: pytest.FixtureRequest) -> Disk:
    return Disk(walk=request.param == "walk")


@pytest.fixture
def root(base: Path) -> Path:
    folder = base / "w"
    folder.mkdir()
    return folder


@pytest.fixture
def workspace(root: Path, disk: Disk) -> Iterator[LocalWorkspace]:
    opened = LocalWorkspace(str(root), disk=disk)
    yield opened
    opened.close()


@pytest.fixture
def make(root: Path, disk: Disk) -> Iterator[Make]:
    made: list[LocalWorkspace] = []

    def make(**given: object) -> LocalWorkspace:
        given.setdefault("disk", disk)
        made.append(LocalWorkspace(str(root), **given))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for workspace in made:
        workspace.close()


@pytest.fixture
def leases() -> Iterator[None]:
    """Leases are taken in this process, as in the daemon; put back after."""
    before, allowed = signal.getsignal(signal.SIGIO), kernel._Leases.allowed
    kernel.ignore_lease_breaks()
    yield
    signal.signal(signal.SIGIO, before)
    kernel._Leases.allowed = allowed


@pytest.fixture
def no_leaks() -> Iterator[None]:
    """Every handle that the test had opened is closed at its end."""
    before = _open_handles()
    yield
    left = _open_handles() - before
    assert not {path for _, path in left if path.startswith("/") and not path.startswith("/proc")}


def _open_handles() -> set[tuple[str, str]]:
    found = set()
    for handle in os.listdir("/proc/self/fd"):
        try:
            found.add((handle, os.readlink(f"/proc/self/fd/{handle}")))
        except FileNotFoundError:
            continue  # the listing's own
    return found
