"""What a person should know of a policy before it holds: what it opens, what it never says, whom it locks out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import product
from typing import Final

from msgspec import convert

from orchestrator.core.commands import CommandLine, sample_of
from orchestrator.core.errors import escaped
from orchestrator.core.events.sessions import AgentClass
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import ROOT
from orchestrator.core.policy.evaluate import evaluation_of
from orchestrator.core.policy.matcher import Matcher
from orchestrator.core.policy.rules import BY_WORK, STRICTNESS, WORKSPACE, Action, Policy, Request, Rule
from orchestrator.core.policy.tables import Problem

SHOWN = 5
"""Names in one warning."""

_NEEDED: Final[tuple[Action, ...]] = ("list", "read", "search", "approve")

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
    own = [rule for rule in policy.rules if policy.source_of(rule.name) == source]
    places = {rule.name: at for at, rule in enumerate(own, 1)}
    for name, message in openings(policy, shipped, paths or ()):
        yield _of_rule(places.get(name), message, line_of)
    for name, message in _lockouts(policy):
        yield _of_rule(places.get(name), message, line_of)
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
    yield from _powerless(policy, own, line_of)
    yield from _void_exceptions(own, line_of)
    if policy.default == "deny" and not any(_lets_look(rule) for rule in policy.rules):
        yield Problem(1, "nobody may list, read or search anything: no rule allows or asks it, and the default is deny")


def openings(policy: Policy, shipped: Policy, paths: Iterable[WorkspacePath] = ()) -> Iterator[tuple[str, str]]:
    """What the default hides and this policy opens, with the rule that does it ("": none alone)."""
    default, own = evaluation_of(shipped), evaluation_of(policy)
    hidden = [path for path in (*paths, *_samples(shipped)) if default.hidden_from_all(path)]
    opened = [path for path in hidden if not own.hidden_from_all(path)]
    if not opened:
        return
    what = f"agents may read {_some(opened)}, which the shipped default hides"
    if not policy.extends:
        yield "", f'{what}; extends = "default" keeps its rules beside yours'
        return
    hiding = {rule.name: rule for rule in shipped.rules if rule.verdict == "deny" and "read" in rule.actions}
    replaced = [rule.name for rule in policy.rules if hiding.get(rule.name, rule) != rule]
    for name in replaced:
        took = f"'{name}' in {policy.source_of(name)} takes the place of the default's rule of that name"
        yield name, f"{took}, and {what}; under another name it holds beside that rule"
    if not replaced:
        yield "", what


def _lockouts(policy: Policy) -> Iterator[tuple[str, str]]:
    """The rules that deny everybody everywhere what nobody can do without."""
    for rule in policy.rules:
        closed = [
            action
            for action in rule.actions
            if ("*" in rule.agents and action in _NEEDED) or (action == "approve" and "class:person" in rule.agents)
        ]
        everywhere = Matcher((rule,)).matching(ROOT) and not any(glob.startswith("!") for glob in rule.paths)
        if rule.verdict == "deny" and closed and everywhere and not rule.is_narrowed:
            who = "nobody" if "*" in rule.agents else "no person"
            yield rule.name, f"{who} may {', '.join(closed)} anything: '{rule.name}' denies it everywhere"


def _of_rule(at: int | None, message: str, line_of: LineOf) -> Problem:
    return Problem(1, message) if at is None else Problem(line_of("rule", at), message, f"rule[{at}]")


def _powerless(policy: Policy, own: Sequence[Rule], line_of: LineOf) -> Iterator[Problem]:
    """Rules that allow what another rule asks or denies all the same, or what is never allowed."""
    for at, rule in enumerate(own, 1):
        if rule.verdict != "allow":
            continue
        if "approve" in rule.actions and all(agent in ("class:cloud", "class:local") for agent in rule.agents):
            message = f"'{rule.name}' lets agents approve that never do: people and agents of class review alone"
            yield Problem(line_of("rule", at, "agents"), message, f"rule[{at}].agents")
        matcher = Matcher((rule,))
        for action, path in product(rule.actions, filter(matcher.matching, _samples_of(rule))):
            other = _decides(policy, rule, action, path)
            if other is not None and _narrowed(other) != _narrowed(rule):
                message = f"'{rule.name}' allows {action} of names like {escaped(path)} in vain: '{other.name}' "
                message += f"({other.verdict}, in {policy.source_of(other.name)}) is stricter"
                yield Problem(line_of("rule", at), message, f"rule[{at}]")
                break


def _void_exceptions(own: Sequence[Rule], line_of: LineOf) -> Iterator[Problem]:
    """Exceptions inside a directory that is matched, which reach nothing there."""
    for at, rule in enumerate(own, 1):
        matcher = Matcher((rule,))
        for glob in rule.paths if rule.verdict != "allow" else ():
            name = _sample(glob[1:]) if glob.startswith("!") else None
            if name is not None and matcher.matching(name, directory=glob.endswith("/")):
                message = f"'{rule.name}': the exception '{escaped(glob)}' excepts nothing, since the rule matches a "
                message += "directory above it, or names it again: write 'private/*' in place of 'private'"
                yield Problem(line_of("rule", at, "paths"), message, f"rule[{at}].paths")


def _decides(policy: Policy, rule: Rule, action: Action, path: WorkspacePath) -> Rule | None:
    """The stricter rule that decides about an act which a rule is to allow."""
    if action == "approve":
        return None
    named, _, of = rule.agents[0].partition("class:")
    request = Request(
        agent=named or "somebody",
        agent_class=convert(of or "cloud", AgentClass),
        action=action,
        path=path,
        others_work=action in BY_WORK and rule.work != "own",
        size=rule.max_bytes,
        task=rule.task,
        tags=rule.tags,
        command=_command_of(rule, path) if action == "run" else None,
    )
    strictest = next((item for item, matches in evaluation_of(policy).considered(request) if matches), rule)
    return strictest if strictest.verdict != "allow" else None


def _command_of(rule: Rule, path: WorkspacePath) -> CommandLine | None:
    """A command that a rule names."""
    mode = rule.modes[0] if rule.modes else "in_place"
    return CommandLine(sample_of(rule.commands[0]), path, mode) if rule.commands else None


def _contradictions(policy: Policy, own: Sequence[Rule], line_of: LineOf) -> Iterator[Problem]:
    """Rules about the same agents, actions and paths that answer otherwise: only the stricter ever decides."""
    for at, rule in enumerate(own, 1):
        for other in (*own[:at], *(item for item in policy.rules if item not in own)):
            both = [action for action in rule.actions if action in other.actions]
            works = rule.work == other.work or "any" in (rule.work, other.work)
            if both and works and _narrowed(rule) == _narrowed(other) and rule.verdict != other.verdict:
                stricter = min(rule, other, key=lambda one: STRICTNESS[one.verdict])
                fixed = policy.source_of(other.name) == policy.source_of(rule.name) or rule.name.startswith(WORKSPACE)
                way_out = "change one of them" if fixed else "a rule with the other's name would take its place"
                yield Problem(
                    line_of("rule", at),
                    f"'{rule.name}' ({rule.verdict}) and '{other.name}' ({other.verdict}, in "
                    f"{policy.source_of(other.name)}) contradict each other on {', '.join(both)}: same agents, same "
                    f"paths. '{stricter.name}' decides; {way_out}",
                    f"rule[{at}]",
                )


def _narrowed(rule: Rule) -> tuple[object, ...]:
    """What a rule is about, but for its actions and whose work it is."""
    return (set(rule.agents), rule.paths, rule.max_bytes, rule.task, rule.tags, rule.commands, rule.modes)


def _samples(shipped: Policy) -> Iterator[WorkspacePath]:
    """A name for each glob of what nobody may read."""
    for rule in shipped.rules:
        if rule.verdict == "deny" and "read" in rule.actions:
            yield from _samples_of(rule)


def _samples_of(rule: Rule) -> Iterator[WorkspacePath]:
    """A name for each glob of a rule."""
    return (name for glob in rule.paths if not glob.startswith("!") and (name := _sample(glob)) is not None)


def _sample(glob: str) -> WorkspacePath | None:
    """A name that a glob has; None where that takes more than a letter for each wildcard."""
    plain = glob.removeprefix("**/").strip("/").replace("*", "x").replace("?", "x")
    return WorkspacePath(plain) if "[" not in plain and "\\" not in plain else None


def _lets_look(rule: Rule) -> bool:
    return rule.verdict != "deny" and not {"list", "read", "search"}.isdisjoint(rule.actions)


def _some(paths: Iterable[WorkspacePath]) -> str:
    names = [escaped(path) for path in dict.fromkeys(paths)]
    rest = f" and {len(names) - SHOWN} more names" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + rest
