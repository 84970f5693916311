"""Samples in turns, rows, and the one table."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

Work = Callable[[], Awaitable[object]]


class Samples(msgspec.Struct):
    """What one contender took: milliseconds, calls a second, or a size."""

    values: list[float]
    why_none: str = ""  # why there are no values

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def at(self, quantile: float) -> float:
        """By nearest rank: a value that was seen."""
        ordered = sorted(self.values)
        return ordered[max(0, math.ceil(quantile * len(ordered)) - 1)]


class Target(msgspec.Struct, frozen=True):
    """What a row must reach: how many times better than the peer, or a bound on our own median."""

    at_least: float | None = None
    at_most_ms: float | None = None
    why_missed: str = ""  # what keeps it from being met, as measured

    def __str__(self) -> str:
        if self.at_most_ms is not None:
            return f"≤ {self.at_most_ms:g} ms"
        return f"≥ {self.at_least:g}×" if self.at_least is not None else "–"


class Row(msgspec.Struct, kw_only=True):
    """One line of the table. `unit`: of what less is better, but for "calls/s"."""

    work: str
    ours: Samples
    peer: str = ""
    theirs: Samples | None = None
    target: Target = Target()
    unit: str = "ms"

    @property
    def ratio(self) -> float | None:
        """How many times better we are than the peer, by medians."""
        if not self.ours.values or self.theirs is None or not self.theirs.values:
            return None
        ours, theirs = self.ours.median, self.theirs.median
        return ours / theirs if self.unit == "calls/s" else theirs / ours

    @property
    def met(self) -> bool | None:
        """None where there is no target, or nothing to hold against it."""
        if self.target.at_most_ms is not None:
            return self.ours.median <= self.target.at_most_ms if self.ours.values else None
        if self.target.at_least is None or self.ratio is None:
            return None
        return self.ratio >= self.target.at_least

    def record(self) -> dict[str, object]:
        """The row as it is kept."""
        return {
            "work": self.work,
            "unit": self.unit,
            "ours": _summary(self.ours),
            "peer": self.peer,
            "theirs": _summary(self.theirs) if self.theirs is not None else None,
            "ratio": self.ratio,
            "target": str(self.target),
            "met": self.met,
        }


async def in_turns(contenders: Mapping[str, Work], n: int, *, warm_up: int = 2) -> dict[str, Samples]:
    """Time each contender `n` times, in turns, so that the drift of a shared machine meets all alike.

    Each turn begins with the next one (A B C, B C A): who comes after a contender that leaves the
    caches cold pays for it, and it must not always be the same.
    """
    for _ in range(warm_up):
        for work in contenders.values():
            await work()
    samples = {name: Samples([]) for name in contenders}
    order = list(contenders.items())
    for turn in range(n):
        first = turn % len(order)
        for name, work in order[first:] + order[:first]:
            start = time.perf_counter()
            await work()
            samples[name].values.append((time.perf_counter() - start) * 1e3)
    return samples


def plain(function: Callable[[], object]) -> Work:
    """A contender that runs in this process, or spawns and waits."""

    async def work() -> object:
        return function()

    return work


def table(rows: Sequence[Row]) -> str:
    """All rows, aligned."""
    head = ("work", "n", "ours", "p95", "peer or limit", "median", "ratio", "target", "met")
    body = [_cells(row) for row in rows]
    widths = [max(len(line[i]) for line in (head, *body)) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) if i in (0, 4) else cell.rjust(width) for i, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(line, widths, strict=True)) for line in (head, *body))
    )


def misses(rows: Sequence[Row]) -> str:
    """A line for each row whose target is not met, with the reason."""
    lines = [
        f"Not met: {row.work}{f', beside {row.peer}' if row.peer else ''}: "
        f"{row.target.why_missed or 'for no reason that is known: look into it.'}\n"
        for row in rows
        if row.met is False
    ]
    return "".join([*lines, "\n"]) if lines else ""


def _cells(row: Row) -> tuple[str, ...]:
    met = {True: "yes", False: "no", None: "–"}[row.met]
    ratio = f"{row.ratio:.2f}×" if row.ratio is not None else "–"
    ours, p95 = _shown(row.ours, row.unit), "–"
    if row.ours.values and row.unit == "ms":
        p95 = _number(row.ours.at(0.95))
    theirs = _shown(row.theirs, row.unit) if row.theirs is not None else "–"
    count = str(len(row.ours.values) or len(row.theirs.values if row.theirs else ()))
    return row.work, count, ours, p95, row.peer, theirs, ratio, str(row.target), met


def _shown(samples: Samples, unit: str) -> str:
    if not samples.values:
        return samples.why_none or "–"
    return f"{_number(samples.median)} {unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _summary(samples: Samples) -> dict[str, object]:
    if not samples.values:
        return {"n": 0, "why_none": samples.why_none}
    return {
        "n": len(samples.values),
        "min": min(samples.values),
        "median": samples.median,
        "p95": samples.at(0.95),
        "max": max(samples.values),
    }
