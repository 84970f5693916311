"""`[[route]]`, `[conflicts]` and `[checks]` in a policy file."""

from __future__ import annotations

import pytest

from orchestrator.core.policy.parse import parse_policy
from orchestrator.core.policy.rules import Checks, Conflicts, Route
from tests.core.policy.shipped import problems_of

TEXT = """\
name = "team"
default = "allow"

[[route]]
name = "code"
paths = ["src/**", "!src/gen/**"]
max_lines = 40
same_symbol = false
agents = ["class:local", "alice"]
reviewers = ["quick", "careful", "person"]
deadline_s = 60
accept = "auto"

[[route]]
reviewers = ["careful"]

[conflicts]
expire_after_s = 3600

[checks]
command = ["make", "-s", "check"]
timeout_s = 20
scope = "file"
"""


def test_routes_keep_their_order_and_the_rest_its_values() -> None:
    policy = parse_policy(TEXT, source="policy.toml")
    assert policy.routes == (
        Route(
            name="code",
            paths=("src/**", "!src/gen/**"),
            max_lines=40,
            same_symbol=False,
            agents=("class:local", "alice"),
            reviewers=("quick", "careful", "person"),
            deadline_s=60,
            accept="auto",
        ),
        Route(name="route 2", reviewers=("careful",)),
    )
    assert policy.conflicts == Conflicts(expire_after_s=3600)
    assert policy.checks == Checks(command=("make", "-s", "check"), timeout_s=20, scope="file")


def test_without_them_a_person_resolves_conflicts() -> None:
    policy = parse_policy('name = "p"\ndefault = "deny"\n', source="policy.toml")
    assert (policy.routes, policy.checks.command) == ((), ())


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "says"),
    [
        pytest.param("[[route]]\nname", "[route]\nname", 0, "", "", id="no table of tables"),
        pytest.param('"!src/gen/**"', '"a[b"', 6, "route[1].paths[2]", "", id="glob"),
        pytest.param("max_lines = 40", "max_lines = true", 7, "route[1].max_lines", "a whole number", id="lines"),
        pytest.param("= false", '= "no"', 8, "route[1].same_symbol", "true or false", id="symbol"),
        pytest.param('"class:local"', '"class:big"', 9, "route[1].agents[1]", "", id="class"),
        pytest.param('["careful"]', "[]", 15, "route[2].reviewers", "at least one", id="nobody"),
        pytest.param('"quick",', '"a\\u0000",', 10, "route[1].reviewers[1]", "name", id="name"),
        pytest.param("deadline_s = 60", "deadline_s = 0", 11, "route[1].deadline_s", ">= 1", id="no time"),
        pytest.param('"auto"', '"maybe"', 12, "route[1].accept", "auto | person", id="accept"),
        pytest.param("accept", "acept", 12, "route[1].acept", "accept", id="unknown key"),
        pytest.param("= 3600", "= -1", 18, "conflicts.expire_after_s", ">= 0", id="lapse"),
        pytest.param('"-s"', '""', 21, "checks.command[2]", "argument", id="argument"),
        pytest.param("timeout_s = 20", "timeout_s = 3601", 22, "checks.timeout_s", "<= 3600", id="check's time"),
        pytest.param('"file"', '"disk"', 23, "checks.scope", "file | tree", id="scope"),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(old: str, new: str, line: int, key: str, says: str) -> None:
    problems = problems_of(TEXT.replace(old, new, 1), "policy.toml")
    assert problems
    if key:
        assert (problems[0].line, problems[0].key) == (line, key)
        assert says in problems[0].message
