"""Hints of what other programs do in the workspace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from orchestrator.core.events.files import ExternalTrigger
from orchestrator.core.ids import WorkspacePath


class Hints(msgspec.Struct, frozen=True):
    """Where something may have changed; never what, nor that it did: the disk is asked for that."""

    paths: frozenset[WorkspacePath] = frozenset()  # files, or not known to be anything else
    folders: frozenset[WorkspacePath] = frozenset()  # made, removed or moved, with all that is in them
    rescan: ExternalTrigger | None = None
    """Look everywhere. overflow: hints were lost; scan: there are none now; watch: other files are ignored now."""
    added: frozenset[WorkspacePath] = frozenset()  # of the folders, those that were made or moved there


class Watcher(Protocol):
    """Says where to look. and decides nothing.

    Left out are our temporary files, version control's own folders, the daemon's own files, and ignored directories
    that were not `follow`ed. It never follows a link.
    """

    @property
    def health(self) -> str:
        """ "live", or "degraded: …" with what is missing and what to do about it."""

    def start(self) -> None:
        """From the return on, nothing that happens is missed without a `rescan`. Blocking; degrades, never raises."""

    def follows(self, folder: WorkspacePath) -> bool:
        """Whether changes of names directly in this folder would be reported."""

    def follow(self, folder: WorkspacePath) -> None:
        """Watch this folder too, though it is ignored: something in it is tracked. Blocking."""

    def hints(self) -> AsyncIterator[Hints]:
        """Until cancelled. While degraded, a `rescan` comes at intervals."""

    def close(self) -> None: ...
