"""The main loop of a worker process, with limits on time and memory per job.

Apart from the daemon because of two kinds of work. Grammars are C code that a crafted text can crash (128,000 times
`- ` does it to YAML's) or hold up for minutes, with the interpreter lock in hand. And a merge, a diff or a search by
likeness of large texts is pure Python, which in a thread would hold up everybody's calls.
Trees stay here; outlines go out.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from orchestrator.logs import start_logging
from orchestrator.workspace.grammars import Grammars
from orchestrator.workspace.outliner import Job, outlined

MOST_MEMORY = 2 << 30
"""Of the worker's address space. One that would take more ends, and another takes its place."""

SPENT_BYTES = 256 << 20
"""A worker that holds more after a job ends, so that the memory is given back."""

LENGTH_BYTES = 8

TAKEN = b"\x01"
"""Said of each job before it is begun: a worker that dies without having said so did not die of it."""


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Answer jobs until there are no more: each a kind, a limit of time and a length before it."""
    grammars = Grammars()
    while kind := jobs.read(1):
        limit_s = float(jobs.read(LENGTH_BYTES))
        data = jobs.read(int.from_bytes(jobs.read(LENGTH_BYTES)))
        answers.write(TAKEN)
        answers.flush()
        signal.setitimer(signal.ITIMER_REAL, limit_s)  # whose signal ends the process, also inside C code
        answer = msgspec.msgpack.encode(outlined(grammars, _job(data))) if kind == b"o" else called(data)
        signal.setitimer(signal.ITIMER_REAL, 0)
        del data
        spent = _held_bytes() > SPENT_BYTES
        answers.write(bytes((spent,)) + len(answer).to_bytes(LENGTH_BYTES))
        answers.write(answer)
        answers.flush()
        del answer


def _job(data: bytes) -> Job:
    return msgspec.msgpack.decode(data, type=Job)


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
    with suppress(BrokenPipeError):  # the daemon was killed; nobody wants the answer
        serve(sys.stdin.buffer, answers)
    os._exit(0)  # what is left in the buffers is nobody's
