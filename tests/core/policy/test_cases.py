"""A table of expected verdicts is read with its lines, and tried on a policy."""

from __future__ import annotations

import pytest

from orchestrator.api.policy_files import shipped_policies
from orchestrator.core.policy.cases import CasesInvalid, parse_cases
from orchestrator.core.policy.parse import parse_policy
from tests.core.policy.shipped import DEFAULT

CASE = '[[case]]\naction = "read"\npath = ".env"\nexpect = "deny"\n'


@pytest.mark.parametrize(
    ("case", "verdict", "rule", "ok"),
    [
        pytest.param('action = "read"\npath = ".env"\nexpect = "deny"', "deny", "secrets-read", True, id="as expected"),
        pytest.param('action = "read"\npath = "a"\nexpect = "deny"', "allow", "read", False, id="another verdict"),
        pytest.param(
            'action = "read"\npath = ".env"\nexpect = "deny"\nrule = "mine"', "deny", "secrets-read", False, id="rule"
        ),
        pytest.param(
            'action = "revert"\npath = "a"\nwork = "others"\nexpect = "ask"', "ask", "revert-others", True, id="work"
        ),
        pytest.param(
            'action = "review"\npath = "a"\nagent = "class:review"\nexpect = "allow"',
            "allow",
            "review",
            True,
            id="class",
        ),
        pytest.param(
            'action = "review"\npath = "a"\nagent = "rex"\nclass = "review"\nexpect = "allow"',
            *("allow", "review", True),
            id="a named agent and its class",
        ),
        pytest.param(
            'action = "write"\npath = ".orchestrator/policy.toml"\nexpect = "deny"',
            *("deny", "builtin.policy", True),
            id="built in",
        ),
        pytest.param(
            'action = "run"\npath = "."\ncommand = "pytest -q"\nexpect = "ask"', "ask", "run", True, id="command"
        ),
    ],
)
def test_a_case(case: str, verdict: str, rule: str, ok: bool) -> None:
    (tried,) = parse_cases(f"# ours\n[[case]]\n{case}\n", "cases.toml").tried(DEFAULT)
    assert (tried.line, tried.verdict, tried.rule, tried.ok) == (2, verdict, rule, ok)


COMMANDS = parse_policy(
    """
name = "ours"
extends = "default"
[commands]
default_mode = "in_place"
[[rule]]
name = "tests"
agents = ["*"]
actions = ["run"]
paths = ["api"]
commands = ["pytest **"]
modes = ["scratch"]
verdict = "allow"
""",
    source="t.toml",
    shipped=shipped_policies(),
)


@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        pytest.param('command = "pytest -k \'a b\'"\npath = "api"', "allow tests", id="the mode that is allowed"),
        pytest.param('command = "pytest -q"\npath = "api"\nmode = "in_place"', "ask run", id="the one that is named"),
        pytest.param('command = "pytest"\npath = "."', "ask run", id="another directory"),
        pytest.param('path = "api"', "ask run", id="no command"),
    ],
)
def test_a_case_of_a_command(case: str, verdict: str) -> None:
    (tried,) = parse_cases(f'[[case]]\naction = "run"\nexpect = "ask"\n{case}\n', "cases.toml").tried(COMMANDS)
    assert f"{tried.verdict} {tried.rule}" == verdict


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(
            CASE.replace("deny", "no"), "line 4: case[1].expect: must be one of allow | ask | deny", id="verdict"
        ),
        pytest.param(CASE.replace("path", "paths"), "line 3: case[1].paths: unknown key", id="key"),
        pytest.param(CASE.replace(".env", "../x"), "line 3: case[1].path", id="path"),
        pytest.param(CASE + 'agent = "class:clod"\n', "line 5: case[1].agent", id="class"),
        pytest.param(CASE + 'command = "ls"\n', 'line 5: case[1].command: goes with action = "run"', id="no run"),
        pytest.param(CASE + 'mode = "scratch"\n', "line 5: case[1].mode: goes with a command", id="no command"),
        pytest.param(CASE + 'command = "ls \'a"\n', "case[1].command: 'ls 'a': is no command", id="no words"),
        pytest.param('policy = "p.toml"\n', "line 1: there is no [[case]]", id="empty"),
        pytest.param("= 1", "is not TOML", id="not TOML"),
    ],
)
def test_what_is_wrong_with_a_table(text: str, says: str) -> None:
    with pytest.raises(CasesInvalid, match=r"cases\.toml") as refused:
        parse_cases(text, "cases.toml")
    assert says in refused.value.message.replace("'no': ", "")
