"""What policy lets a caller do, asked by path."""

from __future__ import annotations

from collections.abc import Iterable

import anyio.lowlevel

from orchestrator.core.change import PermissionCheck
from orchestrator.core.errors import Denied, PathError, escaped
from orchestrator.core.ids import AgentName, SessionId, WorkspacePath
from orchestrator.core.policy.evaluate import evaluate, hidden_from_all
from orchestrator.core.policy.rules import Action, Allow, Deny, NeedApproval, Policy, Request, Verdict
from orchestrator.core.projections.identities import Identities
from orchestrator.engine.caller import Caller
from orchestrator.ports.workspace import Workspace

SLICE = 20
"""Acts of one change that are judged before other callers have their turn."""


class Permissions:
    """The policy as it is now, and what it says of an act."""

    def __init__(self, policy: Policy, identities: Identities, workspace: Workspace) -> None:
        self.policy, self._identities, self._workspace = policy, identities, workspace

    def verdict(
        self,
        caller: Caller,
        action: Action,
        path: WorkspacePath,
        *,
        others_work: bool = False,
        directory: bool = False,
        on_disk: bool = False,
    ) -> Verdict:
        """What policy says of this act; with `on_disk` also by what the path leads to, whatever its spelling."""
        request = Request(
            agent=caller.agent,
            agent_class=caller.agent_class,
            action=action,
            path=path,
            others_work=others_work,
            directory=directory,
            is_git=on_disk and self._is_git(path),
        )
        return evaluate(self.policy, request)

    def _is_git(self, path: WorkspacePath) -> bool:
        """Whether a directory in the path is a repository's `.git` under another name: by (device, inode).

        Some file systems know one directory by several spellings. Raises the PathError family.
        """
        above = ""
        for name in path.split("/"):
            here = f"{above}/{name}" if above else name
            try:
                git = self._workspace.stat(WorkspacePath(f"{above}/.git" if above else ".git"))
            except PathError:
                self._workspace.stat(path)  # refused under the name that the caller gave
                raise
            found = self._workspace.stat(WorkspacePath(here)) if git is not None else None
            if git is not None and found is not None and git.identity == found.identity:
                return True
            above = here
        return False

    def permit(
        self,
        caller: Caller,
        action: Action,
        path: WorkspacePath,
        *,
        others_work: bool = False,
        directory: bool = False,
        on_disk: bool = False,
    ) -> Allow | NeedApproval:
        """As `verdict`. Raises Denied."""
        verdict = self.verdict(caller, action, path, others_work=others_work, directory=directory, on_disk=on_disk)
        if isinstance(verdict, Deny):
            raise denied(action, path, verdict)
        return verdict

    def refuse_early(self, caller: Caller, *checks: PermissionCheck) -> None:
        """Refuse by name what policy denies whatever is there, before anything is opened. Raises Denied."""
        for check in checks:
            self._check(caller, check, on_disk=False)

    async def asks(self, caller: Caller, checks: Iterable[PermissionCheck]) -> tuple[NeedApproval, ...]:
        """What a person must say yes to. Raises Denied."""
        asks = []
        for number, check in enumerate(checks, 1):
            if number % SLICE == 0:
                await anyio.lowlevel.checkpoint()
            verdict = self._check(caller, check, on_disk=True)
            if isinstance(verdict, NeedApproval):
                asks.append(verdict)
        return tuple(asks)

    def _check(self, caller: Caller, check: PermissionCheck, *, on_disk: bool) -> Allow | NeedApproval:
        work, directory = check.others_work, check.directory
        return self.permit(caller, check.action, check.path, others_work=work, directory=directory, on_disk=on_disk)

    def readable(self, caller: Caller, path: WorkspacePath) -> bool:
        """Whether the caller may be shown content of a path without asking anybody."""
        return isinstance(self.verdict(caller, "read", path), Allow)

    def hidden_from_all(self, path: WorkspacePath) -> bool:
        """Whether nobody may read a path: its content is kept when it is to be changed, and not before."""
        return hidden_from_all(self.policy, path)

    def readable_to(self, agent: AgentName | None, *paths: WorkspacePath) -> bool:
        """The same of an agent that is not calling now; of nobody's work everything."""
        return agent is None or all(self.readable(self.author(agent, None), path) for path in paths)

    def author(self, agent: AgentName | None, session: SessionId | None) -> Caller:
        """Whose change the daemon carries out, though it is not calling now."""
        name = agent or AgentName("unnamed")
        known = self._identities.get(name)
        agent_class = known.agent_class if known else "cloud"
        return Caller(agent=name, agent_class=agent_class, session=session or SessionId("daemon"), transport="daemon")


def denied(action: Action, path: WorkspacePath, verdict: Deny) -> Denied:
    """The refusal of an act that policy forbids."""
    return Denied(
        f"{action} {escaped(path)}: {verdict.reason}",
        details={"path": escaped(path), "action": action, "rule": verdict.rule},
    )
