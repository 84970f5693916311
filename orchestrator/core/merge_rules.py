"""How each place of a merge came together, and the report of a merge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.three_way import Region, Span

MergeRule = Literal["clean", "same_change", "imports"]

WHY: Final[Mapping[MergeRule, str]] = {
    "clean": "no other change touched these lines or their neighbours",
    "same_change": "both sides made the same change",
    "imports": "both sides only added imports, and no name is bound twice",
}


class ResolvedRegion(msgspec.Struct, frozen=True):
    """One place of a merge, in the three contents and in the result."""

    path: WorkspacePath
    rule: MergeRule
    why: str
    region: Region
    merged: Span
