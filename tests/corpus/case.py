"""One patch as a model sends it, what the files hold, and what may become of them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

NOT_FOUND, AMBIGUOUS = "search_not_found", "search_ambiguous"
INVALID, TWO_WAYS = "patch_invalid", "patch_ambiguous"
OVERLAP, NOTHING = "changes_overlap", "nothing_to_change"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """`after` alone: it must land so. `codes` alone: it must be refused so. Both: one of the two."""

    name: str
    before: Mapping[str, str]
    patch: str
    path: str | None = None
    after: Mapping[str, str | None] | None = None  # of the files that change; None: gone
    codes: frozenset[str] = frozenset()
    form: str | None = None

    def expected(self) -> dict[str, str]:
        """All files after a landing."""
        changed = {**self.before, **(self.after or {})}
        return {path: text for path, text in changed.items() if text is not None}
