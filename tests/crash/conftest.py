"""Crash tests on a file system in memory, where there is one.

A killed process loses nothing that it gave to the kernel, so these tests can't show what a sync is
for (test_mutations does, on a disk that forgets); waiting for real ones would only make them slow.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = "/dev/shm"


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder of the test's own; its path is short enough for a socket in it."""
    folder = Path(tempfile.mkdtemp(prefix="o-", dir=MEMORY if os.access(MEMORY, os.W_OK) else "/tmp")).resolve()
    yield folder
    shutil.rmtree(folder)
