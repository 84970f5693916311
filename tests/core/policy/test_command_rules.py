"""Rules about what is run: by command, in each mode; and which of them beats which."""

from __future__ import annotations

import pytest

from orchestrator.api.policy_files import shipped_policies
from orchestrator.core.commands import CommandLine, Mode
from orchestrator.core.errors import PolicyInvalid
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import ROOT
from orchestrator.core.policy.evaluate import evaluate
from orchestrator.core.policy.parse import parse_policy
from orchestrator.core.policy.rules import Allow, Deny, NeedApproval, Request

HEAD = 'name = "t"\ndefault = "deny"\n'


def rule(name: str, verdict: str, commands: str = "", more: str = "") -> str:
    given = f"commands = [{commands}]\n" if commands else ""
    return (
        f'[[rule]]\nname = "{name}"\nagents = ["*"]\nactions = ["run"]\npaths = ["**"]\nverdict = "{verdict}"\n'
        f"{given}{more}\n"
    )


ASKS, TESTS = rule("asks", "ask"), rule("tests", "allow", '"pytest **", "make test"')


@pytest.mark.parametrize(
    ("text", "line", "mode", "verdict"),
    [
        pytest.param(HEAD + ASKS + TESTS, "pytest -q", "in_place", "allow tests", id="a name beats a question"),
        pytest.param(HEAD + ASKS + TESTS, "make", "in_place", "ask asks", id="what has no name is asked about"),
        pytest.param(HEAD + TESTS, "make", "in_place", "deny default", id="no rule"),
        pytest.param(
            HEAD + TESTS + rule("none", "deny"), "pytest", "in_place", "deny none", id="a name beats no denial"
        ),
        pytest.param(
            HEAD + TESTS + rule("these", "ask", '"pytest --pdb **"'),
            "pytest --pdb x",
            "in_place",
            "ask these",
            id="a name beats no question about a name",
        ),
        pytest.param(HEAD + ASKS + rule("all", "allow"), "ls", "in_place", "ask asks", id="all is no name"),
        pytest.param(HEAD + rule("all", "allow"), "ls", "in_place", "allow all", id="all"),
        pytest.param(HEAD + rule("all", "allow"), "sh -c ls", "in_place", "deny default", id="all, but no code"),
        pytest.param(
            HEAD + rule("code", "allow", '"sh -c *"'), "sh -c ls", "in_place", "allow code", id="code by its name"
        ),
        pytest.param(
            HEAD + ASKS + rule("copy", "allow", '"make **"', 'modes = ["scratch"]'),
            "make",
            "in_place",
            "ask asks",
            id="another mode",
        ),
        pytest.param(
            HEAD + ASKS + rule("copy", "allow", '"make **"', 'modes = ["scratch"]'),
            "make",
            "scratch",
            "allow copy",
            id="its mode",
        ),
        pytest.param('name = "t"\ndefault = "allow"\n', "ls", "in_place", "ask default", id="no default allows"),
    ],
)
def test_the_verdict_on_a_command(text: str, line: str, mode: Mode, verdict: str) -> None:
    policy = parse_policy(text, source="t.toml")
    command = CommandLine(tuple(line.split()), ROOT, mode)
    found = evaluate(policy, Request("bob", "cloud", "run", ROOT, directory=True, command=command))
    word = {Allow: "allow", NeedApproval: "ask", Deny: "deny"}[type(found)]
    assert f"{word} {found.rule}" == verdict


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        pytest.param('commands = ["a ** b"]', "the last word", id="no pattern"),
        pytest.param('modes = ["somewhere"]', "in_place", id="no mode"),
    ],
)
def test_a_rule_that_can_not_be(more: str, problem: str) -> None:
    with pytest.raises(PolicyInvalid, match=problem):
        parse_policy(HEAD + rule("r", "allow", more=more), source="t.toml")


def test_commands_go_with_run_alone() -> None:
    text = rule("r", "allow", '"ls"').replace('["run"]', '["run", "read"]')
    with pytest.raises(PolicyInvalid, match="goes with the actions run"):
        parse_policy(HEAD + text, source="t.toml")


def test_the_shipped_policies_ask_about_every_command_but_those_that_run_tests() -> None:
    shipped = shipped_policies()
    known = CommandLine(("pytest", "-q"), WorkspacePath("src"), "in_place")
    verdicts = {}
    for name, text in shipped.items():
        policy = parse_policy(text, source=name, shipped=shipped)
        found = evaluate(policy, Request("bob", "cloud", "run", WorkspacePath("src"), directory=True, command=known))
        verdicts[name] = type(found)
    assert [name for name, verdict in verdicts.items() if verdict is Allow] == ["run_tests"]
    assert verdicts["default"] is verdicts["ask_all"] is verdicts["local_models"] is NeedApproval
    assert verdicts["strict"] is verdicts["read_only"] is Deny
