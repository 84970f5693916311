"""What a merge resolves that git would leave to a person: the rules by name, and the report of a merge."""

from __future__ import annotations

from typing import Final, Literal, get_args

import msgspec

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.three_way import Region, Span

AutomaticRule = Literal["same_change", "disjoint_symbols", "additions", "imports", "list_items"]
"""Why a conflict was safe to resolve: both sides changed the same, or neighbouring symbols; both added
definitions; both changed a list of imports; both added entries of a list."""

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
