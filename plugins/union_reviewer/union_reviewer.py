"""Both sides only added lines: keep both. Reads the request on standard input, prints the answer; docs/plugins.md."""

from __future__ import annotations

import json
import sys
from typing import Any

Lines = list[str]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Settles pure additions, and vouches for nothing else."""
    regions = request["regions"]
    settled = {region["number"]: union(region["base"], region["current"], region["proposed"]) for region in regions}
    for number, lines in settled.items():
        if lines is None:
            return {"verdict": "reject", "reason": f"region {number}: a side changed or removed lines"}
    texts = [{"region": number, "lines": lines} for number, lines in settled.items()]
    return {"verdict": "content", "regions": texts, "reason": "both sides only added lines"}


def union(base: Lines, current: Lines, proposed: Lines) -> Lines | None:
    """Base lines in place, both additions between them; None where a side did more than add."""
    ours, theirs = added(base, current), added(base, proposed)
    if ours is None or theirs is None:
        return None
    lines: Lines = []
    for at, both in enumerate(zip(ours, theirs, strict=True)):
        lines += together(*both)
        lines += base[at : at + 1]
    return lines


def added(base: Lines, side: Lines) -> list[Lines] | None:
    """What a side added before each base line, and after the last; None where a base line is gone."""
    found: list[Lines] = []
    start = 0
    for line in base:
        try:
            at = side.index(line, start)
        except ValueError:
            return None
        found.append(side[start:at])
        start = at + 1
    return [*found, side[start:]]


def together(ours: Lines, theirs: Lines) -> Lines:
    """Ours, then theirs; what both begin or both end with stands once."""
    least = min(len(ours), len(theirs))
    head = next((n for n in range(least) if ours[n] != theirs[n]), least)
    ours_rest, theirs_rest = ours[head:], theirs[head:]
    least = min(len(ours_rest), len(theirs_rest))
    tail = next((n for n in range(least) if ours_rest[-1 - n] != theirs_rest[-1 - n]), least)
    end = len(ours_rest) - tail
    return [*ours[:head], *ours_rest[:end], *theirs_rest[: len(theirs_rest) - tail], *ours_rest[end:]]


def main() -> None:
    json.dump(answer(json.load(sys.stdin.buffer)), sys.stdout)


if __name__ == "__main__":
    main()
