"""Which large texts begin with what was looked through before, and holds no secret: a log grows all the time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from orchestrator.core.bounded_cache import BoundedCache
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.secret_rules import Level
from orchestrator.core.text.secrets import MOST_KEY_LINES

REMEMBERED = 200
"""Texts of which the hash is kept."""


class CleanBeginnings:
    """Remembers, of each path, the last text without a secret, by its hash. Calls are blocking."""

    def __init__(self) -> None:
        self._known: BoundedCache[tuple[WorkspacePath, Level], tuple[int, bytes]] = BoundedCache(REMEMBERED)

    def known(self, path: WorkspacePath, level: Level, lines: Sequence[str]) -> int:
        """How many of the first lines hold no secret for sure, and are too far from the others to be of a key's."""
        count, digest = self._known.get((path, level)) or (0, b"")
        return max(0, count - MOST_KEY_LINES) if count and _digest(lines[:count]) == digest else 0

    def add(self, path: WorkspacePath, level: Level, lines: Sequence[str]) -> None:
        """No secret was found in these; the last line may go on."""
        self._known.put((path, level), (len(lines) - 1, _digest(lines[:-1])))


def _digest(lines: Sequence[str]) -> bytes:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).digest()
