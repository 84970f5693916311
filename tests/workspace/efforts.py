"""Work for workers; in a module of its own, since they import it."""

from __future__ import annotations

import os
import time

from orchestrator.core.content import LineRange, SeenLines
from orchestrator.core.errors import SearchNotFound
from orchestrator.core.ids import Seq, WorkspacePath

SEEN = SeenLines(path=WorkspacePath("a.txt"), version=Seq(1), ranges=(LineRange(1, 2),), total_lines=2)


def pid(*_: object) -> int:
    return os.getpid()


def refuse(where: str) -> None:
    error = SearchNotFound(f"nothing is in {where}", hint="Look elsewhere.", details={"path": where})
    error.seen = SEEN
    raise error


def for_ever() -> None:
    while True:
        pass


def in_c_for_ever() -> int:
    return sum(range(10**13))


def idle(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def fill(count: int) -> int:
    return len(bytearray(count))


def grow(count: int) -> int:
    grow.__dict__["kept"] = b"x" * count
    return os.getpid()


def wait_for(fifo: str) -> str:
    """What somebody writes there."""
    with open(fifo, encoding="utf-8") as pipe:
        return pipe.read()
