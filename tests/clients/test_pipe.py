"""The pipe where no daemon comes back: what its client is told, and that it tries again."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

import pytest

from orchestrator.clients import frames, pipe
from orchestrator.clients.pipe import Link, Pipe, StillUnreachable
from orchestrator.core.errors import OrchestratorError, Unauthorised
from tests.clients.fakes import Conversation, read_line


def linked() -> tuple[Link, Conversation]:
    ours, theirs = socket.socketpair()
    return Link(ours, ours.makefile("rb"), "s-1"), Conversation(theirs)


class Client:
    """The agent's end of a pipe that runs in this process; `dials` is what each reconnect finds."""

    def __init__(self) -> None:
        self.dials: list[Link | OrchestratorError] = []
        link, self.daemon = linked()
        down, self._up = os.pipe()
        self._down, up = os.pipe()
        self._files: list[BinaryIO] = [os.fdopen(down, "rb"), os.fdopen(up, "wb")]
        self.out = os.fdopen(self._down, "rb")
        self._thread = threading.Thread(target=Pipe(link, self._dial, *self._files).run)
        self._thread.start()

    def _dial(self, session: str | None) -> Link:
        assert session == "s-1"
        found = self.dials.pop(0) if self.dials else StillUnreachable("it was stopped")
        if isinstance(found, Exception):
            raise found
        return found

    def say(self, message: dict[str, Any]) -> None:
        os.write(self._up, json.dumps(message).encode() + b"\n")

    def told(self) -> dict[str, Any]:
        answer = read_line(self.out)
        told = json.loads(answer["result"]["content"][0]["text"])
        assert isinstance(told, dict)
        return told

    def close(self) -> None:
        os.close(self._up)
        self.daemon.close()
        self._thread.join(10)
        assert not self._thread.is_alive()
        for file in (*self._files, self.out):
            file.close()


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(pipe, "RECONNECT_S", 0.0)
    opened = Client()
    yield opened
    opened.close()


def write(id: int) -> dict[str, Any]:
    arguments = {"path": "a", "request_id": f"r-{id}"}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "edit_file", "arguments": arguments}}


def test_open_and_further_calls_are_answered_and_the_next_one_tries_again(client: Client) -> None:
    client.say(write(1))
    client.daemon.heard()
    client.daemon.close()
    told = client.told()
    assert (told["code"], told["details"]) == ("daemon_unreachable", {"request_id": "r-1"})

    client.say(write(2))
    assert client.told()["details"] == {"request_id": "r-2"}

    link, client.daemon = linked()
    client.dials = [link]
    client.say(write(3))
    assert client.daemon.heard()["id"] == 3


def test_a_refusal_ends_the_wait_and_is_told(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe, "RECONNECT_S", 3600.0)
    client.dials = [Unauthorised("the token was revoked")]
    client.say(write(1))
    client.daemon.heard()
    client.daemon.close()
    assert client.told()["code"] == "unauthorised"


def test_a_cancelled_call_is_not_answered(client: Client) -> None:
    client.say(write(1))
    client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    client.say(write(2))
    for _ in range(3):
        client.daemon.heard()
    client.daemon.close()
    assert client.told()["details"] == {"request_id": "r-2"}


@pytest.mark.parametrize(
    ("line", "heard"),
    [
        pytest.param(b'{"jsonrpc":"2.0","id":7,"result":{}}\n', frames.Heard("reply", 7), id="usual"),
        pytest.param(b'{"jsonrpc":"2.0","id":"x\\"","error":{}}\n', frames.Heard("reply", 'x"'), id="text id"),
        pytest.param(b'{"result": {"id": 1}, "id": 2}\n', frames.Heard("reply", 2), id="another order"),
        pytest.param(b'{"jsonrpc":"2.0","id":3,"method":"m"}\n', frames.Heard("request", 3), id="question"),
        pytest.param(b'{"jsonrpc":"2.0","method":"m"}\n', frames.Heard("other"), id="notification"),
        pytest.param(b'{"jsonrpc":"2.0","id":null,"error":{}}\n', frames.Heard("other"), id="no id"),
        pytest.param(b"[]\n", frames.Heard("other"), id="a batch"),
        pytest.param(b"[" * 100_000 + b"\n", frames.Heard("other"), id="too deep"),
    ],
)
def test_heard(line: bytes, heard: frames.Heard) -> None:
    assert frames.heard(line) == heard


@pytest.mark.parametrize(
    ("params", "request_id"),
    [
        pytest.param('{"name":"edit_file","arguments":{"request_id":"r"}}', "r", id="kept"),
        pytest.param('{"name":"edit_file","arguments":[]}', None, id="arguments of a wrong type pass"),
        pytest.param('{"name":"read_file","arguments":{}}', None, id="a read"),
        pytest.param("[]", None, id="params of a wrong type pass"),
    ],
)
def test_lines_that_pass_unchanged(params: str, request_id: str | None) -> None:
    line = f'{{"id":1,"method":"tools/call","params":{params}}}\n'.encode()
    said = frames.said(line)
    assert said.line == line
    assert said.call == frames.Call(1, "tools/call", request_id)


@pytest.mark.parametrize("arguments", ['"arguments":null', '"arguments":{"request_id":null}', '"x":1'])
def test_lines_that_get_a_request_id(arguments: str) -> None:
    said = frames.said(f'{{"id":1,"method":"tools/call","params":{{"name":"revert",{arguments}}}}}\n'.encode())
    assert said.call is not None
    assert json.loads(said.line)["params"]["arguments"] == {"request_id": said.call.request_id}
