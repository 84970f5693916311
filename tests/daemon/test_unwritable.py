"""A disk that takes no more: whoever comes is told so at the door, and the daemon lives on to tell the next one."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.cli import command
from tests.daemon.running import RunningDaemon

pytestmark = pytest.mark.anyio

NO_LIMIT = resource.RLIM_INFINITY


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    """One whose log may speak of errors."""
    daemon = RunningDaemon(base)
    assert daemon.start()["ok"]
    yield daemon
    daemon.stop()


async def test_who_comes_while_nothing_can_be_written_is_told_so(daemon: RunningDaemon) -> None:
    assert daemon.process is not None
    (daemon.workspace / "a.txt").write_text("a\n")
    # No file may grow, the log neither: it is on the same full disk as the journal.
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (0, NO_LIMIT))
    for arguments in (("status",), ("open", "a.txt"), ("status", "--agent", "bob")):
        code, refused = command(daemon, *arguments)
        assert (code, refused["code"]) == (1, "writes_stopped"), refused
        assert "restart the daemon" in refused["hint"]
    assert daemon.process.poll() is None

    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (NO_LIMIT, NO_LIMIT))
    assert daemon.stop() == 0
    assert daemon.start()["ok"]
    assert command(daemon, "journal", "verify")[1]["ok"]
    assert command(daemon, "open", "a.txt")[0] == 0


async def test_it_can_be_stopped_while_nothing_can_be_written(daemon: RunningDaemon) -> None:
    assert daemon.process is not None
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (0, NO_LIMIT))
    assert command(daemon, "status")[1]["code"] == "writes_stopped"
    code, done = command(daemon, "stop")
    assert code == 0, done
    daemon.wait()
    assert daemon.start()["ok"]
    assert command(daemon, "journal", "verify")[1]["ok"]
