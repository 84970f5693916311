"""The pipe where no daemon comes back: what its client is told, and that it tries again."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

import pytest

from orchestrator.clients.stdio_proxy import messages, relay
from orchestrator.clients.stdio_proxy.messages import Handshake
from orchestrator.clients.stdio_proxy.relay import Link, Pipe, StillUnreachable
from orchestrator.core.errors import Unauthorised
from tests.clients.fakes import Conversation, read_line


def linked() -> tuple[Link, Conversation]:
    ours, theirs = socket.socketpair()
    return Link(ours, ours.makefile("rb"), "s-1"), Conversation(theirs)


class OnlyPing(Handshake):
    """Leaves every line to the daemon but `ping`, which shows how far the client was read."""

    def __init__(self) -> None:
        super().__init__("core", structured=False)

    def reply(self, said: messages.ClientMessage) -> bytes | None:
        return b'{"id":"pong"}\n' if said.call is not None and said.call.method == "ping" else None


class Client:
    """The agent's end of a pipe that runs in this process; `dials` is what each further dial finds."""

    def __init__(self, before: threading.Event | None = None) -> None:
        self._before = before
        link, self.daemon = linked()
        self.dials: list[Link | Exception] = [link]
        self._session: str | None = None
        down, self._up = os.pipe()
        self._down, up = os.pipe()
        self._files: list[BinaryIO] = [os.fdopen(down, "rb"), os.fdopen(up, "wb")]
        self.out = os.fdopen(self._down, "rb")
        opened = Pipe(self._dial, OnlyPing(), *self._files)
        self._thread = threading.Thread(target=opened.run)
        self._thread.start()

    def _dial(self, session: str | None) -> Link:
        if self._before is not None:
            assert self._before.wait(10)
        assert session == self._session
        found = self.dials.pop(0) if self.dials else StillUnreachable("nothing answers")
        if isinstance(found, Exception):
            raise found
        self._session = found.session
        return found

    def say(self, message: dict[str, Any]) -> None:
        os.write(self._up, json.dumps(message).encode() + b"\n")

    def reported(self) -> dict[str, Any]:
        answer = read_line(self.out)
        reported = json.loads(answer["result"]["content"][0]["text"])
        assert isinstance(reported, dict)
        return reported

    def close(self) -> None:
        os.close(self._up)
        self.daemon.close()
        self._thread.join(10)
        assert not self._thread.is_alive()
        for file in (*self._files, self.out):
            file.close()


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(relay, "RECONNECT_S", 0.0)
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
    reported = client.reported()
    assert (reported["code"], reported["details"]) == ("daemon_unreachable", {"request_id": "r-1"})
    assert reported["hint"] == "Ask the person you work for. Start it with `orchestrator up`."

    client.say(write(2))
    assert client.reported()["details"] == {"request_id": "r-2"}

    link, client.daemon = linked()
    client.dials = [link]
    client.say(write(3))
    assert client.daemon.heard()["id"] == 3


def test_a_refusal_ends_the_wait_and_is_reported(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "RECONNECT_S", 3600.0)
    client.dials.append(Unauthorised("the token was revoked"))
    client.say(write(1))
    client.daemon.heard()
    client.daemon.close()
    assert client.reported()["code"] == "unauthorised"


def test_a_cancelled_call_is_not_answered(client: Client) -> None:
    client.say({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
    client.daemon.heard()  # the link is up: what is cancelled before that is never sent
    client.say(write(1))
    client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    client.say(write(2))
    for _ in range(3):
        client.daemon.heard()
    client.daemon.close()
    assert client.reported()["details"] == {"request_id": "r-2"}


def test_an_open_call_is_sent_to_the_next_daemon_and_answered_once(client: Client) -> None:
    link, daemon = linked()
    client.dials.append(link)
    client.say(write(1))
    client.daemon.heard()
    client.daemon.close()
    client.daemon = daemon
    request = client.daemon.heard()
    assert (request["id"], request["params"]["arguments"]["request_id"]) == (1, "r-1")
    client.daemon.reply(request)
    assert read_line(client.out) == {"jsonrpc": "2.0", "id": 1, "result": "done"}


def test_a_question_of_a_daemon_that_ended_is_withdrawn_and_its_answer_goes_to_no_other(client: Client) -> None:
    question = {"jsonrpc": "2.0", "id": "d1-1", "method": "elicitation/create", "params": {}}
    link, daemon = linked()
    client.dials.append(link)
    client.say(write(1))
    client.daemon.heard()
    client.daemon.say(question)
    client.daemon.say({**question, "id": "d1-2"})
    assert [read_line(client.out)["id"] for _ in range(2)] == ["d1-1", "d1-2"]
    client.say({"jsonrpc": "2.0", "id": "d1-2", "result": {}})
    assert client.daemon.heard()["id"] == "d1-2"
    client.daemon.close()
    client.daemon = daemon
    client.daemon.heard()
    withdrawn = read_line(client.out)
    assert (withdrawn["method"], withdrawn["params"]["requestId"]) == ("notifications/cancelled", "d1-1")


def test_a_call_over_which_two_daemons_end_is_not_sent_again(client: Client) -> None:
    links = [linked() for _ in range(2)]
    client.dials += [link for link, _ in links]
    client.say(write(1))
    for _, daemon in links:
        client.daemon.heard()
        client.daemon.close()
        client.daemon = daemon
    reported = client.reported()
    assert (reported["code"], reported["details"]) == ("daemon_restarted", {"request_id": "r-1"})


def test_a_call_is_not_sent_again_in_another_session(client: Client) -> None:
    link, daemon = linked()
    client.dials.append(link._replace(session="s-2"))
    client.say(write(1))
    client.daemon.heard()
    client.daemon.close()
    client.daemon = daemon
    assert client.reported()["code"] == "daemon_restarted"


def test_what_is_said_before_there_is_a_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept in order; the starts that fail meanwhile are tried again."""
    monkeypatch.setattr(relay, "PAUSE_S", 0.0)
    dialling = threading.Event()
    client = Client(before=dialling)
    client.dials[:0] = [StillUnreachable("it died"), ConnectionRefusedError("so did this one")]
    try:
        client.say(write(1))
        client.say({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        client.say(write(2))
        client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        client.say({"jsonrpc": "2.0", "id": "p", "method": "ping"})
        assert read_line(client.out) == {"id": "pong"}
        numbers = range(3, 131)
        for number in numbers:
            client.say(write(number))
        dialling.set()
        assert client.daemon.heard()["method"] == "notifications/roots/list_changed"
        assert [client.daemon.heard()["id"] for _ in range(len(numbers) + 1)] == [2, *numbers]
    finally:
        monkeypatch.setattr(relay, "RECONNECT_S", 0.0)
        client.close()


@pytest.mark.parametrize(
    ("line", "id"),
    [
        pytest.param(b'{"jsonrpc":"2.0","id":7,"result":{}}\n', 7, id="usual"),
        pytest.param(b'{"jsonrpc":"2.0","id":"x\\"","error":{}}\n', 'x"', id="text id"),
        pytest.param(b'{"result": {"id": 1}, "id": 2}\n', 2, id="another order"),
        pytest.param(b'{"jsonrpc":"2.0","id":3,"method":"m"}\n', None, id="question"),
        pytest.param(b'{"jsonrpc":"2.0","method":"m"}\n', None, id="notification"),
        pytest.param(b'{"jsonrpc":"2.0","id":null,"error":{}}\n', None, id="no id"),
        pytest.param(b"[]\n", None, id="a batch"),
        pytest.param(b"[" * 100_000 + b"\n", None, id="too deep"),
    ],
)
def test_which_call_a_line_answers(line: bytes, id: messages.Id | None) -> None:
    assert messages.replied(line) == id


@pytest.mark.parametrize(
    ("params", "request_id"),
    [
        pytest.param('{"name":"edit_file","arguments":{"request_id":"r"}}', "r", id="kept"),
        pytest.param('{"name":"edit_file","arguments":[]}', None, id="arguments of a wrong type pass"),
        pytest.param('{"name":"read_file","arguments":{}}', None, id="a read"),
        pytest.param('{"name":["edit_file"],"arguments":{}}', None, id="a name of a wrong type passes"),
        pytest.param("[]", None, id="params of a wrong type pass"),
    ],
)
def test_lines_that_pass_unchanged(params: str, request_id: str | None) -> None:
    line = f'{{"id":1,"method":"tools/call","params":{params}}}\n'.encode()
    said = messages.read_message(line, OnlyPing().writes)
    assert said.line == line
    assert said.call == messages.Call(1, "tools/call", request_id)


@pytest.mark.parametrize("arguments", ['"arguments":null', '"arguments":{"request_id":null}', '"x":1'])
def test_lines_that_get_a_request_id(arguments: str) -> None:
    line = f'{{"id":1,"method":"tools/call","params":{{"name":"revert",{arguments}}}}}\n'
    said = messages.read_message(line.encode(), OnlyPing().writes)
    assert said.call is not None
    assert json.loads(said.line)["params"]["arguments"] == {"request_id": said.call.request_id}
