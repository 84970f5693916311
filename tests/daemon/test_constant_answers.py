"""What the stdio transport answers by itself is what the daemon answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from orchestrator.api.operations import toolset
from orchestrator.api.toolsets import TOOLSETS
from orchestrator.clients.stdio_proxy.messages import FOLDER, Handshake
from orchestrator.clients.stdio_proxy.messages import read_message as said_by
from tests.daemon.daemon_process import RunningDaemon
from tests.docs.answers import HANDSHAKE_VERSIONS, META, asked, initialize, request, written

NOT_OFFERED = {name: {"approver"} for name in ("resolve_conflict", "tag_file", "deny")} | {
    "approve": {"approver", "unseen", "for_session", "pattern", "ttl_s"},
    "journal_query": {"client_call_id"},
}
"""What models are not told of: it has one value, or is a person's to send."""

KINDS = [(name, structured) for name in TOOLSETS for structured in (False, True)]


def conversations() -> list[list[dict[str, Any]]]:
    """What clients of every revision ask first, and of one that is not known."""
    old = [
        [initialize(version), request("tools/list", 'a\u00e9\u2028"\\'), request("tools/list", 2, _meta={"x": 1})]
        for version in (*HANDSHAKE_VERSIONS, "2026-07-28", "1999-01-01")
    ]
    nameless = {key: value for key, value in META.items() if not key.endswith("clientInfo")}
    new = [
        [request("server/discover", _meta=meta), request("tools/list", 2**40, _meta=meta)] for meta in (META, nameless)
    ]
    return [*old, *new]


def test_the_transport_says_what_the_daemon_says(daemon: RunningDaemon) -> None:
    for name, structured in KINDS:
        for messages in conversations():
            own = Handshake(name, structured=structured)
            replies = asked(str(daemon.socket), messages, toolset=name, structured=structured)
            for message, reply in zip(messages, replies, strict=True):
                said = said_by(json.dumps(message).encode())
                constant = json.loads(own.reply(said) or b"null")
                assert constant == json.loads(reply), f"{name} {message['method']}: run `make docs`"


def listed(name: str) -> list[dict[str, Any]]:
    """What `tools/list` answers to a client of 2026."""
    line = json.dumps(request("tools/list", _meta=META)).encode()
    reply = Handshake(name, structured=False).reply(said_by(line))
    assert reply
    found: list[dict[str, Any]] = json.loads(reply)["result"]["tools"]
    return found


@pytest.mark.parametrize(
    ("name", "most"), [("core", 13_400), ("full", 29_500), ("filesystem", 6_000), ("editor", 2_500)]
)
def test_what_every_session_must_read_is_short(name: str, most: int) -> None:
    """Without the schemas of answers, by which clients check them, and `_meta`, theirs too: no model is given these."""
    clients = ("outputSchema", "_meta")
    tools = [{key: value for key, value in tool.items() if key not in clients} for tool in listed(name)]
    sent = json.dumps(tools, separators=(",", ":"), ensure_ascii=False)
    assert len(sent.encode()) <= most


def test_every_tool_says_what_to_send() -> None:
    """Each parameter of the catalogue, required ones first, in plain types and with a description."""
    tools = {tool["name"]: tool["inputSchema"] for tool in listed("full")}
    assert list(tools) == [operation.name for operation in toolset("full")]
    for operation in toolset("full"):
        schema = tools[operation.name]
        fields = {field.encode_name: field.required for field in msgspec.structs.fields(operation.struct)}
        assert set(schema["properties"]) == fields.keys() - NOT_OFFERED.get(operation.name, set()), operation.name
        required = [name for name, needed in fields.items() if needed]
        assert set(schema.get("required", ())) == set(required), operation.name
        assert set(list(schema["properties"])[: len(required)]) == set(required), operation.name
        for name, described in schema["properties"].items():
            assert described["description"], f"{operation.name}: {name}"
            assert "type" in described or "enum" in described, f"{operation.name}: {name}"
        for waste in ("anyOf", '"null"', ": null", "additionalProperties", "$ref"):
            assert waste not in json.dumps(schema), operation.name


def test_the_files_are_as_make_docs_writes_them(daemon: RunningDaemon) -> None:
    for name, text in written(str(daemon.socket)).items():
        assert Path(FOLDER, name).read_text(encoding="utf-8") == text, f"{name}: run `make docs`"


def discover(**meta: Any) -> dict[str, Any]:
    wrong = {f"io.modelcontextprotocol/{key}": value for key, value in meta.items()}
    return request("server/discover", _meta={**META, **wrong})


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([request("tools/list")], id="tools without a handshake"),
        pytest.param([request("server/discover")], id="no revision"),
        pytest.param([discover(protocolVersion="x")], id="a revision that is not known"),
        pytest.param([discover(clientCapabilities=1)], id="capabilities of a wrong type"),
        pytest.param([discover(clientInfo="x")], id="client info of a wrong type"),
        pytest.param([initialize("2025-11-25"), request("tools/list", cursor="1")], id="a cursor"),
        pytest.param([initialize("2025-11-25", clientInfo={"name": 1})], id="a name of a wrong type"),
        pytest.param([initialize("2025-11-25", capabilities=None)], id="no capabilities"),
        pytest.param([initialize("2025-11-25"), request("ping")], id="another method"),
        pytest.param([{"jsonrpc": "2.0", "method": "tools/list"}], id="no id"),
    ],
)
def test_what_is_unusual_is_left_to_the_daemon(messages: list[dict[str, Any]]) -> None:
    own = Handshake("core", structured=False)
    *_, last = [own.reply(said_by(json.dumps(message).encode())) for message in messages]
    assert last is None
