"""`[[reviewer]]` and `[plugins]` in a policy file."""

from __future__ import annotations

import pytest

from orchestrator.core.policy.parse import parse_policy
from orchestrator.core.policy.rules import HumanSettings, Plugins, ProgramSettings
from tests.core.policy.shipped import problems_of

TEXT = """\
name = "team"
default = "allow"

[[reviewer]]
name = "cloud"
kind = "program"
argv = ["orchestrator-model-reviewer", "--api", "anthropic", "--model", "big-1"]
env = ["REVIEW_KEY"]
max_tokens = 2000
max_tokens_per_hour = 100000
max_cost_usd = 0.25
max_cost_usd_per_hour = 2
max_concurrent = 3
timeout_s = 30

[[reviewer]]
name = "script"
kind = "program"
argv = ["/usr/bin/review", "--quick"]
env = ["REVIEW_KEY"]

[[reviewer]]
name = "desk"
kind = "human"

[plugins]
enabled = ["change_log"]
timeout_s = 2
"""


def test_each_kind_is_read() -> None:
    policy = parse_policy(TEXT, source="policy.toml")
    assert policy.reviewers == (
        ProgramSettings(
            name="cloud",
            argv=("orchestrator-model-reviewer", "--api", "anthropic", "--model", "big-1"),
            env=("REVIEW_KEY",),
            max_tokens=2000,
            max_tokens_per_hour=100_000,
            max_cost_usd=0.25,
            max_cost_usd_per_hour=2.0,
            max_concurrent=3,
            timeout_s=30.0,
        ),
        ProgramSettings(name="script", argv=("/usr/bin/review", "--quick"), env=("REVIEW_KEY",)),
        HumanSettings(name="desk"),
    )
    assert policy.plugins == Plugins(enabled=("change_log",), timeout_s=2.0)


def test_without_them_nobody_is_asked_and_no_plugin_is_let_in() -> None:
    policy = parse_policy('name = "p"\ndefault = "deny"\n', source="policy.toml")
    assert (policy.reviewers, policy.plugins.enabled) == ((), ())


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "says"),
    [
        pytest.param('"program"', '"oracle"', 6, "reviewer[1].kind", "program | human", id="kind"),
        pytest.param('"REVIEW_KEY"]\nmax', '"sk-abc"]\nmax', 8, "reviewer[1].env[1]", "not its value", id="key"),
        pytest.param('"REVIEW_KEY"]\nmax', '"ORCHESTRATOR_TOKEN"]\nmax', 8, "reviewer[1].env[1]", "own", id="ours"),
        pytest.param("max_tokens = 2000", "max_tokens = -1", 9, "reviewer[1].max_tokens", ">= 0", id="tokens"),
        pytest.param("= 0.25", "= -1", 11, "reviewer[1].max_cost_usd", ">= 0", id="cost"),
        pytest.param("= 3\n", "= 0\n", 13, "reviewer[1].max_concurrent", ">= 1", id="at once"),
        pytest.param("= 30", "= nan", 14, "reviewer[1].timeout_s", "> 0", id="time"),
        pytest.param(
            "max_concurrent =", "max_concurent =", 13, "reviewer[1].max_concurent", "max_concurrent,", id="unknown"
        ),
        pytest.param("--quick", "\\u0000", 19, "reviewer[2].argv[2]", "NUL", id="an argument"),
        pytest.param(
            'kind = "human"', 'kind = "human"\nenv = []', 25, "reviewer[3].env", "known: name, kind", id="not its"
        ),
        pytest.param('["/usr/bin/review", "--quick"]', "[]", 19, "reviewer[2].argv", "at least one", id="argv"),
        pytest.param(
            '"--quick"]\nenv = ["REVIEW_KEY"]',
            '"--quick"]\nenv = ["ORCHESTRATOR_APPROVER"]',
            20,
            "reviewer[2].env[1]",
            "nobody",
            id="our env",
        ),
        pytest.param('"desk"', '"cloud"', 23, "reviewer[3].name", "another", id="twice"),
        pytest.param('"desk"', '"person"', 23, "reviewer[3].name", "kept for people", id="person"),
        pytest.param('name = "desk"\n', "", 22, "reviewer[3].name", "missing", id="missing"),
        pytest.param('["change_log"]', '"change_log"', 27, "plugins.enabled", "a list", id="enabled"),
        pytest.param(
            "timeout_s = 2", 'env = ["A=b"]\ntimeout_s = 2', 28, "plugins.env[1]", "not its value", id="plugins env"
        ),
        pytest.param("timeout_s = 2", "time = 2", 28, "plugins.time", "unknown", id="plugins' key"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_key(old: str, new: str, line: int, key: str, says: str) -> None:
    assert TEXT.count(old) >= 1
    problems = problems_of(TEXT.replace(old, new, 1), "policy.toml")
    assert [(problem.line, problem.key) for problem in problems] == [(line, key)]
    assert says in problems[0].message


@pytest.mark.parametrize("most", ["max_tokens = 2000", "max_cost_usd = 0.25"])
def test_a_cap_on_an_hour_needs_one_on_a_review(most: str) -> None:
    problems = problems_of(TEXT.replace(f"{most}\n", ""), "policy.toml")
    name = most.partition(" ")[0]
    assert [(problem.key, f"needs {name}" in problem.message) for problem in problems] == [
        (f"reviewer[1].{name}_per_hour", True)
    ]
