"""A workspace on a real folder, opened the kernel's way and component by component: both must behave alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.workspace.disk import KernelDisk
from orchestrator.workspace.local import LocalWorkspace


@pytest.fixture(params=["openat2", "walk"])
def disk(request: pytest.FixtureRequest) -> KernelDisk:
    return KernelDisk(walk=request.param == "walk")


@pytest.fixture
def root(base: Path) -> Path:
    folder = base / "w"
    folder.mkdir()
    return folder


@pytest.fixture
def workspace(root: Path, disk: KernelDisk) -> Iterator[LocalWorkspace]:
    opened = LocalWorkspace(str(root), disk=disk)
    yield opened
    opened.close()
