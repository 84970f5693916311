"""Many connections from one process that read, edit and look at the same files, each with its next call when answered.

python -m tests.benchmarks.mixed_calls SOCKET CONNECTIONS CALLS FILES WORKSPACE

Of 20 calls 11 read a hundred lines, 5 edit a line that is the connection's own, 2 ask for facts, and one each for a
diff and a history. Connects, says `ready`, waits for a line on stdin, makes the calls, and prints the latencies in
milliseconds as JSON. What the lines hold at first it reads in WORKSPACE.
"""

from __future__ import annotations

import json
import random
import selectors
import socket
import sys
import time
from pathlib import Path

from orchestrator.api import sockets

SLOTS = 100
"""Lines of a file that a connection may call its own; two that nobody changes follow each, so that all edits merge."""

LINES = 3 * SLOTS
READS = 100
MIX = ("read",) * 11 + ("edit",) * 5 + ("info",) * 2 + ("diff", "history")


def path_of(number: int) -> str:
    """The files that all connections work on."""
    return f"mixed/module_{number}.txt"


def line_of(slot: int, value: int) -> str:
    """A line that one connection alone changes."""
    return f"slot {slot} of the file holds the value {value}"


def text_of() -> str:
    """A file before any call."""
    return "".join(f"{line_of(slot, 0)}\n    kept as it is below slot {slot}\n\n" for slot in range(SLOTS))


class Worker:
    """One connection, and what it wrote last into its line of each file."""

    def __init__(self, path: str, number: int, values: list[int]) -> None:
        self._number, self._values = number, values
        self._dice = random.Random(number)
        self._written: tuple[int, int] | None = None
        self._calls = 0
        self._sent_at = 0.0
        self._buffer = bytearray()
        self.socket = sockets.connect(path, 30.0)
        self.socket.sendall(sockets.preamble("rpc", agent=f"mixed-{number}", client="benchmark"))
        while not self._buffer.endswith(b"\n"):
            self._buffer += self.socket.recv(65536)
        assert b'"ok":true' in self._buffer, self._buffer
        self._buffer.clear()

    def send(self) -> None:
        """Send the next call."""
        method, params = self._next()
        self._calls += 1
        request = {"jsonrpc": "2.0", "id": self._calls, "method": method, "params": params}
        data = json.dumps(request, separators=(",", ":")).encode() + b"\n"
        self._sent_at = time.perf_counter()
        self.socket.sendall(data)

    def received(self) -> float | None:
        """Take in what has come; how long the call took in ms, if that was the end of its answer."""
        data = self.socket.recv(1 << 18)
        assert data, "the daemon closed the connection"
        self._buffer += data
        if not data.endswith(b"\n"):
            return None
        taken = (time.perf_counter() - self._sent_at) * 1e3
        assert b'"error":{' not in self._buffer[:60], bytes(self._buffer[:500])
        if self._written is not None:
            assert b'"status":"applied"' in self._buffer, bytes(self._buffer[:500])
            file, value = self._written
            self._values[file], self._written = value, None
        self._buffer.clear()
        return taken

    def _next(self) -> tuple[str, dict[str, object]]:
        file, kind = self._dice.randrange(len(self._values)), self._dice.choice(MIX)
        path = path_of(file)
        match kind:
            case "read":
                start = self._dice.randrange(1, LINES - READS)
                return "read_lines", {"path": path, "start": start, "end": start + READS - 1}
            case "edit":
                value = self._values[file]
                change = {"search": line_of(self._number, value), "replace": line_of(self._number, value + 1)}
                self._written = (file, value + 1)
                return "edit_file", {"path": path, "changes": [change]}
            case "info":
                return "file_info", {"path": path}
            case "diff":
                return "get_diff", {"path": path}
            case _:
                return "file_history", {"path": path, "limit": 5}


def run(workers: list[Worker], calls: int) -> list[float]:
    """All connections at once; each makes `calls` calls."""
    latencies: list[float] = []
    left = {worker.socket: calls for worker in workers}
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            selector.register(worker.socket, selectors.EVENT_READ, worker)
            worker.send()
        while left:
            for key, _ in selector.select():
                worker = key.data
                taken = worker.received()
                if taken is None:
                    continue
                latencies.append(taken)
                left[worker.socket] -= 1
                if left[worker.socket]:
                    worker.send()
                else:
                    selector.unregister(worker.socket)
                    del left[worker.socket]
    return latencies


def values_of(workspace: str, files: int) -> list[list[int]]:
    """What each file's lines hold now, by line."""
    texts = [(Path(workspace) / path_of(number)).read_text() for number in range(files)]
    return [[int(line.rpartition(" ")[2]) for line in text.splitlines()[::3]] for text in texts]


def main(path: str, connections: str, calls: str, files: str, workspace: str) -> None:
    """See the module's text."""
    lines = list(zip(*values_of(workspace, int(files)), strict=True))
    workers = [Worker(path, number, list(lines[number])) for number in range(int(connections))]
    while True:
        print("ready", flush=True)
        if not sys.stdin.readline():
            break
        print(json.dumps(run(workers, int(calls))), flush=True)
    for worker in workers:
        worker.socket.shutdown(socket.SHUT_RDWR)
        worker.socket.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
