"""A disk that takes no more, neither of the journal nor of the log: the daemon lives on, and says so to who comes."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

NO_LIMIT = resource.RLIM_INFINITY


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    """One whose log may speak of errors."""
    daemon = RunningDaemon(base)
    assert daemon.start()["ok"]
    yield daemon
    daemon.stop()


async def test_it_answers_while_nothing_can_be_written(daemon: RunningDaemon) -> None:
    assert daemon.process is not None
    (daemon.workspace / "a.txt").write_text("a\n")
    # No file may grow, the log neither: it is on the same full disk as the journal.
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (0, NO_LIMIT))
    command(daemon, "open", "a.txt")  # the first that is to be noted
    for _ in range(2):
        code, reported = command(daemon, "status")
        assert (code, reported["health"]["state"]) == (0, "writes_stopped"), reported
    made = daemon.home / "made.diff"
    made.write_text("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+x\n")
    code, refused = command(daemon, "patch", str(made))
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
    assert command(daemon, "status")[0] == 0
    code, done = command(daemon, "stop")
    assert code == 0, done
    daemon.wait()
    assert daemon.start()["ok"]
    assert command(daemon, "journal", "verify")[1]["ok"]
