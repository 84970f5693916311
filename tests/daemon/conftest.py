"""A daemon whose policy takes small files for large ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.daemon_process import RunningDaemon, running


@pytest.fixture
def large_policy() -> str:
    return 'name = "ours"\nextends = "default"\n[limits]\nin_memory_bytes = 262144\n'


@pytest.fixture
def large(base: Path, large_policy: str) -> Iterator[RunningDaemon]:
    """A daemon that holds no file over 256 KiB in memory."""
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(large_policy)
    with running(base) as daemon:
        yield daemon
