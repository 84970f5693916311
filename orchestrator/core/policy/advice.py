"""What a person should know of a policy before it holds: what it opens, what it never says, whom it locks out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from orchestrator.core.errors import escaped
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.evaluate import Matcher, hidden_from_all
from orchestrator.core.policy.rules import STRICTNESS, Policy, Rule
from orchestrator.core.policy.tables import Problem

SHOWN = 5
"""Names in one warning."""

LineOf = Callable[..., int]
"""The line of a place in the file, as `TableReader.line`."""


def warnings(
    policy: Policy,
    source: str,
    *,
    shipped: Policy,
    paths: Sequence[WorkspacePath] | None,
    line_of: LineOf,
    tools: Collection[str] | None = None,
) -> Iterator[Problem]:
    """Of a policy that can be used, and the file `source` of it.

    `shipped` is the default; `paths` are all files there are, or None where nobody knows them.

    Cost: O(paths), a few µs each.
    """
    opened = [path for path in (*(paths or ()), *_samples(shipped)) if _opens(policy, shipped, path)]
    if opened:
        yield Problem(
            1,
            f"agents may read {_some(opened)}, which the shipped default hides; "
            'extends = "default" keeps its rules beside yours',
        )
    own = [rule for rule in policy.rules if policy.source_of(rule.name) == source]
    matcher = Matcher(own)
    matched = 0
    for path in paths or ():
        matched |= matcher.matching(path)
    for at, rule in enumerate(own, 1):
        if paths is not None and not matched >> (at - 1) & 1:
            yield Problem(line_of("rule", at), f"'{escaped(rule.name)}' names no file of this workspace", f"rule[{at}]")
        if rule.task and rule.verdict == "allow":
            message = f"'{escaped(rule.name)}' allows by a task's title, which the agent chooses itself"
            yield Problem(line_of("rule", at, "task"), message, f"rule[{at}].task")
    for at, profile in enumerate(policy.profiles, 1):
        for number, tool in enumerate(profile.tools_off or (), 1):
            if tools is not None and tool not in tools:
                place = ("profile", at, "tools_off")
                yield Problem(line_of(*place), f"'{escaped(tool)}' is no tool", f"profile[{at}].tools_off[{number}]")
    yield from _contradictions(policy, own, line_of)
    if policy.default == "deny" and not any(_lets_look(rule) for rule in policy.rules):
        yield Problem(1, "nobody may list, read or search anything: no rule allows or asks it, and the default is deny")


def _contradictions(policy: Policy, own: Sequence[Rule], line_of: LineOf) -> Iterator[Problem]:
    """Rules about the same agents, actions and paths that answer otherwise: only the stricter ever decides."""
    for at, rule in enumerate(own, 1):
        for other in (*own[:at], *(item for item in policy.rules if item not in own)):
            both = [action for action in rule.actions if action in other.actions]
            works = rule.work == other.work or "any" in (rule.work, other.work)
            if both and works and _narrowed(rule) == _narrowed(other) and rule.verdict != other.verdict:
                stricter = min(rule, other, key=lambda one: STRICTNESS[one.verdict])
                yield Problem(
                    line_of("rule", at),
                    f"'{rule.name}' ({rule.verdict}) and '{other.name}' ({other.verdict}, in "
                    f"{policy.source_of(other.name)}) contradict each other on {', '.join(both)}: same agents, same "
                    f"paths. '{stricter.name}' decides; a rule with the other's name would take its place",
                    f"rule[{at}]",
                )


def _narrowed(rule: Rule) -> tuple[object, ...]:
    """What a rule is about, but for its actions and whose work it is."""
    return (set(rule.agents), rule.paths, rule.max_bytes, rule.task)


def _opens(policy: Policy, shipped: Policy, path: WorkspacePath) -> bool:
    return hidden_from_all(shipped, path) and not hidden_from_all(policy, path)


def _samples(shipped: Policy) -> Iterator[WorkspacePath]:
    """A name for each glob of what nobody may read."""
    for rule in shipped.rules:
        if rule.verdict == "deny" and "read" in rule.actions:
            for glob in rule.paths:
                plain = glob.removeprefix("**/").rstrip("/").replace("*", "x").replace("?", "x")
                if not glob.startswith("!") and "[" not in plain:
                    yield WorkspacePath(plain)


def _lets_look(rule: Rule) -> bool:
    return rule.verdict != "deny" and not {"list", "read", "search"}.isdisjoint(rule.actions)


def _some(paths: Iterable[WorkspacePath]) -> str:
    names = [escaped(path) for path in dict.fromkeys(paths)]
    rest = f" and {len(names) - SHOWN} more names" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + rest
