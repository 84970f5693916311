"""What narrows a rule besides agent, action and path: the size, the task, and whose work it is."""

from __future__ import annotations

import pytest

from orchestrator.core.errors import PolicyInvalid
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.evaluate import evaluate, evaluation_of
from orchestrator.core.policy.parse import parse_policy
from orchestrator.core.policy.rules import Action, Policy, Request
from tests.core.policy.shipped import DEFAULT

PATH = WorkspacePath("a.txt")


def one_rule(verdict: str, actions: list[Action], condition: str, default: str = "deny") -> Policy:
    text = f'name = "p"\ndefault = "{default}"\n[[rule]]\nname = "r"\nagents = ["*"]\nactions = {actions}\n'
    return parse_policy(f'{text}paths = ["**"]\nverdict = "{verdict}"\n{condition}\n', source="p.toml")


@pytest.mark.parametrize(
    ("verdict", "size", "holds"),
    [
        pytest.param("allow", 100, True, id="allow, just as large"),
        pytest.param("allow", 101, False, id="allow, too large"),
        pytest.param("allow", None, True, id="allow, not known yet"),
        pytest.param("ask", 100, False, id="ask, small enough"),
        pytest.param("ask", 101, True, id="ask, too large"),
        pytest.param("deny", 0, False, id="deny, empty"),
        pytest.param("deny", 101, True, id="deny, too large"),
        pytest.param("deny", None, False, id="deny, not known yet"),
    ],
)
def test_a_size_bounds_what_is_allowed_and_frees_what_is_not(verdict: str, size: int | None, holds: bool) -> None:
    policy = one_rule(verdict, ["read", "write"], "max_bytes = 100", "ask" if verdict != "ask" else "allow")
    for action in ("read", "write"):
        assert (evaluate(policy, Request("a", "cloud", action, PATH, size=size)).rule == "r") is holds


@pytest.mark.parametrize(
    ("glob", "title", "holds"),
    [
        pytest.param("release *", "Release 4.1", True, id="a glob, whatever the case"),
        pytest.param("release *", "mend the release", False, id="the whole title"),
        pytest.param("*release*", "mend the release", True, id="anywhere in it"),
        pytest.param("*", "", False, id="no task runs"),
        pytest.param("*", "x", True, id="any task"),
        pytest.param("a.c", "abc", False, id="no regular expression"),
    ],
)
def test_a_rule_of_a_task_holds_while_it_runs(glob: str, title: str, holds: bool) -> None:
    policy = one_rule("deny", ["write", "list"], f'task = "{glob}"', "allow")
    for action in ("write", "list"):
        assert (evaluate(policy, Request("a", "cloud", action, PATH, task=title)).rule == "r") is holds


@pytest.mark.parametrize(
    ("tags", "holds"),
    [
        pytest.param((), False, id="no tag"),
        pytest.param(("other",), False, id="another tag"),
        pytest.param(("other", "secret"), True, id="one of them"),
    ],
)
def test_a_rule_of_tags_holds_for_files_that_have_one(tags: tuple[str, ...], holds: bool) -> None:
    for verdict, default in (("deny", "allow"), ("ask", "allow"), ("allow", "deny")):
        policy = one_rule(verdict, ["read", "list"], 'tags = ["private", "secret"]', default)
        assert policy.tags == {"private", "secret"}
        acts: tuple[Action, ...] = ("read", "list")
        for action in acts:
            request = Request("a", "cloud", action, PATH, tags=tags)
            assert (evaluate(policy, request).rule == "r") is holds
            considered = evaluation_of(policy).considered(request)
            assert [matches for rule, matches in considered if rule.name == "r"] == [holds]
        assert evaluation_of(policy).allowing([Request("a", "cloud", action, PATH) for action in acts])(PATH) is None


def test_a_rule_names_no_tags_that_names_give() -> None:
    with pytest.raises(PolicyInvalid) as error:
        one_rule("deny", ["read"], 'tags = ["code", "Big"]')
    assert "'code' is given by a file's name" in error.value.message
    assert "a tag is of small letters" in error.value.message


@pytest.mark.parametrize("condition", ["max_bytes = 9", 'task = "x"', 'tags = ["x"]'])
def test_what_is_hidden_sometimes_is_not_hidden_from_all(condition: str) -> None:
    assert evaluation_of(one_rule("deny", ["read", "search"], "", "allow")).hidden_from_all(PATH)
    assert not evaluation_of(one_rule("deny", ["read", "search"], condition, "allow")).hidden_from_all(PATH)


@pytest.mark.parametrize("action", ["delete", "move"])
def test_under_the_default_what_is_ones_own_goes_without_asking(action: Action) -> None:
    verdicts = [evaluate(DEFAULT, Request("a", "cloud", action, PATH, others)).rule for others in (False, True)]
    assert verdicts == ["delete-or-move-own", "delete-or-move"]
    secret = Request("a", "cloud", action, WorkspacePath(".env"), others_work=False)
    assert evaluate(DEFAULT, secret).rule == "secrets-change"
