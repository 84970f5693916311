"""HTTP under a flood: what is over the limits is refused without an event each, and agents are served beside it."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from orchestrator.servers.dispatch import MAX_OPEN_CALLS
from tests.security.hostile_workspace import HostileWorkspace
from tests.security.http_client import HttpCaller, Raw
from tests.security.test_http import first


@pytest.fixture(scope="module")
def url(hostile: HostileWorkspace) -> str:
    return str(hostile.person.done("status")["http"])


@pytest.fixture(scope="module")
def tess(hostile: HostileWorkspace, url: str) -> HttpCaller:
    added = hostile.person.done("agent_add", name="tess", approver=hostile.approver)
    return HttpCaller(url, added["token"])


def test_a_refused_stranger_is_noted_and_a_flood_of_them_is_not(hostile: HostileWorkspace, url: str) -> None:
    stranger, mark = HttpCaller(url, "orc_wrong"), hostile.head()
    statuses = [stranger.send(first()).status]
    while statuses[-20:] != [429] * 20:
        answer = stranger.send(first())
        statuses.append(answer.status)
    assert answer.headers["retry-after"].isdigit()
    begun = sum(now == 429 and before != 429 for before, now in pairwise(statuses))
    noted, page = 0, hostile.person.done("journal_query", kind="call_refused", since=f"@{mark}", limit=200)
    while noted := noted + len(page["entries"]):
        if not page.get("cursor"):
            break
        page = hostile.person.done(
            "journal_query", kind="call_refused", since=f"@{mark}", limit=200, cursor=page["cursor"]
        )
    assert set(statuses) == {401, 429}
    assert noted == statuses.count(401) + begun


def test_agents_with_a_token_are_let_in_beside_a_flood(url: str, tess: HttpCaller) -> None:
    stranger = HttpCaller(url, None)
    while stranger.send(first()).status != 429:
        pass
    assert tess.rpc("tools/list").status == 200


def test_calls_whose_client_went_away_are_under_way_still(hostile: HostileWorkspace, url: str) -> None:
    added = hostile.person.done("agent_add", name="gone", approver=hostile.approver)
    gone = HttpCaller(url, added["token"])
    approval = gone.tool("delete_file", path="a.txt")["structuredContent"]["approval"]
    opened = gone.send(first())
    headers = {"Mcp_Session_Id": opened.headers["mcp-session-id"], "MCP_Protocol_Version": "2025-11-25"}
    wait = {"name": "await_change", "arguments": {"id": approval, "timeout_s": 50}}
    for number in range(MAX_OPEN_CALLS):
        gone.leave(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": wait}).encode(), **headers
        )
    one_more = gone.send(first("tools/list", {}), **headers)
    hostile.person.done("deny", approval=approval, approver=hostile.approver)
    assert one_more.status == 429
    while gone.send(first("tools/list", {}), **headers).status == 429:
        pass


def test_many_silent_connections_keep_nobody_out(tess: HttpCaller) -> None:
    silent = [Raw(tess.port) for _ in range(400)]
    try:
        assert tess.rpc("tools/list").status == 200
        assert silent[0].rest() == b"", "the one that was silent for longest is closed"
    finally:
        for raw in silent:
            raw.__exit__()
