"""What a merge did, for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orchestrator.api import results as r
from orchestrator.core.errors import escaped


def merged(places: Iterable[r.MergeText]) -> Iterator[str]:
    """A line for each place where a change met what others had done."""
    for place in places:
        first, last = place.lines
        lines = f"{first}-{last}" if last > first else f"{first}"
        yield f"merged: {escaped(place.path)}:{lines} {place.rule}: {escaped(place.why)}"


def merge_rules(settled: Iterable[object]) -> str:
    """The rules of an event's merge, in short."""
    return "merged: " + ", ".join(dict.fromkeys(str(place.get("rule")) for place in settled if isinstance(place, dict)))
