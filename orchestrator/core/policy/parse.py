"""Policy files laid over one another: texts in, one policy or all that is wrong with it out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final, NamedTuple

import msgspec

from orchestrator.core.errors import PolicyInvalid
from orchestrator.core.ids import Checksum
from orchestrator.core.policy.reader import SINGLE_TABLES, Lists, PolicyReader, PolicyText
from orchestrator.core.policy.rules import WORKSPACE, WORKSPACE_FILE, Policy, Rule
from orchestrator.core.policy.tables import Problem

NONE_SHIPPED: Final[Mapping[str, str]] = {}


def parse_policy(text: str, *, source: str, shipped: Mapping[str, str] = NONE_SHIPPED) -> Policy:
    """Read a policy; `shipped`: the texts of those that it may extend, by name.

    Raises PolicyInvalid with every problem: file, line and key.
    """
    return parse_layers((PolicyText("state", source, text),), shipped)


def parse_layers(texts: Sequence[PolicyText], shipped: Mapping[str, str] = NONE_SHIPPED) -> Policy:
    """One policy of several files: each is laid over those before it, and the workspace's own tightens the whole.

    The shipped policy beneath is the one that the last file with `extends` names. Raises PolicyInvalid as
    `parse_policy`, of the first file that something is wrong with.
    """
    files = [PolicyReader(text, shipped) for text in texts if text.layer != "workspace"]
    whole, lists = _base(next((file.extends for file in reversed(files) if file.extends), ""), shipped)
    founded = any(file.founds for file in files)
    for file in files:
        own, problems = file.read(_base(file.extends, shipped)[1] or lists, founded=founded)
        if own is None:
            raise _invalid(file.source, problems)
        whole = own if whole is None else _on_top(own, whole, file.given)
    if whole is None:
        raise PolicyInvalid("there is no policy", hint="Install the program anew: its default policy is missing.")
    for file in (PolicyReader(text, shipped) for text in texts if text.layer == "workspace"):
        rules, problems = file.tightening(lists)
        if problems:
            raise _invalid(file.source, problems)
        whole = _tightened(whole, file, rules)
    return whole


def _invalid(source: str, problems: list[Problem]) -> PolicyInvalid:
    return PolicyInvalid(
        f"{source}: " + "; ".join(f"line {p.line}: {p.key + ': ' if p.key else ''}{p.message}" for p in problems),
        hint="Mend the file; `orchestrator policy check FILE` lists all of it. policies/README.md has the format.",
        details={"source": source, "problems": [msgspec.to_builtins(p) for p in problems]},
    )


def founds(file: PolicyText) -> bool:
    """Whether a file can stand alone: it has a `default`, or extends a shipped policy."""
    return PolicyReader(file, NONE_SHIPPED).founds


def is_workspace_file(name: str) -> bool:
    """Whether a file is a workspace's own, by its name."""
    return f"/{name}".endswith(f"/{WORKSPACE_FILE}")


class Checked(NamedTuple):
    """A policy, or all that is wrong with its file, by line; and the line of any place in it."""

    policy: Policy | None
    problems: list[Problem]
    line_of: Callable[..., int]


def check_policy(
    text: str, source: str, shipped: Mapping[str, str] = NONE_SHIPPED, others: Sequence[PolicyText] = ()
) -> Checked:
    """Read a policy file for who wants to know what is wrong with it; that of a workspace is known by its name.

    `others`: the operator's files, over which one is laid that names neither a default nor what it extends.
    """
    if is_workspace_file(source):
        reader = PolicyReader(PolicyText("workspace", source, text), shipped)
        beneath, lists = _base("default", shipped)
        rules, problems = reader.tightening(lists)
        tightened = None if problems or beneath is None else _tightened(beneath, reader, rules)
        return Checked(tightened, problems, reader.line)
    reader = PolicyReader(PolicyText("state", source, text), shipped)
    beneath, lists = _base(reader.extends, shipped)
    others = [other for other in others if other.source != source]
    if not reader.founds and any(map(founds, others)):
        beneath = parse_layers(others, shipped)
        lists = _base(beneath.extends, shipped)[1]
    own, problems = reader.read(lists, founded=beneath is not None)
    if own is not None and beneath is not None:
        own = _on_top(own, beneath, reader.given)
    return Checked(own, problems, reader.line)


def _base(name: str, shipped: Mapping[str, str]) -> tuple[Policy | None, Lists]:
    """A shipped policy for others to be laid over, and its lists; none for a name that is none of theirs."""
    if name not in shipped:
        return None, {}
    reader = PolicyReader(PolicyText("shipped", f"policies/{name}.toml", shipped[name]), shipped)
    beneath, lists = _base(reader.extends, {known: text for known, text in shipped.items() if known != name})
    policy, _ = reader.read(lists)
    if policy is not None and beneath is not None:
        policy = _on_top(policy, beneath, reader.given)
    return (msgspec.structs.replace(policy, extends=name) if policy is not None else None), reader.lists


def _on_top(policy: Policy, beneath: Policy, given: Set[str]) -> Policy:
    """A policy laid over another; a rule, a reviewer or a table of the same name takes the other's place."""
    own = {rule.name for rule in policy.rules}
    inherited = tuple(rule for rule in beneath.rules if rule.name not in own)
    reviewers = {reviewer.name for reviewer in policy.reviewers}
    profiles = {profile.name for profile in policy.profiles}
    return msgspec.structs.replace(
        policy,
        default=policy.default if "default" in given else beneath.default,
        rules=(*policy.rules, *inherited),
        sources=(*policy.sources, *(item for item in beneath.sources if item[0] not in own)),
        routes=(*policy.routes, *beneath.routes),
        reviewers=(*policy.reviewers, *(one for one in beneath.reviewers if one.name not in reviewers)),
        profiles=(*policy.profiles, *(one for one in beneath.profiles if one.name not in profiles)),
        extends=beneath.extends,
        digest=_digest(policy, beneath.digest),
        **{name: getattr(beneath, name) for name in SINGLE_TABLES if name not in given},
    )


def _tightened(policy: Policy, file: PolicyReader, rules: tuple[Rule, ...]) -> Policy:
    """A policy with the rules of the workspace's own file beside its own; their names say where they are from."""
    named = tuple(msgspec.structs.replace(rule, name=f"{WORKSPACE}{rule.name}") for rule in rules)
    return msgspec.structs.replace(
        policy,
        rules=(*policy.rules, *named),
        sources=(*policy.sources, *((rule.name, file.source) for rule in named)),
        digest=_digest(policy, file.digest),
    )


def _digest(policy: Policy, more: str) -> Checksum:
    return Checksum("sha256:" + hashlib.sha256(f"{policy.digest} {more}".encode()).hexdigest())
