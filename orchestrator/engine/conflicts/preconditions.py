"""Choices for a conflict, held to what was looked at: they land on that, or are refused."""

from __future__ import annotations

from orchestrator.api import parameters as p
from orchestrator.core.conflicts.conflict_versions import standing_at, standings
from orchestrator.core.conflicts.rebase import same_conflict
from orchestrator.core.errors import CallerError, ParameterInvalid, VersionUnknown
from orchestrator.core.events.catalog import tag_of
from orchestrator.core.events.conflicts import ConflictFound
from orchestrator.core.events.reviews import ConflictRebased
from orchestrator.core.ids import Digest, Seq, parse_seq, show
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.projections.reviews import Review
from orchestrator.engine.conflicts.sides import Sides, sides_of, text
from orchestrator.engine.services import Services
from orchestrator.ports.journal import EventFilter


class Preconditions:
    """Knows what each version of its file showed of a conflict."""

    def __init__(self, services: Services) -> None:
        self._s = services

    async def seen(self, conflict: Conflict, params: p.ResolveConflict) -> Digest | None:
        """The content that a whole new one was made from. Raises VersionRequired, ParameterInvalid."""
        version = _on(params)
        if version is None:
            raise VersionRequired(conflict, "a whole content could undo what was changed since you looked")
        state = standing_at(await self._states(conflict), version)
        if state is not None:
            return state.current
        path = conflict.found.path
        row = await self._s.journal.version_at(path, version)
        if row is None or row.seq != version or not row.present:
            raise ParameterInvalid("on", f"{path} has no version {show(version)}", hint=LOOK.format(show(conflict.seq)))
        return row.digest

    async def same(self, conflict: Conflict, params: p.ResolveConflict) -> None:
        """Let a choice of sides through if it means now what it meant to who looked.

        `current` loses nothing that was applied, so it may come without a version. `proposed` may while the same
        lines clash as when the conflict was found, or none do. Raises VersionRequired, ConflictMoved, ParameterInvalid.
        """
        version, now = _on(params), conflict.found
        if version is None and params.choice == "current":
            return
        states = await self._states(conflict)
        if version is not None:
            then = standing_at(states, version)
            if then is None:
                path = now.path
                why = f"{show(conflict.seq)} never met version {show(version)} of {path}"
                raise ParameterInvalid("on", why, hint=LOOK.format(show(conflict.seq)))
            if not await self._same(then, now):
                raise ConflictMoved(conflict, f"other lines clash than at {show(version)}")
            return
        if params.choice == "regions":
            raise VersionRequired(conflict, "the numbers of regions change with the file")
        sides = await sides_of(self._s.contents, now)
        if now.current is not None and await text(self._s.contents, now.current) is None:
            raise VersionRequired(conflict, f"{now.path} is no text, so that all of it would be replaced")
        clashes = sides is None or bool(now.regions) or whole(now, sides)
        if clashes and not conflict.fits and not await self._same(states[0], now):
            raise VersionRequired(conflict, "other lines clash now than when it was found")

    def review(self, conflict: Conflict, params: p.ResolveConflict) -> Review | None:
        """The review whose proposal is accepted, None if there is none. Raises ParameterInvalid, ConflictMoved."""
        newest = conflict.review
        if newest is None:
            return None
        if params.review is None:
            raise ParameterInvalid(
                "review",
                "is required with choice 'review': '@N' of the review whose proposal you looked at",
                hint=LOOK.format(show(conflict.seq)),
            )
        number = parse_seq(params.review, parameter="review")
        if all(item.seq != number for item in conflict.reviews):
            raise VersionUnknown(
                f"{show(number)} is no review of {show(conflict.seq)}", hint=LOOK.format(show(conflict.seq))
            )
        if newest.seq != number:
            raise ConflictMoved(conflict, f"{show(newest.seq)} has come after review {show(number)}")
        return newest if newest.state == "answered" else None

    async def _same(self, then: ConflictFound, now: ConflictFound) -> bool:
        """Whether a side chosen for one state is the same choice for another."""
        if (then.base, then.current, then.proposed) == (now.base, now.current, now.proposed):
            return then.regions == now.regions
        old, new = await sides_of(self._s.contents, then), await sides_of(self._s.contents, now)
        if old is None or new is None or whole(now, new):
            return False
        return same_conflict(
            old.regions,
            (old.current.lines, old.proposed.lines),
            new.regions,
            (new.current.lines, new.proposed.lines),
        )

    async def _states(self, conflict: Conflict) -> tuple[ConflictFound, ...]:
        recorded = await self._s.journal.event(conflict.seq)
        found = recorded.event if recorded is not None else None
        wanted = EventFilter(tags=(tag_of(ConflictRebased),), after=conflict.seq)
        rebases = [
            item.event
            async for item in self._s.journal.events(wanted, batch=100)
            if isinstance(item.event, ConflictRebased) and item.event.conflict == conflict.seq
        ]
        return standings(found if isinstance(found, ConflictFound) else conflict.found, rebases)


def whole(found: ConflictFound, sides: Sides | None) -> bool:
    """Whether the proposed side is a whole file in the place of another, and no lines in the place of lines."""
    return sides is None or found.base is None or found.current is None


def _on(params: p.ResolveConflict) -> Seq | None:
    return parse_seq(params.on, parameter="on") if params.on is not None else None


LOOK = "`orchestrator conflicts show {}` and list_conflicts tell how it stands now: look, and choose again."


class VersionRequired(CallerError):
    """The choice does not say which version of the file it was made for, and could undo what came since."""

    code = "version_required"
    hint = "Send `on` (--on @N) with the current version that list_conflicts told you when you looked."

    def __init__(self, conflict: Conflict, why: str) -> None:
        number = show(conflict.seq)
        super().__init__(
            f"{number}: {why}; name the version that you looked at",
            hint="Send `on` (--on @N) with the current version that list_conflicts or "
            f"`orchestrator conflicts show {number}` told you when you looked.",
            details={"conflict": number},
        )


class ConflictMoved(CallerError):
    """The file, or the review, went on since the caller looked: the choice would mean something else."""

    code = "conflict_moved"
    hint = "Look at the conflict again, and choose again."

    def __init__(self, conflict: Conflict, why: str) -> None:
        number = show(conflict.seq)
        super().__init__(
            f"{number}: {why}, so that the choice would mean something else",
            hint=LOOK.format(number),
            details={"conflict": number},
        )
