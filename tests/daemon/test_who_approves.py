"""The action `approve`: who may say yes or no to what."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from orchestrator.clients.python import FileAccess, RemoteError
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.raw_socket import Talk
from tests.daemon.reviewer_servers import BOTH, answered, conflict, follow, reviewed, route

pytestmark = pytest.mark.anyio

POLICY = """
name = "who"
default = "allow"

[[rule]]
name = "asked"
agents = ["*"]
actions = ["create", "delete"]
paths = ["ci/**", "docs/**", "hidden/**"]
verdict = "ask"

[[rule]]
name = "hidden"
agents = ["class:review"]
actions = ["read"]
paths = ["hidden"]
verdict = "deny"

[[rule]]
name = "critics"
agents = ["critic", "mallory"]
actions = ["approve"]
paths = ["docs/**", "hidden/**"]
verdict = "allow"

[[rule]]
name = "not the CI"
agents = ["PERSON"]
actions = ["approve"]
paths = ["ci/**"]
verdict = "deny"
reason = "the release team decides this"
"""


async def asked(files: FileAccess, path: str) -> str:
    answer = await files.write_file(path, "x = 1\n", mode="create")
    assert answer.approval is not None, answer
    return answer.approval


async def refusal(files: FileAccess, operation: str, approval: str, **more: str) -> str:
    with pytest.raises(RemoteError) as refused:
        await getattr(files, operation)(approval, **more)
    return refused.value.code


def set_up(base: Path, person: str = "nobody") -> RunningDaemon:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(POLICY.replace("PERSON", person))
    return daemon


async def person_name(files: FileAccess) -> str:
    return (await files.policy_explain("approve", "docs/a")).agent


async def critic(daemon: RunningDaemon, code: str, name: str = "critic", kind: str = "review") -> str:
    async with daemon.client() as person:
        return (await person.agent_add(name, agent_class=kind, approver=code)).token  # type: ignore[arg-type]


async def test_a_rule_keeps_a_person_from_approving(base: Path) -> None:
    daemon = set_up(base)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client() as person:
            ci, docs = await asked(alice, "ci/build.py"), await asked(alice, "docs/a.py")
            name = await person_name(person)
            (daemon.state_dir / "policy.toml").write_text(POLICY.replace("PERSON", name))
            await person.policy_reload(approver=code)
            assert await refusal(person, "approve", ci, approver=code) == "denied"
            assert await refusal(person, "deny", ci, approver=code) == "denied"
            explained = await person.policy_explain("approve", "ci/build.py")
            assert (explained.verdict, explained.rule) == ("deny", "not the CI")
            assert (await person.policy_explain("approve", "docs/a.py")).verdict == "allow"
            assert (await person.approve(docs, approver=code, unseen=True)).status == "applied"
            assert (await person.approvals_show(ci)).state == "waiting"


async def test_a_review_agent_approves_where_a_rule_allows_it(base: Path) -> None:
    daemon = set_up(base)
    with running(base):
        code = await daemon.make_approver()
        token = await critic(daemon, code)
        async with (
            daemon.client("alice") as alice,
            daemon.client("critic", token=token) as bot,
            daemon.client() as person,
        ):
            docs, ci, hidden = [await asked(alice, f"{name}/a.py") for name in ("docs", "ci", "hidden")]
            more = await asked(alice, "docs/b.py")
            assert [item.approval for item in (await bot.approvals_list()).approvals] == [docs, more]
            assert "x = 1" in ((await bot.approvals_show(docs)).diff or "")
            for operation in ("approvals_show", "approve", "deny"):
                assert await refusal(bot, operation, ci) == "denied"  # no rule allows it; `default` does not count
                assert await refusal(bot, operation, hidden) == "denied"  # not readable
                assert await refusal(alice, operation, docs) == "not_permitted"
            assert (await bot.approve(docs)).status == "applied"
            with pytest.raises(RemoteError) as unseen:
                await bot.approve(more, unseen=True)
            assert unseen.value.code == "approval_unseen"
            await bot.deny(more)
            assert not (daemon.workspace / "docs/b.py").exists()
            own = await asked(bot, "docs/own.py")
            assert await refusal(bot, "approve", own) == "not_permitted"
            (version,) = (await alice.file_history("docs/a.py")).versions
            assert (version.agent, version.approver) == ("alice", "critic")
            for name, path, verdict in (
                ("critic", "docs/a", "allow"),
                ("critic", "ci/a", "deny"),
                ("alice", "docs/a", "deny"),
            ):
                assert (await person.policy_explain("approve", path, agent=name)).verdict == verdict, (name, path)


async def test_a_cloud_agent_approves_nothing_whatever_the_rules_say(base: Path) -> None:
    daemon = set_up(base)
    with running(base):
        code = await daemon.make_approver()
        token = await critic(daemon, code, "mallory", "cloud")
        async with daemon.client("alice") as alice, daemon.client("mallory", token=token) as mallory:
            assert await refusal(mallory, "approve", await asked(alice, "docs/a.py")) == "not_permitted"


async def test_over_mcp_and_on_the_command_line(base: Path) -> None:
    daemon = set_up(base)
    with running(base):
        token = await critic(daemon, await daemon.make_approver())
        async with daemon.client("alice") as alice:
            first, second = [await asked(alice, f"docs/{name}.py") for name in "ab"]
        args = ["-m", "orchestrator", "mcp", "--toolset", "full", "--workspace", str(daemon.workspace)]
        env = daemon.env | {"ORCHESTRATOR_TOKEN": token, "PYTHONPATH": os.getcwd()}
        async with Client(StdioServerParameters(command=sys.executable, args=args, env=env)) as client:
            assert "approve" in {tool.name for tool in (await client.list_tools()).tools}
        talk = Talk(daemon, "critic", "mcp", token=token)
        talk.call("approvals_show", approval=first)
        assert "x = 1" in str(talk.answer())
        talk.call("approve", approval=first)
        assert '"status":"applied"' in str(talk.answer()).replace(" ", "").replace("\\", "")
        talk.close()
        assert cli(daemon, "approvals", "show", second, ORCHESTRATOR_TOKEN=token)[0] == 0
        code, text = cli(daemon, "approvals", "approve", second, ORCHESTRATOR_TOKEN=token)
        assert code == 0, text
        assert (daemon.workspace / "docs/b.py").exists()


async def test_who_may_not_approve_accepts_no_proposal(base: Path) -> None:
    rule = '[[rule]]\nname = "no"\nagents = ["class:person"]\nactions = ["approve"]\npaths = ["*"]\nverdict = "deny"\n'
    with reviewed(base, route("quick", accept="person") + rule, {"quick": [BOTH]}) as daemon:
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            await follow(person, "review_answered")
            review = await answered(person)
            for choice in ({"choice": "review", "review": review}, {"choice": "proposed"}):
                with pytest.raises(RemoteError) as refused:
                    await person.resolve_conflict(number, approver=code, **choice)  # type: ignore[arg-type]
                assert refused.value.code == "denied"
            assert (await person.resolve_conflict(number, "current", approver=code)).status == "dropped"
