"""A daemon for clients to talk to: a real socket, and a script that the test plays."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import msgspec

from orchestrator.api import locations, sockets
from orchestrator.api.framing import Refusal, Reply, Request, RpcError
from orchestrator.api.results import Result

PATIENCE_S = 60.0
"""Nothing here takes that long; a test that hangs fails with it."""


class Conversation:
    """One connection of a client, line by line."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE_S)
        self._socket = connection
        self._lines = connection.makefile("rb")

    def line(self) -> bytes:
        return self._lines.readline()

    def heard(self) -> dict[str, Any]:
        line = self.line()
        assert line, "the client closed its side"
        message = json.loads(line)
        assert isinstance(message, dict)
        return message

    def say(self, message: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def say_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def welcome(self, session: str = "s-1") -> dict[str, Any]:
        """Read the preamble and accept it."""
        preamble = self.heard()
        self.say({"ok": True, "session": session, "agent": "a", "asserted": True, "workspace": "/w"})
        return preamble

    def reply(self, request: dict[str, Any], result: object = "done") -> None:
        self.say({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


class FakeDaemon:
    """Listens where the location file says. The test accepts, reads and answers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.identity = locations.workspace_id(str(root))
        self.path = sockets.socket_path(self.identity)
        self._listener: socket.socket | None = None
        self._open: list[Conversation] = []
        self.listen()

    def listen(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.settimeout(PATIENCE_S)
        Path(self.path).unlink(missing_ok=True)
        self._listener.bind(self.path)
        self._listener.listen(8)
        self.locate("running")

    def locate(self, state: Any) -> None:
        state_dir = f"{self.root}-state"
        locations.write_location(locations.Location(str(self.root), state_dir, self.path, os.getpid(), state))

    def accept(self) -> Conversation:
        """The next connection on which somebody speaks; one that ends in silence only asked whether anybody listens."""
        assert self._listener is not None
        while True:
            connection = self._listener.accept()[0]
            connection.settimeout(PATIENCE_S)
            if connection.recv(1, socket.MSG_PEEK):
                break
            connection.close()
        conversation = Conversation(connection)
        self._open.append(conversation)
        return conversation

    def deafen(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def close(self) -> None:
        self.deafen()
        for conversation in self._open:
            conversation.close()


Answers = Callable[[str, dict[str, Any]], Result | Refusal | None]


class RpcDaemon:
    """Answers the socket protocol in a thread of its own, by a function; None closes the connection."""

    def __init__(self, root: Path, answers: Answers) -> None:
        self.preambles: list[dict[str, Any]] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.refuse_session: Refusal | None = None
        self._answers = answers
        self._daemon = FakeDaemon(root)
        self.path = self._daemon.path
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._ending = False
        self._thread.start()

    def close(self) -> None:
        self._ending = True
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as poke:
            poke.connect(self.path)
            poke.sendall(b"\n")
        self._thread.join(PATIENCE_S)
        self._daemon.close()

    def _serve(self) -> None:
        while True:
            conversation = self._daemon.accept()
            if self._ending:
                return
            try:
                self._converse(conversation)
            finally:
                conversation.close()

    def _converse(self, conversation: Conversation) -> None:
        preamble = conversation.heard()
        self.preambles.append(preamble)
        if preamble.get("session") and self.refuse_session is not None:
            conversation.say({"ok": False, **msgspec.to_builtins(self.refuse_session)})
            return
        session = preamble.get("session") or f"s-{len(self.preambles)}"
        conversation.say({"ok": True, "session": session, "agent": "a", "asserted": True, "workspace": "/w"})
        for line in iter(conversation.line, b""):
            request = msgspec.json.decode(line, type=Request)
            params = msgspec.json.decode(request.params)
            self.calls.append((request.method, params))
            answer = self._answers(request.method, params)
            match answer:
                case None:
                    return
                case Refusal():
                    error = RpcError(message=answer.message, data=answer)
                    conversation.say_bytes(msgspec.json.encode(Reply(id=request.id, error=error)) + b"\n")
                case _:
                    conversation.say_bytes(msgspec.json.encode(Reply(id=request.id, result=answer)) + b"\n")


def read_line(stream: IO[bytes]) -> dict[str, Any]:
    """One line that a client printed."""
    message = json.loads(stream.readline())
    assert isinstance(message, dict)
    return message
