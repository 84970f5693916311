"""What a command must not read, or not write: what policy keeps from its caller, also what is not tracked."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from typing import Literal, NamedTuple

from orchestrator.core.content import Signature
from orchestrator.core.errors import PathError
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import ROOT, ancestors, join
from orchestrator.core.policy.rules import Allow
from orchestrator.engine.caller import Caller
from orchestrator.engine.services import Services

MOST_LISTED = 500
"""Directories whose names are looked at, those nearest to the root first; of tracked files all are."""

MOST_READ_ONLY = 1_000
"""Each is a mount, or more. Where there are more of them, the whole workspace is read-only."""

RECENT_MS = 3_000
"""A directory that changed so lately may change again without another time in its stat: it is listed again."""


class ClosedPaths(NamedTuple):
    """Files, and directories with all in them."""

    hidden: tuple[WorkspacePath, ...]
    read_only: tuple[WorkspacePath, ...]  # of the others: what its caller may not write unasked


class _Listing(NamedTuple):
    """The names in a directory, and what stat said of it before they were read; None: they are to be read again."""

    signature: Signature | None = None
    paths: frozenset[WorkspacePath] = frozenset()


NOTHING = _Listing()


class ClosedPathFinder:
    """Finds what is closed to a caller.

    It keeps all paths by the rules that name them, so that one of each kind is judged, and adds what came since.
    Blocking, and thread-safe. Cost: a look into a table for each tracked path, and a stat of each listed directory.
    """

    def __init__(self, services: Services) -> None:
        self._s, self._looking = services, threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._policy = self._s.permissions.policy
        self._kinds: dict[int, set[WorkspacePath]] = {}
        self._tracked: set[WorkspacePath] = set()
        self._folders = Counter({ROOT: 1})  # how many tracked files each has below it; the root is always there
        self._listings: dict[WorkspacePath, _Listing] = {}

    def closed_to(self, caller: Caller) -> ClosedPaths:
        """A yes to one version of a file shows a command nothing."""
        permissions = self._s.permissions
        with self._looking:
            doubtful = self._doubtful(caller)
            while self._policy is not permissions.policy:  # there is another one by now
                self._begin()
                doubtful = self._doubtful(caller)

        def refused(action: Literal["read", "write"]) -> set[WorkspacePath]:
            return {path for path in doubtful if not isinstance(permissions.verdict(caller, action, path), Allow)}

        hidden = refused("read")
        return ClosedPaths(tuple(sorted(hidden)), _without_nested(refused("write") - hidden))

    def _doubtful(self, caller: Caller) -> list[WorkspacePath]:
        """Those that policy does not simply allow it to read and write."""
        self._look()
        both = self._s.permissions.allowing(caller, ("read", "write"))
        return [path for paths in self._kinds.values() if paths and not both(next(iter(paths))) for path in paths]

    # --- which paths there are ------------------------------------------------------------

    def _look(self) -> None:
        before, self._tracked = self._tracked, {*self._s.state.registry.paths()}
        came, gone = self._tracked - before, before - self._tracked
        self._folders.update(folder for path in came for folder in ancestors(path))
        self._folders.subtract(folder for path in gone for folder in ancestors(path))
        if gone:
            self._folders = +self._folders
        for path in came:
            self._kind(path).add(path)
        gone |= self._list()
        for path in gone - self._tracked:
            if path not in self._listing(path).paths:
                self._kind(path).discard(path)

    def _list(self) -> set[WorkspacePath]:
        """The names beside tracked files: what holds secrets is ignored by version control more often than not.

        Those are given back that are not there any more.
        """
        folders = sorted(sorted(self._folders, key=lambda folder: folder.count("/"))[:MOST_LISTED])
        before, self._listings = self._listings, {}
        gone = {path for folder in before.keys() - {*folders} for path in before[folder].paths}
        for folder, stat in zip(folders, self._s.workspace.stats(folders), strict=True):
            known, signature = before.get(folder, NOTHING), stat.signature if stat is not None else None
            if signature is None or signature != known.signature:
                listing = self._listed(folder, signature)
                gone |= known.paths - listing.paths
                for path in listing.paths - known.paths:
                    self._kind(path).add(path)
                known = listing
            self._listings[folder] = known
        return gone

    def _listed(self, folder: WorkspacePath, signature: Signature | None) -> _Listing:
        """`signature`: from before. It tells of later changes only if it is older than the clock of stats is coarse."""
        last_ms = self._s.clock.now_ms() - RECENT_MS
        told = signature is not None and 0 < signature.ctime_ns // 1_000_000 <= last_ms  # 0: there are no times here
        with suppress(PathError):  # gone, or closed to us
            paths = frozenset(join(folder, item.name) for item in self._s.workspace.names(folder) if item.valid)
            return _Listing(signature if told else None, paths)
        return NOTHING

    def _listing(self, path: WorkspacePath) -> _Listing:
        above = ancestors(path)
        return self._listings.get(above[-1] if above else ROOT, NOTHING)

    def _kind(self, path: WorkspacePath) -> set[WorkspacePath]:
        return self._kinds.setdefault(self._s.permissions.kind(path), set())


def _without_nested(paths: set[WorkspacePath]) -> tuple[WorkspacePath, ...]:
    found = tuple(sorted(path for path in paths if paths.isdisjoint(ancestors(path))))
    return found if len(found) <= MOST_READ_ONLY else (ROOT,)
