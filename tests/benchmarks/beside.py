"""The p99 of a second client's small calls, beside what costs the daemon most."""

from __future__ import annotations

from tests.benchmarks.measuring import Row, Samples, Target
from tests.benchmarks.setting import Rows, Setting
from tests.daemon.beside import Measured, at
from tests.daemon.loads import HEAVY, beside_flood, beside_nothing, beside_work, name_of

SECONDS = 10.0


async def rows(setting: Setting) -> Rows:
    """256 open calls of one agent; heavy work on texts. Each is measured once, over all of its seconds.

    The calls come first, since they are compared with none: heavy work leaves open conflicts and large files behind.
    """
    seconds = max(2.0, SECONDS * setting.scale)
    alone = beside_nothing(setting.daemon, seconds, "bench-alone")
    found: Rows = []
    for writes in (False, True):
        beside, _ = await beside_flood(setting.daemon, seconds, writes=writes)
        name = f"p99 of a second client beside 256 open {'writes' if writes else 'reads'}"
        found.append(_row(name, beside, alone, Target(at_least=0.5)))
    for load in HEAVY:
        beside, _ = await beside_work(setting.daemon, load, seconds)
        found.append(_row(f"p99 of a second client beside: {name_of(load)}", beside, alone, Target(at_most_ms=100.0)))
    return found


def _row(work: str, beside: Measured, alone: Measured, target: Target) -> Row:
    ours, theirs = Samples([at(beside.all, 0.99)]), Samples([at(alone.all, 0.99)])
    return Row(work=work, ours=ours, peer="alone", theirs=theirs, target=target)
