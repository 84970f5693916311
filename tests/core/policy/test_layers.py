"""Several policy files make one policy; that of the workspace can only tighten."""

from __future__ import annotations

import pytest

from orchestrator.core.errors import PolicyInvalid
from orchestrator.core.events.policies import Layer
from orchestrator.core.policy.advice import warnings
from orchestrator.core.policy.parse import check_policy, parse_layers
from orchestrator.core.policy.reader import PolicyText
from orchestrator.core.policy.rules import WORKSPACE_FILE, Answer, Policy
from tests.core.policy.shipped import DEFAULT, SHIPPED, answer

SOURCES: dict[Layer, str] = {
    "system": "/etc/orchestrator/policy.toml",
    "user": "/home/a/.config/orchestrator/policy.toml",
    "state": "/state/policy.toml",
    "workspace": WORKSPACE_FILE,
}


def rule(name: str, verdict: str, path: str, action: str = "write") -> str:
    return (
        f'[[rule]]\nname = "{name}"\nagents = ["*"]\nactions = ["{action}"]\n'
        f'paths = ["{path}"]\nverdict = "{verdict}"\n'
    )


def head(default: str = "", extends: str = "default") -> str:
    return (
        'name = "x"\n' + (f'extends = "{extends}"\n' if extends else "") + (f'default = "{default}"\n' * bool(default))
    )


def layered(**texts: str) -> Policy:
    return parse_layers(
        [PolicyText(layer, SOURCES[layer], texts[layer]) for layer in SOURCES if layer in texts], SHIPPED
    )


def test_the_rules_of_all_files_hold_together() -> None:
    policy = layered(
        system=head() + rule("one", "deny", "a"), user=head() + rule("two", "ask", "b"), state=head("allow")
    )
    assert [answer(policy, "write", path) for path in ("a", "b", "c")] == ["deny", "ask", "allow"]
    assert answer(policy, "read", "x.pem") == "deny"
    assert [policy.source_of(name) for name in ("one", "two", "read", "builtin.git")] == [
        *(SOURCES["system"], SOURCES["user"], "policies/default.toml", "built in")
    ]
    assert (policy.source, policy.default) == (SOURCES["state"], "allow")


def test_a_later_files_rule_takes_the_place_of_one_of_its_name() -> None:
    policy = layered(system=head() + rule("one", "deny", "a"), user=head() + rule("one", "ask", "a"))
    assert (answer(policy, "write", "a"), policy.source_of("one")) == ("ask", SOURCES["user"])


def test_the_last_file_that_extends_says_what_lies_beneath() -> None:
    opened = layered(user=head(extends="read_only"), state=head())
    assert (opened.extends, answer(opened, "write", "a")) == ("default", "allow")
    closed = layered(user=head(extends="read_only"), state=head("deny", extends=""))
    assert (closed.extends, answer(closed, "write", "a")) == ("read_only", "deny")


RULES = 'name = "x"\n' + rule("one", "deny", "a")


def test_one_default_among_the_files_is_enough() -> None:
    policy = layered(user=head(), state=RULES)
    assert (answer(policy, "write", "a"), answer(policy, "read", "x.pem"), policy.default) == ("deny", "deny", "deny")
    assert layered(system=RULES, user=head("ask", extends="")).default == "ask"
    with pytest.raises(PolicyInvalid, match="default: is missing"):
        layered(user=RULES, state=RULES)


def test_a_file_of_rules_alone_is_checked_beside_the_others() -> None:
    assert [p.key for p in check_policy(RULES, "p.toml", SHIPPED).problems] == ["default"]
    policy, problems, line_of = check_policy(RULES, "p.toml", SHIPPED, [PolicyText("user", "u.toml", head())])
    assert policy is not None, problems
    assert answer(policy, "read", "x.pem") == "deny"
    assert list(warnings(policy, "p.toml", shipped=DEFAULT, paths=[], line_of=line_of))[1:] == []


@pytest.mark.parametrize(
    ("default", "verdict", "expected"),
    [
        pytest.param("deny", "ask", "deny", id="ask lifts no deny of the default"),
        pytest.param("ask", "ask", "ask", id="as strict"),
        pytest.param("ask", "deny", "deny", id="stricter than ask"),
        pytest.param("allow", "ask", "ask", id="stricter than allow"),
        pytest.param("allow", "deny", "deny", id="stricter"),
    ],
)
def test_a_workspaces_rule_only_tightens_a_default(default: Answer, verdict: str, expected: str) -> None:
    policy = layered(state=head(default, extends=""), workspace=rule("w", verdict, "a"))
    assert (answer(policy, "write", "a"), answer(policy, "write", "b")) == (expected, default)


def test_a_workspaces_rule_takes_no_others_place() -> None:
    policy = layered(state=head(), workspace=rule("secrets-read", "ask", "*.pem", "read"))
    assert answer(policy, "read", "x.pem") == "deny"
    assert policy.source_of("workspace.secrets-read") == WORKSPACE_FILE
    assert policy.digest != layered(state=head()).digest


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        pytest.param(rule("w", "allow", "a"), 6, "rule[1].verdict", id="allow"),
        pytest.param('default = "allow"\n', 1, "default", id="default"),
        pytest.param('extends = "default"\n', 1, "extends", id="extends"),
        pytest.param("[limits]\napproval_ttl_s = 1\n", 1, "limits", id="limits"),
        pytest.param('[[reviewer]]\nname = "r"\nkind = "human"\n', 1, "reviewer", id="reviewer"),
        pytest.param('[plugins]\nenabled = ["x"]\n', 1, "plugins", id="plugins"),
        pytest.param('[checks]\ncommand = ["x"]\n', 1, "checks", id="a program"),
        pytest.param("[[route]]\n", 1, "route", id="route"),
        pytest.param("= 1", 1, "", id="not TOML"),
    ],
)
def test_a_workspaces_file_holds_nothing_else(text: str, line: int, key: str) -> None:
    assert [(p.line, p.key) for p in check_policy(text, f"/w/{WORKSPACE_FILE}", SHIPPED).problems] == [(line, key)]
    with pytest.raises(PolicyInvalid) as refused:
        layered(state=head(), workspace=text)
    assert refused.value.details["source"] == WORKSPACE_FILE


def test_a_misspelt_table_of_a_workspaces_file_is_named() -> None:
    (problem,) = check_policy('name = "w"\n[[rules]]\n', f"/w/{WORKSPACE_FILE}", SHIPPED).problems
    assert (problem.line, problem.message.endswith("; did you mean rule?")) == (2, True)


def test_a_problem_is_that_of_its_file() -> None:
    with pytest.raises(PolicyInvalid) as refused:
        layered(user=head(), state=head() + 'defualt = "x"\n')
    assert refused.value.message.startswith("/state/policy.toml: line 3: defualt: unknown key")


def test_a_file_of_a_newer_version_is_refused_for_that_alone() -> None:
    (problem,) = check_policy('version = 2\nnew = 1\n[[rule]]\nverdict = "perhaps"\n', "p.toml", SHIPPED).problems
    assert (problem.line, problem.key) == (1, "version")
    assert "reads version 1" in problem.message
    assert check_policy(f"version = 1\n{head()}", "p.toml", SHIPPED).policy is not None


def contradictions(text: str) -> list[tuple[int, str]]:
    policy, problems, line_of = check_policy(text, "p.toml", SHIPPED)
    assert policy is not None, problems
    found = warnings(policy, "p.toml", shipped=DEFAULT, paths=[], line_of=line_of)
    return [(p.line, p.message) for p in found if "contradict" in p.message]


def test_rules_that_contradict_each_other_are_both_named() -> None:
    ((line, said),) = contradictions(head() + rule("a", "allow", "src") + rule("b", "deny", "src"))
    assert (line, "'b' (deny) and 'a' (allow, in p.toml)" in said, "'b' decides" in said) == (9, True, True)
    assert said.endswith("change one of them"), "two rules of one file have no one name"


def test_a_rule_that_the_default_contradicts_is_named() -> None:
    ((_, said),) = contradictions(head() + rule("moves", "allow", "**", "move"))
    assert "'delete-or-move' (ask, in policies/default.toml)" in said
    assert said.endswith("would take its place")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(rule("b", "deny", "lib"), id="other paths"),
        pytest.param(rule("b", "deny", "src", "move"), id="other actions"),
        pytest.param(rule("b", "allow", "src"), id="the same answer"),
    ],
)
def test_what_is_no_contradiction(other: str) -> None:
    assert contradictions(head() + rule("a", "allow", "src") + other) == []


@pytest.mark.parametrize("action", ["write", "create", "delete", "move", "revert"])
def test_agents_never_change_the_workspaces_policy(action: str) -> None:
    policy = layered(state=head("allow", extends="") + rule("all", "allow", "**", action))
    for path in (WORKSPACE_FILE, ".Orchestrator/x", ".orchestrator"):
        assert answer(policy, action, path) == "deny"  # type: ignore[arg-type]
        assert answer(policy, action, path, agent_class="person") == "allow"  # type: ignore[arg-type]
    assert answer(policy, action, "sub/.orchestrator/policy.toml") == "allow"  # type: ignore[arg-type]
