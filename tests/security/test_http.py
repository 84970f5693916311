"""MCP over HTTP: who gets in, what is refused, and that a web page in the same browser gets nowhere."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from orchestrator.api.framing import MAX_FRAME_BYTES
from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon, running
from tests.security.hostile_workspace import HostileWorkspace, fort_in_tmp
from tests.security.http_client import META, MODERN, HttpCaller, Raw

INITIALIZE: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def first(method: str = "initialize", params: dict[str, Any] = INITIALIZE) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


@pytest.fixture(scope="module")
def url(hostile: HostileWorkspace) -> str:
    return str(hostile.person.done("status")["http"])


@pytest.fixture(scope="module")
def tess(hostile: HostileWorkspace, url: str) -> HttpCaller:
    """An agent with a token."""
    added = hostile.person.done("agent_add", name="tess", approver=hostile.approver)
    return HttpCaller(url, added["token"])


def test_a_tool_is_called_in_the_newest_version(tess: HttpCaller) -> None:
    assert "     2\ttwo" in tess.tool("read_file", path="a.txt")["content"][0]["text"]


def test_a_tool_is_called_in_the_version_before(tess: HttpCaller) -> None:
    opened = tess.send(first())
    assert opened.message["result"]["protocolVersion"] == "2025-11-25"
    session = {"Mcp_Session_Id": opened.headers["mcp-session-id"]}
    call = first("tools/call", {"name": "read_file", "arguments": {"path": "a.txt"}})
    answer = tess.send(call, MCP_Protocol_Version="2025-11-25", **session)
    assert "     2\ttwo" in answer.message["result"]["content"][0]["text"]


def test_the_briefing_is_a_resource_as_well(tess: HttpCaller) -> None:
    (offered,) = tess.rpc("resources/list").message["result"]["resources"]
    read = tess.rpc("resources/read", {"uri": offered["uri"]}, Mcp_Name=offered["uri"]).message["result"]
    assert read["cacheScope"] == "private"
    assert (
        read["contents"][0]["text"].partition(" at @")[0]
        == tess.tool("get_briefing")["content"][0]["text"].partition(" at @")[0]
    )
    opened = tess.send(first())
    session = {"Mcp_Session_Id": opened.headers["mcp-session-id"]}
    answer = tess.send(first("resources/read", {"uri": offered["uri"]}), MCP_Protocol_Version="2025-11-25", **session)
    assert "\n<content " in answer.message["result"]["contents"][0]["text"]


def test_the_other_address_of_localhost_is_ours_too(tess: HttpCaller) -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    opened = tess.send(first(), address="::1", host=f"[::1]:{tess.port}")
    assert opened.status == 200


def test_no_other_address_is_bound(tess: HttpCaller) -> None:
    listening = {
        line.split()[1].rpartition(":")[0]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if int(line.split()[1].rpartition(":")[2], 16) == tess.port and line.split()[3] == "0A"
    }
    assert listening <= {"0100007F", "00000000000000000000000001000000"}
    assert "0100007F" in listening


ROUTES = [("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("OPTIONS", "/mcp"), ("GET", "/"), ("PUT", "/x/y")]


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        pytest.param({"host": "evil.example"}, 403, "http_refused", id="62: another host"),
        pytest.param({"host": "evil.example:{port}"}, 403, "http_refused", id="62: another host, our port"),
        pytest.param({"host": "127.0.0.1:1"}, 403, "http_refused", id="62: another port"),
        pytest.param({"host": "localhost"}, 403, "http_refused", id="62: no port"),
        pytest.param({"host": "[::]:{port}"}, 403, "http_refused", id="62: any address"),
        pytest.param({"host": "127.0.0.1:{port}.evil.example"}, 403, "http_refused", id="62: ours, then theirs"),
        pytest.param({"Origin": "http://evil.example"}, 403, "http_refused", id="62: another origin"),
        pytest.param({"Origin": "null"}, 403, "http_refused", id="62: a sandboxed page"),
        pytest.param({"Origin": ""}, 403, "http_refused", id="62: an empty origin"),
        pytest.param({"Origin": "http://localhost:1"}, 403, "http_refused", id="62: another server of this machine"),
        pytest.param({"Origin": "https://127.0.0.1:{port}"}, 403, "http_refused", id="62: another scheme"),
        pytest.param({"Authorization": None}, 401, "unauthorised", id="64: no token"),
        pytest.param({"Authorization": "Bearer "}, 401, "unauthorised", id="64: an empty token"),
        pytest.param({"Authorization": "Bearer orc_0"}, 401, "unauthorised", id="64: no such token"),
        pytest.param({"Authorization": "Basic dGVzczp0ZXNz"}, 401, "unauthorised", id="64: another scheme"),
    ],
)
def test_no_route_lets_a_stranger_in(
    hostile: HostileWorkspace,
    tess: HttpCaller,
    method: str,
    path: str,
    headers: dict[str, str | None],
    status: int,
    code: str,
) -> None:
    given = {name: value and value.replace("{port}", str(tess.port)) for name, value in headers.items()}
    with hostile.untouched(refusals=1):
        answer = tess.send(first() if method == "POST" else None, method=method, path=path, **given)
    assert (answer.status, answer.refusal["code"]) == (status, code)
    assert answer.refusal["hint"]
    assert ("www-authenticate" in answer.headers) == (answer.status == 401)
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_headers_that_are_there_twice(hostile: HostileWorkspace, tess: HttpCaller) -> None:
    with hostile.untouched(), Raw(tess.port) as raw:
        raw.send(
            b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n"
            % tess.port
        )
        assert raw.rest().startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        pytest.param({"path": "/other"}, 404, "http_refused", id="another path"),
        pytest.param({"path": "/mcp/"}, 404, "http_refused", id="a path that is like ours"),
        pytest.param({"path": "/mcp?toolset=all"}, 400, "http_refused", id="no such toolset"),
        pytest.param({"path": "/mcp?agent=alice"}, 400, "http_refused", id="an option that there is not"),
        pytest.param({"Content_Type": "text/plain"}, 415, "http_refused", id="a form's content type"),
        pytest.param({"Content_Type": None}, 415, "http_refused", id="no content type"),
        pytest.param({"Orchestrator_Session": "s-0123456789ab"}, 404, "session_unknown", id="no such session"),
    ],
)
def test_requests_of_an_agent_that_are_refused(
    hostile: HostileWorkspace, tess: HttpCaller, sent: dict[str, Any], status: int, code: str
) -> None:
    with hostile.untouched(refusals=1):
        answer = tess.send(first(), **sent)
    assert (answer.status, answer.refusal["code"]) == (status, code)
    assert answer.refusal["hint"]


def test_another_agents_session(hostile: HostileWorkspace, tess: HttpCaller) -> None:
    answer = tess.rpc("tools/list", Orchestrator_Session=hostile.agent.session)
    assert (answer.status, answer.refusal["code"]) == (404, "session_not_yours")


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_body_over_the_limit(hostile: HostileWorkspace, tess: HttpCaller, method: str) -> None:
    with hostile.untouched(), Raw(tess.port) as raw:
        headers = "".join(f"{name}: {value}\r\n" for name, value in tess._headers.items())
        head = f"{method} /mcp HTTP/1.1\r\nHost: 127.0.0.1:{tess.port}\r\n{headers}"
        raw.send(f"{head}Content-Length: {MAX_FRAME_BYTES + 1}\r\n\r\n".encode())
        assert b'"code":"frame_too_large"' in raw.rest()


def test_a_body_of_unknown_size_over_the_limit(hostile: HostileWorkspace, tess: HttpCaller) -> None:
    mark = hostile.head()
    with hostile.untouched(refusals=1), Raw(tess.port) as raw:
        headers = "".join(f"{name}: {value}\r\n" for name, value in tess._headers.items())
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{tess.port}\r\n{headers}Transfer-Encoding: chunked\r\n\r\n"
        raw.send(head.encode())
        piece = b"%x\r\n%s\r\n" % (1 << 20, b"x" * (1 << 20))
        with suppress(BrokenPipeError, ConnectionResetError):  # closed before all of it was sent
            for _ in range(MAX_FRAME_BYTES // (1 << 20) + 1):
                raw.send(piece)
        raw.rest()
    assert hostile.refusals_since(mark)[-1]["event"]["code"] == "frame_too_large"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="broken JSON"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"[" * 200_000, id="endless nesting"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 50_000, id="nested objects"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[" + first() + b"]", id="a batch"),
        pytest.param(b'{"jsonrpc":"2.0","id":{},"method":"ping"}', id="an object as id"),
        pytest.param(b"9" * 100_000, id="a huge number"),
    ],
)
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28", "no version"])
def test_bodies_that_are_no_request(hostile: HostileWorkspace, tess: HttpCaller, body: bytes, version: str) -> None:
    with hostile.untouched(refusals=1):
        answer = tess.send(body, MCP_Protocol_Version=version)
    assert 400 <= answer.status < 500
    assert b"Traceback" not in answer.body
    assert tess.rpc("tools/list").status == 200


@pytest.mark.parametrize("arguments", [{"path": "a\ud800.txt"}, {"path": "a", "\udfff": 1}], ids=["value", "name"])
def test_14_half_a_surrogate_pair(hostile: HostileWorkspace, tess: HttpCaller, arguments: dict[str, object]) -> None:
    with hostile.untouched(refusals=1):
        answer = tess.rpc("tools/call", {"name": "read_file", "arguments": arguments})
    assert (answer.status, answer.refusal["code"]) == (400, "http_refused")
    shown = tess.rpc("tools/call", {"name": "search_content", "arguments": {"pattern": "\U0001f600"}})
    assert shown.status == 200, "a whole pair is a character"


GARBAGE = [
    pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), id="TLS"),
    pytest.param(b"hello\r\n\r\n", id="no HTTP"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", id="two hosts"),
    pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="no host"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 70_000, id="a header without end"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"A: b\r\n" * 20_000, id="headers without end"),
    pytest.param(b"GET /" + b"a" * 70_000, id="a line without end"),
    pytest.param(b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", id="a size below nothing"),
    pytest.param(
        b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /",
        id="two sizes",
    ),
    pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 50 + b"\x00garbage\r\n\r\n", id="pipelined, then garbage"),
]


@pytest.mark.parametrize("sent", GARBAGE)
def test_bytes_that_are_no_http(hostile: HostileWorkspace, tess: HttpCaller, sent: bytes) -> None:
    with hostile.untouched(), Raw(tess.port) as raw:
        with suppress(BrokenPipeError, ConnectionResetError):  # closed before all of it was sent
            raw.send(sent)
        rest = raw.rest()
    assert b" 200 " not in rest
    assert b"Traceback" not in rest
    assert tess.rpc("tools/list").status == 200


def test_a_revoked_token_ends_with_the_next_request(hostile: HostileWorkspace, url: str) -> None:
    added = hostile.person.done("agent_add", name="gone", approver=hostile.approver)
    gone = HttpCaller(url, added["token"])
    opened = gone.send(first())
    assert opened.status == 200
    hostile.person.done("agent_revoke", name="gone", approver=hostile.approver)
    for session in ({}, {"Mcp_Session_Id": opened.headers["mcp-session-id"]}):
        with hostile.untouched(refusals=1):
            answer = gone.send(first("tools/list", {}), **session)
        assert answer.status == 401


def test_a_protocol_session_is_of_its_agent_alone(hostile: HostileWorkspace, url: str, tess: HttpCaller) -> None:
    added = hostile.person.done("agent_add", name="other", approver=hostile.approver)
    other = HttpCaller(url, added["token"])
    session = tess.send(first()).headers["mcp-session-id"]
    for method in ("POST", "GET", "DELETE"):
        answer = other.send(first("tools/list", {}), method=method, Mcp_Session_Id=session)
        assert answer.status == 404


def test_requests_of_a_token_share_a_session(hostile: HostileWorkspace, tess: HttpCaller) -> None:
    def session(**headers: str) -> str:
        call = tess.rpc("tools/call", {"name": "session_status", "arguments": {}}, **headers)
        return str(json.loads(call.message["result"]["content"][0]["text"])["session"])

    assert session() == session()
    assert session(Orchestrator_Session="other") != session()
    assert session(Orchestrator_Session=session()) == session()


def test_http_is_off_unless_asked_for(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("off")) as daemon:
        _, status = command(daemon, "status")
        assert "http" not in status or status["http"] is None


def test_the_url_says_which_tools(tess: HttpCaller) -> None:
    body = first("tools/list", {"_meta": {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}})
    routing: dict[str, Any] = {"MCP_Protocol_Version": MODERN, "Mcp_Method": "tools/list"}
    core, full = (
        {tool["name"] for tool in tess.send(body, path=path, **routing).message["result"]["tools"]}
        for path in ("/mcp", "/mcp?toolset=full")
    )
    assert core < full


def test_another_servers_tools_come_with_its_settings_and_without_our_instructions(
    hostile: HostileWorkspace, url: str
) -> None:
    token = hostile.person.done("agent_add", name="thea", approver=hostile.approver)["token"]
    thea = HttpCaller(url, token, path="/mcp?toolset=largefile&LARGEFILE_MAX_DIR_ENTRIES=1")
    assert "conflict" in thea.send(first(), path="/mcp").message["result"]["instructions"]
    assert "instructions" not in thea.send(first()).message["result"]
    assert "instructions" not in thea.rpc("server/discover").message["result"]
    listed = json.loads(thea.tool("list_directory", absolute_dir_path=str(hostile.work))["content"][0]["text"])
    assert (len(listed["entries"]), listed["truncated"]) == (1, True)
    refused = thea.send(first(), path="/mcp?toolset=filesystem&LARGEFILE_MAX_DIR_ENTRIES=1")
    assert (refused.status, refused.refusal["code"]) == (400, "http_refused")


def test_a_port_that_another_program_has_is_said(tess: HttpCaller, tmp_path_factory: pytest.TempPathFactory) -> None:
    daemon = RunningDaemon(tmp_path_factory.mktemp("taken"))
    said = daemon.start("--http", str(tess.port))
    assert (said["ok"], said["code"]) == (False, "port_taken")
    assert daemon.wait() == 1


def test_a_stop_ends_streams_that_are_open() -> None:
    with fort_in_tmp() as own:
        added = own.person.done("agent_add", name="tess", approver=own.approver)
        caller = HttpCaller(str(own.person.done("status")["http"]), added["token"])
        session = caller.send(first()).headers["mcp-session-id"]
        with Raw(caller.port) as stream:
            head = f"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{caller.port}\r\nMcp-Session-Id: {session}\r\n"
            stream.send(f"{head}Authorization: Bearer {added['token']}\r\nAccept: text/event-stream\r\n\r\n".encode())
            assert stream.some().startswith(b"HTTP/1.1 200 ")
            assert own.daemon.stop() == 0
            stream.rest()
