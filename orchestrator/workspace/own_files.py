"""The daemon's own files by device and inode: a hard link to one reads as absent."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from orchestrator.core.ids import WorkspacePath
from orchestrator.workspace.disk import Identity, identity_of


class OwnFiles:
    """All that lies in some directories, and single files.

    Cost of a question: one stat for each directory there. A directory is listed again only when its mtime moved,
    since a workspace may hold many files with several names (pnpm, uv), and the state many contents.
    """

    def __init__(self, places: Iterable[str]) -> None:
        self._places = tuple(places)
        self._listed: dict[str, tuple[int, frozenset[Identity], tuple[str, ...]]] = {}

    def directories(self) -> frozenset[Identity]:
        """The places themselves, those that are there."""
        return frozenset(identity_of(found) for place in self._places if (found := _stat(place)) is not None)

    def inside(self, root: str) -> tuple[WorkspacePath, ...]:
        """The places that a workspace holds, by their paths in it."""
        above = root.rstrip("/") + "/"
        return tuple(WorkspacePath(place.removeprefix(above)) for place in self._places if place.startswith(above))

    def holds(self, identity: Identity) -> bool:
        """Whether a file is one of them."""
        pending = list(self._places)
        while pending:
            place = pending.pop()
            found = _stat(place)
            if found is None:
                self._listed.pop(place, None)
                continue
            if not stat.S_ISDIR(found.st_mode):
                if identity_of(found) == identity:
                    return True
                continue
            known = self._listed.get(place)
            if known is None or known[0] != found.st_mtime_ns:
                known = self._listed[place] = (found.st_mtime_ns, *_listing(place))
            if identity in known[1]:
                return True
            pending += known[2]
        return False


def _listing(directory: str) -> tuple[frozenset[Identity], tuple[str, ...]]:
    """The files in a directory, and the directories."""
    files: set[Identity] = set()
    below: list[str] = []
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
                else:
                    files.add(identity_of(entry.stat(follow_symlinks=False)))
    return frozenset(files), tuple(below)


def _stat(path: str) -> os.stat_result | None:
    with suppress(OSError):
        return os.stat(path, follow_symlinks=False)  # scandir gives strings
    return None
