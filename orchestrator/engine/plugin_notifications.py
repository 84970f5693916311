"""Plugins are told of changes, after the fact."""

from __future__ import annotations

from orchestrator.core.events.base import Recorded
from orchestrator.core.events.files import ChangeApplied, ChangeIntended
from orchestrator.core.ids import Seq
from orchestrator.extensions.hookspecs import AppliedChange, ChangedPath
from orchestrator.extensions.manager import Extensions
from orchestrator.ports.journal import Journal


class PluginNotifier:
    """Hears the journal and hands each applied change on; waits for nobody."""

    def __init__(self, journal: Journal, extensions: Extensions) -> None:
        self._extensions = extensions
        self._reasons: dict[Seq, str] = {}  # of changes whose outcome is still out
        journal.subscribe(self._hear)

    def _hear(self, recorded: Recorded) -> None:
        event = recorded.event
        if isinstance(event, ChangeIntended):
            self._reasons[recorded.seq] = event.reason
        elif isinstance(change := getattr(event, "change", None), int):
            reason = self._reasons.pop(Seq(change), "")
            if isinstance(event, ChangeApplied):
                self._extensions.tell(_told(recorded, event, reason))


def _told(recorded: Recorded, event: ChangeApplied, reason: str) -> AppliedChange:
    return AppliedChange(
        seq=recorded.seq,
        at=recorded.at,
        agent=recorded.agent,
        session=recorded.session,
        operation=event.operation,
        rung=event.rung,
        paths=tuple(ChangedPath(path.path, path.before, path.after, path.moved_from) for path in event.paths),
        reason=reason,
        reverts=event.reverts,
    )
