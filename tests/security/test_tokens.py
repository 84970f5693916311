"""Tokens that are for reading, for a time, or replaced: on the socket, over HTTP and by the command line."""

from __future__ import annotations

from typing import Any

import pytest

from tests.daemon.cli import command
from tests.daemon.clocked import passes
from tests.security.hostile_workspace import HostileWorkspace
from tests.security.http_client import HttpCaller

WRITES: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"path": "n.txt", "content": "x", "mode": "create"}),
    ("edit_file", {"path": "a.txt", "changes": [{"search": "one", "replace": "1"}]}),
    ("delete_file", {"path": "a.txt"}),
    ("rollback", {"agent": "alice"}),
    ("reserve_paths", {"globs": ["**"]}),
]


def made(hostile: HostileWorkspace, operation: str, **params: object) -> str:
    return str(hostile.person.done(operation, approver=hostile.approver, **params)["token"])


def over_http(hostile: HostileWorkspace, token: str) -> HttpCaller:
    return HttpCaller(str(hostile.person.done("status")["http"]), token)


@pytest.fixture(scope="module")
def reader(hostile: HostileWorkspace) -> str:
    """The token of an agent that may only read."""
    return made(hostile, "agent_add", name="reader", read_only=True)


@pytest.mark.parametrize(("operation", "params"), WRITES)
def test_a_token_for_reading_changes_nothing(
    hostile: HostileWorkspace, reader: str, operation: str, params: dict[str, Any]
) -> None:
    with hostile.line(token=reader) as line:
        hostile.refused(operation, "not_permitted", caller=line, **params)
        assert line.done("read_file", path="a.txt")["total_lines"] == 3
    with hostile.untouched(refusals=1):
        assert over_http(hostile, reader).tool(operation, **params)["isError"]
    assert not over_http(hostile, reader).tool("read_file", path="a.txt")["isError"]


def test_a_rotated_token_is_for_reading_still(hostile: HostileWorkspace) -> None:
    made(hostile, "agent_add", name="turned", read_only=True)
    with hostile.line(token=made(hostile, "agent_rotate", name="turned")) as line:
        hostile.refused("delete_file", "not_permitted", caller=line, path="a.txt")


def test_after_a_rotation_the_former_token_opens_nothing(hostile: HostileWorkspace) -> None:
    old = made(hostile, "agent_add", name="fay")
    with hostile.line(token=old) as line:
        new = made(hostile, "agent_rotate", name="fay")
        hostile.refused("read_file", "unauthorised", caller=line, path="a.txt")
    assert over_http(hostile, old).rpc("tools/list").status == 401
    assert over_http(hostile, new).rpc("tools/list").status == 200
    with hostile.line(token=new) as line:
        assert line.first.reply["agent"] == "fay"


def test_within_its_grace_the_former_token_is_good_and_shares_the_session(hostile: HostileWorkspace) -> None:
    old = made(hostile, "agent_add", name="gil")
    before = over_http(hostile, old).tool("session_status")["structuredContent"]["session"]
    new = made(hostile, "agent_rotate", name="gil", grace_s=3600)
    for token in (old, new):
        assert over_http(hostile, token).tool("session_status")["structuredContent"]["session"] == before
    hostile.person.done("agent_revoke", name="gil", approver=hostile.approver)
    assert {over_http(hostile, token).rpc("tools/list").status for token in (old, new)} == {401}


def test_an_expired_token(hostile: HostileWorkspace) -> None:
    token = made(hostile, "agent_add", name="brief", expires_s=3600)
    with hostile.line(token=token) as line:
        assert line.call("file_info", path="a.txt").code is None
        passes(hostile.base, 3600)
        assert line.call("file_info", path="a.txt").code == "unauthorised"
    answer = over_http(hostile, token).rpc("tools/list")
    assert answer.status == 401
    assert "agent rotate" in answer.refusal["hint"]
    listed = {line["name"]: line for line in hostile.person.done("agent_list")["agents"]}
    assert listed["brief"]["token"] == "expired"
    renewed = over_http(hostile, made(hostile, "agent_rotate", name="brief"))
    assert renewed.rpc("tools/list").status == 200


@pytest.mark.parametrize("name", ["nobody", "alice"], ids=["no agent", "one without a token"])
def test_there_is_nothing_to_rotate(hostile: HostileWorkspace, name: str) -> None:
    hostile.refused("agent_rotate", "invalid_parameter", caller=hostile.person, name=name, approver=hostile.approver)


def test_the_command_line(hostile: HostileWorkspace) -> None:
    code, added = command(
        hostile.daemon, "agent", "add", "cleo", "--read-only", "--expires-s", "3600", approver=hostile.approver
    )
    assert (code, added["read_only"]) == (0, True)
    code, rotated = command(hostile.daemon, "agent", "rotate", "cleo", approver=hostile.approver)
    assert code == 0
    assert rotated["token"] != added["token"]
    assert rotated["read_only"]
