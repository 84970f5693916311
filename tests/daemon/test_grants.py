"""Grants: one yes made a rule for an agent, for its session or a pattern, until it is revoked or over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.reviewer_servers import follow

pytestmark = pytest.mark.anyio

POLICY = """
name = "granting"
default = "allow"

[[rule]]
name = "migrations"
agents = ["*"]
actions = ["create", "write", "delete"]
paths = ["migrations/**"]
verdict = "ask"
reason = "the database team looks at these"

[[rule]]
name = "kept"
agents = ["alice"]
actions = ["create"]
paths = ["migrations/kept/**"]
verdict = "deny"
"""


async def create(files: FileAccess, path: str) -> ChangeAnswer:
    return await files.write_file(path, "x = 1\n", mode="create")


def set_up(base: Path, policy: str = POLICY) -> RunningDaemon:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(policy)
    return daemon


async def refused(call: object) -> RemoteError:
    with pytest.raises(RemoteError) as error:
        await call  # type: ignore[misc]
    return error.value


async def test_a_pattern_lets_the_same_acts_go_without_asking(base: Path) -> None:
    daemon = set_up(base)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            first = (await create(alice, "migrations/1.sql")).approval or ""
            outside = await refused(person.approve(first, unseen=True, pattern="*.py", approver=code))
            assert (outside.code, "does not name" in outside.message) == ("invalid_parameter", True)
            answer = await person.approve(first, unseen=True, pattern="migrations/**", ttl_s=3600, approver=code)
            (grant,) = answer.grants
            assert answer.status == "applied"
            (listed,) = (await person.grants_list()).grants
            assert (listed.grant, listed.agent, listed.actions, listed.globs, listed.session) == (
                grant,
                "alice",
                ("create",),
                ("migrations/**",),
                None,
            )
            assert listed.approval == first
            assert 3_599_000 < listed.expires_at - listed.since <= 3_600_000
            second = await create(alice, "migrations/2.sql")
            assert (second.status, second.grants) == ("applied", (grant,))
            (event,) = [e for e in await follow(person, "change_applied", 2) if "grants" in e["provenance"]]
            assert event["provenance"]["grants"] == [int(grant[1:])]
            assert (await create(bob, "migrations/3.sql")).status == "waiting"  # another agent
            assert (await alice.delete_file("migrations/1.sql")).status == "waiting"  # another act
            assert (await refused(create(alice, "migrations/kept/a"))).code == "denied"  # never lifts a deny
            explained = await person.policy_explain("create", "migrations/9.sql", agent="alice")
            assert (explained.verdict, explained.rule) == ("allow", f"grant {grant}")
            assert [(rule.name, rule.decides) for rule in explained.considered if rule.matches] == [
                ("migrations", False),
                (f"grant {grant}", True),
            ]
            assert (await refused(person.grant_revoke(grant))).code == "approver_code_needed"
            assert (await refused(alice.grants_list())).code == "not_permitted"
            await person.grant_revoke(grant, reason="done", approver=code)
            assert (await person.grants_list()).grants == ()
            assert (await create(alice, "migrations/4.sql")).status == "waiting"
            assert (await refused(person.grant_revoke(grant, approver=code))).code == "version_unknown"
            assert (await follow(person, "grant_revoked"))[0]["reason"] == "done"
            assert (await person.journal_rebuild()).ok


async def test_a_sessions_grant_is_for_its_paths_and_ends_with_it(base: Path) -> None:
    daemon = set_up(base)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client() as person:
            async with daemon.client("alice") as alice, daemon.client("alice") as beside:
                first = (await create(alice, "migrations/[1].sql")).approval or ""
                given = await person.approve(first, unseen=True, for_session=True, approver=code)
                (listed,) = (await person.grants_list()).grants
                assert (listed.grant, listed.session) == (given.grants[0], alice.session)
                (daemon.workspace / "migrations/[1].sql").unlink()
                assert (await create(beside, "migrations/[1].sql")).status == "waiting"  # another session
                assert (await create(alice, "migrations/1.sql")).status == "waiting"  # another path
                assert (await create(alice, "migrations/[1].sql")).status == "applied"
                one = alice.session
            assert (await follow(person, "grant_expired"))[0]["cause"] == "session_ended"
            async with daemon.client("alice", session=one) as again:
                (daemon.workspace / "migrations/[1].sql").unlink()
                late = await create(again, "migrations/[1].sql")
                assert late.status == "waiting"
            await follow(person, "session_closed", 4)
            why = await refused(person.approve(late.approval or "", unseen=True, for_session=True, approver=code))
            assert why.code == "invalid_parameter"


async def test_a_grant_outlives_the_daemon_and_not_its_time(base: Path) -> None:
    daemon = set_up(base)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client() as person:
            long, short = [(await create(alice, f"migrations/{n}")).approval or "" for n in "ab"]
            kept = (await person.approve(long, unseen=True, pattern="migrations/*", approver=code)).grants
            await person.approve(short, unseen=True, ttl_s=1, approver=code)
            assert (await follow(person, "grant_expired"))[0]["cause"] == "timeout"
    with running(base):
        async with daemon.client("alice") as alice, daemon.client() as person:
            assert [item.grant for item in (await person.grants_list()).grants] == [*kept]
            assert (await create(alice, "migrations/c")).grants == kept


async def test_who_may_no_longer_approve_there_has_granted_nothing(base: Path) -> None:
    no = (
        '[[rule]]\nname = "no"\nagents = ["class:person"]\nactions = ["approve"]\npaths = ["*.key"]\nverdict = "deny"\n'
    )
    daemon = set_up(base, POLICY + no)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client() as person:
            first = (await create(alice, "migrations/1")).approval or ""
            await person.approve(first, unseen=True, pattern="migrations/**", approver=code)
            assert (await create(alice, "migrations/2")).status == "applied"
            assert (await create(alice, "migrations/a.key")).status == "waiting"


async def test_on_the_command_line(base: Path) -> None:
    daemon = set_up(base)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice:
            first = (await create(alice, "migrations/1")).approval or ""
            wider = ("approvals", "approve", first, "--pattern", "migrations/**", "--ttl", "60", "--unseen")
            approved = cli(daemon, *wider, ORCHESTRATOR_APPROVER=code)
            assert approved[0] == 0, approved[1]
            (grant,) = json.loads(cli(daemon, "grants", "list", "--json")[1])["grants"]
            assert "migrations/**" in cli(daemon, "grants", "list")[1]
            assert cli(daemon, "grants", "revoke", grant["grant"], ORCHESTRATOR_APPROVER=code)[0] == 0
            assert cli(daemon, "grants", "list")[1] == "no grant holds\n"
            assert (await alice.edit_file("migrations/1", [Replacement(search="1", replace="2")])).status == "waiting"


ASKS = """
name = "asks"
default = "allow"

[[rule]]
name = "looks"
agents = ["alice"]
actions = [{actions}]
paths = ["config/**"]
verdict = "ask"
"""


@pytest.mark.parametrize(
    ("actions", "operation", "first", "wider", "then"),
    [
        pytest.param('"read", "search"', "read_file", "config/a", {"pattern": "config/**"}, "config/b", id="contents"),
        pytest.param('"read", "search"', "blame", "config/a", {"for_session": True}, "config/a", id="any version"),
        pytest.param('"list"', "file_info", "config/a", {"pattern": "config/**"}, "config/b", id="facts"),
        pytest.param('"list"', "list_files", "config", {"pattern": "config/**"}, "config", id="the names in a folder"),
        pytest.param('"list"', "list_files", "config", {"for_session": True}, "config", id="in a session"),
    ],
)
async def test_a_grant_is_for_reads_and_lists_too(
    base: Path, actions: str, operation: str, first: str, wider: dict[str, Any], then: str
) -> None:
    daemon = set_up(base, ASKS.format(actions=actions))
    (daemon.workspace / "config").mkdir()
    for name in "ab":
        (daemon.workspace / "config" / name).write_text("x = 1\n")
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            call = getattr(alice, operation)
            asked = (await refused(call(path=first))).details["approval"]
            answer = await person.approve(asked, unseen=True, approver=code, **wider)
            assert (answer.status, len(answer.grants)) == ("granted", 1)
            await bob.edit_file("config/a", [Replacement(search="1", replace="2")])
            await call(path=then)
            assert (await person.approvals_list()).total == 0


async def test_each_act_of_a_request_is_granted_for_its_own_path(base: Path) -> None:
    rule = (
        '[[rule]]\nname = "moves"\nagents = ["*"]\nactions = ["write", "delete"]\npaths = ["old.*"]\nverdict = "ask"\n'
    )
    daemon = set_up(base, POLICY + rule)
    for name in ("migrations/1", "old.txt"):
        (daemon.workspace / name).parent.mkdir(exist_ok=True)
        (daemon.workspace / name).write_text("one\n")
    patch = (
        "--- a/migrations/1\n+++ b/migrations/1\n@@ -1 +1 @@\n-one\n+two\n"
        "--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
    )
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client() as person:
            mixed = (await alice.apply_patch(patch)).approval or ""
            given = await person.approve(mixed, unseen=True, for_session=True, approver=code)
            assert given.status == "applied"
            assert [(each.actions, each.globs[0]) for each in (await person.grants_list()).grants] == [
                (("write",), "/migrations/1"),
                (("delete",), "/old.txt"),
            ]
            again = await alice.edit_file("migrations/1", [Replacement(search="two", replace="three")])
            assert again.status == "applied"
            assert (await alice.delete_file("migrations/1")).status == "waiting"


async def test_a_file_that_becomes_a_folder_grants_nothing_in_it(base: Path) -> None:
    rule = '[[rule]]\nname = "ci"\nagents = ["*"]\nactions = ["create"]\npaths = ["ci"]\nverdict = "ask"\n'
    daemon = set_up(base, POLICY + rule)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client() as person:
            asked = (await create(alice, "ci")).approval or ""
            assert (await person.approve(asked, unseen=True, for_session=True, approver=code)).status == "applied"
            await alice.delete_file("ci")
            assert (await create(alice, "ci")).status == "applied"
            await alice.delete_file("ci")
            assert (await create(alice, "ci/deploy.sh")).status == "waiting"


async def test_a_pattern_answers_the_rules_that_asked_and_no_other(base: Path) -> None:
    keys = '\n[[rule]]\nname = "keys"\nagents = ["*"]\nactions = ["create"]\npaths = ["*.key"]\nverdict = "ask"\n'
    daemon = set_up(base, POLICY + keys)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client() as person:
            first = (await create(alice, "migrations/1.sql")).approval or ""
            await person.approve(first, unseen=True, pattern="**", ttl_s=3600, approver=code)
            assert (await create(alice, "migrations/2.sql")).status == "applied"
            assert (await create(alice, "a.key")).status == "waiting"
            (added,) = await follow(person, "grant_added")
            assert added["rules"] == ["migrations"]
