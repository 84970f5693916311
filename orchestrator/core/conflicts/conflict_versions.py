"""How a conflict stood at each version of its file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from orchestrator.core.events.conflicts import ConflictFound
from orchestrator.core.events.reviews import ConflictRebased
from orchestrator.core.ids import Seq

ABSENT = Seq(0)
"""As a version: nothing stood at the path."""


def standings(found: ConflictFound, rebases: Iterable[ConflictRebased]) -> tuple[ConflictFound, ...]:
    """The conflict as it was found, and after each time that its file moved on; `rebases` oldest first."""
    states = [found]
    for event in rebases:
        states.append(
            msgspec.structs.replace(
                states[-1],
                base=event.base,
                base_version=event.base_version,
                current=event.current,
                current_version=event.current_version,
                proposed=event.proposed,
                regions=event.regions,
            )
        )
    return tuple(states)


def standing_at(states: Sequence[ConflictFound], on: Seq) -> ConflictFound | None:
    """The conflict as who looked at a version saw it; None if the conflict never met that version.

    Of several that met it the newest, which knows its content if any does.
    """
    return next((state for state in reversed(states) if (state.current_version or ABSENT) == on), None)
