"""A policy that extends a shipped one: its rules hold too, one of the same name takes the other's place."""

from __future__ import annotations

import pytest

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.advice import warnings
from orchestrator.core.policy.parse import check_policy, parse_policy
from orchestrator.core.policy.rules import Policy
from tests.core.policy.shipped import DEFAULT, SHIPPED, answer

ALLOW_MOVES = (
    '[[rule]]\nname = "delete-or-move"\nagents = ["*"]\nactions = ["delete"]\npaths = ["**"]\nverdict = "allow"\n'
)
DENY_KEYS = '[[rule]]\nname = "keys"\nagents = ["*"]\nactions = ["list"]\nlists = ["secrets"]\nverdict = "deny"\n'


def extended(text: str) -> Policy:
    return parse_policy(f'name = "ours"\nextends = "default"\n{text}', source="policy.toml", shipped=SHIPPED)


def test_the_rules_of_the_default_hold_too() -> None:
    policy = extended("")
    assert policy.rules == DEFAULT.rules
    assert {policy.source_of(rule.name) for rule in policy.rules} == {"policies/default.toml"}
    assert (policy.default, policy.limits, policy.name) == (DEFAULT.default, DEFAULT.limits, "ours")
    assert answer(policy, "read", "deep/server.pem") == "deny"


def test_a_rule_of_the_same_name_takes_the_others_place() -> None:
    assert answer(DEFAULT, "delete", "a.txt", others_work=True) == "ask"
    policy = extended(ALLOW_MOVES)
    assert answer(policy, "delete", "a.txt", others_work=True) == "allow"
    assert answer(policy, "move", "a.txt", others_work=True) == "deny"  # the own rule is of deletions alone
    assert policy.source_of("delete-or-move") == "policy.toml"


def test_its_lists_are_known() -> None:
    policy = extended(DENY_KEYS)
    assert (answer(policy, "list", "a.pem"), answer(policy, "list", "a.txt")) == ("deny", "allow")


def test_a_table_of_its_own_takes_the_others_place() -> None:
    assert extended("[limits]\napproval_ttl_s = 60\n").limits.approval_ttl_s == 60


def test_the_digest_knows_what_it_extends() -> None:
    changed = {"default": SHIPPED["default"] + "\n# a comment\n"}
    text = 'name = "ours"\nextends = "default"\n'
    one, two = (parse_policy(text, source="p", shipped=shipped) for shipped in (SHIPPED, changed))
    assert one.digest != two.digest


@pytest.mark.parametrize("name", ["defualt", "/etc/passwd", "../default", "own"])
def test_what_is_not_shipped_is_refused(name: str) -> None:
    ((line, key),) = [(p.line, p.key) for p in check_policy(f'name = "x"\nextends = "{name}"\n', "p", SHIPPED).problems]
    assert (line, key) == (2, "extends")


def test_without_it_the_default_answer_is_needed() -> None:
    assert [p.key for p in check_policy('name = "x"\n', "p", SHIPPED).problems] == ["default"]


# --- advice ---------------------------------------------------------------------------------


OPEN = '[[rule]]\nname = "read"\nagents = ["*"]\nactions = ["read"]\npaths = ["**"]\nverdict = "allow"\n'
PATHS = [WorkspacePath(path) for path in ("a.txt", "deep/own.pem", "src/b.py")]


def advice(text: str) -> list[tuple[int, str]]:
    policy, problems, line_of = check_policy(text, "p.toml", SHIPPED)
    assert policy is not None, problems
    return [(p.line, p.message) for p in warnings(policy, "p.toml", shipped=DEFAULT, paths=PATHS, line_of=line_of)]


def test_what_the_default_hides_and_this_one_opens_is_named() -> None:
    ((line, said),) = advice(f'name = "x"\ndefault = "deny"\n{OPEN}')
    assert line == 1
    assert said.startswith("agents may read deep/own.pem, .env, ")
    assert 'extends = "default"' in said


def test_a_rule_that_names_nothing_is_named_with_its_line() -> None:
    named, absent = OPEN.replace("**", "src"), OPEN.replace("**", "lib").replace("read", "r2", 1)
    text = f'name = "x"\nextends = "default"\n{named}{absent}'
    assert advice(text) == [(9, "'r2' names no file of this workspace")]


def test_a_policy_that_locks_everybody_out_is_named() -> None:
    ((_, said),) = advice('name = "x"\ndefault = "deny"\n')
    assert said.startswith("nobody may list, read or search anything")


def test_of_the_default_there_is_nothing_to_say() -> None:
    assert advice('name = "x"\nextends = "default"\n') == []


KEYS = '[[rule]]\nname = "secrets-read"\nagents = ["*"]\nactions = ["read"]\npaths = ["*.key"]\nverdict = "deny"\n'
DENY = '[[rule]]\nname = "closed"\nagents = [%s]\nactions = ["%s"]\npaths = ["**"%s]\nverdict = "deny"\n%s'


def test_the_rule_is_named_that_takes_the_place_of_what_hides() -> None:
    ((line, said),) = [item for item in advice(f'name = "x"\nextends = "default"\n\n{KEYS}') if "hides" in item[1]]
    assert line == 4
    assert said.startswith("'secrets-read' in p.toml takes the place of the default's rule of that name, and agents")
    assert "may read deep/own.pem" in said
    assert "extends" not in said


@pytest.mark.parametrize(
    ("agents", "action", "more", "says"),
    [
        pytest.param('"*"', "read", ("", ""), "nobody may read anything: 'closed' denies it", id="read"),
        pytest.param('"*"', "list", ("", ""), "nobody may list anything", id="list"),
        pytest.param('"*"', "approve", ("", ""), "nobody may approve anything", id="approve"),
        pytest.param('"class:person"', "approve", ("", ""), "no person may approve anything", id="no person"),
        pytest.param('"class:cloud"', "read", ("", ""), "", id="not everybody"),
        pytest.param('"*"', "run", ("", ""), "", id="what nobody needs"),
        pytest.param('"*"', "read", (', "!docs"', ""), "", id="not everywhere"),
        pytest.param('"*"', "read", ("", "max_bytes = 9\n"), "", id="not always"),
    ],
)
def test_a_rule_that_locks_everybody_out_is_named(agents: str, action: str, more: tuple[str, str], says: str) -> None:
    text = f'name = "x"\nextends = "default"\n{DENY % (agents, action, *more)}'
    found = [(line, said) for line, said in advice(text) if "denies it everywhere" in said]
    assert [line for line, _ in found] == ([3] if says else [])
    assert all(said.startswith(says) for _, said in found)


@pytest.mark.parametrize(
    ("agents", "action", "path", "says"),
    [
        pytest.param("*", "read", "*.pem", "'secrets-read' (deny, in policies/default.toml)", id="denied"),
        pytest.param("class:local", "write", "/Makefile", "'tool-code' (ask, in policies/default.toml)", id="asked"),
        pytest.param("*", "write", ".git/hooks", "'builtin.git' (deny, in built in)", id="built in"),
        pytest.param("class:cloud", "approve", "src", "people and agents of class review alone", id="approve"),
        pytest.param("*", "write", "src", "", id="allowed"),
        pytest.param("class:review", "approve", "src", "", id="may approve"),
    ],
)
def test_a_rule_that_allows_in_vain_is_named(agents: str, action: str, path: str, says: str) -> None:
    own = f'name = "mine"\nagents = ["{agents}"]\nactions = ["{action}"]\npaths = ["{path}"]\nverdict = "allow"\n'
    found = [said for _, said in advice(f'name = "x"\nextends = "default"\n[[rule]]\n{own}') if "no file" not in said]
    assert [says in said for said in found] == [True] * bool(says)


@pytest.mark.parametrize(
    ("paths", "verdict", "void"),
    [
        pytest.param('"private", "!private/readme.md"', "deny", ["!private/readme.md"], id="below a matched directory"),
        pytest.param('"*.md", "!a.md", "a.md"', "ask", ["!a.md"], id="named again"),
        pytest.param('"private/*", "!private/readme.md"', "deny", [], id="beside"),
        pytest.param('"BUILD", "!BUILD/"', "ask", [], id="a directory of that name"),
        pytest.param('"**", "!private"', "allow", [], id="allow"),
    ],
)
def test_an_exception_that_excepts_nothing_is_named(paths: str, verdict: str, void: list[str]) -> None:
    own = f'name = "mine"\nagents = ["*"]\nactions = ["read"]\npaths = [{paths}]\nverdict = "{verdict}"\n'
    found = [item for item in advice(f'name = "x"\nextends = "default"\n[[rule]]\n{own}') if "excepts" in item[1]]
    assert [line for line, _ in found] == [7] * len(void)
    assert all(f"'{glob}' excepts nothing" in said for glob, (_, said) in zip(void, found, strict=True))


def test_no_shipped_policy_has_anything_to_warn_of() -> None:
    for name, text in SHIPPED.items():
        policy, _, line_of = check_policy(text, f"{name}.toml", SHIPPED)
        assert policy is not None
        found = [p.message for p in warnings(policy, f"{name}.toml", shipped=DEFAULT, paths=None, line_of=line_of)]
        assert found == [], name


def test_one_line_is_a_policy() -> None:
    policy = parse_policy('extends = "strict"\n', source="p.toml", shipped=SHIPPED)
    strict = parse_policy(SHIPPED["strict"], source="strict.toml", shipped=SHIPPED)
    assert (policy.name, policy.rules, policy.default) == ("strict", strict.rules, strict.default)
