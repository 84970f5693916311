"""Policy files in layers, taken up as they change; a broken one changes nothing. On a real daemon, from outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from orchestrator.clients.python import RemoteError
from orchestrator.core.content import digest_of
from tests.daemon.cli import cli, command
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

OURS = 'name = "ours"\nextends = "default"\n'
BROKEN = OURS + 'defualt = "deny"\n'


def rule(name: str, verdict: str, path: str, action: str = "write") -> str:
    return (
        f'[[rule]]\nname = "{name}"\nagents = ["*"]\nactions = ["{action}"]\n'
        f'paths = ["{path}"]\nverdict = "{verdict}"\n'
    )


class Layered:
    """A daemon, and where the files of its policy lie."""

    def __init__(self, daemon: RunningDaemon, system: Path) -> None:
        self.daemon, self.system = daemon, system
        self.user = daemon.home / ".config/orchestrator/policy.toml"
        self.state = daemon.state_dir / "policy.toml"
        self.workspace = daemon.workspace / ".orchestrator/policy.toml"
        for path in (self.user, self.workspace):
            path.parent.mkdir(parents=True)

    def restart(self) -> dict[str, object]:
        self.daemon.stop()
        return self.daemon.start("--system-policy", str(self.system))


@pytest.fixture
def layered(base: Path) -> Iterator[Layered]:
    system = base / "etc.toml"
    with running(base, "--system-policy", str(system)) as daemon:
        yield Layered(daemon, system)


async def verdicts(layered: Layered, *paths: str, action: Literal["read", "write"] = "write") -> list[str]:
    async with layered.daemon.client() as person:
        return [(await person.policy_explain(action, path, agent="bob")).verdict for path in paths]


def health(layered: Layered) -> str:
    code, said = command(layered.daemon, "status")
    assert code == 0
    return "\n".join(said["health"]["amiss"])


def events(layered: Layered, kind: str) -> list[dict[str, Any]]:
    code, said = command(layered.daemon, "journal", "query", "--kind", kind)
    assert code == 0
    return [entry["event"] for entry in reversed(said["entries"])]


async def test_all_files_hold_and_a_changed_one_holds_with_the_next_call(layered: Layered) -> None:
    assert await verdicts(layered, "a", "b", "c") == ["allow"] * 3
    layered.system.write_text(OURS + rule("one", "deny", "a"))
    layered.user.write_text(OURS + rule("two", "ask", "b"))
    assert await verdicts(layered, "a", "b", "c") == ["deny", "ask", "allow"]
    layered.state.write_text('name = "last"\ndefault = "deny"\n' + rule("three", "deny", "c"))
    assert await verdicts(layered, "a", "b", "c") == ["deny", "ask", "deny"]
    _, shown = command(layered.daemon, "policy", "show")
    sources = {rule["name"]: rule["source"] for rule in shown["rules"]}
    assert [sources[name] for name in ("one", "two", "three", "secrets-read")] == [
        *(str(layered.system), str(layered.user), str(layered.state), "policies/default.toml")
    ]
    assert [file["layer"] for file in shown["files"]] == ["system", "user", "state"]
    _, said = command(layered.daemon, "policy", "explain", "write", "a", "--agent", "bob")
    (decides,) = [rule for rule in said["considered"] if rule["decides"]]
    assert (decides["name"], decides["source"]) == ("one", str(layered.system))
    layered.state.unlink()
    assert await verdicts(layered, "a", "b", "c") == ["deny", "ask", "allow"]
    assert [len(event["files"]) for event in events(layered, "policy_loaded")] == [1, 2, 3, 2]


async def test_the_rules_of_an_earlier_time_are_shown_as_they_were(layered: Layered) -> None:
    layered.state.write_text(OURS + rule("one", "deny", "a"))
    assert await verdicts(layered, "a") == ["deny"]
    _, said = command(layered.daemon, "journal", "query", "--kind", "policy_loaded")
    first, second = (entry["seq"] for entry in reversed(said["entries"]))
    layered.state.write_text(OURS + rule("two", "ask", "b"))
    layered.restart()
    shown = [command(layered.daemon, "policy", "show", *at)[1] for at in ((), ("--at", first), ("--at", second))]
    names = [[rule["name"] for rule in info["rules"] if rule["name"] in ("one", "two")] for info in shown]
    assert names == [["two"], [], ["one"]]
    assert [info["notes"] for info in shown[1:]] == [[], []]
    code, refused = command(layered.daemon, "policy", "show", "--at", "@0")
    assert (code, refused["code"]) == (1, "version_unknown")


async def test_a_file_of_rules_alone_holds_over_one_that_extends(layered: Layered) -> None:
    layered.user.write_text(OURS)
    layered.state.write_text('name = "mine"\n' + rule("one", "deny", "a"))
    assert await verdicts(layered, "a", "b") == ["deny", "allow"]
    assert await verdicts(layered, "x.pem", action="read") == ["deny"]
    assert "not used" not in health(layered)
    for _ in range(2):
        code, said = command(layered.daemon, "policy", "check", str(layered.state))
        assert (code, said["ok"]) == (0, True), said
        layered.daemon.stop()
    cases = layered.daemon.base / "cases.toml"
    cases.write_text('[[case]]\naction = "read"\npath = "x.pem"\nexpect = "deny"\nrule = "secrets-read"\n')
    code, said = command(layered.daemon, "policy", "test", str(cases), "--policy", str(layered.state))
    assert (code, said["ok"]) == (0, True), said


async def test_a_broken_file_changes_nothing_and_says_so(layered: Layered) -> None:
    layered.state.write_text(OURS + rule("one", "deny", "a"))
    assert await verdicts(layered, "a", "b") == ["deny", "allow"]
    layered.state.write_text(BROKEN)
    for _ in range(2):
        assert await verdicts(layered, "a", "b") == ["deny", "allow"]
    assert f"{layered.state}: line 3: defualt: unknown key" in health(layered)
    _, explained = command(layered.daemon, "policy", "explain", "write", "a", "--agent", "bob")
    assert "line 3: defualt: unknown key" in "\n".join(explained["notes"])
    (rejected,) = events(layered, "policy_rejected")
    assert rejected["source"] == str(layered.state)
    assert "line 3: defualt" in cli(layered.daemon, "journal", "query", "--kind", "policy_rejected")[1]
    assert "line 3: defualt" in rejected["message"]
    assert layered.restart()["ok"] is True, "at a start, too"
    assert await verdicts(layered, "a", "b") == ["deny", "allow"]
    assert "line 3: defualt" in health(layered)
    assert len(events(layered, "policy_rejected")) == 1, "once for each content"
    code, said = command(layered.daemon, "policy", "reload", approver=await layered.daemon.make_approver())
    assert (code, said["code"]) == (1, "policy_invalid")
    layered.state.write_text(OURS)
    assert await verdicts(layered, "a", "b") == ["allow", "allow"]
    assert "not used" not in health(layered)


async def test_what_a_loaded_policy_opens_is_said_by_status_and_reload(layered: Layered) -> None:
    layered.state.write_text(OURS + rule("secrets-read", "deny", "*.key", "read"))
    says = f"'secrets-read' in {layered.state} takes the place of the default's rule"
    assert says in health(layered)
    code, said = command(layered.daemon, "policy", "reload", approver=await layered.daemon.make_approver())
    assert (code, [says in warned["message"] for warned in said["advice"]]) == (0, [True])


async def test_a_file_that_is_gone_by_its_link_keeps_the_policy(layered: Layered) -> None:
    target = layered.daemon.base / "elsewhere.toml"
    target.write_text(OURS + rule("one", "deny", "a"))
    layered.user.symlink_to(target)
    assert await verdicts(layered, "a") == ["deny"]
    target.unlink()
    assert await verdicts(layered, "a") == ["deny"]
    assert "is a link that leads nowhere" in health(layered)


async def test_the_workspaces_file_holds_after_a_persons_yes_to_this_content(layered: Layered) -> None:
    text = rule("frozen", "deny", "a")
    layered.workspace.write_text(text)
    assert await verdicts(layered, "a") == ["allow"]
    assert ".orchestrator/policy.toml is new: nobody said yes to it yet" in health(layered)
    approver = await layered.daemon.make_approver()
    digest = digest_of(text.encode())
    code, refused = command(layered.daemon, "policy", "approve", digest, approver="wrong")
    assert (code, refused["code"]) == (1, "approver_code_needed")
    _, shown = command(layered.daemon, "policy", "show")
    assert digest in "\n".join(shown["notes"])
    assert all(f"+{line}" in shown["diff"] for line in text.splitlines()), "all of it"
    layered.workspace.write_text(text + rule("more", "deny", "b"))
    code, refused = command(layered.daemon, "policy", "approve", digest, approver=approver)
    assert (code, refused["code"]) == (1, "policy_changed")
    layered.workspace.write_text(text)
    assert command(layered.daemon, "policy", "approve", digest, approver=approver)[0] == 0
    assert await verdicts(layered, "a") == ["deny"]
    assert ".orchestrator" not in health(layered)
    _, said = command(layered.daemon, "policy", "explain", "write", "a", "--agent", "bob")
    (decides,) = [rule for rule in said["considered"] if rule["decides"]]
    assert (decides["name"], decides["source"]) == ("workspace.frozen", ".orchestrator/policy.toml")
    layered.workspace.unlink()
    assert layered.restart()["ok"] is True
    assert await verdicts(layered, "a") == ["deny"], "the approved content holds on"
    assert ".orchestrator/policy.toml is gone" in health(layered)
    gone = digest_of(b"")
    code, said = command(layered.daemon, "policy", "approve", gone, approver=approver)
    assert (code, "is gone and holds no more" in said["message"]) == (0, True)
    assert await verdicts(layered, "a") == ["allow"]
    assert [event["digest"] for event in events(layered, "workspace_policy_approved")] == [digest, gone]


async def test_a_workspaces_file_that_would_lift_something_is_not_taken_up(layered: Layered) -> None:
    layered.workspace.write_text(rule("open", "allow", "**", "read"))
    assert await verdicts(layered, "x.pem", action="read") == ["deny"]
    assert "line 6: rule[1].verdict: a workspace's file can only tighten" in health(layered)
    (rejected,) = events(layered, "policy_rejected")
    assert rejected["source"] == ".orchestrator/policy.toml"
    approver = await layered.daemon.make_approver()
    digest = digest_of(layered.workspace.read_bytes())
    code, refused = command(layered.daemon, "policy", "approve", digest, approver=approver)
    assert (code, refused["code"]) == (1, "invalid_parameter")


async def test_no_agent_writes_the_workspaces_file(layered: Layered) -> None:
    async with layered.daemon.client("bob") as bob:
        for path in (".orchestrator/policy.toml", ".ORCHESTRATOR/policy.toml"):
            with pytest.raises(RemoteError) as refused:
                await bob.write_file(path, rule("w", "deny", "a"), mode="create")
            assert (refused.value.code, refused.value.details["rule"]) == ("denied", "builtin.policy")
        layered.workspace.write_text(rule("w", "deny", "a"))
        with pytest.raises(RemoteError) as refused:
            await bob.move_file(".orchestrator", "away")
        assert refused.value.code == "denied"
        assert "deny" in (await bob.read_file(".orchestrator/policy.toml")).text


async def test_an_operators_file_in_the_workspace_is_nobodys_to_write(base: Path) -> None:
    """As where the workspace is a repository of settings, and the policy is a link into it."""
    target = base / "work/settings.toml"
    with running(base) as daemon:
        target.write_text(OURS)
        user = daemon.home / ".config/orchestrator/policy.toml"
        user.parent.mkdir(parents=True)
        user.symlink_to(target)
        daemon.stop()
        assert daemon.start()["ok"] is True
        async with daemon.client("bob") as bob:
            with pytest.raises(RemoteError) as refused:
                await bob.write_file("settings.toml", "x", mode="append")
            assert refused.value.code == "denied"
