"""Long service: what the daemon holds after many calls, beside what a start on the same journal needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.benchmarks.concurrency import one_round, prepared, resident_mb
from tests.daemon.beside import Beside
from tests.daemon.daemon_process import RunningDaemon

CALLS = int(os.environ.get("SOAK_CALLS", "200000"))
ROUND = 10_000
CLIENTS, FILES = 4, 200
MOST_TIMES = 1.3
"""How many times what a restart needs."""


@pytest.mark.load
def test_memory_is_bounded_by_what_a_restart_needs(base: Path) -> None:
    """Mixed calls of four clients; the curve is printed.

    Held against a daemon that was just started on the same journal and has made one round of the same calls, since
    caches that serving fills are no leak; what the bare start holds is printed, too.
    """
    daemon = RunningDaemon(base)
    prepared(daemon, FILES)
    daemon.start()
    assert daemon.process is not None
    try:
        for done in range(ROUND, CALLS + 1, ROUND):
            with Beside(daemon, f"beside-{done}") as beside:
                measured = one_round(daemon, FILES, CLIENTS, ROUND)
            held = resident_mb(daemon.process.pid)
            print(f"{done:7,} calls: {held:4.0f} MB, {measured.rate:4.0f} calls/s, {measured.cpu_ms:.2f} ms a call")
            print(f"  beside: {beside.measured}")
        daemon.stop()
        daemon.start()
        print(f"after a restart: {resident_mb(daemon.process.pid):.0f} MB")
        one_round(daemon, FILES, CLIENTS, ROUND)  # what serving needs besides
        needed = resident_mb(daemon.process.pid)
        print(f"after a restart and {ROUND:,} calls: {needed:.0f} MB")
    finally:
        daemon.stop()
    assert held <= MOST_TIMES * needed
