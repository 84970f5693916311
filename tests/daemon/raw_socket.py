"""Bare lines to a daemon: many calls on one connection, whose answers are read when the test wants."""

from __future__ import annotations

import json
import selectors
import socket
from typing import Any, Literal

from orchestrator.api import sockets
from tests.daemon.daemon_process import RunningDaemon

ANSWER_S = 60.0


class Talk:
    """One connection, of a person without an agent. Calls are sent without waiting; `answer` reads the next line."""

    def __init__(
        self,
        daemon: RunningDaemon,
        agent: str,
        transport: Literal["rpc", "mcp"] = "rpc",
        *,
        token: str | None = None,
        toolset: str = "full",
    ) -> None:
        self._transport, self._last = transport, 0
        self._left = b""
        self._buffer = b""
        self.socket: socket.socket = sockets.connect(str(daemon.socket), ANSWER_S)
        who = sockets.preamble(transport, agent=agent, person=not agent, token=token, client="test", toolset=toolset)
        self.socket.sendall(who)
        assert json.loads(self._line())["ok"]
        if transport == "mcp":
            about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            self._put({"method": "initialize", "id": 0, "params": about})
            assert "result" in json.loads(self._line())
            self._put({"method": "notifications/initialized"})

    def call(self, operation: str, **params: Any) -> int:
        """Send a call; its id. What the socket does not take now goes out by `flush`."""
        self._last += 1
        if self._transport == "mcp":
            self._put({"method": "tools/call", "id": self._last, "params": {"name": operation, "arguments": params}})
        else:
            self._put({"method": operation, "id": self._last, "params": params})
        return self._last

    def ask(self, method: str) -> int:
        """Send another request than a call; its id."""
        self._last += 1
        self._put({"method": method, "id": self._last})
        return self._last

    def flush(self) -> bool:
        """Send what is left, as far as the socket takes it without waiting; whether all is sent."""
        self.socket.setblocking(False)
        try:
            while self._left:
                self._left = self._left[self.socket.send(self._left) :]
        except BlockingIOError:
            pass
        finally:
            self.socket.settimeout(ANSWER_S)
        return not self._left

    def answer(self) -> dict[str, Any]:
        """The next answer."""
        reported: dict[str, Any] = json.loads(self._line())
        return reported

    def answers(self) -> list[dict[str, Any]]:
        """The next answer, and those that are here already."""
        reported = [self.answer()]
        while b"\n" in self._buffer:
            reported.append(self.answer())
        return reported

    def close(self) -> None:
        self.socket.close()

    def _put(self, message: dict[str, Any]) -> None:
        self._left += json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        self.flush()

    def _line(self) -> bytes:
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
            while b"\n" not in self._buffer:
                if self.flush():
                    selector.modify(self.socket, selectors.EVENT_READ)
                ready = selector.select(ANSWER_S)
                assert ready, "no answer came"
                if any(mask & selectors.EVENT_READ for _, mask in ready):
                    data = self.socket.recv(1 << 20)
                    assert data, "the daemon closed the connection"
                    self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line
