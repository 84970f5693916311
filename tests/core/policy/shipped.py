"""The policies as they are shipped, and a short way to ask them."""

from __future__ import annotations

from pathlib import Path

from orchestrator.core.events.sessions import AgentClass
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.evaluate import evaluate
from orchestrator.core.policy.parse import check_policy, parse_policy
from orchestrator.core.policy.rules import Action, Allow, Answer, Deny, NeedApproval, Policy, Request
from orchestrator.core.policy.tables import Problem

POLICIES = Path(__file__).parents[3] / "policies"
NAMES = ("default", "read_only", "strict", "ask_all", "local_models", "run_tests")
SHIPPED = {name: (POLICIES / f"{name}.toml").read_text("utf-8") for name in NAMES}


def problems_of(text: str, source: str) -> list[Problem]:
    return check_policy(text, source).problems


def load(name: str) -> Policy:
    return parse_policy((POLICIES / name).read_text("utf-8"), source=name, shipped=SHIPPED)


DEFAULT = load("default.toml")
READ_ONLY = load("read_only.toml")


def policy(*rules: str, default: Answer = "deny") -> Policy:
    """A policy of rules written `verdict action,… glob glob …`, named r1, r2 …"""
    text = [f'name = "test"\ndefault = "{default}"']
    for at, rule in enumerate(rules, 1):
        verdict, actions, *globs = rule.split()
        text.append(
            f'[[rule]]\nname = "r{at}"\nagents = ["*"]\nverdict = "{verdict}"\n'
            f"actions = {actions.split(',')}\npaths = {globs}"
        )
    return parse_policy("\n".join(text), source="test.toml")


def answer(
    policy: Policy,
    action: Action,
    path: str,
    *,
    agent: str = "claude",
    agent_class: AgentClass = "cloud",
    others_work: bool = False,
    directory: bool = False,
    size: int | None = None,
) -> Answer:
    request = Request(agent, agent_class, action, WorkspacePath(path), others_work, directory, size=size)
    match evaluate(policy, request):
        case Allow():
            return "allow"
        case NeedApproval():
            return "ask"
        case Deny():
            return "deny"
