"""revert: undo one change, later work kept."""

from __future__ import annotations

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.content import PathChange
from orchestrator.core.decisions.commands import Revert, Wish
from orchestrator.core.errors import Aborted, NotAvailable, RevertImpossible, VersionUnknown
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.files import ChangeAborted, ChangeApplied, ChangeDiverged, ChangeIntended
from orchestrator.core.ids import Seq, parse_seq, show
from orchestrator.engine.answers import Answers, changed_outside
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changing import Changer, Wanted
from orchestrator.engine.services import Services


class Reverter:
    """Finds what a change did, and has its inverse made."""

    def __init__(self, services: Services, changer: Changer, answers: Answers) -> None:
        self._s, self._changer, self._answers = services, changer, answers

    async def revert(self, caller: Caller, call: Call, params: p.Revert) -> r.ChangeAnswer:
        number = parse_seq(params.change, parameter="change")
        recorded = await self._s.journal.event(number)
        if recorded is None:
            raise VersionUnknown(f"the journal has no event {show(number)}", hint="file_history lists changes.")
        change, paths, author = await self._changed(recorded)
        others = author != caller.agent
        self._changer.refuse_early(caller, *(Wish("revert", changed.path, others) for changed in paths))
        command = Revert(change=change, changed=paths, others_work=others)
        return await self._changer.change(
            command, Wanted(caller=caller, call=call, preview=params.preview, reason=params.reason)
        )

    async def _changed(self, recorded: Recorded) -> tuple[Seq, tuple[PathChange, ...], str | None]:
        """The change that an event belongs to: its id, what it did, and whose it was."""
        outside = changed_outside(recorded)
        if outside is not None:
            if outside.after is None:
                earlier = await self._s.journal.versions(outside.path, limit=1, before=recorded.seq)
                outside = msgspec.structs.replace(outside, mode=earlier[0].mode if earlier else None)
            return recorded.seq, (outside,), None
        if not isinstance(recorded.event, ChangeIntended | ChangeApplied | ChangeAborted | ChangeDiverged):
            raise RevertImpossible(
                f"{show(recorded.seq)} changed no file, so there is nothing to revert",
                hint="Name the version_id or change of an answer or of file_history.",
            )
        outcome = await self._answers.outcome(recorded)
        if outcome is None or not isinstance(outcome.event, ChangeApplied):
            raise Aborted(f"{show(recorded.seq)} never took effect", hint="There is nothing to revert.")
        applied = outcome.event
        if any(changed.directory for changed in applied.paths):
            raise NotAvailable("reverting the creation of a directory is not built in this version")
        return applied.change, applied.paths, outcome.agent
