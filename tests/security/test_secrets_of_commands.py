"""Secrets in the words of a command: no answer, and no event of a feed, shows an agent one; a person sees them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from orchestrator.clients.python import FileAccess
from tests.core.text.secret_samples import LONG
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.raw_socket import Talk

pytestmark = pytest.mark.anyio

TOKEN, OTHER = "ghp_" + LONG[:36], "ghp_" + LONG[5:41]
KEY = ["MIIEpAIBAAKCAQEA" + LONG[n : n + 48] for n in range(5)]
PEM = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *KEY, "-----END RSA PRIVATE KEY-----"])
SECRET = (TOKEN, OTHER, *(line[:30] for line in KEY))

POLICY = """
name = "ours"
extends = "default"
[commands]
env = ["CI"]
[journal]
shows = "agent"
[[rule]]
name = "echo"
agents = ["*"]
actions = ["run"]
paths = ["**"]
commands = ["echo **", "ghp_*"]
verdict = "allow"
[[rule]]
name = "rex"
agents = ["rex"]
actions = ["approve", "read", "list"]
paths = ["**"]
verdict = "allow"
"""
ASKED = ["curl", "-H", f"Authorization: Bearer {TOKEN}", PEM]
ENV = [f"CI={OTHER}"]


@pytest.fixture
def ground(base: Path) -> Iterator[RunningDaemon]:
    stopped = RunningDaemon(base)
    (stopped.state_dir / "policy.toml").write_text(POLICY)
    with running(base) as daemon:
        yield daemon


async def asked(alice: FileAccess) -> str:
    """Alice's request to run a command with secrets; one that runs has them too."""
    assert (await alice.run_command(["echo", TOKEN, PEM], env=ENV)).status == "done"
    return (await alice.run_command(ASKED, env=ENV)).approval or ""


ANSWERS = [
    pytest.param("run_command", {"argv": ASKED, "env": ENV}, id="the same call again"),
    pytest.param("run_command", {"argv": [TOKEN]}, id="a refusal"),
    pytest.param("list_commands", {}, id="list"),
    pytest.param("session_status", {}, id="status"),
    pytest.param("journal_query", {}, id="journal"),
    pytest.param("get_briefing", {}, id="briefing"),
    pytest.param("await_change", {"id": "{approval}", "timeout_s": 0}, id="waiting for the yes"),
]


@pytest.mark.parametrize(("operation", "given"), ANSWERS)
@pytest.mark.parametrize("transport", ["rpc", "mcp"])
async def test_no_answer_shows_an_agent_a_secret_of_a_command(
    ground: RunningDaemon, operation: str, given: dict[str, Any], transport: Literal["rpc", "mcp"]
) -> None:
    async with ground.client("alice") as alice:
        approval = await asked(alice)
    socket = Talk(ground, "alice", transport)
    socket.call(operation, **(given | ({"id": approval} if "id" in given else {})))
    answer = json.dumps(socket.answer())
    socket.close()
    assert not [secret for secret in SECRET if secret in answer], answer[:3000]


@pytest.mark.parametrize("operation", ["approvals_list", "approvals_show"])
async def test_a_reviewer_is_shown_none_and_a_person_all(ground: RunningDaemon, operation: str) -> None:
    code = await ground.make_approver()
    async with ground.client("alice") as alice, ground.client() as person:
        token = (await person.agent_add("rex", agent_class="review", approver=code)).token
        approval = await asked(alice)
        async with ground.client("rex", token=token) as rex:
            given = [approval] if operation == "approvals_show" else []
            answer = repr(await getattr(rex, operation)(*given))
            assert approval in answer
            assert not [secret for secret in SECRET if secret in answer], answer
        info = await person.approvals_show(approval)
    assert TOKEN in info.command
    assert TOKEN in (info.diff or "")
    assert OTHER in (info.diff or "")


async def test_a_feed_shows_an_agent_none(ground: RunningDaemon) -> None:
    async with ground.client("alice") as alice, ground.client() as person:
        await asked(alice)
        for files, shows in ((alice, False), (person, True)):
            found = ""
            async with files.subscribe(after="@0", kinds=["command_started", "approval_requested"]) as feed:
                while "curl" not in found:
                    found += repr(await anext(feed))
            assert (TOKEN in found, OTHER in found) == (shows, shows), found
            assert [line[:30] in found for line in KEY] == [shows] * len(KEY)
