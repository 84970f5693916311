"""The operations about policy: what is wrong with a file, what holds now and why, and taking a file up."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import anyio.lowlevel
import msgspec
from anyio import to_thread

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operations import TOOLS
from orchestrator.api.policies import (
    ConsideredRule,
    Explanation,
    FileLine,
    PolicyApprove,
    PolicyCheck,
    PolicyExplain,
    PolicyInfo,
    PolicyReport,
    PolicyShow,
    PolicySimulate,
    ProfileLine,
    RuleLine,
    SimulatedAct,
    SimulationAnswer,
    VerdictCount,
)
from orchestrator.core.change import PermissionCheck, running
from orchestrator.core.commands import CommandLine
from orchestrator.core.errors import ParameterInvalid, PolicyChanged, escaped
from orchestrator.core.events.policies import WorkspacePolicyApproved
from orchestrator.core.events.sessions import AgentClass
from orchestrator.core.ids import AgentName, Seq, WorkspacePath, show
from orchestrator.core.policy.advice import openings, warnings
from orchestrator.core.policy.evaluate import evaluation_of
from orchestrator.core.policy.parse import check_policy
from orchestrator.core.policy.rules import WORKSPACE_FILE, Allow, Deny, Request, Verdict
from orchestrator.core.policy.simulate import TAGS, Simulation, sized_at
from orchestrator.core.policy.tables import Problem, agent_problem
from orchestrator.core.positions import Timestamp, parse_seq, parse_timestamp
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.commands.permission import check_directory, check_words
from orchestrator.engine.policy_files import STREAM, PolicyKeeper
from orchestrator.engine.services import Services
from orchestrator.ports.journal import EventFilter

SLICE = 50
"""Past events that are judged before other callers have their turn."""


class PolicyService:
    """Answers questions about the policy, and changes it."""

    def __init__(self, services: Services, keeper: PolicyKeeper, gate: ApproverGate) -> None:
        self._s, self._keeper, self._gate = services, keeper, gate

    async def policy_check(self, caller: Caller, call: Call, params: PolicyCheck) -> PolicyReport:
        policy, problems, line_of = check_policy(
            params.text, params.source, self._keeper.files.shipped, self._keeper.beneath_state()
        )
        warned: tuple[Problem, ...] = ()
        if policy is not None:
            default = self._keeper.default
            paths = self._s.state.registry.paths()
            warned = tuple(
                await to_thread.run_sync(
                    lambda: list(
                        warnings(policy, params.source, shipped=default, paths=paths, line_of=line_of, tools=TOOLS)
                    )
                )
            )
        return PolicyReport(
            source=params.source,
            ok=policy is not None,
            problems=tuple(problems),
            advice=warned,
            rules=len(policy.rules) if policy is not None else 0,
        )

    async def policy_show(self, caller: Caller, call: Call, params: PolicyShow) -> PolicyInfo:
        now, notes, diff = self._keeper.now, tuple(self._keeper.notes()), self._keeper.difference()
        if params.at is not None:
            (now, notes), diff = await self._keeper.at(parse_seq(params.at)), ""
        policy = now.policy
        return PolicyInfo(
            name=policy.name,
            source=policy.source,
            digest=policy.digest,
            default=policy.default,
            extends=policy.extends,
            files=tuple(FileLine(layer=text.layer, source=text.source, digest=text.digest) for text in now.texts),
            notes=notes,
            diff=diff,
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
            profiles=tuple(
                ProfileLine(name=profile.name, agents=profile.agents, limits=tuple(profile.given()))
                for profile in policy.profiles
            ),
        )

    async def policy_explain(self, caller: Caller, call: Call, params: PolicyExplain) -> Explanation:
        path, permissions = self._s.paths.either(params.path), self._s.permissions
        who, notes = self._asked_about(caller, params.agent)
        check = self._act(who, params, path)
        verdict = permissions.judge(who, check, on_disk=True)
        request = permissions.request(who, check)
        considered = tuple(self._considered(request, verdict))
        decides = (rule.source for rule in considered if rule.decides)
        return Explanation(
            agent=params.agent or who.agent,
            agent_class=who.agent_class,
            action=params.action,
            path=path,
            command=shlex.join(params.argv),
            mode=check.command.mode if check.command is not None else None,
            verdict=verdict.answer,
            rule=verdict.rule,
            source=next(decides, permissions.policy.source_of(verdict.rule)),
            reason="" if isinstance(verdict, Allow) else verdict.reason,
            profile=permissions.profile(who).name,
            notes=(*notes, *self._keeper.unused()),
            considered=considered,
        )

    def _act(self, who: Caller, params: PolicyExplain, path: WorkspacePath) -> PermissionCheck:
        """What is asked about.

        Raises ParameterInvalid for a command, or its mode, with another action than run, and as run_command does.
        """
        if not params.argv:
            if params.mode is not None:
                raise ParameterInvalid("mode", "is that of a command, and none is given")
            return PermissionCheck(params.action, path)
        if params.action != "run":
            raise ParameterInvalid("argv", f"a command goes with the action run, not {params.action}")
        check_words(params.argv)
        check_directory(self._s.workspace, path)
        permissions = self._s.permissions
        line = CommandLine(params.argv, path, permissions.policy.commands.default_mode)
        return running(permissions.likeliest(who, line, params.mode))

    def _considered(self, request: Request, verdict: Verdict) -> Iterator[ConsideredRule]:
        """The rules about an act, the strictest first, and the grants that cover it."""
        policy = self._s.permissions.policy
        for rule, matches in evaluation_of(policy).considered(request):
            yield ConsideredRule(
                name=rule.name,
                source=policy.source_of(rule.name),
                verdict=rule.verdict,
                matches=matches,
                decides=rule.name == verdict.rule,
            )
        for grant in self._s.state.grants:
            if grant.covers(request):
                yield ConsideredRule(
                    name=grant.rule,
                    source=f"{grant.added.by}, {grant.added.session or 'any session'}",
                    verdict="allow",
                    matches=True,
                    decides=grant.rule == verdict.rule,
                )

    def _asked_about(self, caller: Caller, agent: str) -> tuple[Caller, tuple[str, ...]]:
        """Whose act is judged: the caller's, that of a name, or of `class:NAME`. Raises ParameterInvalid."""
        if not agent:
            return caller, ()
        who = self._s.permissions.author(AgentName(agent), None)
        if agent.startswith("class:"):
            if problem := agent_problem(agent):
                raise ParameterInvalid("agent", problem)
            agent_class = msgspec.convert(agent.removeprefix("class:"), AgentClass)
            return msgspec.structs.replace(who, agent=AgentName("somebody"), agent_class=agent_class), ()
        if self._s.state.identities.get(agent) is None and not who.is_person:
            return who, (f"{escaped(agent)} is not registered; judged as class {who.agent_class}",)
        return who, ()

    async def policy_simulate(self, caller: Caller, call: Call, params: PolicySimulate) -> SimulationAnswer:
        new = self._keeper.beside(params.text, params.source)
        permissions, journal = self._s.permissions, self._s.journal
        simulation = Simulation(
            permissions.policy,
            new,
            lambda agent: permissions.author(agent, None).agent_class,
            self._s.state.tags.of,
        )
        since = Timestamp()
        if params.since is not None:
            since = parse_timestamp(
                params.since, parameter="since", head=journal.head, start=self._s.state.registry.start or Seq(0)
            )
        wanted = EventFilter(tags=TAGS, after=(since.seq or 1) - 1, since_at=since.at)
        async for recorded in journal.events(wanted):
            sizes = dict[WorkspacePath, int | None]()
            for path, at in sized_at(recorded) if simulation.asks_for_size else ():
                version = await journal.version_at(path, at)
                sizes[path] = version.size if version is not None else None
            simulation.judge(recorded, sizes)
            if recorded.seq % SLICE == 0:
                await anyio.lowlevel.checkpoint()
        changed = [
            act for act in simulation.changed if not isinstance(permissions.verdict(caller, "list", act.path), Deny)
        ]
        return SimulationAnswer(
            source=params.source,
            events=simulation.events,
            acts=simulation.acts,
            counts=tuple(VerdictCount(old=old, new=to, acts=n) for (old, to), n in sorted(simulation.counts.items())),
            changed=tuple(
                SimulatedAct(
                    old=act.old,
                    new=act.new,
                    agent=act.agent,
                    action=act.action,
                    path=act.path,
                    command=shlex.join(act.argv),
                    first=show(act.seq),
                    times=act.times,
                    rule=act.rule,
                    source=new.source_of(act.rule),
                )
                for act in changed[: params.limit]
            ),
            total=len(changed),
            note="" if simulation.acts else "no event since then is about an act that policy was asked for",
        )

    async def policy_reload(self, caller: Caller, call: Call, params: p.Approving) -> PolicyReport:
        await self._gate.check(caller, params.approver)
        await self._keeper.refresh(again=True)
        now = self._keeper.now
        if now.error is not None:
            raise now.error
        opened = tuple(Problem(1, message) for _, message in openings(now.policy, self._keeper.default))
        return PolicyReport(source=now.policy.source, ok=True, rules=len(now.policy.rules), advice=opened)

    async def policy_approve(self, caller: Caller, call: Call, params: PolicyApprove) -> r.Done:
        await self._gate.check(caller, params.approver)
        waiting = self._keeper.now.waiting
        if waiting is None or waiting.text.digest != params.digest:
            raise PolicyChanged(f"{WORKSPACE_FILE} does not wait with this content", details={"digest": params.digest})
        if waiting.problem:
            raise ParameterInvalid("digest", waiting.problem, hint="Mend the file, then look at it again.")
        event = WorkspacePolicyApproved(digest=waiting.text.digest, by=caller.agent)
        blob = (waiting.text.digest, waiting.text.data)
        await self._s.notes.append(caller.origin(call), (STREAM, event), blobs=(blob,))
        await self._keeper.refresh(again=True)
        holds = "holds from here on, beside the operator's rules" if waiting.text.text else "is gone and holds no more"
        return r.Done(message=f"{WORKSPACE_FILE} {holds}")
