"""What the changes of one task make of the files of a commit: each is merged into them, and no other work is.

Where a file holds uncommitted work of others as well, git's merge tells the two apart; where it can't, the file is left
out, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from orchestrator.api.journal_operations import EntryPath
from orchestrator.clients.git.repository import merged

Content = bytes | None
"""None: there is no file."""

MIXED: Final = "its changes build on work of others that is not committed"
NOT_KEPT: Final = "the journal has not kept its content"


class _LeftOut(Exception):
    """Why a change can't be taken in."""


class TaskFiles:
    """Files of the last commit, and what the changes of a task make of them."""

    def __init__(self, committed: Callable[[str], Content], kept: Callable[[str, str], Content]) -> None:
        """`committed`: a path's content in the last commit. `kept`: its content at a version, None if there is none."""
        self._committed, self._kept = committed, kept
        self._contents: dict[str, Content] = {}
        self.left_out: dict[str, str] = {}
        """By path, why its changes are not in the files."""

    def take_in(self, changes: Iterable[tuple[EntryPath, ...]]) -> dict[str, Content]:
        """The files that these changes, the oldest first, leave other than the commit has them."""
        for items in changes:
            try:
                made = self._made(items)
            except _LeftOut as why:
                self.left_out |= {item.path: str(why) for item in items if item.path not in self.left_out}
            else:
                self._contents |= made
        used = {path: content for path, content in self._contents.items() if path not in self.left_out}
        return {path: content for path, content in used.items() if content != self._committed(path)}

    def _made(self, items: tuple[EntryPath, ...]) -> dict[str, Content]:
        """What one change makes of its paths: of all of them, or of none."""
        if any(item.path in self.left_out for item in items):
            raise _LeftOut(MIXED)
        versions = {item.path: item.before for item in items}
        made: dict[str, Content] = {}
        for item in items:
            source = item.moved_from or item.path
            if item.after is None:
                made[item.path] = None
            else:
                base = self._at(source, versions.get(source, item.before))
                made[item.path] = _three_way(self._now(source), base, self._at(item.path, item.after))
        return made

    def _now(self, path: str) -> Content:
        return self._contents[path] if path in self._contents else self._committed(path)

    def _at(self, path: str, version: str | None) -> Content:
        if version is None:
            return None
        if (content := self._kept(path, version)) is None:
            raise _LeftOut(NOT_KEPT)
        return content


def _three_way(ours: Content, base: Content, theirs: Content) -> Content:
    if ours == base:
        return theirs
    if theirs in (ours, base):
        return ours
    if ours is None or base is None or theirs is None or (content := merged(ours, base, theirs)) is None:
        raise _LeftOut(MIXED)
    return content
