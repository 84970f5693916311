"""A second client in a process of its own, which measures how long its small calls take until it is told to stop.

python -m tests.daemon.beside SOCKET AGENT [reads]

Each turn is a read of one line and an edit of another file's line; with `reads`, no edit. It says `ready`, begins
when a line comes on stdin, stops at the next, and prints what each call took, in milliseconds, as JSON.
"""

from __future__ import annotations

import json
import math
import selectors
import subprocess
import sys
from types import TracebackType
from typing import Any, Self

from tests.daemon.daemon_process import RunningDaemon


class Measured:
    """What the calls took, in milliseconds."""

    def __init__(self, reads: list[float], edits: list[float]) -> None:
        self.reads, self.edits = reads, edits

    @property
    def all(self) -> list[float]:
        return [*self.reads, *self.edits]

    def __str__(self) -> str:
        return f"reads {_shown(self.reads)}; edits {_shown(self.edits)}"


def _shown(values: list[float]) -> str:
    if not values:
        return "none"
    shown = ", ".join(f"p{share * 100:g} {at(values, share):.1f}" for share in (0.5, 0.99))
    return f"{len(values)}: {shown}, slowest {max(values):.1f} ms"


def at(values: list[float], share: float) -> float:
    """The value at a share of the sorted ones, by nearest rank."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


class Beside:
    """Use as a context manager; `measured` once it is left."""

    measured: Measured

    def __init__(self, daemon: RunningDaemon, agent: str = "beside", *, edits: bool = True) -> None:
        (daemon.workspace / f"{agent}-read.txt").write_text("one\ntwo\n")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.daemon.beside", str(daemon.socket), agent, *([] if edits else ["reads"])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._say("")

    def _say(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if line:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        return self._process.stdout.readline()

    def __enter__(self) -> Self:
        self._say("go\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        reads, edits = json.loads(self._say("stop\n"))
        self.measured = Measured(reads, edits)
        self._process.communicate()


def main(socket: str, agent: str, only: str = "") -> None:
    """See the module's text."""
    from tests.benchmarks.callers import Connection

    connection = Connection(socket, agent, "")
    number = 0

    def call(operation: str, params: dict[str, Any]) -> float:
        connection._request = json.dumps({"method": operation, "params": params})[1:-1].encode()
        connection.send()
        answer = connection.receive()
        assert b'"error"' not in answer[:60], answer[:500]
        return connection.took_ms()

    path = f"{agent}-edited.txt"
    call("write_file", {"path": path, "content": "number 0\n", "mode": "create"})
    for _ in range(20):
        call("read_lines", {"path": f"{agent}-read.txt", "start": 1, "end": 1})
    print("ready", flush=True)
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        sys.stdin.readline()
        print("going", flush=True)
        reads: list[float] = []
        edits: list[float] = []
        while True:
            reads.append(call("read_lines", {"path": f"{agent}-read.txt", "start": 1, "end": 1}))
            if not only:
                change = {"search": f"number {number}\n", "replace": f"number {number + 1}\n"}
                edits.append(call("edit_file", {"path": path, "changes": [change]}))
                number += 1
            if selector.select(0.002):
                break
    print(json.dumps([reads, edits]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
