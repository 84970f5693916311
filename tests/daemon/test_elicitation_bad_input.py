"""Answers of forms for another call, altered, sent twice or late; and what a daemon's end leaves of a question."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestFormParams, ElicitResult, InputRequiredResult

from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.elicited import POLICY, Era, Person, client, said, token_of

pytestmark = pytest.mark.anyio

CREATE = {"path": "ci/a.sh", "content": "a\n", "mode": "create"}
INFO = {"name": "lines", "version": "1"}
YES = ElicitResult(action="accept", content={"decision": "approve"})


@pytest.fixture
def asking(base: Path) -> Iterator[RunningDaemon]:
    (RunningDaemon(base).state_dir / "policy.toml").write_text(POLICY)
    with running(base) as daemon:
        yield daemon


class ByHand:
    """A client of 2026-07-28 that may do with a question what it likes."""

    def __init__(self, made: Client) -> None:
        self.made = made

    async def ask(self, **arguments: Any) -> InputRequiredResult:
        result = await self.made.session.call_tool("write_file", {**CREATE, **arguments}, allow_input_required=True)
        assert isinstance(result, InputRequiredResult), result
        return result

    async def answer(self, state: str | None, result: Any = YES, tool: str = "write_file", **more: Any) -> Any:
        arguments = {**CREATE, **more}
        return said(
            await self.made.session.call_tool(
                tool, arguments, input_responses={"approval": result} if result else None, request_state=state
            )
        )


@asynccontextmanager
async def by_hand(daemon: RunningDaemon, agent: str = "alice", token: str = "") -> AsyncIterator[ByHand]:
    token = token or await token_of(daemon, agent)
    async with client(daemon, Person(), "auto", agent, token) as made:
        yield ByHand(made)


async def waiting(daemon: RunningDaemon) -> list[str]:
    async with daemon.client() as person:
        return [item.approval for item in (await person.approvals_list()).approvals]


@pytest.mark.parametrize("change", ["seal", "approval", "question", "empty", "long", "arguments", "tool"])
async def test_an_altered_state_is_refused_and_the_request_waits(asking: RunningDaemon, change: str) -> None:
    async with by_hand(asking) as alice:
        state = (await alice.ask()).request_state or ""
        other = (await alice.ask(path="ci/b.sh")).request_state or ""
        first, second, seal = state.split(".")
        altered = {
            "seal": f"{first}.{second}.{'0' * 64}",
            "approval": f"{other.split('.')[0]}.{second}.{seal}",
            "question": f"{first}.{other.split('.')[1]}.{seal}",
            "empty": "",
            "long": state * 1000,
        }.get(change, state)
        more = {"arguments": {"content": "b\n"}, "tool": {"tool": "edit_file"}}.get(change, {})
        refused = await alice.answer(altered, **more)
        assert refused["code"] == "request_state_invalid", refused
        assert len(await waiting(asking)) == 2
        assert not (asking.workspace / "ci").exists()
        assert (await alice.answer(state))["status"] == "applied"
    async with asking.client() as person:
        assert any(
            "request_state_invalid" in str(entry) for entry in (await person.journal_query(kind="call_refused")).entries
        )


async def test_another_agent_can_not_use_a_state(asking: RunningDaemon) -> None:
    async with by_hand(asking) as alice, by_hand(asking, "carol") as carol:
        state = (await alice.ask()).request_state
        assert (await carol.answer(state))["code"] == "request_state_invalid"
        assert len(await waiting(asking)) == 1


@pytest.mark.parametrize("first", ["decline", "accept"])
async def test_a_question_is_answered_once_across_a_restart(asking: RunningDaemon, first: str) -> None:
    token = await token_of(asking, "alice")
    async with by_hand(asking, token=token) as alice:
        state = (await alice.ask()).request_state
        answer = await alice.answer(state, ElicitResult(action=first, content={}))  # type: ignore[arg-type]
        assert answer["status"] == "waiting", answer
        assert asking.stop() == 0
        assert asking.start()["ok"]
        again = await alice.answer(state)
        assert again["status"] == "waiting"
        assert "answered" in again["warnings"][0]
    assert len(await waiting(asking)) == 1


async def test_a_yes_that_is_sent_twice_is_one(asking: RunningDaemon) -> None:
    async with by_hand(asking) as alice:
        state = (await alice.ask()).request_state
        assert (await alice.answer(state))["status"] == "applied"
        (asking.workspace / "ci/a.sh").unlink()
        again = await alice.answer(state)
        assert again["status"] == "applied"  # what became of it
        assert not (asking.workspace / "ci/a.sh").exists()


async def test_a_newer_question_takes_the_place_of_one(asking: RunningDaemon) -> None:
    async with by_hand(asking) as alice:
        old = (await alice.ask(request_id="r")).request_state
        new = (await alice.ask(request_id="r")).request_state
        assert "asked anew" in (await alice.answer(old))["warnings"][0]
        assert (await alice.answer(new))["status"] == "applied"


@pytest.mark.parametrize("how", ["agent_rotate", "agent_revoke"])
@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_no_client_answers_for_a_token_that_is_good_no_more(asking: RunningDaemon, how: str, action: str) -> None:
    code, token = await asking.make_approver(), await token_of(asking, "alice")
    async with by_hand(asking, token=token) as alice, asking.client() as person:
        state = (await alice.ask()).request_state
        await getattr(person, how)("alice", approver=code)
        answer = ElicitResult(action=action, content={"decision": "approve"})  # type: ignore[arg-type]
        assert (await alice.answer(state, answer))["code"] == "unauthorised"
        assert not (await person.journal_query(kind="elicitation_answered")).entries
        (refused,) = (await person.journal_query(kind="call_refused")).entries
        assert (refused.agent, refused.event["code"]) == ("alice", "unauthorised")
        assert len((await person.approvals_list()).approvals) == (how == "agent_rotate")
    assert not (asking.workspace / "ci").exists()


async def test_the_seal_holds_after_a_restart(asking: RunningDaemon) -> None:
    async with by_hand(asking) as alice:
        state = (await alice.ask()).request_state
        asking.kill()
        assert asking.start()["ok"]
        assert (await alice.answer(state))["status"] == "applied"


async def test_an_answer_without_a_state_is_for_nothing(asking: RunningDaemon) -> None:
    async with by_hand(asking) as alice:
        result = await alice.made.session.call_tool(
            "write_file", CREATE, input_responses={"approval": YES}, allow_input_required=True
        )
        assert isinstance(result, InputRequiredResult)
        assert len(await waiting(asking)) == 1


async def test_a_question_that_a_daemon_left_open_is_asked_anew(asking: RunningDaemon) -> None:
    """Before 2026: the call goes to the next daemon, and an answer to the old question answers no new one."""
    token, asked = await token_of(asking, "alice"), anyio.Event()
    seen: list[str] = []

    async def react(form: ElicitRequestFormParams) -> ElicitResult:
        seen.append(form.message)
        if len(seen) == 1:
            asked.set()
            await anyio.sleep_forever()  # the transport withdraws it
        return YES

    async with client(asking, Person(react), "legacy", token=token) as alice, anyio.create_task_group() as tasks:
        answers: list[Any] = []

        async def call() -> None:
            answers.append(said(await alice.call_tool("write_file", CREATE)))

        tasks.start_soon(call)
        await asked.wait()
        asking.kill()
        assert asking.start()["ok"]
    assert answers[0]["status"] == "applied", answers
    assert len(seen) == 2


async def test_answered_elsewhere_ends_the_question(asking: RunningDaemon) -> None:
    """Before 2026: the call goes on without the client's answer."""
    code = await asking.make_approver()

    async def react(form: ElicitRequestFormParams) -> ElicitResult:
        async with asking.client() as somebody:
            (approval,) = await waiting(asking)
            await somebody.deny(approval, approver=code)
        await anyio.sleep_forever()
        raise AssertionError

    token = await token_of(asking, "alice")
    async with client(asking, Person(react), "legacy", token=token) as alice:
        assert said(await alice.call_tool("write_file", CREATE))["status"] == "denied"


async def test_a_client_that_vanishes_leaves_it_in_the_queue(asking: RunningDaemon) -> None:
    token, asked = await token_of(asking, "alice"), anyio.Event()

    async def react(form: ElicitRequestFormParams) -> ElicitResult:
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with client(asking, Person(react), "legacy", token=token) as alice, anyio.create_task_group() as tasks:
        tasks.start_soon(partial(alice.call_tool, "write_file", CREATE))
        await asked.wait()
        tasks.cancel_scope.cancel()
    assert len(await waiting(asking)) == 1


async def test_who_takes_too_long_answers_in_the_queue(base: Path) -> None:
    """Before 2026: the client gives up on a call after a while."""
    daemon = RunningDaemon(base, module=("-m", "tests.daemon.impatient"))
    (daemon.state_dir / "policy.toml").write_text(POLICY)
    assert daemon.start()["ok"]
    try:
        code = await daemon.make_approver()

        async def react(form: ElicitRequestFormParams) -> ElicitResult:
            await anyio.sleep_forever()
            raise AssertionError

        async with client(daemon, Person(react), "legacy") as alice:
            answer = said(await alice.call_tool("write_file", CREATE))
        assert answer["status"] == "waiting", answer
        async with daemon.client() as person:
            (entry,) = (await person.journal_query(kind="elicitation_answered")).entries
            assert entry.event["action"] == "timeout"
            await person.approvals_show(answer["approval"])
            assert (await person.approve(answer["approval"], approver=code)).status == "applied"
    finally:
        assert daemon.stop() == 0


async def test_a_yes_after_the_request_expired_is_for_nothing(asking: RunningDaemon) -> None:
    (asking.state_dir / "policy.toml").write_text(f"{POLICY}\n[limits]\napproval_ttl_s = 1\n")
    async with by_hand(asking) as alice, asking.client("watcher") as watcher:
        async with asking.client() as person:
            await person.policy_reload(approver=await asking.make_approver())
        state = (await alice.ask()).request_state or ""
        assert (await watcher.await_change(f"@{state.split('.')[0]}", timeout_s=50)).status == "expired"
        late = await alice.answer(state)
        assert late["status"] == "expired", late
        assert "expired" in late["warnings"][0]
    assert not (asking.workspace / "ci").exists()


class Lines:
    """A client of 2025-06-18 at a transport, line by line."""

    def __init__(self, daemon: RunningDaemon, token: str) -> None:
        command = [sys.executable, "-m", "orchestrator", "mcp", "--workspace", str(daemon.workspace)]
        command += ["--state-dir", str(daemon.state_dir)]
        env = {**daemon.env, "ORCHESTRATOR_TOKEN": token, "PYTHONPATH": os.getcwd()}
        self._process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Lines:
        capabilities: dict[str, Any] = {"elicitation": {}}
        about = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": INFO}
        self.say(id=0, method="initialize", params=about)
        assert self.heard()["result"]["protocolVersion"] == "2025-06-18"
        self.say(method="notifications/initialized")
        return self

    def __exit__(self, *failed: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        assert self._process.wait(60) == 0
        self._process.stdout.close()

    def say(self, **message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        message: dict[str, Any] = json.loads(self._process.stdout.readline())
        return message

    def call(self, number: int, **arguments: Any) -> dict[str, Any]:
        """Call, and hear what is asked."""
        self.say(id=number, method="tools/call", params={"name": "write_file", "arguments": {**CREATE, **arguments}})
        question = self.heard()
        assert question["method"] == "elicitation/create", question
        return question


async def test_an_answer_to_another_question_answers_none(asking: RunningDaemon) -> None:
    yes, no = ({"action": "accept", "content": {"decision": word}} for word in ("approve", "deny"))
    with Lines(asking, await token_of(asking, "alice")) as alice:
        first, second = alice.call(1), alice.call(2, path="ci/b.sh")
        assert "ci/a.sh" in first["params"]["message"]
        for id in (1, 2, "1", "2", "0-1", first["id"].replace(first["id"][:4], "0000"), second["id"] + "0"):
            alice.say(id=id, result=yes)
        alice.say(id=second["id"], result=no)
        denied = alice.heard()
        assert (denied["id"], denied["result"]["structuredContent"]["status"]) == (2, "denied")
        alice.say(id=second["id"], result=yes)
        alice.say(id=first["id"], result=yes)
        applied = alice.heard()
        assert (applied["id"], applied["result"]["structuredContent"]["status"]) == (1, "applied")
        third = alice.call(3, path="ci/c.sh")
        assert third["id"] != first["id"]
    # its side ended within the question: the call is over, and the request waits
    assert len(await waiting(asking)) == 1
    assert not (asking.workspace / "ci/b.sh").exists()


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_over_http(base: Path, era: Era) -> None:
    (RunningDaemon(base).state_dir / "policy.toml").write_text(POLICY)
    with running(base, "--http", "0") as daemon:
        token = await token_of(daemon, "alice")
        async with daemon.client() as person:
            url = (await person.status()).http
        assert url is not None
        headers = {"Authorization": f"Bearer {token}"}
        person_here = Person(decision="approve")
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(url, http_client=http), mode=era, elicitation_callback=person_here) as alice,
        ):
            answer = said(await alice.call_tool("write_file", CREATE))
        assert answer["status"] == "applied", answer
        assert len(person_here.forms) == 1
