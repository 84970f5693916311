"""Which version a change is made against, when the caller does not say so."""

from __future__ import annotations

from typing import Literal

from orchestrator.core.ids import Seq
from orchestrator.core.projections.seen import SeenFile

Rule = Literal["seen", "whole", "none"]
"""`seen`: the newest version of which the session saw any part. `whole`: the newest that it saw
whole. `none`: the change needs no base."""


def implied_base(rule: Rule, seen: SeenFile | None) -> tuple[Seq, bool] | None:
    """The version that the session goes by, and whether it saw it whole; None if there is none."""
    if seen is None or rule == "none":
        return None
    version = seen.newest if rule == "seen" else seen.newest_whole
    if version is None:
        return None
    coverage = seen.coverage(version)
    return version, bool(coverage and coverage.whole)
