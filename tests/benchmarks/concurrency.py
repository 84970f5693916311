"""Mixed calls of 1, 8, 32 and 100 clients, on 200 files and on 20 that they all share: does the daemon keep its pace?

`python -m tests.benchmarks.concurrency [--calls N] [--clients N …]` prints the same for chosen numbers, with what the
daemon's memory grew to.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from anyio import to_thread

from tests.benchmarks.measuring import Row, Samples, Target
from tests.benchmarks.mixed_calls import path_of, text_of
from tests.benchmarks.setting import Rows, Setting
from tests.daemon.daemon_process import RunningDaemon, running

CLIENTS = (1, 8, 32, 100)
FILES = (200, 20)
CALLS = 2_000
"""Of all clients together, in one round."""

MOST_SLOWER = 5.0
"""How many times longer the slowest of a hundred calls may take with 100 clients than with 8."""


class Round(msgspec.Struct, frozen=True):
    """What some clients together saw, and what it cost the daemon."""

    rate: float  # calls a second
    latencies: Samples
    cpu_ms: float  # the daemon's processor time for one call


async def rows(setting: Setting) -> Rows:
    """On a daemon and a workspace of their own, whose journal has nothing else in it."""
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/var/tmp")).resolve()
    try:
        with running(base) as daemon:
            prepared(daemon, max(FILES))
            return [
                row
                for files in FILES
                for row in await to_thread.run_sync(_measured, daemon, files, CLIENTS, setting.times(3))
            ]
    finally:
        shutil.rmtree(base)


def prepared(daemon: RunningDaemon, files: int) -> None:
    """The files that the clients work on."""
    (daemon.workspace / "mixed").mkdir()
    for number in range(files):
        (daemon.workspace / path_of(number)).write_text(text_of())


def _measured(daemon: RunningDaemon, files: int, clients: tuple[int, ...], rounds: int) -> Rows:
    """Rounds in turns, so that a busy machine meets all alike."""
    taken: dict[int, list[Round]] = {number: [] for number in clients}
    for turn in range(rounds + 1):
        for number in clients:
            measured = one_round(daemon, files, number, CALLS)
            if turn:
                taken[number].append(measured)
    first, few = taken[clients[0]], taken[8]
    out: Rows = []
    for number in clients:
        work = f"mixed calls, {number} clients on {files} files"
        alone = Samples([measured.rate for measured in first])
        rates = Samples([measured.rate for measured in taken[number]])
        pace = Target(1.0) if number > 1 else Target()
        out.append(Row(work=work, ours=rates, peer="ours, 1 client", theirs=alone, target=pace, unit="calls/s"))
        slow = Samples([measured.latencies.at(0.99) for measured in taken[number]])
        calm = Samples([measured.latencies.at(0.99) for measured in few])
        target = Target(round(1 / MOST_SLOWER, 2)) if number == max(clients) else Target()
        out.append(Row(work=f"{work}, p99", ours=slow, peer="ours, 8 clients", theirs=calm, target=target))
        cpu = Samples([measured.cpu_ms for measured in taken[number]])
        out.append(Row(work=f"{work}, daemon's processor time a call", ours=cpu))
    return out


def one_round(daemon: RunningDaemon, files: int, clients: int, calls: int) -> Round:
    """New connections, that make these calls together."""
    each = max(1, calls // clients)
    command = [sys.executable, "-m", "tests.benchmarks.mixed_calls", str(daemon.socket)]
    command += [str(clients), str(each), str(files), str(daemon.workspace)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        assert daemon.process is not None
        assert process.stdout.readline() == "ready\n"
        used, begun = cpu_s(daemon.process.pid), time.perf_counter()
        process.stdin.write("go\n")
        process.stdin.flush()
        latencies = json.loads(process.stdout.readline())
        took, used = time.perf_counter() - begun, cpu_s(daemon.process.pid) - used
    finally:
        process.communicate(timeout=30)  # the end of its input ends it
    return Round(len(latencies) / took, Samples(latencies), used / len(latencies) * 1e3)


def cpu_s(pid: int) -> float:
    """Processor time of a process so far, its own and the kernel's for it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    """Memory that a process holds."""
    line = next(row for row in Path(f"/proc/{pid}/status").read_text().splitlines() if row.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def main(clients: list[int], files: list[int], calls: int) -> None:
    """Measure and print, one line for each round."""
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/var/tmp")).resolve()
    try:
        with running(base) as daemon:
            assert daemon.process is not None
            prepared(daemon, max(files))
            print(f"daemon {daemon.process.pid}", flush=True)
            for count in files:
                for number in clients:
                    measured = one_round(daemon, count, number, calls)
                    print(
                        f"{count:4} files {number:4} clients: {measured.rate:6.0f} calls/s, "
                        f"p50 {measured.latencies.median:6.1f} ms, p99 {measured.latencies.at(0.99):7.1f} ms, "
                        f"{measured.cpu_ms:5.2f} ms processor time a call, {resident_mb(daemon.process.pid):.0f} MB",
                        flush=True,
                    )
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.concurrency", description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--clients", type=int, nargs="+", default=list(CLIENTS))
    parser.add_argument("--files", type=int, nargs="+", default=list(FILES))
    given = parser.parse_args()
    main(given.clients, given.files, given.calls)
