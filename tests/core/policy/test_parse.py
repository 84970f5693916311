from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.core.errors import PolicyInvalid
from orchestrator.core.policy.cases import parse_cases
from orchestrator.core.policy.parse import parse_policy
from orchestrator.core.policy.rules import EditRules, LeaseRules, Limits, Policy, Rule
from orchestrator.core.policy.tables import TableReader
from tests.core.policy.shipped import DEFAULT, POLICIES, READ_ONLY, SHIPPED, answer, problems_of

GOOD = """\
name = "good"
default = "ask"

[limits]
approval_ttl_s = 60

[[rule]]
name = "r"
agents = ["*", "class:cloud", "ann"]
actions = [
    "read",  # a comment with ] and "quotes"
    "list",
]
paths = ["**", "!x"]
verdict = "allow"
reason = "because"

[leases]
on_overlap = "queue"
max_ttl_s = 600

[edits]
fuzzy = false
lowest_rung = "fuzzy"
"""


def test_a_good_policy() -> None:
    policy = parse_policy(GOOD, source="p.toml")
    assert (policy.name, policy.default, policy.source) == ("good", "ask", "p.toml")
    assert policy.limits == Limits(approval_ttl_s=60)
    assert policy.leases == LeaseRules(on_overlap="queue", max_ttl_s=600)
    assert policy.edits == EditRules(fuzzy=False, lowest_rung="fuzzy")
    assert policy.rules == (
        Rule(
            name="r",
            agents=("*", "class:cloud", "ann"),
            actions=("list", "read"),
            paths=("**", "!x"),
            verdict="allow",
            reason="because",
        ),
    )
    assert policy.digest.startswith("sha256:")
    assert policy.digest != parse_policy(GOOD + "\n", source="p.toml").digest
    assert problems_of(GOOD, "p.toml") == []


@pytest.mark.parametrize(
    ("most", "kept"),
    [
        pytest.param("0", 0, id="nothing"),
        pytest.param("52428800", 52_428_800, id="the most"),
        pytest.param("52428801", None, id="too much"),
        pytest.param("-1", None, id="less than nothing"),
        pytest.param("true", None, id="no number"),
    ],
)
def test_how_much_of_outside_changes_is_kept(most: str, kept: int | None) -> None:
    text = GOOD + f"\n[external]\nkeep_max_bytes = {most}\n"
    if kept is None:
        (problem,) = problems_of(text, "p.toml")
        assert problem.key == "external.keep_max_bytes"
    else:
        assert parse_policy(text, source="p.toml").external.keep_max_bytes == kept


LISTED = """
[lists]
keys = ["*.key", "!*.example"]
more = ["vault"]

[[rule]]
name = "listed"
agents = ["*"]
actions = ["read"]
lists = ["keys", "more"]
paths = ["!a.key"]
verdict = "deny"
"""


def test_rules_share_named_lists() -> None:
    policy = parse_policy(GOOD + LISTED, source="p.toml")
    assert policy.rules[1].paths == ("*.key", "!*.example", "vault", "!a.key")
    without = parse_policy(GOOD + LISTED.replace('paths = ["!a.key"]\n', ""), source="p.toml")
    assert without.rules[1].paths == ("*.key", "!*.example", "vault")


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        pytest.param('lists = ["keys", "more"]', 'lists = ["kesy"]', "rule[2].lists[1]", "keys, more", id="unknown"),
        pytest.param('"*.key", "!*.example"', '"!*.example"', "lists.keys[1]", "exception", id="exception first"),
        pytest.param('["vault"]', '["../x"]', "lists.more[1]", "'..'", id="a wrong glob"),
        pytest.param('["vault"]', '"vault"', "lists.more", "a list", id="no list"),
        pytest.param("[lists]\n", "lists = 1\n[external]\n", "leases.lists", "unknown", id="no table"),
        pytest.param("keys =", '"" =', "lists.", "letters", id="no name"),
    ],
)
def test_what_is_wrong_with_lists(old: str, new: str, key: str, says: str) -> None:
    problems = problems_of(GOOD.replace(GOOD[GOOD.index("[edits]") :], "") + LISTED.replace(old, new), "p.toml")
    assert any(problem.key == key and says in problem.message for problem in problems), problems


def test_a_policy_survives_the_journal() -> None:
    assert msgspec.json.decode(msgspec.json.encode(DEFAULT), type=Policy) == DEFAULT
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**msgspec.to_builtins(DEFAULT.rules[0]), "other": 1}, Rule)


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "says"),
    [
        pytest.param('"ask"', '"asks"', 2, "default", "allow | ask | deny", id="default"),
        pytest.param('default = "ask"\n', "", 1, "default", "missing", id="default missing"),
        pytest.param('name = "good"\n', "", 1, "name", "missing", id="no name"),
        pytest.param("[limits]\n", "[limit]\n", 4, "limit", "limits,", id="unknown table"),
        pytest.param("approval_ttl_s", "approval_ttl", 5, "limits.approval_ttl", "known: approval_ttl_s", id="limit"),
        pytest.param("= 60", "= true", 5, "limits.approval_ttl_s", "a whole number", id="a limit of the wrong type"),
        pytest.param("= 60", "= 0", 5, "limits.approval_ttl_s", ">= 1", id="a limit out of range"),
        pytest.param('"class:cloud"', '"class:clod"', 9, "rule[1].agents[2]", "cloud, local", id="class"),
        pytest.param('"ann"', '"cl*"', 9, "rule[1].agents[3]", "no globs", id="agent glob"),
        pytest.param('"list"', '"lits"', 10, "rule[1].actions[2]", "list | read", id="action"),
        pytest.param('"!x"', "'../x'", 14, "rule[1].paths[2]", "'.' or '..'", id="path upwards"),
        pytest.param('"!x"', "'#x'", 14, "rule[1].paths[2]", "comment", id="path that is a comment"),
        pytest.param('"!x"', "'[x'", 14, "rule[1].paths[2]", "never closed", id="open bracket"),
        pytest.param('"!x"', "'[z-a]'", 14, "rule[1].paths[2]", "no glob", id="bad range"),
        pytest.param('"!x"', "'[Z-a]'", 14, "rule[1].paths[2]", "case", id="range across case"),
        pytest.param('"!x"', "'x\\'", 14, "rule[1].paths[2]", "no glob", id="backslash at the end"),
        pytest.param('"!x"', "'!'", 14, "rule[1].paths[2]", "empty", id="bare exception"),
        pytest.param('"!x"', "'/'", 14, "rule[1].paths[2]", "empty", id="slash"),
        pytest.param('"!x"', "'a//b'", 14, "rule[1].paths[2]", "empty", id="empty part"),
        pytest.param('"!x"', "'x '", 14, "rule[1].paths[2]", "space", id="trailing space"),
        pytest.param('"!x"', f"'{'x' * 1001}'", 14, "rule[1].paths[2]", "1,001 characters", id="a long glob"),
        pytest.param('"!x"', "7", 14, "rule[1].paths[2]", "a text", id="number"),
        pytest.param('"**", "!x"', '"!x", "**"', 14, "rule[1].paths[1]", "exception", id="exception first"),
        pytest.param('["**", "!x"]', "[]", 14, "rule[1].paths", "at least one", id="empty list"),
        pytest.param('["**", "!x"]', '"**"', 14, "rule[1].paths", "a list", id="no list"),
        pytest.param("paths =", "path =", 14, "rule[1].path", "paths,", id="unknown key"),
        pytest.param('"allow"', '"maybe"', 15, "rule[1].verdict", "'maybe'", id="verdict"),
        pytest.param('verdict = "allow"\n', "", 7, "rule[1].verdict", "missing", id="verdict missing"),
        pytest.param('"because"', '"a\\nb"', 16, "rule[1].reason", "one line", id="reason"),
        pytest.param("reason =", "work =", 16, "rule[1].work", "own | others", id="work"),
        pytest.param('reason = "because"', 'work = "own"', 16, "rule[1].work", "revert", id="work of other actions"),
        pytest.param('reason = "because"', "max_bytes = -1", 16, "rule[1].max_bytes", ">= 0", id="no size"),
        pytest.param('reason = "because"', "max_bytes = 9", 16, "rule[1].max_bytes", "read,", id="size of no file"),
        pytest.param('reason = "because"', 'task = ""', 16, "rule[1].task", "one line", id="no task"),
        pytest.param('name = "r"', 'name = "default"', 8, "rule[1].name", "kept", id="name of ours"),
        pytest.param('name = "r"', 'name = "builtin.git"', 8, "rule[1].name", "kept", id="name like ours"),
        pytest.param("[leases]", "[lease]", 18, "lease", "leases,", id="unknown table of leases"),
        pytest.param('"queue"', '"wait"', 19, "leases.on_overlap", "warn | deny | queue | merge", id="clash"),
        pytest.param("on_overlap", "on_overlp", 19, "leases.on_overlp", "known: on_overlap", id="key of leases"),
        pytest.param("max_ttl_s = 600", "max_ttl_s = 0", 20, "leases.max_ttl_s", ">= 1", id="no time"),
        pytest.param("max_ttl_s = 600", "max_wait_s = 51", 20, "leases.max_wait_s", "<= 50", id="a long wait"),
        pytest.param("[edits]", "[edit]", 22, "edit", "edits,", id="unknown table of edits"),
        pytest.param("fuzzy = false", 'fuzzy = "no"', 23, "edits.fuzzy", "true or false", id="no truth value"),
        pytest.param('"fuzzy"', '"close"', 24, "edits.lowest_rung", "current | shifted", id="no rung"),
        pytest.param("= 60\n", "= = 60\n", 5, "", "not TOML", id="not TOML"),
    ],
)
def test_a_problem_has_its_line_and_key(old: str, new: str, line: int, key: str, says: str) -> None:
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    problems = problems_of(text, "p.toml")
    assert (line, key) in [(p.line, p.key) for p in problems]
    assert any(says in p.message for p in problems if p.key == key), problems
    with pytest.raises(PolicyInvalid) as caught:
        parse_policy(text, source="p.toml")
    assert f"line {line}: {key}" in caught.value.message
    assert caught.value.details["problems"]


def test_all_problems_at_once_in_order() -> None:
    text = GOOD.replace('"ask"', '"asks"').replace('"list"', '"lits"').replace('"allow"', '"maybe"')
    assert [p.line for p in problems_of(text, "p.toml")] == [2, 10, 15]
    with pytest.raises(PolicyInvalid) as caught:
        parse_policy(text, source="p.toml")
    assert caught.value.message.count("p.toml: ") == 1
    one, two, three = caught.value.message.split("; line ")
    assert "\n" not in one + two + three, "a refusal is shown on one line"


MANY_WRONG = """\
name = "x"
defaults = "ask"
default = "ask"
[[rules]]
name = "r"
[[rule]]
name = "one"
agents = ["*"]
actions = ["read", "lits"]
paths = []
max_bytes = 1
work = "own"
verdict = "deny"
[[rule]]
name = "one"
agents = ["*"]
actions = ["read"]
lists = ["nowhere"]
verdict = "maybe"
"""


def test_what_is_wrong_is_said_in_one_go_and_in_plain_words() -> None:
    found = {(p.line, p.key): p.message for p in problems_of(MANY_WRONG, "p.toml")}
    assert [*found] == [
        *((2, "defaults"), (4, "rules"), (9, "rule[1].actions[2]"), (10, "rule[1].paths"), (12, "rule[1].work")),
        *((15, "rule[2].name"), (18, "rule[2].lists[1]"), (19, "rule[2].verdict")),
    ]
    assert "did you mean default?" in found[2, "defaults"]
    assert "did you mean rule?" in found[4, "rules"]
    assert found[10, "rule[1].paths"] == "[]: must hold at least one"


def test_two_rules_of_one_name() -> None:
    text = GOOD + '\n[[rule]]\nname = "r"\nagents = ["*"]\nactions = ["run"]\npaths = ["**"]\nverdict = "deny"\n'
    (problem,) = problems_of(text, "p.toml")
    assert (problem.line, problem.key) == (27, "rule[2].name")
    assert "another rule" in problem.message


def test_rules_that_are_no_tables() -> None:
    assert [p.key for p in problems_of('name = "x"\ndefault = "deny"\nrule = 3\n', "p")] == ["rule"]


def test_inline_tables_are_read_too() -> None:
    rule = '{name = "r", agents = ["*"], actions = ["read"], paths = ["a"], verdict = "no"}'
    text = f'name = "x"\ndefault = "deny"\nrule = [{rule}]'
    assert [(p.line, p.key) for p in problems_of(text, "p")] == [(3, "rule[1].verdict")]


def test_a_place_has_the_line_of_its_key_or_table() -> None:
    text = "a = 1\n[t]\nb = [\n  1,\n]\n[[r]]\nc = 1\n[[r]]  # two\n'd e' = 1\n"
    places: dict[tuple[str | int, ...], int] = {
        ("a",): 1,
        ("t", "b", 1): 3,
        ("r", 1, "c"): 7,
        ("r", 2): 8,
        ("r", 2, "d e"): 9,
        ("r", 2, "f"): 8,
        ("x",): 1,
    }
    positions = TableReader(text)
    assert {place: positions.line(*place) for place in places} == places


def test_what_a_text_holds_is_no_table_and_no_key() -> None:
    positions = TableReader('a = """\n[[r]]\nb = 1\n"""\n[[r]]\nb = 2\n"\\u0062c" = 3\nd.e = 4\n')
    assert [positions.line(*place) for place in (("r", 1), ("r", 1, "b"), ("r", 1, "bc"), ("r", 1, "d", "e"))] == [
        *(5, 6, 7, 8)
    ]


@example('name = "x"\ndefault = "\ud800"')
@given(st.text(alphabet="ab=\"[]\n#,'{}. \\\r", max_size=60))
def test_any_text_is_a_policy_or_a_list_of_problems(text: str) -> None:
    problems = problems_of(text, "p.toml")
    assert problems
    assert all(p.line >= 1 for p in problems)


@example("\\  /")
@given(st.text(alphabet="aB[]!^-*?\\\\/.&|~#: ", min_size=1, max_size=12))
def test_a_glob_that_is_let_through_can_be_asked(glob: str) -> None:
    text = msgspec.json.encode(glob).decode()
    text = GOOD.replace('"!x"', text)
    if not problems_of(text, "p.toml"):
        policy = parse_policy(text, source="p.toml")
        assert answer(policy, "read", "a/B") in ("allow", "ask")


def readme_examples() -> list[str]:
    return re.findall(r"```toml\n(.*?)```", (POLICIES / "README.md").read_text("utf-8"), re.DOTALL)


def test_the_readmes_team_gets_the_verdicts_that_it_predicts() -> None:
    team, table, *_ = readme_examples()
    policy = parse_policy(team, source="README.md", shipped=SHIPPED)
    tried = parse_cases(table, "README.md").tried(policy)
    assert len(tried) == 10
    assert [(case.line, case.verdict, case.rule) for case in tried if not case.ok] == []


def test_the_readmes_example() -> None:
    (example,) = (text for text in readme_examples() if "[[route]]" in text)
    policy = parse_policy(example, source="README.md", shipped=SHIPPED)
    assert policy.limits.approval_ttl_s == 3600
    assert answer(policy, "read", "customers/a") == "deny"
    assert answer(policy, "write", "migrations/1.py") == "ask"
    assert answer(policy, "write", "x.test.sql") == "allow"


def test_the_shipped_ones() -> None:
    assert (DEFAULT.name, READ_ONLY.name) == ("default", "read_only")
    assert DEFAULT.limits.approval_ttl_s == 86_400


def test_the_lists_of_secrets_are_one() -> None:
    lists = [{rule.name: rule.paths for rule in policy.rules} for policy in (DEFAULT, READ_ONLY)]
    assert lists[0]["secrets-read"] == lists[0]["secrets-change"] == lists[1]["secrets-read"]


@pytest.mark.parametrize(
    ("table", "edits"),
    [
        pytest.param("", EditRules(), id="nothing said"),
        pytest.param("merge_rules = []", EditRules(merge_rules=()), id="no rule: as git"),
    ],
)
def test_what_is_merged_beyond_git(table: str, edits: EditRules) -> None:
    assert parse_policy(GOOD[: GOOD.index("[edits]")] + f"[edits]\n{table}\n", source="p.toml").edits == edits


@pytest.mark.parametrize(("table", "key", "message"), [
    pytest.param("fuzzy = 1", "edits.fuzzy", "true or false", id="no flag"),
    pytest.param('merge_rules = "imports"', "edits.merge_rules", "a list", id="no list of rules"),
    pytest.param('merge_rules = ["import"]', "edits.merge_rules[1]", "imports | list_items", id="misspelt rule"),
    pytest.param("fuzy = true", "edits.fuzy", "known: fuzzy, lowest_rung", id="misspelt key"),
])  # fmt: skip
def test_what_is_wrong_with_edits(table: str, key: str, message: str) -> None:
    (problem,) = problems_of(GOOD[: GOOD.index("[edits]")] + f"[edits]\n{table}\n", "p.toml")
    assert problem.key == key
    assert message in problem.message
