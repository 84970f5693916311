"""The operations about policy: what is wrong with a file, what holds now and why, and taking a file up."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from anyio import to_thread

from orchestrator.api import parameters as p
from orchestrator.api.policies import (
    ConsideredRule,
    Explanation,
    PolicyCheck,
    PolicyExplain,
    PolicyInfo,
    PolicyReport,
    RuleLine,
)
from orchestrator.core.events.base import Origin
from orchestrator.core.events.conflicts import PolicyLoaded
from orchestrator.core.ids import AgentName
from orchestrator.core.policy.advice import warnings
from orchestrator.core.policy.evaluate import considered
from orchestrator.core.policy.parse import check_policy, parse_policy
from orchestrator.core.policy.rules import Allow, Deny, Request
from orchestrator.core.policy.tables import Problem
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.services import Services


class PolicyFiles(msgspec.Struct, frozen=True):
    """Where policies are read from."""

    read: Callable[[], tuple[str, str]]  # the text of the one that holds, and its source
    shipped: Mapping[str, str]  # the texts of those that it may extend, by name


class PolicyService:
    """Answers questions about the policy, and changes it."""

    def __init__(self, services: Services, files: PolicyFiles, gate: ApproverGate) -> None:
        self._s, self._files, self._gate = services, files, gate

    async def policy_check(self, caller: Caller, call: Call, params: PolicyCheck) -> PolicyReport:
        policy, problems, line_of = check_policy(params.text, params.source, self._files.shipped)
        warned: tuple[Problem, ...] = ()
        if policy is not None:
            default = parse_policy(self._files.shipped["default"], source="policies/default.toml")
            paths = [entry.path for entry in self._s.state.registry.files()]
            warned = tuple(
                await to_thread.run_sync(
                    lambda: list(warnings(policy, params.source, shipped=default, paths=paths, line_of=line_of))
                )
            )
        return PolicyReport(
            source=params.source,
            ok=policy is not None,
            problems=tuple(problems),
            advice=warned,
            rules=len(policy.rules) if policy is not None else 0,
        )

    async def policy_show(self, caller: Caller, call: Call, params: p.Params) -> PolicyInfo:
        policy = self._s.permissions.policy
        return PolicyInfo(
            name=policy.name,
            source=policy.source,
            digest=policy.digest,
            default=policy.default,
            extends=policy.extends,
            rules=tuple(
                RuleLine(
                    name=rule.name,
                    source=policy.source_of(rule.name),
                    verdict=rule.verdict,
                    agents=rule.agents,
                    actions=rule.actions,
                    paths=rule.paths,
                    reason=rule.reason,
                )
                for rule in policy.rules
            ),
        )

    async def policy_explain(self, caller: Caller, call: Call, params: PolicyExplain) -> Explanation:
        path, permissions = self._s.paths.either(params.path), self._s.permissions
        who = permissions.author(AgentName(params.agent), None) if params.agent else caller
        verdict = permissions.verdict(who, params.action, path, on_disk=True)
        rules = considered(permissions.policy, Request(who.agent, who.agent_class, params.action, path))
        return Explanation(
            agent=who.agent,
            agent_class=who.agent_class,
            action=params.action,
            path=path,
            verdict="allow" if isinstance(verdict, Allow) else "deny" if isinstance(verdict, Deny) else "ask",
            rule=verdict.rule,
            reason="" if isinstance(verdict, Allow) else verdict.reason,
            considered=tuple(
                ConsideredRule(
                    name=rule.name,
                    source=permissions.policy.source_of(rule.name),
                    verdict=rule.verdict,
                    matches=matches,
                    decides=rule.name == verdict.rule,
                )
                for rule, matches in rules
            ),
        )

    async def policy_reload(self, caller: Caller, call: Call, params: p.Approving) -> PolicyReport:
        await self._gate.check(caller, params.approver)
        text, source = await to_thread.run_sync(self._files.read)
        policy = parse_policy(text, source=source, shipped=self._files.shipped)
        self._s.permissions.policy = policy.guarding(self._s.permissions.policy.own_state)
        event = PolicyLoaded(digest=policy.digest, source=policy.source, rules=len(policy.rules))
        await self._s.notes.append(Origin(), ("policy", event))
        return PolicyReport(source=source, ok=True, rules=len(policy.rules))
