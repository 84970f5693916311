"""A model that follows a script: an HTTP server on loopback, which keeps everything that it was sent."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.end_to_end.agents.wires import Answer, Call, Turn, Wire, plain

Script = Callable[[Turn], Call | str]
"""The next call, or the last text, from what came back so far. May be asked twice for the same turn."""


class Sent(NamedTuple):
    """One request, as it came."""

    method: str
    path: str
    body: bytes


class FakeModel:
    """Answers requests from one agent. A turn's number is the count of results in it, so a repeated request
    gets the same answer. It is the agent's proxy to the rest of the world as well, and lets nothing through."""

    def __init__(self, wire: Wire, script: Script, *, offers: str = "") -> None:
        """`offers`: only a request that offers this tool is of the script; without it, one that offers any of ours."""
        self._wire, self._script, self._offers = wire, script, offers
        self._turn = threading.Lock()
        self.sent: list[Sent] = []
        self.outward: list[str] = []
        self.last: Turn | None = None
        self.troubles: list[str] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, path: str, body: dict[str, Any]) -> Answer:
        """What the model says to this request."""
        turn = self._wire.turn(path.partition("?")[0], body)
        if turn is None:
            return plain({"input_tokens": 10, "data": [], "models": []})
        number = len(turn.results)
        if finding := self._wire.finds(body):
            return finding
        if not any(tool.name == self._offers if self._offers else tool.ours for tool in turn.tools):
            return self._wire.says(body, '{"title": "A title"}', number)
        with self._turn:
            if self.last is None or number >= len(self.last.results):
                self.last = turn
            call = self._script(turn)
            if isinstance(call, str):
                return self._wire.says(body, call, number)
            tool = turn.offered(call)
            if tool is None:
                names = " ".join(sorted(tool.name for tool in turn.tools))
                self.troubles.append(f"{call.name} is not offered; offered: {names}")
                return self._wire.says(body, "I cannot go on.", number)
            return self._wire.calls(body, tool, call.arguments, number)

    def keeps(self, text: str) -> int:
        """In how many requests this text stands."""
        return sum(text in f"{sent.path} {sent.body.decode('utf-8', 'replace')}" for sent in self.sent)


class Server(ThreadingHTTPServer):
    """One thread a connection; they end with the process."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """An agent may drop a connection; that is no news."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def listening(model: FakeModel) -> Iterator[None]:
    """Serve it on a free port of 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            model.sent.append(Sent("POST", self.path, raw))
            try:
                self._send(200, model.answer(self.path, json.loads(raw or b"{}")))
            except Exception as error:  # noqa: BLE001  # a fence: a fault of the script must not look like the agent's
                model.troubles.append(f"{self.path}: {type(error).__name__}: {error}")
                self._send(400, plain({"error": {"type": "invalid_request_error", "message": str(error)}}))

        def do_GET(self) -> None:
            model.sent.append(Sent(self.command, self.path, b""))
            self._send(200, plain({"data": [], "models": []}))

        def do_HEAD(self) -> None:
            self._send(200, Answer("application/json", b""))

        def do_CONNECT(self) -> None:
            model.outward.append(self.path)
            self._send(403, Answer("text/plain", b""))

        def _send(self, status: int, answer: Answer) -> None:
            self.send_response(status)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Silent: what matters is kept."""

    server = Server(("127.0.0.1", 0), Handler)
    model.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
