"""`make bench`: every row in one run; the table to stdout, the rows to .bench/results.jsonl."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from tests.benchmarks import (
    appends,
    beside,
    blame,
    calls,
    cold,
    commands,
    concurrency,
    edits,
    globs,
    growth,
    large_edits,
    large_reads,
    limits,
    long_rollbacks,
    merges,
    names,
    openings,
    outlines,
    policy,
    reads,
    redaction,
    replay,
    rollbacks,
    scratches,
    searches,
    starts,
    startup,
    tokens,
    watching,
    writes,
)
from tests.benchmarks.measuring import misses, table
from tests.benchmarks.setting import Rows, Setting, setting

FOLDER = Path(".bench")

GROUPS: dict[str, Callable[[Setting], Awaitable[Rows]]] = {
    "edits": edits.rows,
    "reads": reads.rows,
    "large_reads": large_reads.rows,
    "large_edits": large_edits.rows,
    "calls": calls.rows,
    "commands": commands.rows,
    "concurrency": concurrency.rows,
    "starts": starts.rows,
    "cold": cold.rows,
    "writes": writes.rows,
    "globs": globs.rows,
    "limits": limits.rows,
    "merges": merges.rows,
    "names": names.rows,
    "openings": openings.rows,
    "outlines": outlines.rows,
    "policy": policy.rows,
    "redaction": redaction.rows,
    "blame": blame.rows,
    "appends": appends.rows,
    "scratches": scratches.rows,
    "searches": searches.rows,
    "rollbacks": rollbacks.rows,
    "long_rollbacks": long_rollbacks.rows,
    "growth": growth.rows,
    "watching": watching.rows,
    "replay": replay.rows,
    "startup": startup.rows,
    "tokens": tokens.rows,
    "beside": beside.rows,
}

LEGEND = """\
Medians in turns (A B C, B C A) of n calls; ratio = how many times better ours is than the peer's.
Ours through the daemon, journalled and synced; the peers' edits are neither. A committed call is one that
appends an event and is answered after its commit (begin_task: TaskBegun; read_lines: FileRead), measured
once the journal's log is written from the start again, as in a daemon that has run for a while."""


async def measured(chosen: list[str], scale: float) -> tuple[Rows, list[Exception]]:
    """The rows of these groups, each kept once it is there, and why some groups have none."""
    rows: Rows = []
    failures: list[Exception] = []
    with setting(FOLDER, scale=scale) as surroundings:
        for name in chosen:
            print(f"measuring: {name}", file=sys.stderr, flush=True)
            try:
                found = await GROUPS[name](surroundings)
            except Exception as error:  # noqa: BLE001  # raised once the other groups are measured
                error.add_note(f"while the group {name} was measured")
                failures.append(error)
            else:
                keep(found)
                rows += found
    return rows, failures


def keep(rows: Rows) -> None:
    """Append the rows to the file of results, each with when and where."""
    where = {
        "at_ms": time.time_ns() // 1_000_000,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg(),
    }
    with (FOLDER / "results.jsonl").open("a", encoding="utf-8") as results:
        for row in rows:
            results.write(json.dumps({**where, **row.record()}, ensure_ascii=False) + "\n")


def main() -> None:
    """Read the arguments, measure, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", choices=[[], *GROUPS], help="which to measure; all without it")
    parser.add_argument("--scale", type=float, default=1.0, help="how often, times the usual")
    given = parser.parse_args()
    rows, failures = anyio.run(measured, given.groups or list(GROUPS), given.scale)
    print(f"{table(rows)}\n\n{misses(rows)}{LEGEND}")
    busy, cpus = os.getloadavg()[0], os.cpu_count()
    print(f"Load: {busy:.1f} on {cpus} processors; with more than those, the ratios are unsafe too.")
    if failures:
        raise ExceptionGroup("groups that could not be measured", failures)


if __name__ == "__main__":
    main()
