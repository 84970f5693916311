"""The shipped policies, each by a table: who, doing what, where, and the verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.core.events.sessions import AgentClass
from orchestrator.core.policy.parse import check_policy, parse_policy
from orchestrator.core.policy.profiles import NO_PROFILE, Profile, profile_for
from orchestrator.core.policy.rules import Action, Answer
from tests.core.policy.shipped import NAMES, POLICIES, SHIPPED, answer, load

ROWS: list[tuple[AgentClass, str, str, dict[str, str]]] = [
    ("cloud", "read", "src/a.py", {"default": "allow", "strict": "allow", "ask_all": "allow", "read_only": "allow"}),
    ("cloud", "read", ".env", {"default": "deny", "strict": "deny", "ask_all": "deny", "read_only": "deny"}),
    ("cloud", "list", ".env", {"default": "allow", "strict": "deny", "ask_all": "allow", "read_only": "allow"}),
    ("cloud", "write", "src/a.py", {"default": "allow", "strict": "allow", "ask_all": "ask", "read_only": "deny"}),
    ("cloud", "create", "src/a.py", {"default": "allow", "strict": "allow", "ask_all": "ask", "read_only": "deny"}),
    ("cloud", "write", "Makefile", {"default": "ask", "strict": "deny", "ask_all": "ask", "read_only": "deny"}),
    ("cloud", "write", ".env", {"default": "ask", "strict": "deny", "ask_all": "ask", "read_only": "deny"}),
    ("cloud", "write", ".git/config", {"default": "deny", "strict": "deny", "ask_all": "deny", "read_only": "deny"}),
    ("cloud", "delete own", "a.py", {"default": "allow", "strict": "ask", "ask_all": "ask", "read_only": "deny"}),
    ("cloud", "move others", "a.py", {"default": "ask", "strict": "ask", "ask_all": "ask", "read_only": "deny"}),
    ("cloud", "revert own", "a.py", {"default": "allow", "strict": "allow", "ask_all": "ask", "read_only": "deny"}),
    ("cloud", "revert others", "a.py", {"default": "ask", "strict": "deny", "ask_all": "ask", "read_only": "deny"}),
    ("cloud", "run", "a.py", {"default": "ask", "strict": "deny", "ask_all": "ask", "read_only": "deny"}),
    ("cloud", "write large", "a.py", {"default": "allow", "strict": "deny", "ask_all": "ask", "read_only": "deny"}),
    ("person", "write", "Makefile", {"default": "ask", "strict": "ask", "ask_all": "ask", "read_only": "deny"}),
    ("person", "write", "a.py", {"default": "allow", "strict": "allow", "ask_all": "allow", "read_only": "deny"}),
    ("person", "list", ".env", {"default": "allow", "strict": "allow", "ask_all": "allow", "read_only": "allow"}),
    ("review", "review", "a.py", {"default": "allow", "strict": "allow", "ask_all": "allow", "read_only": "deny"}),
    ("local", "write", "a.py", {"default": "allow", "local_models": "allow"}),
    ("local", "write large", "a.py", {"default": "allow", "local_models": "ask"}),
    ("local", "write", "Makefile", {"default": "ask", "local_models": "deny"}),
    ("local", "delete others", "a.py", {"default": "ask", "local_models": "deny"}),
    ("local", "delete own", "a.py", {"default": "allow", "local_models": "allow"}),
    ("local", "revert others", "a.py", {"default": "ask", "local_models": "deny"}),
    ("cloud", "write", "Makefile", {"local_models": "ask"}),
    ("cloud", "delete others", "a.py", {"local_models": "ask"}),
    ("local", "read", ".env", {"local_models": "deny"}),
]


@pytest.mark.parametrize(
    ("name", "agent_class", "act", "path", "verdict"),
    [
        pytest.param(name, who, act, path, verdict, id=f"{name}: {who} {act} {path}")
        for who, act, path, verdicts in ROWS
        for name, verdict in verdicts.items()
    ],
)
def test_a_preset(name: str, agent_class: AgentClass, act: str, path: str, verdict: Answer) -> None:
    action, _, how = act.partition(" ")
    kind: Action = action  # type: ignore[assignment]
    size = 5_000_000 if how == "large" else 100
    policy = load(f"{name}.toml")
    assert answer(policy, kind, path, agent_class=agent_class, others_work=how == "others", size=size) == verdict


def test_only_local_models_have_limits() -> None:
    policy = load("local_models.toml")
    assert profile_for(policy.profiles, "llama", "local").max_read_lines == 500
    assert profile_for(policy.profiles, "claude", "cloud") is NO_PROFILE


def test_every_shipped_policy_is_here_and_explained() -> None:
    assert {path.stem for path in POLICIES.glob("*.toml")} == set(NAMES)
    text = (Path(POLICIES) / "README.md").read_text("utf-8")
    assert all(f"### `{name}`" in text for name in NAMES)


def test_the_readmes_profile() -> None:
    text = (POLICIES / "README.md").read_text("utf-8")
    example = text[text.index("[[profile]]\n") :].split("```")[0]
    (profile,) = parse_policy(f'name = "p"\ndefault = "deny"\n{example}', source="p.toml").profiles
    assert (profile.name, profile.max_read_lines, profile.tools_off) == ("small", 400, ("apply_patch",))


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("max_read_lines = 0", "max_read_lines"),
        ('redaction = "some"', "redaction"),
        ("max_lines = 9", "max_lines"),
        ("tools_off = []", "tools_off"),
        ('over_limit = "deny"', "over_limit"),
        ("max_answer_tokens = 10", "max_answer_tokens"),
    ],
)
def test_what_is_wrong_with_a_profile(line: str, key: str) -> None:
    text = f'name = "p"\ndefault = "deny"\n[[profile]]\nname = "x"\nagents = ["*"]\n{line}\n'
    (problem,) = check_policy(text, "p.toml").problems
    assert (problem.line, problem.key) == (6, f"profile[1].{key}")


@pytest.mark.parametrize(
    ("agent", "agent_class", "name"),
    [("bot", "local", "by name"), ("other", "local", "by class"), ("other", "cloud", "for all")],
)
def test_the_closest_profile_holds(agent: str, agent_class: str, name: str) -> None:
    made = [("for all", "*"), ("by class", "class:local"), ("by name", "bot")]
    profiles = [Profile(name=name, agents=(who,)) for name, who in made]
    assert profile_for(profiles, agent, agent_class).name == name


def test_a_policy_of_ones_own_may_extend_any() -> None:
    policy = parse_policy('name = "ours"\nextends = "local_models"\n', source="p.toml", shipped=SHIPPED)
    assert policy.extends == "local_models"
    assert policy.profiles
    assert answer(policy, "read", ".env") == "deny"
