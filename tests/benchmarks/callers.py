"""Many connections from one process that does little else, so that the daemon is what is measured.

python -m tests.benchmarks.callers SOCKET CONNECTIONS CALLS REQUEST

Connects, says `ready`, waits for a line on stdin, makes the calls (each connection sends its next
when its last is answered), and prints the latencies in milliseconds as JSON.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time

from orchestrator.api import sockets


class Connection:
    """A bare JSON-RPC connection to the daemon: one call at a time, replies looked at only for errors."""

    def __init__(self, path: str, agent: str, request: str) -> None:
        self._request = request.encode()
        self._number = 0
        self._sent_at = 0.0
        self._buffer = b""
        self.socket = sockets.connect(path, 30.0)
        self.socket.sendall(sockets.preamble("rpc", agent=agent, client="benchmark"))
        welcome = self.receive()
        assert b'"ok":true' in welcome, welcome

    def send(self) -> None:
        """Send the next call."""
        self._number += 1
        self._sent_at = time.perf_counter()
        self.socket.sendall(b'{"jsonrpc":"2.0","id":%d,%s}\n' % (self._number, self._request))

    def receive(self) -> bytes:
        """Wait for a whole line."""
        while not self._buffer.endswith(b"\n"):
            data = self.socket.recv(65536)
            assert data, "the daemon closed the connection"
            self._buffer += data
        line, self._buffer = self._buffer, b""
        assert b'"error":{' not in line[:40], line[:500]
        return line

    def took_ms(self) -> float:
        """Since the last call was sent."""
        return (time.perf_counter() - self._sent_at) * 1e3


def request_of(operation: str, params: dict[str, object]) -> str:
    """A call without its braces and id."""
    return json.dumps({"method": operation, "params": params}, separators=(",", ":"))[1:-1]


def run(connections: list[Connection], calls: int) -> list[float]:
    """All connections at once; each makes `calls` calls."""
    latencies: list[float] = []
    left = {connection.socket: calls for connection in connections}
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.send()
        while left:
            for key, _ in selector.select():
                connection = key.data
                connection.receive()
                latencies.append(connection.took_ms())
                left[connection.socket] -= 1
                if left[connection.socket]:
                    connection.send()
                else:
                    selector.unregister(connection.socket)
                    del left[connection.socket]
    return latencies


def main(path: str, connections: str, calls: str, request: str) -> None:
    """See the module's text."""
    opened = [Connection(path, f"caller-{n}", request) for n in range(int(connections))]
    for line in iter(_turn, ""):
        assert line == "go\n"
        latencies = run(opened, int(calls))
        print(json.dumps(latencies), flush=True)
    for connection in opened:
        connection.socket.shutdown(socket.SHUT_RDWR)
        connection.socket.close()


def _turn() -> str:
    print("ready", flush=True)
    return sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
