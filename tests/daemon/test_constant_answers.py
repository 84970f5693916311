"""What the stdio transport answers by itself is what the daemon answers, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.clients import frames
from orchestrator.clients.handshake import FOLDER, Handshake
from tests.daemon.running import RunningDaemon
from tests.docs.answers import HANDSHAKE_VERSIONS, META, asked, initialize, request, written

KINDS = [(toolset, structured) for toolset in ("core", "full") for structured in (False, True)]


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
    for toolset, structured in KINDS:
        for messages in conversations():
            own = Handshake(toolset, structured=structured)
            replies = asked(str(daemon.socket), messages, toolset=toolset, structured=structured)
            for message, reply in zip(messages, replies, strict=True):
                said = frames.said(json.dumps(message).encode())
                assert own.reply(said) == reply, f"{toolset} {message['method']}: run `make docs`"


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
    *_, last = [own.reply(frames.said(json.dumps(message).encode())) for message in messages]
    assert last is None
