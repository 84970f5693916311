"""`[[reviewer]]` and `[plugins]` in a policy file."""

from __future__ import annotations

import pytest

from orchestrator.core.policy.parse import check_policy, parse_policy
from orchestrator.core.policy.reviewers import Plugins, ReviewerSettings, url_problem

TEXT = """\
name = "team"
default = "allow"

[[reviewer]]
name = "cloud"
kind = "model"
url = "https://api.example.com"
form = "anthropic"
model = "big-1"
api_key_env = "REVIEW_KEY"
max_tokens = 2000
usd_per_mtok_input = 3
usd_per_mtok_output = 15.0
max_cost_usd = 0.25
timeout_s = 30

[[reviewer]]
name = "script"
kind = "program"
argv = ["/usr/bin/review", "--quick"]
env = ["REVIEW_KEY"]

[[reviewer]]
name = "desk"
kind = "human"

[[reviewer]]
name = "union"
kind = "plugin"
plugin = "union_reviewer"

[plugins]
enabled = ["union_reviewer"]
timeout_s = 2
"""


def test_each_kind_is_read() -> None:
    policy = parse_policy(TEXT, source="policy.toml")
    assert policy.reviewers == (
        ReviewerSettings(
            name="cloud",
            kind="model",
            url="https://api.example.com",
            model="big-1",
            api_key_env="REVIEW_KEY",
            max_tokens=2000,
            usd_per_mtok_input=3.0,
            usd_per_mtok_output=15.0,
            max_cost_usd=0.25,
            timeout_s=30.0,
        ),
        ReviewerSettings(name="script", kind="program", argv=("/usr/bin/review", "--quick"), env=("REVIEW_KEY",)),
        ReviewerSettings(name="desk", kind="human"),
        ReviewerSettings(name="union", kind="plugin", plugin="union_reviewer"),
    )
    assert policy.plugins == Plugins(enabled=("union_reviewer",), timeout_s=2.0)


def test_without_them_nobody_is_asked_and_no_plugin_is_let_in() -> None:
    policy = parse_policy('name = "p"\ndefault = "deny"\n', source="policy.toml")
    assert (policy.reviewers, policy.plugins.enabled) == ((), ())


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "says"),
    [
        pytest.param('"model"', '"oracle"', 6, "reviewer[1].kind", "model | program", id="kind"),
        pytest.param("https://api", "http://api", 7, "reviewer[1].url", "this machine alone", id="plain http"),
        pytest.param("//api", "//me:secret@api", 7, "reviewer[1].url", "api_key_env", id="a password in the url"),
        pytest.param('"anthropic"', '"other"', 8, "reviewer[1].form", "anthropic | openai", id="form"),
        pytest.param('"REVIEW_KEY"\nmax', '"sk-abc"\nmax', 10, "reviewer[1].api_key_env", "not its value", id="key"),
        pytest.param('"REVIEW_KEY"\nmax', '"ORCHESTRATOR_TOKEN"\nmax', 10, "reviewer[1].api_key_env", "own", id="ours"),
        pytest.param("= 2000", "= 0", 11, "reviewer[1].max_tokens", "1 to", id="tokens"),
        pytest.param("= 0.25", "= -1", 14, "reviewer[1].max_cost_usd", "USD", id="cost"),
        pytest.param("= 30", "= nan", 15, "reviewer[1].timeout_s", "seconds", id="time"),
        pytest.param(
            "max_tokens", "max_tokenz", 11, "reviewer[1].max_tokenz", "nothing that a model has", id="unknown"
        ),
        pytest.param('env = ["REVIEW_KEY"]', 'url = "https://a"', 21, "reviewer[2].url", "program has", id="not its"),
        pytest.param('["/usr/bin/review", "--quick"]', "[]", 20, "reviewer[2].argv", "at least one", id="argv"),
        pytest.param('["REVIEW_KEY"]', '["ORCHESTRATOR_APPROVER"]', 21, "reviewer[2].env", "nobody", id="our env"),
        pytest.param('"desk"', '"cloud"', 24, "reviewer[3].name", "earlier", id="twice"),
        pytest.param('"desk"', '"person"', 24, "reviewer[3].name", "kept for people", id="person"),
        pytest.param('plugin = "union_reviewer"', "", 27, "reviewer[4].plugin", "missing", id="missing"),
        pytest.param('["union_reviewer"]', '"union_reviewer"', 33, "plugins.enabled", "list", id="enabled"),
        pytest.param(
            "timeout_s = 2", 'env = ["A=b"]\ntimeout_s = 2', 34, "plugins.env", "not its value", id="plugins env"
        ),
        pytest.param("timeout_s = 2", "time = 2", 34, "plugins.time", "unknown", id="plugins' key"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_key(old: str, new: str, line: int, key: str, says: str) -> None:
    assert TEXT.count(old) >= 1
    problems = check_policy(TEXT.replace(old, new, 1), "policy.toml")
    assert [(problem.line, problem.key) for problem in problems] == [(line, key)]
    assert says in problems[0].message


def test_a_cap_on_cost_needs_prices() -> None:
    problems = check_policy(TEXT.replace("usd_per_mtok_input = 3\nusd_per_mtok_output = 15.0\n", ""), "policy.toml")
    assert [(problem.key, "prices" in problem.message) for problem in problems] == [("reviewer[1].max_cost_usd", True)]


@pytest.mark.parametrize(
    ("url", "good"),
    [
        pytest.param("https://api.example.com/v1", True, id="https"),
        pytest.param("http://127.0.0.1:11434", True, id="loopback"),
        pytest.param("http://[::1]:8080/v1", True, id="loopback 6"),
        pytest.param("http://localhost:8080", True, id="localhost"),
        pytest.param("http://127.0.0.1.example.com", False, id="looks like loopback"),
        pytest.param("http://localhost@example.com", False, id="a user called localhost"),
        pytest.param("http://10.0.0.1", False, id="the office"),
        pytest.param("ftp://127.0.0.1", False, id="scheme"),
        pytest.param("https://", False, id="nowhere"),
        pytest.param("https://a:port", False, id="no port"),
        pytest.param("https://a/?key=1", False, id="query"),
    ],
)
def test_plain_http_is_for_this_machine(url: str, good: bool) -> None:
    assert (url_problem(url) is None) == good
