"""The processes that walk over a long journal's events side by side."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import msgspec

from orchestrator.core.errors import JournalCorrupt
from orchestrator.journal.verification_scan import ScanResult


class Workers:
    """A process for each range. They end with the block, whatever happens in it."""

    def __init__(self, path: Path, head: int, count: int) -> None:
        bounds = [head * number // count for number in range(count + 1)]
        self._ranges = list(pairwise(bounds))
        self._path = path
        self._stack = ExitStack()
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Workers:
        # -P: what lies in the present folder, which agents may write, is not imported; but our own code is.
        ours = (str(Path(__file__).parents[2]), *os.environ.get("PYTHONPATH", "").split(os.pathsep))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, ours))}
        command = (sys.executable, "-P", "-m", "orchestrator.journal.verification_scan", str(self._path))
        with ExitStack() as starting:
            for after, last in self._ranges:
                process = subprocess.Popen(
                    (*command, str(after), str(last)),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    env=environment,
                )
                starting.callback(_ended, process)
                self._processes.append(process)
            self._stack = starting.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def parts(self) -> list[ScanResult]:
        """What they found, in the journal's order. Raises JournalCorrupt when one of them failed."""
        found: list[ScanResult] = []
        for process, (after, last) in zip(self._processes, self._ranges, strict=True):
            said, _ = process.communicate()
            if process.returncode != 0:
                raise JournalCorrupt(
                    f"events @{after + 1} to @{last} could not be checked: the process ended with {process.returncode}",
                    hint="Its message is in the daemon's log. Try again.",
                )
            found += msgspec.msgpack.decode(said, type=list[ScanResult])
        return found


def _ended(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    if process.stdout is not None:
        process.stdout.close()
    process.wait()
