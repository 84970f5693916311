"""A policy of one's own, from `policy init` to the verdict that it gives, by the command line on a real daemon."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.clients.python import RemoteError
from orchestrator.core.commands import Mode
from tests.daemon.cli import cli, command
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

RULE = """
[[rule]]
name = "docs"
agents = ["bob"]
actions = ["write"]
paths = ["docs"]
verdict = "deny"
reason = "frozen"
"""
READ_ALL = """
[[rule]]
name = "all"
agents = ["*"]
actions = ["read"]
paths = ["**"]
verdict = "allow"
"""


def write(folder: Path, text: str) -> str:
    (folder / "new.toml").write_text(text)
    return str(folder / "new.toml")


async def test_a_policy_that_extends_the_default_keeps_secrets_hidden(daemon: RunningDaemon) -> None:
    (daemon.workspace / "server.pem").write_text("key\n")
    (daemon.workspace / "docs").mkdir()
    (daemon.workspace / "docs/a.md").write_text("a\n")
    approver = await daemon.make_approver()
    at = ("--state-dir", str(daemon.state_dir))
    assert command(daemon, "policy", "init", *at)[0] == 0
    code, again = command(daemon, "policy", "init", *at)
    assert (code, again["code"]) == (1, "policy_exists")
    with (daemon.state_dir / "policy.toml").open("a") as file:
        file.write(RULE)
    code, report = command(daemon, "policy", "check", str(daemon.state_dir / "policy.toml"))
    assert (code, report["ok"], report["problems"], report["advice"]) == (0, True, [], [])
    assert command(daemon, "policy", "reload", approver=approver)[0] == 0
    code, shown = command(daemon, "policy", "show")
    assert (shown["name"], shown["extends"]) == ("ours", "default")
    sources = {rule["name"]: rule["source"] for rule in shown["rules"]}
    assert sources["docs"] == str(daemon.state_dir / "policy.toml")
    assert sources["secrets-read"] == "policies/default.toml"
    async with daemon.client("bob") as bob:
        with pytest.raises(RemoteError) as hidden:
            await bob.read_file("server.pem")
        assert hidden.value.code == "denied"
        with pytest.raises(RemoteError) as frozen:
            await bob.write_file("docs/a.md", "b\n", mode="append")
        assert "frozen" in frozen.value.message


async def test_explain_names_each_rule_and_the_one_that_decides(daemon: RunningDaemon) -> None:
    code, said = command(daemon, "policy", "explain", "read", ".env", "--agent", "bob")
    assert (code, said["verdict"], said["rule"], said["agent"]) == (0, "deny", "secrets-read", "bob")
    assert [rule["name"] for rule in said["considered"] if rule["matches"]] == ["secrets-read", "read"]
    assert [rule["name"] for rule in said["considered"] if rule["decides"]] == ["secrets-read"]
    async with daemon.client("bob") as bob:  # and it is what holds
        with pytest.raises(RemoteError) as refused:
            await bob.read_file(".env")
        assert refused.value.details["rule"] == said["rule"]


COMMANDS = """
name = "ours"
extends = "default"
[[rule]]
name = "tests"
agents = ["class:cloud"]
actions = ["run"]
paths = ["**"]
commands = ["echo **"]
modes = ["scratch"]
verdict = "allow"
"""


async def test_explain_says_what_becomes_of_a_command(daemon: RunningDaemon) -> None:
    own = daemon.state_dir / "policy.toml"
    own.write_text(COMMANDS)
    ask = ("policy", "explain", "run", ".", "--agent", "bob")
    code, said = command(daemon, *ask, "--", "echo", "-n", "a b")
    assert (code, said["action"], said["path"], said["command"]) == (0, "run", ".", "echo -n 'a b'")
    assert (said["mode"], said["verdict"], said["rule"], said["source"]) == ("scratch", "allow", "tests", str(own))
    async with daemon.client("bob") as bob:  # and it is what holds
        assert (await bob.run_command(["echo", "-n", "a b"])).mode == "scratch"
        modes: dict[Mode, bool] = {"in_place": True, "scratch": False}
        for mode, waits in modes.items():
            code, said = command(daemon, *ask, "--mode", mode, "--", "echo", "x")
            assert (code, said["verdict"] == "ask", said["mode"]) == (0, waits, mode)
            assert ((await bob.run_command(["echo", "x"], mode=mode)).status == "waiting") is waits
    _, said = command(daemon, *ask, "--mode", "in_place", "--", "echo", "x")
    assert (said["rule"], said["source"]) == ("run", "policies/default.toml")
    code, text = cli(daemon, *ask, "--", "echo", "x")
    assert (code, "echo x" in text, "(decides)" in text) == (0, True, True)


@pytest.mark.parametrize(
    ("typed", "code", "says"),
    [
        pytest.param(("read", "a", "--", "ls"), 1, "a command goes with the action run, not read", id="read"),
        pytest.param(("run", ".", "--mode", "scratch"), 1, "is that of a command, and none is given", id="no command"),
        pytest.param(("run", "--", "ls", "-l"), 1, "ls: there is no such directory", id="no directory"),
        pytest.param(("run", ".", "--", ""), 1, "the program's name is empty", id="empty"),
    ],
)
async def test_explain_refuses_half_a_question(
    daemon: RunningDaemon, typed: tuple[str, ...], code: int, says: str
) -> None:
    exit_code, said = command(daemon, "policy", "explain", *typed)
    assert (exit_code, says in said["message"]) == (code, True), said


@pytest.mark.parametrize(
    ("agent", "path", "judged", "says"),
    [
        pytest.param("class:review", "a", ("review", "allow", "review"), "", id="a class"),
        pytest.param(
            "nobody", "a", ("cloud", "deny", "default"), "nobody is not registered; judged as class cloud", id="no name"
        ),
        pytest.param("person:root", "a", ("person", "allow", "review"), "", id="a person"),
    ],
)
async def test_explain_judges_a_class_a_person_and_a_name_that_nobody_has(
    daemon: RunningDaemon, agent: str, path: str, judged: tuple[str, str, str], says: str
) -> None:
    code, said = command(daemon, "policy", "explain", "review", path, "--agent", agent)
    assert (code, said["agent"]) == (0, agent)
    assert (said["agent_class"], said["verdict"], said["rule"]) == judged
    assert said.get("notes", []) == ([says] if says else [])


async def test_explain_refuses_a_class_that_is_none(daemon: RunningDaemon) -> None:
    code, said = command(daemon, "policy", "explain", "read", "a", "--agent", "class:clod")
    assert (code, said["code"]) == (1, "invalid_parameter")
    assert "local, cloud" in said["message"] or "cloud, local" in said["message"]


async def test_check_warns_of_what_a_policy_opens(daemon: RunningDaemon) -> None:
    (daemon.workspace / "own.pem").write_text("key\n")
    async with daemon.client("alice") as alice:
        await alice.file_info("own.pem")
    text = f'name = "x"\ndefault = "deny"\n{RULE}{READ_ALL}'
    code, said = cli(daemon, "policy", "check", write(daemon.base, text))
    assert code == 0, said
    assert "agents may read own.pem" in said
    assert "'docs' names no file of this workspace" in said


CASES = """
policy = "new.toml"
[[case]]
agent = "bob"
action = "write"
path = "docs/a.md"
expect = "deny"
rule = "docs"
[[case]]
action = "read"
path = "keys/server.pem"
expect = "deny"
[[case]]
agent = "class:local"
action = "write"
path = ".github/workflows/ci.yml"
expect = "%s"
"""


async def test_a_teams_cases_are_tried_without_a_daemon(daemon: RunningDaemon) -> None:
    daemon.stop()
    write(daemon.base, f'name = "x"\nextends = "default"\n{RULE}')
    cases = daemon.base / "cases.toml"
    cases.write_text(CASES % "ask")
    code, said = command(daemon, "policy", "test", str(cases))
    assert (code, said["ok"], said["cases"]) == (0, True, 3)
    cases.write_text(CASES % 'allow"\nrule = "mine')
    code, said = command(daemon, "policy", "test", str(cases))
    (failed,) = said["failed"]
    assert (code, failed["line"], failed["verdict"], failed["expect"]) == (1, 13, "ask", "allow")
    assert (failed["expected_rule"], failed["rule"], failed["source"]) == ("mine", "tool-code", "policies/default.toml")
    run = daemon.base / "run.toml"
    run.write_text('[[case]]\naction = "run"\npath = "."\ncommand = "pytest -q"\nexpect = "allow"\n')
    code, said = command(daemon, "policy", "test", str(run), "--policy", str(daemon.base / "new.toml"))
    (failed,) = said["failed"]
    assert (code, failed["command"], failed["verdict"], failed["rule"]) == (1, "pytest -q", "ask", "run")
    code, text = cli(daemon, "policy", "test", str(cases))
    titles, row = text.splitlines()[-2:]
    assert titles.split() == [
        "line",
        "agent",
        "action",
        "path",
        "expect",
        "expected",
        "rule",
        "verdict",
        "rule",
        "source",
    ]
    assert row.split()[4:] == ["allow", "mine", "ask", "tool-code", "policies/default.toml"]
    (daemon.workspace / ".orchestrator").mkdir()
    own = daemon.workspace / ".orchestrator/policy.toml"
    own.write_text(RULE.replace('"deny"', '"ask"'))
    code, said = command(daemon, "policy", "test", str(cases), "--policy", str(own))
    verdicts = [(failed["verdict"], failed["rule"]) for failed in said["failed"]]
    assert (code, verdicts) == (1, [("ask", "workspace.docs"), ("ask", "tool-code")]), "beside the operator's"
    (daemon.state_dir / "policy.toml").write_text(f'name = "x"\nextends = "default"\n{RULE}')
    cases.write_text((CASES % "ask").replace('policy = "new.toml"', ""))
    assert command(daemon, "policy", "test", str(cases))[0] == 0, "what would hold here"


async def test_a_policy_is_checked_without_a_daemon_too(daemon: RunningDaemon) -> None:
    daemon.stop()
    code, said = command(daemon, "policy", "check", write(daemon.base, f'name = "x"\ndefault = "deny"\n{READ_ALL}'))
    assert (code, said["ok"]) == (0, True)
    (advice,) = said["advice"]
    assert "which the shipped default hides" in advice["message"]
    code, said = command(daemon, "policy", "check", write(daemon.base, 'name = "x"\n'))
    assert (code, said["problems"][0]["key"]) == (1, "default")


async def test_past_events_are_judged_by_another_policy(daemon: RunningDaemon) -> None:
    (daemon.workspace / "docs").mkdir()
    for name in ("docs/a.md", "b.txt"):
        (daemon.workspace / name).write_text("a\n")
    async with daemon.client("bob") as bob:
        for name in ("docs/a.md", "b.txt"):
            await bob.read_file(name)
            await bob.write_file(name, "b\n", mode="append")
        with pytest.raises(RemoteError):
            await bob.read_file("x.pem")
        await bob.delete_file("b.txt")
        await bob.read_file("docs/a.md")
    new = write(daemon.base, f'name = "x"\ndefault = "deny"\n{RULE}{READ_ALL}')
    code, said = command(daemon, "policy", "simulate", "--policy", new)
    assert code == 0, said
    changed = [(act["old"], act["new"], act["action"], act["path"], act["rule"]) for act in said["changed"]]
    assert changed == [
        ("allow", "deny", "write", "docs/a.md", "docs"),
        ("allow", "deny", "write", "b.txt", "default"),
        ("deny", "allow", "read", "x.pem", "all"),
        ("ask", "deny", "delete", "b.txt", "default"),
    ]
    counts = {(count["old"], count["new"]): count["acts"] for count in said["counts"]}
    assert counts == {("allow", "allow"): 3, ("allow", "deny"): 2, ("deny", "allow"): 1, ("ask", "deny"): 1}
    assert (said["events"], said["acts"], said["total"]) == (7, 7, 4)
    _, later = command(daemon, "policy", "simulate", "--policy", new, "--since", said["changed"][2]["first"])
    assert [act["path"] for act in later["changed"]] == ["x.pem", "b.txt"]
    code, text = cli(daemon, "policy", "simulate", "--policy", new, "--limit", "1")
    assert (code, "docs/a.md" in text, "x.pem" in text) == (0, True, False)
    broken = write(daemon.base, 'name = "x"\n')
    code, refused = command(daemon, "policy", "simulate", "--policy", broken)
    assert (code, refused["code"]) == (1, "policy_invalid")


async def test_past_commands_are_judged_by_their_words(daemon: RunningDaemon) -> None:
    own = daemon.state_dir / "policy.toml"
    own.write_text(COMMANDS + RULE.replace('["write"]', '["run"]').replace('["docs"]', '["**"]').replace("bob", "carl"))
    async with daemon.client("bob") as bob, daemon.client("carl") as carl:
        await bob.run_command(["echo", "one"])
        assert (await bob.run_command(["wc", "-l"])).status == "waiting"
        with pytest.raises(RemoteError):
            await carl.run_command(["echo", "two words"], mode="scratch")
    new = write(daemon.base, COMMANDS.replace("echo **", "wc **").replace('modes = ["scratch"]', ""))
    code, said = command(daemon, "policy", "simulate", "--policy", new)
    assert code == 0, said
    assert [(act["old"], act["new"], act["agent"], act["command"]) for act in said["changed"]] == [
        ("allow", "ask", "bob", "echo one"),
        ("ask", "allow", "bob", "wc -l"),
        ("deny", "ask", "carl", "echo 'two words'"),
    ]
    assert "'two words'" in cli(daemon, "policy", "simulate", "--policy", new)[1]


PROFILE = '[[profile]]\nname = "small"\nagents = ["bob"]\nmax_read_lines = 400\ntools_off = ["apply_patch"]\n'


async def test_show_and_explain_name_the_profiles(daemon: RunningDaemon) -> None:
    (daemon.state_dir / "policy.toml").write_text(f'name = "x"\nextends = "default"\n{PROFILE}')
    _, shown = command(daemon, "policy", "show")
    (profile,) = shown["profiles"]
    assert (profile["name"], profile["agents"]) == ("small", ["bob"])
    assert profile["limits"] == ["max_read_lines = 400", 'tools_off = ["apply_patch"]']
    assert "max_read_lines = 400" in cli(daemon, "policy", "show")[1]
    for agent, holds in (("bob", "small"), ("ann", "none")):
        assert command(daemon, "policy", "explain", "read", "a", "--agent", agent)[1]["profile"] == holds


async def test_a_simulation_of_nothing_says_so(daemon: RunningDaemon) -> None:
    new = write(daemon.base, 'name = "x"\nextends = "default"\n')
    code, said = cli(daemon, "policy", "simulate", "--policy", new)
    assert (code, "no event since then" in said) == (0, True)


NO_PEOPLE = """
[[rule]]
name = "no people"
agents = ["class:person"]
actions = ["read"]
paths = ["**"]
verdict = "deny"
"""
LARGE = """
[[rule]]
name = "large"
agents = ["*"]
actions = ["read"]
paths = ["**"]
max_bytes = 1000
verdict = "ask"
"""


async def test_past_acts_are_judged_by_who_did_them_and_by_the_sizes_of_their_time(daemon: RunningDaemon) -> None:
    (daemon.workspace / "small.txt").write_text("a\n")
    (daemon.workspace / "large.txt").write_text("a" * 50 + "\n")
    async with daemon.client("bob") as bob:
        await bob.read_file("small.txt")
        await bob.write_file("large.txt", "b\n" * 600, mode="append")
        await bob.read_file("large.txt")
        await bob.write_file("large.txt", "c\n", mode="truncate")
        await bob.read_file("large.txt")
    assert cli(daemon, "open", "small.txt")[0] == 0
    new = write(daemon.base, f'name = "x"\nextends = "default"\n{NO_PEOPLE}{LARGE}')
    code, said = command(daemon, "policy", "simulate", "--policy", new)
    assert code == 0, said
    assert [(act["agent"].partition(":")[0], act["new"], act["path"], act["times"]) for act in said["changed"]] == [
        ("bob", "ask", "large.txt", 1),
        ("person", "deny", "small.txt", 1),
    ]


async def test_check_names_tools_that_do_not_exist_and_permission_by_a_title(daemon: RunningDaemon) -> None:
    profile = '[[profile]]\nname = "p"\nagents = ["*"]\ntools_off = ["write_file", "wirte_file"]\n'
    rule = READ_ALL.replace('verdict = "allow"', 'task = "look *"\nverdict = "allow"')
    text = f'name = "x"\nextends = "default"\n{profile}{rule}'
    _, report = command(daemon, "policy", "check", write(daemon.base, text))
    said = {problem["key"]: problem["message"] for problem in report["advice"]}
    assert said["profile[1].tools_off[2]"] == "'wirte_file' is no tool"
    assert "the agent chooses itself" in said["rule[1].task"]
