"""What policy says of a change: the one place that asks it; and changes by which git would run programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

import anyio.lowlevel

from orchestrator.core.change import Fit, PathChange, PermissionCheck, UnseenChange
from orchestrator.core.content import RUNGS
from orchestrator.core.decisions.decision import Apply, Facts
from orchestrator.core.errors import PathError
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import fold, join
from orchestrator.core.policy.protected import MARKS, is_git_config, is_repository, read_by_git
from orchestrator.core.policy.rules import Deny, NeedApproval, Verdict
from orchestrator.engine.caller import Caller
from orchestrator.engine.changes.facts import SLICE
from orchestrator.engine.locks import PathLocks
from orchestrator.engine.permissions import Permissions, denied
from orchestrator.engine.reads.stale_read_notices import unseen_in_words
from orchestrator.ports.workspace import Workspace


class ChangePermissions:
    """Asks policy about acts on paths, and about how a change fits."""

    def __init__(self, permissions: Permissions) -> None:
        self._permissions = permissions

    def refuse_early(self, caller: Caller, *checks: PermissionCheck) -> None:
        """Refuse by name what policy denies whatever is there, before anything is opened. Raises Denied."""
        for check in checks:
            _refuse(check, self._verdict(caller, check, on_disk=False))

    def refuse_any(self, caller: Caller, *checks: PermissionCheck) -> None:
        """Refuse what policy denies whichever of these it turns out to be, before looking. Raises Denied."""
        if all(isinstance(self._verdict(caller, check, on_disk=False), Deny) for check in checks):
            self.refuse_early(caller, *checks)

    async def asks(self, caller: Caller, checks: Iterable[PermissionCheck]) -> tuple[NeedApproval, ...]:
        """What a person must say yes to. Raises Denied."""
        asks = []
        for number, check in enumerate(checks, 1):
            if number % SLICE == 0:
                await anyio.lowlevel.checkpoint()
            verdict = _refuse(check, self._verdict(caller, check, on_disk=True))
            if isinstance(verdict, NeedApproval):
                asks.append(verdict)
        return tuple(asks)

    def uncovers(self, caller: Caller, paths: Sequence[WorkspacePath]) -> tuple[NeedApproval, ...]:
        """A change of paths of which the caller may read some, but not all, can show what is hidden."""
        hidden = [path for path in paths if not self._permissions.readable(caller, path)]
        if not 0 < len(hidden) < len(paths):
            return ()
        return (NeedApproval("builtin.uncover", f"it brings what {hidden[0]} hides to a path that is shown"),)

    def unsure(self, fit: Fit) -> tuple[NeedApproval, ...]:
        """A change that fits in a way that policy leaves to a person."""
        lowest = self._permissions.policy.edits.lowest_rung
        if RUNGS.index(fit.rung) <= RUNGS.index(lowest):
            return ()
        reason = f"it fits as {fit.rung} (score {fit.score:g}), and below {lowest} a person decides"
        return (NeedApproval("edits.lowest_rung", reason),)

    def stale(self, unseen: tuple[UnseenChange, ...]) -> tuple[NeedApproval, ...]:
        """A change whose author has not seen what others did."""
        if not unseen or self._permissions.policy.edits.stale_reads == "allow":
            return ()
        return (NeedApproval("edits.stale_reads", unseen_in_words(unseen)),)

    def _verdict(self, caller: Caller, check: PermissionCheck, *, on_disk: bool) -> Verdict:
        return self._permissions.verdict(
            caller,
            check.action,
            check.path,
            others_work=check.others_work,
            directory=check.directory,
            on_disk=on_disk,
        )


def _refuse(check: PermissionCheck, verdict: Verdict) -> Verdict:
    if isinstance(verdict, Deny):
        raise denied(check.action, check.path, verdict)
    return verdict


RULE = "builtin.repository"
"""No policy file switches it off."""


class RepositoryGuard:
    """Knows what git would take for a repository once a change is made."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._locks = PathLocks()  # of their own, taken behind those of the paths, so that no two holders wait

    def alone(self, paths: Sequence[PathChange]) -> AbstractAsyncContextManager[None]:
        """Hold every directory in which these bring a name that git reads, from the judgement until they are there."""
        return self._locks.alone(WorkspacePath(fold(directory)) for directory in read_by_git(_coming(paths)))

    def asks(self, plan: Apply, facts: Mapping[WorkspacePath, Facts]) -> tuple[NeedApproval, ...]:
        """What a person must say yes to. Looks at the disk only where a name is one that git reads."""
        asks = [
            NeedApproval(RULE, f"with it git takes {directory} for a repository, and runs what its files name")
            for directory, names in read_by_git(_coming(plan.paths)).items()
            if is_repository(names | self._there(directory))
        ]
        asks += [
            NeedApproval(RULE, f"{change.path} is a git configuration, which makes git run programs")
            for change in plan.paths
            if change.after is not None and is_git_config(change.path, _content(plan, change, facts))
        ]
        return tuple(asks)

    def _there(self, directory: WorkspacePath) -> frozenset[str]:
        """Which marks of a repository are on the disk."""
        return frozenset(fold(name) for name in MARKS if self._exists(join(directory, name)))

    def _exists(self, path: WorkspacePath) -> bool:
        try:
            return self._workspace.stat(path) is not None
        except PathError:
            return False


def _coming(paths: Sequence[PathChange]) -> list[WorkspacePath]:
    return [change.path for change in paths if change.after is not None or change.directory]


def _content(plan: Apply, change: PathChange, facts: Mapping[WorkspacePath, Facts]) -> bytes:
    """What will be there; a rename brings the content of its source."""
    if (content := plan.content(change)) is not None:
        return content.data
    source = facts.get(change.moved_from) if change.moved_from is not None else None
    return source.held.data if source is not None and source.held is not None else b""
