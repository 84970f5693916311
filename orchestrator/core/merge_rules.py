"""The rules that resolve what git leaves as a conflict, by name, and the report of a merge."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from orchestrator.core.ids import WorkspacePath

AutomaticRule = Literal["same_change", "disjoint_symbols", "additions", "imports", "list_items"]
"""Why a clash was safe to settle: both sides changed the same, or neighbouring symbols; both added
definitions; both changed a list of imports; both added entries of a list."""

AUTOMATIC_RULES: Final[tuple[AutomaticRule, ...]] = (
    "same_change",
    "disjoint_symbols",
    "additions",
    "imports",
    "list_items",
)

MergeRule = Literal["apart", "same_change", "disjoint_symbols", "additions", "imports", "list_items"]
"""As `AutomaticRule`; `apart`: nobody else changed these lines or the ones next to them."""


class ResolvedRegion(msgspec.Struct, frozen=True, gc=False):
    """One place of a merge. 0-based starts and lengths of its lines in the three contents, and in the result."""

    path: WorkspacePath
    rule: MergeRule
    why: str
    base_start: int
    base_len: int
    current_start: int
    current_len: int
    proposed_start: int
    proposed_len: int
    start: int
    length: int
