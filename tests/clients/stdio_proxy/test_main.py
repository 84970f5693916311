"""The stdio transport as agents start it, against a daemon that the test plays."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from orchestrator.api import locations
from orchestrator.api.operations import toolset
from orchestrator.clients.stdio_proxy import messages
from orchestrator.clients.stdio_proxy.messages import Handshake
from orchestrator.servers.toolsets.drop_in import DROP_IN
from tests.clients.fakes import PATIENCE_S, Conversation, FakeDaemon, read_line
from tests.docs.answers import initialize, request

MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Transport:
    """The shim's process, seen from the agent."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", "mcp", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin
        assert self.process.stdout
        self._in, self._out = self.process.stdin, self.process.stdout

    def say(self, message: dict[str, Any]) -> None:
        self.say_bytes(json.dumps(message).encode() + b"\n")

    def say_bytes(self, data: bytes) -> None:
        self._in.write(data)
        self._in.flush()

    def heard(self) -> dict[str, Any]:
        return read_line(self._out)

    def hang_up(self) -> None:
        self._in.close()

    def ended(self) -> tuple[int, bytes, bytes]:
        """The exit code, and what was left on stdout and stderr."""
        assert self.process.stderr
        code = self.process.wait(PATIENCE_S)
        return code, self._out.read(), self.process.stderr.read()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()


@pytest.fixture
def transport(daemon: FakeDaemon) -> Iterator[Transport]:
    opened = Transport()
    yield opened
    opened.close()


def tool_call(id: int, name: str, *, modern: bool = False, **arguments: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    if modern:
        params["_meta"] = MODERN
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def shaken(transport: Transport, link: Conversation) -> None:
    """Go through the handshake of 2025."""
    transport.say(INITIALIZE)
    link.reply(link.heard(), "hello")
    assert transport.heard()["result"] == "hello"
    transport.say(INITIALIZED)
    assert link.heard()["method"] == "notifications/initialized"


def test_write_tools_are_those_of_the_catalogue() -> None:
    tools = (*toolset("full"), *chain.from_iterable(entry.tools for entry in DROP_IN.values()))
    known = {tool.name for tool in tools if tool.takes("request_id")}
    assert Handshake("core", structured=False).writes == known


def test_nothing_heavy_is_imported() -> None:
    script = (
        "import sys; import orchestrator.__main__, orchestrator.clients.stdio_proxy.main\n"
        "import site; third = [name for name, module in sys.modules.items()\n"
        "  if 'site-packages' in (getattr(module, '__file__', None) or '')"
        " and not name.startswith(('orchestrator', '__editable__', '_distutils_hack'))]\n"
        "ours = [name for name in sys.modules if name.startswith('orchestrator')]\n"
        "print(third, [n for n in ('subprocess', 'asyncio', 'pathlib') if n in sys.modules and n not in before], ours)"
    )
    out = subprocess.run(
        [sys.executable, "-c", "import sys; before = set(sys.modules)\n" + script],
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert out.startswith("[] [] ")
    assert "orchestrator.api.framing" not in out


def test_a_last_line_without_an_end_spoils_none_before_it(transport: Transport, daemon: FakeDaemon) -> None:
    transport.say(tool_call(1, "read_file", path="a"))
    transport.say_bytes(b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}')
    transport.hang_up()
    link = daemon.accept()
    link.welcome()
    heard = {message["method"]: message for message in (link.heard(), link.heard())}
    assert heard.keys() == {"tools/call", "notifications/roots/list_changed"}
    link.reply(heard["tools/call"], "read")
    assert transport.heard()["result"] == "read"


def test_passes_lines_on_as_they_are(transport: Transport, daemon: FakeDaemon) -> None:
    link = daemon.accept()
    preamble = link.welcome()
    assert preamble["orchestrator"] == 1
    assert preamble["transport"] == "mcp"
    assert "agent" not in preamble
    assert "person" not in preamble
    line = b'{ "method":"tools/list" , "id": "a\\u00e9", "jsonrpc":"2.0", "params": {"x": 1e400} }\n'
    transport.say_bytes(line)
    assert link.line() == line
    link.say_bytes(b'{"jsonrpc":"2.0","id":"a\\u00e9","result":{"tools":[]}}\n')
    assert transport.heard() == {"jsonrpc": "2.0", "id": "aé", "result": {"tools": []}}
    transport.say_bytes(b"not json\n")
    assert link.line() == b"not json\n"


def test_says_who_calls(daemon: FakeDaemon, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "token").write_text("secret\n")
    monkeypatch.setenv("ORCHESTRATOR_AGENT", "builder")
    monkeypatch.setenv("ORCHESTRATOR_SESSION", "s-9")
    opened = Transport("--token-file", str(home / "token"), "--toolset", "full", "--structured")
    preamble = daemon.accept().welcome()
    opened.close()
    said = {name: preamble[name] for name in ("agent", "token", "session", "toolset", "structured")}
    assert said == {"agent": "builder", "token": "secret", "session": "s-9", "toolset": "full", "structured": True}


def test_gives_writes_a_request_id(transport: Transport, daemon: FakeDaemon) -> None:
    link = daemon.accept()
    link.welcome()
    transport.say(tool_call(1, "edit_file", path="a"))
    transport.say(tool_call(2, "edit_file", path="a", request_id="mine"))
    transport.say(tool_call(3, "read_file", path="a"))
    added, kept, read = link.heard(), link.heard(), link.heard()
    assert len(added["params"]["arguments"].pop("request_id")) == 32
    assert added == tool_call(1, "edit_file", path="a")
    assert kept["params"]["arguments"]["request_id"] == "mine"
    assert read == tool_call(3, "read_file", path="a")


def test_survives_a_restart(transport: Transport, daemon: FakeDaemon) -> None:
    link = daemon.accept()
    link.welcome("s-7")
    shaken(transport, link)
    transport.say(tool_call(1, "write_file", path="a"))
    transport.say(tool_call(2, "read_file", path="a"))
    transport.say({"jsonrpc": "2.0", "id": 3, "method": "tools/list"})
    transport.say(tool_call(4, "read_file", path="b"))
    sent = [link.heard() for _ in range(4)]
    link.reply(sent[3])
    assert transport.heard()["id"] == 4
    link.say_bytes(b'{"jsonrpc":"2.0","id":1,"resu')
    link.close()

    link = daemon.accept()
    assert link.welcome("s-7")["session"] == "s-7"
    assert link.heard() == INITIALIZE
    link.reply(INITIALIZE, "hello again")
    assert link.heard() == INITIALIZED

    assert [link.heard() for _ in range(3)] == sent[:3]
    for each in sent[:3]:
        link.reply(each, "at last")
    assert [transport.heard() for _ in range(3)] == [
        {"jsonrpc": "2.0", "id": id, "result": "at last"} for id in (1, 2, 3)
    ]

    transport.say(tool_call(5, "read_file", path="a"))
    link.reply(link.heard(), "as before")
    assert transport.heard() == {"jsonrpc": "2.0", "id": 5, "result": "as before"}


def test_the_2026_era_has_nothing_to_replay(transport: Transport, daemon: FakeDaemon) -> None:
    link = daemon.accept()
    link.welcome()
    transport.say(tool_call(1, "edit_file", modern=True, path="a"))
    sent = link.heard()
    link.close()
    link = daemon.accept()
    link.welcome()
    assert link.heard() == sent
    link.close()
    link = daemon.accept()
    link.welcome()
    reported = transport.heard()["result"]
    assert reported["resultType"] == "complete"
    assert reported["isError"] is True
    answer = json.loads(reported["content"][0]["text"])
    request_id = sent["params"]["arguments"]["request_id"]
    assert (answer["code"], answer["details"]) == ("daemon_restarted", {"request_id": request_id})
    assert request_id in answer["hint"]
    transport.say(tool_call(2, "read_file", modern=True, path="a"))
    assert link.heard()["id"] == 2


def test_an_initialize_that_was_open_is_answered_by_the_next_daemon(transport: Transport, daemon: FakeDaemon) -> None:
    link = daemon.accept()
    link.welcome()
    transport.say(INITIALIZE)
    link.heard()
    link.close()
    link = daemon.accept()
    link.welcome()
    link.reply(link.heard(), "hello")
    assert transport.heard() == {"jsonrpc": "2.0", "id": 0, "result": "hello"}


def test_a_forgotten_session_becomes_a_new_one(transport: Transport, daemon: FakeDaemon) -> None:
    link = daemon.accept()
    link.welcome("old")
    link.close()
    link = daemon.accept()
    assert link.heard()["session"] == "old"
    link.say({"ok": False, "code": "session_unknown", "message": "no such session"})
    link.close()
    link = daemon.accept()
    assert "session" not in link.welcome("new")
    transport.say(tool_call(1, "read_file", path="a"))
    assert link.heard()["id"] == 1


def test_a_call_after_a_persons_stop_is_refused_and_the_next_one_tries_again(
    transport: Transport, daemon: FakeDaemon
) -> None:
    link = daemon.accept()
    link.welcome()
    transport.say(tool_call(1, "read_file", path="a"))
    link.heard()
    daemon.locate("stopped")
    daemon.deafen()
    link.close()
    for id in (1, 2):
        if id > 1:
            transport.say(tool_call(id, "read_file", path="a"))
        answer = transport.heard()
        assert answer["id"] == id
        assert json.loads(answer["result"]["content"][0]["text"])["code"] == "daemon_stopped"
    daemon.listen()
    transport.say(tool_call(3, "read_file", path="a"))
    link = daemon.accept()
    link.welcome()
    assert link.heard()["id"] == 3


def test_the_tools_are_there_before_the_daemon(workspace: Path) -> None:
    """Nobody can start one: the lock of whoever starts a daemon is held."""
    lock = locations.start_lock(locations.workspace_id(str(workspace)))
    Path(lock).parent.mkdir(parents=True)
    with open(lock, "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for toolset, structured in (("core", False), ("full", True)):
            own = Handshake(toolset, structured=structured)
            opened = Transport("--toolset", toolset, *(["--structured"] if structured else []))
            for message in (initialize("2025-06-18"), request("tools/list", 1)):
                opened.say(message)
                reply = own.reply(messages.read_message(json.dumps(message).encode()))
                assert reply
                assert opened.heard() == json.loads(reply)
            opened.close()


def test_a_handshake_that_was_answered_here_reaches_the_daemon(transport: Transport, daemon: FakeDaemon) -> None:
    """Whether it was said before the daemon was there or after; its reply is not heard twice."""
    before = initialize("2025-06-18")
    transport.say(before)
    assert transport.heard()["result"]["protocolVersion"] == "2025-06-18"
    transport.say(INITIALIZED)
    transport.say(tool_call(1, "read_file", path="a"))
    link = daemon.accept()
    link.welcome()
    assert link.heard() == before
    link.reply(before, "not for the client")
    assert link.heard() == INITIALIZED
    link.reply(link.heard(), "a file")
    assert transport.heard() == {"jsonrpc": "2.0", "id": 1, "result": "a file"}
    late = {**before, "id": 2}
    transport.say(late)
    assert transport.heard()["id"] == 2
    assert link.heard() == late
    link.reply(late, "not for the client")
    transport.say(tool_call(3, "read_file", path="a"))
    link.reply(link.heard(), "another file")
    assert transport.heard()["id"] == 3


def test_shows_a_refusal_to_person_and_client(transport: Transport, daemon: FakeDaemon) -> None:
    link = daemon.accept()
    link.heard()
    transport.say(INITIALIZE)
    transport.say(INITIALIZED)
    transport.say(initialize("2025-11-25"))
    assert "result" in transport.heard(), "all before it is read"
    link.say({"ok": False, "code": "unauthorised", "message": "the token is revoked", "hint": "Ask for another."})
    answer = transport.heard()
    assert answer["error"]["message"] == "the token is revoked. Ask for another."
    assert answer["error"]["data"]["code"] == "unauthorised"
    transport.hang_up()
    code, rest, reported = transport.ended()
    assert (code, rest) == (1, b"")
    assert b"the token is revoked" in reported
    assert b"Ask for another." in reported


def test_no_workspace_is_shown_in_the_same_way(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    opened = Transport()
    opened.say({"jsonrpc": "2.0", "id": 1, "method": "server/discover"})
    assert opened.heard()["error"]["data"]["code"] == "workspace_unknown"
    opened.hang_up()
    assert opened.ended()[0] == 1
    opened.close()


@pytest.mark.parametrize("options", [("--toolset", "some"), ("--tools",), ("full",)])
def test_wrong_usage(workspace: Path, options: tuple[str, ...]) -> None:
    opened = Transport(*options)
    assert opened.ended()[:2] == (2, b"")
    opened.close()


def test_the_end_of_stdin_drains_the_daemon(transport: Transport, daemon: FakeDaemon) -> None:
    link = daemon.accept()
    link.welcome()
    transport.say(tool_call(1, "read_file", path="a"))
    asked = link.heard()
    transport.hang_up()
    assert link.line() == b""
    link.reply(asked)
    link.close()
    code, rest, reported = transport.ended()
    assert (code, reported) == (0, b"")
    assert json.loads(rest)["id"] == 1


def test_lines_over_the_limit_pass(transport: Transport, daemon: FakeDaemon) -> None:
    link = daemon.accept()
    link.welcome()
    line = b'{"method":"' + b"x" * (17 * 1024 * 1024) + b'"}\n'
    writer = threading.Thread(target=transport.say_bytes, args=(line,))
    writer.start()
    assert link.line() == line
    writer.join(PATIENCE_S)
