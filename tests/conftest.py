"""What every test may use: a folder with a short path, and a real daemon on it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.running import RunningDaemon, running


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"use_uvloop": True}


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder of the test's own; its path is short enough for a socket in it."""
    folder = Path(tempfile.mkdtemp(prefix="o-", dir="/tmp")).resolve()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    """A daemon that is ready, on an empty workspace."""
    with running(base) as started:
        yield started
