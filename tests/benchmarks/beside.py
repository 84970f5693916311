"""The p99 of a second client's small calls, beside what costs the daemon most."""

from __future__ import annotations

import subprocess
import sys

from tests.benchmarks.measuring import Row, Samples, Target
from tests.benchmarks.setting import Rows, Setting
from tests.daemon.beside import Measured, at
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.loads import HEAVY, beside_flood, beside_nothing, beside_work, name_of

SECONDS = 10.0

BUSY = (sys.executable, "-c", "while True: pass")
PROCESSOR = (
    "two processors have three programs to run, the flood's client being one of them: "
    "see what a busy loop alone does to the same calls, in the row above."
)


async def rows(setting: Setting) -> Rows:
    """256 open calls of one agent; heavy work on texts. Each is measured once, over all of its seconds.

    The calls come first, since they are compared with none: heavy work leaves open conflicts and large files behind.
    """
    seconds = max(2.0, SECONDS * setting.scale)
    alone = beside_nothing(setting.daemon, seconds, "bench-alone")
    busy = beside_a_busy_loop(setting.daemon, seconds)
    found: Rows = [
        Row(work="p99 of a second client beside a busy loop", ours=p99(busy), peer="alone", theirs=p99(alone))
    ]
    for writes in (False, True):
        beside, _ = await beside_flood(setting.daemon, seconds, writes=writes)
        name = f"p99 of a second client beside 256 open {'writes' if writes else 'reads'}"
        found.append(_row(name, beside, alone, Target(at_least=0.5, why_missed=PROCESSOR)))
    for load in HEAVY:
        beside, _ = await beside_work(setting.daemon, load, seconds)
        found.append(_row(f"p99 of a second client beside: {name_of(load)}", beside, alone, Target(at_most_ms=100.0)))
    return found


def beside_a_busy_loop(daemon: RunningDaemon, seconds: float) -> Measured:
    """Nobody else calls the daemon, but another program takes a processor."""
    with subprocess.Popen(BUSY) as busy:
        measured = beside_nothing(daemon, seconds, "bench-busy")
        busy.kill()
    return measured


def _row(work: str, beside: Measured, alone: Measured, target: Target) -> Row:
    return Row(work=work, ours=p99(beside), peer="alone", theirs=p99(alone), target=target)


def p99(measured: Measured) -> Samples:
    return Samples([at(measured.all, 0.99)])
