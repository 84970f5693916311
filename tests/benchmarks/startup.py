"""From the start of a daemon to its being ready, on a journal of 10,000 events and on one of 1,000,000."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from pathlib import Path

from orchestrator.journal.database_file import FILE_NAME
from tests.benchmarks.journals import filled
from tests.benchmarks.measuring import Row, Samples, Target
from tests.benchmarks.setting import Rows, Setting
from tests.daemon.daemon_process import RunningDaemon

SHORT, LONG = 10_000, 1_000_000
TAIL = 5_000
"""Events since the last snapshot, on average, when a daemon is killed: half of what lies between two."""


async def rows(setting: Setting) -> Rows:
    """After a clean stop, and after a kill; the journals' lengths in turns."""
    folder = Path(tempfile.mkdtemp(prefix="o-", dir="/var/tmp")).resolve()
    try:
        daemons = {count: await _daemon(folder / str(count), count) for count in (SHORT, LONG)}
        return [
            _row(daemons, setting.times(5), clean=True),
            _row(daemons, setting.times(5), clean=False),
        ]
    finally:
        shutil.rmtree(folder)


async def _daemon(base: Path, count: int) -> RunningDaemon:
    base.mkdir(mode=0o700)
    daemon = RunningDaemon(base)
    for number in range(50):
        (daemon.workspace / f"module_{number}.py").write_text(f"number = {number}\n")
    await filled(daemon.state_dir, count, snapshot_at=count - TAIL)
    return daemon


def _row(daemons: dict[int, RunningDaemon], times: int, *, clean: bool) -> Row:
    samples = {count: Samples([]) for count in daemons}
    for turn in range(times + 1):
        for count, daemon in daemons.items():
            if not clean:
                _as_killed(daemon)
            took = _started(daemon, clean=clean)
            if turn:
                samples[count].values.append(took)
    how = "a clean stop" if clean else "a kill"
    return Row(
        work=f"start after {how}: {LONG:,} events",
        ours=samples[LONG],
        peer=f"ours, {SHORT:,} events",
        theirs=samples[SHORT],
        target=Target(at_least=0.5),
    )


def _as_killed(daemon: RunningDaemon) -> None:
    """Its newest snapshots go, so that each turn folds the same tail again."""
    connection = sqlite3.connect(daemon.state_dir / FILE_NAME)
    connection.execute("DELETE FROM snapshots WHERE seq > (SELECT min(seq) FROM snapshots WHERE data IS NOT NULL)")
    connection.commit()
    connection.close()


def _started(daemon: RunningDaemon, *, clean: bool) -> float:
    """Milliseconds until it was ready; then it is ended."""
    start = time.perf_counter()
    daemon.start()
    took = (time.perf_counter() - start) * 1e3
    if clean:
        daemon.stop()
    else:
        daemon.kill()
    return took
