"""How each place of a merge came together, and the report of a merge."""

from __future__ import annotations

from typing import Final, Literal, get_args

import msgspec

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.three_way import Region, Span

AutomaticRule = Literal["same_change", "imports", "list_items", "additions", "disjoint_symbols"]
"""Why a conflict was safe to merge, in the order in which the rules are tried: both sides changed the same; both added
imports, entries of a list, definitions; or they changed neighbouring lines of different symbols."""

AUTOMATIC_RULES: Final[tuple[AutomaticRule, ...]] = get_args(AutomaticRule)

MergeRule = Literal["clean", AutomaticRule]
"""As `AutomaticRule`; `clean`: nobody else changed these lines or the ones next to them."""


class ResolvedRegion(msgspec.Struct, frozen=True):
    """One place of a merge, in the three contents and in the result."""

    path: WorkspacePath
    rule: MergeRule
    why: str
    region: Region
    merged: Span
