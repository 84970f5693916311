"""What needs a person's yes because of what a change would do, whatever the rules say of its paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager

import msgspec

from orchestrator.core.change import PathChange, PermissionCheck, UnseenChange
from orchestrator.core.content import RUNGS, Content
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts
from orchestrator.core.errors import PathError
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import fold, join
from orchestrator.core.policy.evaluate import evaluation_of
from orchestrator.core.policy.protected import MARKS, is_git_config, is_repository, read_by_git
from orchestrator.core.policy.rules import NeedApproval
from orchestrator.engine.caller import Caller
from orchestrator.engine.changes.secret_lines import SecretLines
from orchestrator.engine.locks import PathLocks
from orchestrator.engine.permissions import Permissions
from orchestrator.engine.reads.stale_read_notices import unseen_in_words
from orchestrator.ports.workspace import Workspace

RULE = "builtin.repository"
"""No policy file switches it off."""


class ChangeRules:
    """Judges how a change fits, what it shows, and what git would take for a repository once it is made."""

    def __init__(self, permissions: Permissions, workspace: Workspace, secrets: SecretLines) -> None:
        self._permissions, self._workspace, self.secrets = permissions, workspace, secrets
        self._locks = PathLocks()  # of their own, taken behind those of the paths, so that no two holders wait

    def uncovers(self, caller: Caller, paths: Sequence[WorkspacePath]) -> tuple[NeedApproval, ...]:
        """A change of paths of which the caller may read some, but not all, can show what is hidden."""
        hidden = [path for path in paths if not self._permissions.readable(caller, path)]
        if not 0 < len(hidden) < len(paths):
            return ()
        return (NeedApproval("builtin.uncover", f"it brings what {hidden[0]} hides to a path that is shown"),)

    def asks(
        self, caller: Caller, plan: Apply, facts: Mapping[WorkspacePath, Facts], unseen: tuple[UnseenChange, ...]
    ) -> tuple[NeedApproval, ...]:
        """What a person must say yes to."""
        edits, fit = self._permissions.policy.edits, plan.fit
        asks = list[NeedApproval]()
        own = self._permissions.profile(caller).lowest_rung or edits.lowest_rung
        lowest = min(edits.lowest_rung, own, key=RUNGS.index)
        if not plan.reverts and RUNGS.index(fit.rung) > RUNGS.index(lowest):
            reason = f"it fits as {fit.rung} (score {fit.score:g}), and below {lowest} a person decides"
            asks.append(NeedApproval("edits.lowest_rung", reason))
        if unseen and edits.stale_reads != "allow":
            asks.append(NeedApproval("edits.stale_reads", unseen_in_words(unseen)))
        return (*asks, *self.repository(plan, facts))

    def sized(
        self,
        checks: tuple[PermissionCheck, ...],
        outcome: Apply | ConflictOutcome,
        facts: Mapping[WorkspacePath, Facts],
    ) -> tuple[PermissionCheck, ...]:
        """What policy is asked once it is known what would be written, if it asks for that."""
        if not evaluation_of(self._permissions.policy).asks_for_size:
            return checks
        if isinstance(outcome, ConflictOutcome):
            sizes = {outcome.path: len(outcome.proposed or b"")}
        else:
            sizes = {change.path: len(_content(outcome, change, facts)) for change in outcome.paths if change.after}
        return tuple(
            msgspec.structs.replace(check, size=sizes.get(check.path)) if check.action in ("create", "write") else check
            for check in checks
        )

    # --- repositories -----------------------------------------------------------------

    def alone(self, paths: Sequence[PathChange]) -> AbstractAsyncContextManager[None]:
        """Hold every directory in which these bring a name that git reads, from the judgement until they are there."""
        return self._locks.alone(WorkspacePath(fold(directory)) for directory in read_by_git(_coming(paths)))

    def repository(self, plan: Apply, facts: Mapping[WorkspacePath, Facts]) -> tuple[NeedApproval, ...]:
        """Changes by which git would run programs. Looks at the disk only where a name is one that git reads."""
        asks = [
            NeedApproval(RULE, f"with it git takes {directory} for a repository, and runs what its files name")
            for directory, names in read_by_git(_coming(plan.paths)).items()
            if is_repository(names | self._there(directory))
        ]
        asks += [
            NeedApproval(RULE, f"{change.path} is a git configuration, which makes git run programs")
            for change in plan.paths
            if change.after is not None and _is_git_config(change.path, _content(plan, change, facts))
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
    return [change.path for change in paths if change.present]


def _is_git_config(path: WorkspacePath, data: Content) -> bool:
    """As `is_git_config`; what is too large to be looked through counts as the worst that it may hold."""
    return is_git_config(path, data if isinstance(data, bytes) else b"[core]")


def _content(plan: Apply, change: PathChange, facts: Mapping[WorkspacePath, Facts]) -> Content:
    """What will be there; a rename brings the content of its source."""
    if (content := plan.content(change)) is not None:
        return content.data
    source = facts.get(change.moved_from) if change.moved_from is not None else None
    return source.held.data if source is not None and source.held is not None else b""
