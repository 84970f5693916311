"""The main loop of a worker process, with limits on processor time and memory per job.

Two kinds of work are kept out of the daemon. Grammars are C code that a crafted text can crash (128,000 times `- `
does it to YAML's) or hold up for minutes, with the interpreter lock held. And a merge, a diff or a fuzzy search of
large texts is pure Python, which in a thread would hold up everybody's calls.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from orchestrator.logs import start_logging
from orchestrator.workspace.landlock import compute_only

MOST_MEMORY = 2 << 30
"""Of the worker's address space. One that would take more ends, and another takes its place."""

SPENT_BYTES = 256 << 20
"""A worker that holds more after a job ends, so that the memory is given back."""

JOB = struct.Struct(">dQ")
"""Before a job, which is a pickled call: its limit in seconds of processor time, and its length."""

ANSWER = struct.Struct(">?Q")
"""Before an answer: whether the worker ends after it, and its length."""


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Answer jobs until there are no more."""
    while head := jobs.read(JOB.size):
        limit_s, count = JOB.unpack(head)
        job = jobs.read(count)
        # Its signal ends the process, also inside C code; what others do on the machine does not count.
        signal.setitimer(signal.ITIMER_PROF, limit_s)
        answer = called(job)
        signal.setitimer(signal.ITIMER_PROF, 0)
        del job
        answers.write(ANSWER.pack(_held_bytes() > SPENT_BYTES, len(answer)) + answer)
        answers.flush()
        del answer


def called(data: bytes) -> bytes:
    """The result of a call that the daemon packed, or what it raised, packed; memory that ran out ends the process."""
    work = pickle.loads(data)
    try:
        result = True, work()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # it is raised again in the daemon
        result = False, error
    return pickle.dumps(result, -1)


def _held_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:  # no Linux: the peak
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return pages * resource.getpagesize()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed goes to the daemon's log, not among the answers
    start_logging()
    with suppress(OSError):  # a system without Landlock; `status` says so
        compute_only()
    with suppress(BrokenPipeError):  # the daemon was killed; nobody wants the answer
        serve(sys.stdin.buffer, answers)
    os._exit(0)  # what is left in the buffers is nobody's
