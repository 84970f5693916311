"""Approvals in the form of an agent's own client, by MCP elicitation, in both eras."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import ElicitRequestFormParams, ElicitResult, ErrorData

from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.elicited import POLICY, Era, Person, client, said, token_of

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("era", ["auto", "legacy"])]

CREATE = {"path": "ci/build.sh", "content": "echo \u202e built\n", "mode": "create", "reason": "it was missing"}


@pytest.fixture
def asking(base: Path) -> Iterator[RunningDaemon]:
    (RunningDaemon(base).state_dir / "policy.toml").write_text(POLICY)
    with running(base) as daemon:
        yield daemon


@asynccontextmanager
async def trusted(daemon: RunningDaemon, person: Person | None, era: Era) -> AsyncIterator[Client]:
    """Alice's, with her token: policy lets the person before it answer without the code."""
    async with client(daemon, person, era, token=await token_of(daemon, "alice")) as made:
        yield made


async def acting(action: Any, form: object = None) -> ElicitResult:
    return ElicitResult(action=action)


async def test_a_yes_in_the_client_applies_the_change(asking: RunningDaemon, era: Era) -> None:
    person = Person(decision="approve")
    async with trusted(asking, person, era) as alice:
        assert alice.protocol_version == ("2026-07-28" if era == "auto" else "2025-11-25")
        answer = said(await alice.call_tool("write_file", CREATE))
    assert answer["status"] == "applied", answer
    assert (asking.workspace / "ci/build.sh").read_text() == CREATE["content"]
    (form,) = person.forms
    assert "+echo \\u202e built" in form.message
    assert "why: it was missing" in form.message
    assert form.requested_schema["required"] == ["decision"]
    async with asking.client() as somebody:
        shown = await somebody.approvals_show(answer["approval"])
        name = (await somebody.policy_explain("approve", "a")).agent
        assert (shown.state, shown.by, shown.via) == ("used", name, "alice")
        (version,) = (await somebody.file_history("ci/build.sh")).versions
        assert (version.agent, version.approver) == ("alice", name)
        told = [
            (entry.kind, entry.agent, entry.event["via"])
            for kind in ("approval_shown", "elicitation_answered", "approval_granted")
            for entry in (await somebody.journal_query(kind=kind)).entries
            if entry.event.get("via")
        ]
        assert told == [
            ("approval_shown", name, "alice"),
            ("elicitation_answered", name, "alice"),
            ("approval_granted", name, "alice"),
        ]


async def test_a_no_in_the_client_denies_the_change(asking: RunningDaemon, era: Era) -> None:
    async with trusted(asking, Person(decision="deny"), era) as alice:
        answer = said(await alice.call_tool("write_file", CREATE))
    assert answer["status"] == "denied", answer
    assert not (asking.workspace / "ci").exists()


async def test_a_read_is_granted_in_the_client_and_shown_at_once(asking: RunningDaemon, era: Era) -> None:
    notes = asking.workspace / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("what nobody knows\n")
    person = Person(decision="approve")
    async with trusted(asking, person, era) as alice:
        answer = await alice.call_tool("read_file", {"path": "notes/a.md"})
        assert "what nobody knows" in str(answer.content)
        assert "what nobody knows" not in person.forms[0].message


@pytest.mark.parametrize("what", ["decline", "cancel", "no answer of ours", "an error"])
async def test_else_it_waits_in_the_queue_and_asks_no_more(asking: RunningDaemon, era: Era, what: str) -> None:
    async def react(form: ElicitRequestFormParams) -> ElicitResult | ErrorData:
        if what == "an error":
            return ErrorData(code=-32601, message="Method not found")
        if what == "no answer of ours":
            return ElicitResult(action="accept", content={"decision": "maybe"})
        return await acting(what)

    person = Person(react)
    call = {**CREATE, "request_id": "r1"}
    async with trusted(asking, person, era) as alice:
        if what == "an error" and era == "auto":
            with pytest.raises(Exception, match="Method not found"):
                await alice.call_tool("write_file", call)
        else:
            answer = said(await alice.call_tool("write_file", call))
            assert answer["status"] == "waiting", answer
            assert answer["approval"]
            assert said(await alice.call_tool("write_file", call))["status"] == "waiting"
            assert len(person.forms) == 1
    code = await asking.make_approver()
    async with asking.client() as somebody:
        (waiting,) = (await somebody.approvals_list()).approvals
        await somebody.approvals_show(waiting.approval)
        assert (await somebody.approve(waiting.approval, approver=code)).status == "applied"


@pytest.mark.parametrize(
    ("agent", "right"),
    [
        pytest.param("bob", True, id="a rule asks for the code"),
        pytest.param("carol", True, id="of two rules the stricter"),
        pytest.param("alice", True, id="a name without a token"),
        pytest.param("bob", False, id="a wrong code"),
    ],
)
async def test_with_the_approver_code(asking: RunningDaemon, era: Era, agent: str, right: bool) -> None:
    code = await asking.make_approver()
    person = Person(decision="approve", approver_code=code if right else "wrong-codes")
    async with client(asking, person, era, agent) as made:
        answer = said(await made.call_tool("write_file", CREATE))
    assert person.forms[0].requested_schema["required"] == ["decision", "approver_code"]
    assert answer["status"] == ("applied" if right else "waiting"), answer
    assert right or "that is not the approver code" in answer["warnings"][0]
    async with asking.client() as somebody:
        explained = await somebody.policy_explain("approve", CREATE["path"], agent=f"client:{agent}")
        assert explained.verdict == ("allow" if agent == "alice" else "ask")
        refused = (await somebody.journal_query(kind="approver_code_refused")).entries
    assert len(refused) == (0 if right else 1)


@pytest.mark.parametrize(
    ("path", "text", "status"),
    [
        pytest.param(".env", "A = 1\n", "waiting", id="it may not read it"),
        pytest.param("a.py", "KEY = 'ghp_0123456789abcdefghijABCDEFGHIJ012345'\n", "waiting", id="it gets a marker"),
        pytest.param("a.py", "KEY = 1\n", "applied", id="nothing is kept from it"),
    ],
)
async def test_what_is_kept_from_the_agent_is_not_put_to_its_client(
    asking: RunningDaemon, era: Era, path: str, text: str, status: str
) -> None:
    person = Person(decision="approve")
    (asking.workspace / path).write_text(text)
    async with trusted(asking, person, era) as alice:
        answer = said(await alice.call_tool("delete_file", {"path": path}))
    assert answer["status"] == status, answer
    assert bool(person.forms) is (status == "applied")


@pytest.mark.parametrize("who", ["mallory", "nobody asked"])
async def test_nobody_is_asked_where_no_rule_or_no_client_says_so(asking: RunningDaemon, era: Era, who: str) -> None:
    person = Person(decision="approve") if who == "mallory" else None
    async with client(asking, person, era, "mallory" if person else "alice") as made:
        assert said(await made.call_tool("write_file", CREATE))["status"] == "waiting"
    assert not (person and person.forms)


async def test_what_does_not_fit_whole_can_only_be_denied_there(asking: RunningDaemon, era: Era) -> None:
    person = Person(decision="approve")
    big = {**CREATE, "content": "".join(f"line {n}\n" for n in range(3000))}
    async with trusted(asking, person, era) as alice:
        answer = said(await alice.call_tool("write_file", big))
    assert answer["status"] == "waiting", answer
    (form,) = person.forms
    assert form.requested_schema["properties"]["decision"]["enum"] == ["deny"]
    assert "can't be approved here" in form.message
    assert "was not shown whole" in answer["warnings"][0]


async def test_answered_elsewhere_meanwhile_one_wins_and_the_other_is_told(asking: RunningDaemon, era: Era) -> None:
    code = await asking.make_approver()

    async def slowly(form: ElicitRequestFormParams) -> ElicitResult:
        async with asking.client() as somebody:
            (waiting,) = (await somebody.approvals_list()).approvals
            await somebody.deny(waiting.approval, approver=code)
        return ElicitResult(action="accept", content={"decision": "approve"})

    async with trusted(asking, Person(slowly), era) as alice:
        answer = said(await alice.call_tool("write_file", CREATE))
    assert answer["status"] == "denied", answer
    assert not (asking.workspace / "ci").exists()
    if era == "auto":
        assert "denied it" in answer["warnings"][0]
