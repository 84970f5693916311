"""What every test may use: a folder with a short path, and a real daemon on it."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.daemon.daemon_process import RunningDaemon, running

LEAST_WORKERS = 4
"""Tests wait for disks, locks and daemons more than they compute: two processors are half idle under two."""

LONG = (
    "test_no_edit_is_lost",
    "test_a_crowd_loses_nothing",
    "test_every_command_of_the_guide",
    "test_the_power_is_cut",
    "test_the_matrix",
    "test_ten_thousand_changes_stall_nobody",
)
"""Begun first, so that no worker is left alone with one of them."""


settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("new", deadline=None)
settings.load_profile(os.environ.get("EXAMPLES", "same"))
"""A change is not judged by examples that it did not meet before: `make fuzz` looks for new ones.

How long an example takes says how busy the machine is.
"""


def pytest_configure() -> None:
    """Under nohup SIGINT is ignored, and so it would be by the programs that a test interrupts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    return max(LEAST_WORKERS, os.cpu_count() or 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: getattr(item, "originalname", item.name) not in LONG)


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
