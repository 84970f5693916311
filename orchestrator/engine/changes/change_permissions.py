"""What policy says of a change: the one place that asks it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import anyio.lowlevel

from orchestrator.core.change import Fit, PermissionCheck
from orchestrator.core.content import RUNGS
from orchestrator.core.events.notices import UnseenChange
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.rules import Deny, NeedApproval, Verdict
from orchestrator.engine.caller import Caller
from orchestrator.engine.changes.facts import SLICE
from orchestrator.engine.permissions import denied
from orchestrator.engine.reads.read_sets import unseen_in_words
from orchestrator.engine.services import Services


class ChangePermissions:
    """Asks policy about acts on paths, and about how a change fits."""

    def __init__(self, services: Services) -> None:
        self._s = services

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
        hidden = [path for path in paths if not self._s.readable(caller, path)]
        if not 0 < len(hidden) < len(paths):
            return ()
        return (NeedApproval("builtin.uncover", f"it brings what {hidden[0]} hides to a path that is shown"),)

    def unsure(self, fit: Fit) -> tuple[NeedApproval, ...]:
        """A change that came to fit in a way that policy leaves to a person."""
        lowest = self._s.policy.edits.lowest_rung
        if RUNGS.index(fit.rung) <= RUNGS.index(lowest):
            return ()
        reason = f"it fits as {fit.rung} (score {fit.score:g}), and below {lowest} a person decides"
        return (NeedApproval("edits.lowest_rung", reason),)

    def stale(self, unseen: tuple[UnseenChange, ...]) -> tuple[NeedApproval, ...]:
        """A change whose author has not seen what others did."""
        if not unseen or self._s.policy.edits.stale_reads == "allow":
            return ()
        return (NeedApproval("edits.stale_reads", unseen_in_words(unseen)),)

    def _verdict(self, caller: Caller, check: PermissionCheck, *, on_disk: bool) -> Verdict:
        return self._s.verdict(
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
