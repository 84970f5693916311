"""The present tree, folded from history's rows: the last version of every path."""

from __future__ import annotations

import msgspec

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.projections.history import DigestLearned, VersionRow


class Trees:
    """For each path the version that took effect last, absent ones too."""

    def __init__(self) -> None:
        self._rows: dict[WorkspacePath, VersionRow] = {}

    def add(self, item: VersionRow | DigestLearned) -> None:
        """One more of the rows that `history` gives, in the journal's order."""
        known = self._rows.get(item.path)
        if isinstance(item, VersionRow):
            if known is None or (item.effective, item.seq) >= (known.effective, known.seq):
                self._rows[item.path] = item
        elif known is not None and known.seq == item.version and known.present:
            if known.digest is None:
                known = msgspec.structs.replace(known, digest=item.digest, size=item.size)
            self._rows[item.path] = msgspec.structs.replace(known, mode=item.mode)

    def get(self, path: WorkspacePath) -> VersionRow | None:
        """The version of a file that is there."""
        row = self._rows.get(path)
        return row if row is not None and row.present else None

    def paths(self) -> list[WorkspacePath]:
        """Of the files that are there, in order."""
        return sorted(path for path, row in self._rows.items() if row.present)

    def removed(self) -> list[WorkspacePath]:
        """Of the files that were there once and are not, in order."""
        return sorted(path for path, row in self._rows.items() if not row.present)
