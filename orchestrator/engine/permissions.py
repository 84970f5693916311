"""What policy lets a caller do, asked by path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import anyio.lowlevel
import msgspec

from orchestrator.core.change import PermissionCheck, running
from orchestrator.core.commands import CommandLine, Mode, in_modes
from orchestrator.core.errors import Denied, NotADirectory, PathError, Unauthorised, escaped
from orchestrator.core.events.sessions import AgentClass, TaskBegun
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath, is_person
from orchestrator.core.paths import ROOT
from orchestrator.core.policy.evaluate import evaluate, evaluation_of
from orchestrator.core.policy.profiles import Profile, profile_for
from orchestrator.core.policy.rules import (
    BY_SIZE,
    STRICTNESS,
    Action,
    Allow,
    Deny,
    NeedApproval,
    Policy,
    Request,
    Verdict,
)
from orchestrator.core.projections.state import State
from orchestrator.engine.caller import Caller
from orchestrator.engine.moved_tags import MovedTags
from orchestrator.engine.notes import Notes
from orchestrator.ports.machine import Clock
from orchestrator.ports.workspace import Workspace

SLICE = 20
"""Acts of one change that are judged before other callers have their turn."""


class Asked(NamedTuple):
    """What becomes of several acts that policy does not deny."""

    asks: tuple[NeedApproval, ...]  # a person must say yes to these
    grants: tuple[Seq, ...]  # by these it was said already


class Permissions:
    """The policy as it is now, and what it says of an act."""

    def __init__(self, policy: Policy, state: State, workspace: Workspace, notes: Notes, clock: Clock) -> None:
        self.policy, self._state, self._workspace, self._notes = policy, state, workspace, notes
        self._clock = clock
        self.moved_tags = MovedTags(state, workspace)
        self._titles: dict[SessionId, tuple[Seq, str]] = {}

    def verdict(
        self,
        caller: Caller,
        action: Action,
        path: WorkspacePath,
        *,
        directory: bool = False,
        on_disk: bool = False,
        size: int | None = None,
    ) -> Verdict:
        """As `judge`, of an act that is nobody's work in particular."""
        return self.judge(caller, PermissionCheck(action, path, directory=directory, size=size), on_disk=on_disk)

    def judge(self, caller: Caller, check: PermissionCheck, *, on_disk: bool = False) -> Verdict:
        """What policy says of this act; with `on_disk` also by what the path leads to, whatever its spelling."""
        request = self.request(caller, check, is_git=on_disk and self._is_git(check.path))
        verdict = evaluate(self.policy, request)
        if not isinstance(verdict, NeedApproval):
            return verdict
        return self._granted(request, caller.session, verdict.rule) or verdict

    def likeliest(self, caller: Caller, line: CommandLine, mode: Mode | None) -> CommandLine:
        """A command in the mode in which it would be run, of that which its caller names."""
        return max(in_modes(line, mode), key=lambda each: STRICTNESS[self.judge(caller, running(each)).answer])

    def _granted(self, request: Request, session: SessionId, rule: str) -> Allow | None:
        """By a grant of who may still approve there, given when this rule asked."""
        for grant in self._state.grants.covering(request, session, self._clock.now_ms()):
            if grant.added.rules and rule not in grant.added.rules:
                continue
            approving = Request(grant.added.by, "person", "approve", request.path, directory=request.directory)
            if isinstance(evaluate(self.policy, approving), Allow):
                return Allow(grant.rule, grant.seq)
        return None

    def request(self, caller: Caller, check: PermissionCheck, *, is_git: bool = False) -> Request:
        """The act as policy judges it."""
        action, others_work, size = check.action, check.others_work, check.size
        if action in ("delete", "move"):
            entry = self._state.registry.get(check.path)
            others_work = entry is None or entry.made_by != caller.agent
        of_file = action in BY_SIZE and action not in ("create", "write")
        if size is None and of_file and evaluation_of(self.policy).asks_for_size:
            size = self._size(check.path)
        return Request(
            agent=caller.agent,
            agent_class=caller.agent_class,
            action=action,
            path=check.path,
            others_work=others_work,
            directory=check.directory,
            is_git=is_git,
            size=size,
            task=self._titles[caller.session][1] if caller.session in self._titles else "",
            tags=self._tags(check),
            command=check.command,
        )

    def allowing(self, caller: Caller, actions: Sequence[Action]) -> Callable[[WorkspacePath], bool | None]:
        """Whether policy allows all of these on a path; for many paths. None: `verdict` says."""
        acts = [self.request(caller, PermissionCheck(action, ROOT)) for action in actions]
        return evaluation_of(self.policy).allowing(acts)

    def kind(self, path: WorkspacePath) -> int:
        """The same number for all paths that the same rules name: `allowing` says the same of them.

        It holds for as long as the policy is the same.
        """
        return evaluation_of(self.policy).naming(path)

    def rules_for(self, caller: Caller, action: Action) -> int:
        """The same number for all callers that may do this on the same paths, for as long as the policy is the same."""
        return evaluation_of(self.policy).applying_to(self.request(caller, PermissionCheck(action, ROOT)))

    def profile(self, caller: Caller) -> Profile:
        """What the caller may take at once and in a day, and how its changes are treated."""
        return _profile(self.policy, caller.agent, caller.agent_class)

    def answer_tokens(self, caller: Caller, asked: int) -> int:
        """Of so many tokens as many as one answer to the caller may have."""
        return min(asked, self.profile(caller).max_answer_tokens or asked)

    def _tags(self, check: PermissionCheck) -> tuple[str, ...]:
        """Also those that a file brings along which another program moved here, and the journal does not know yet."""
        tags = self._state.tags.of(check.path)
        if check.directory or not self._state.tags or not self.policy.tags:
            return tags
        source = self.moved_tags.source(check.path, most=self.policy.limits.change_bytes)
        return tags if source is None else (*tags, *self._state.tags.of(source))

    def _size(self, path: WorkspacePath) -> int | None:
        """Of a file; None where it can't be seen, which its own refusal says."""
        entry = self._state.registry.get(path)
        if entry is not None and entry.signature is not None:
            return entry.signature.size
        try:
            stat = self._workspace.stat(path)
        except PathError:
            return None
        return stat.signature.size if stat is not None and stat.kind == "file" else None

    async def learn_task(self, session: SessionId) -> None:
        """Read the title of the task that a session works on, if policy asks for it."""
        known = self._state.sessions.get(session) if evaluation_of(self.policy).asks_for_task else None
        task = known.task if known is not None else None
        if task is None:
            self._titles.pop(session, None)
        elif session not in self._titles or self._titles[session][0] != task:
            begun = await self._notes.event(task, TaskBegun)
            self._titles[session] = (task, begun.title if begun is not None else "")

    def _is_git(self, path: WorkspacePath) -> bool:
        """Whether a directory in the path is a repository's `.git` under another name: by (device, inode).

        Some file systems know one directory by several spellings. Raises the PathError family.
        """
        above = ""
        for name in path.split("/"):
            here = f"{above}/{name}" if above else name
            try:
                git = self._workspace.stat(WorkspacePath(f"{above}/.git" if above else ".git"))
            except NotADirectory:
                return False  # nothing lies below a file
            except PathError:
                self._workspace.stat(path)  # refused under the name that the caller gave
                raise
            found = self._workspace.stat(WorkspacePath(here)) if git is not None else None
            if git is not None and found is not None and git.identity == found.identity:
                return True
            above = here
        return False

    def permit(self, caller: Caller, check: PermissionCheck, *, on_disk: bool = True) -> Allow | NeedApproval:
        """As `judge`. Raises Denied."""
        verdict = self.judge(caller, check, on_disk=on_disk)
        if isinstance(verdict, Deny):
            raise denied(check.action, check.path, verdict)
        return verdict

    def refuse_early(self, caller: Caller, *checks: PermissionCheck) -> None:
        """Refuse by name what policy denies whatever is there, before anything is opened. Raises Denied."""
        for check in checks:
            self.permit(caller, check, on_disk=False)

    async def asks(self, caller: Caller, checks: Iterable[PermissionCheck]) -> Asked:
        """What a person must say yes to: all of it by one policy, the newest. Raises Denied."""
        asks, grants = [], dict[Seq, None]()
        await self.learn_task(caller.session)  # of who calls it is known; this may be a change granted later
        checks, policy = tuple(checks), self.policy
        for number, check in enumerate(checks, 1):
            if number % SLICE == 0:
                await anyio.lowlevel.checkpoint()
                if self.policy is not policy:
                    return await self.asks(caller, checks)
            verdict = self.permit(caller, check)
            if isinstance(verdict, NeedApproval):
                asks.append(verdict)
            elif verdict.grant is not None:
                grants[verdict.grant] = None
        return Asked(tuple(asks), tuple(grants))

    def asked_about(
        self, caller: Caller, checks: Iterable[PermissionCheck]
    ) -> tuple[tuple[PermissionCheck, ...], tuple[str, ...]]:
        """Those of the acts that a rule asks about, granted or not, as policy judges them; and these rules.

        Raises Denied.
        """
        asked, rules = list[PermissionCheck](), dict[str, None]()
        for check in checks:
            verdict = self.permit(caller, check)
            if isinstance(verdict, NeedApproval) or verdict.grant is not None:
                judged = self.request(caller, check)
                rules[evaluate(self.policy, judged).rule] = None
                asked.append(msgspec.structs.replace(check, others_work=judged.others_work))
        return tuple(asked), tuple(rules)

    def check_open(self, caller: Caller) -> None:
        """A connection lasts, and so do calls; meanwhile a token may expire or be revoked, or its name be given one.

        Raises Unauthorised.
        """
        agent = self._state.identities.get(caller.agent) if caller.transport != "daemon" else None
        if agent is not None and not agent.is_open_to(caller.token_hash, self._clock.now_ms()):
            raise Unauthorised(f"{caller.agent} may not call any more: its token expired, was revoked or made new")

    def readable(self, caller: Caller, path: WorkspacePath) -> bool:
        """Whether the caller may be shown content of a path without asking anybody."""
        return isinstance(self.verdict(caller, "read", path), Allow)

    def hidden_from_all(self, path: WorkspacePath) -> bool:
        """Whether nobody may read a path: its content is kept when it is to be changed, and not before."""
        return evaluation_of(self.policy).hidden_from_all(path)

    def readable_to(self, agent: AgentName | None, *paths: WorkspacePath) -> bool:
        """The same of an agent that is not calling now; of nobody's work everything."""
        return agent is None or all(self.readable(self.author(agent, None), path) for path in paths)

    def author(self, agent: AgentName | None, session: SessionId | None) -> Caller:
        """Whose change the daemon carries out, though it is not calling now."""
        name = agent or AgentName("unnamed")
        known = self._state.identities.get(name)
        agent_class: AgentClass = known.agent_class if known else "person" if is_person(name) else "cloud"
        return Caller(agent=name, agent_class=agent_class, session=session or SessionId("daemon"), transport="daemon")


@lru_cache(maxsize=256)
def _profile(policy: Policy, agent: AgentName, agent_class: AgentClass) -> Profile:
    return profile_for(policy.profiles, agent, agent_class)


def denied(action: Action, path: WorkspacePath, verdict: Deny) -> Denied:
    """The refusal of an act that policy forbids."""
    return Denied(
        f"{action} {escaped(path)}: {verdict.reason}",
        details={"path": escaped(path), "action": action, "rule": verdict.rule},
    )
