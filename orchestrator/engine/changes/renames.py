"""Files that were moved: where they stand now, for those who still name the old path."""

from __future__ import annotations

import msgspec

from orchestrator.api import parameters as p
from orchestrator.core.errors import FileNotFound, OrchestratorError
from orchestrator.core.ids import Digest, Seq, WorkspacePath, parse_digest, parse_seq, show
from orchestrator.engine.caller import Caller
from orchestrator.engine.services import Services


class FollowedRename(msgspec.Struct, frozen=True):
    """Where a file went, at which @N, and the base that a change of it has there, as its caller would write it."""

    path: WorkspacePath
    at: Seq
    base: p.Version | None


class Renamed(msgspec.Struct, frozen=True):
    """Where a file went, and the version with which it came there."""

    path: WorkspacePath
    at: Seq


class RenameTracker:
    """Reads moves from the journal."""

    def __init__(self, services: Services) -> None:
        self._s = services

    async def follow(self, caller: Caller, path: WorkspacePath, base: p.Version | None) -> FollowedRename | None:
        """Where the file at a path that holds nothing went to; None where it is there, or was never moved.

        The caller's base is taken along if the file had that content after the move; one that it may not
        read is not told of.
        """
        known: set[WorkspacePath] = set()
        here = path
        moved: Seq | None = None
        while self._s.workspace.stat(here) is None and here not in known:
            known.add(here)
            rows = await self._s.journal.moved_away((here,))
            if not rows:
                return None
            here, moved = rows[-1].path, rows[-1].seq
        if moved is None or here in known or not self._s.readable(caller, here):
            return None
        return FollowedRename(here, moved, await self._base(caller, path, here, base))

    async def went(self, path: WorkspacePath, *, after: int) -> Renamed | None:
        """Where the file that stood at a path at `after` was moved to since, step by step; None if it was not.

        What was made at the old path later is another file. Only a rename that was met from outside counts
        for less: where something stands at its old path, that may be one file that was saved by renaming.
        """
        here, found = path, None
        while True:
            rows = [row for row in await self._s.journal.moved_away((here,)) if row.seq > after and row.present]
            if not rows or (rows[0].kind == "external" and self._s.state.registry.get(here) is not None):
                return found if found is not None and found.path != path else None
            here, after = rows[0].path, rows[0].seq
            found = Renamed(here, rows[0].seq)

    async def refuse(self, caller: Caller, path: WorkspacePath, *, note: str = "") -> None:
        """Refuse a call about a path whose file was moved. Raises FileNotFound, which names the new one."""
        followed = await self.follow(caller, path, None)
        if followed is not None:
            raise _told(FileNotFound(path, "there is no such file"), followed, note)

    async def name(self, caller: Caller, error: OrchestratorError) -> None:
        """Let a refusal say where the file went, if that is why it is not there."""
        if type(error) is FileNotFound and "moved_to" not in error.details:
            followed = await self.follow(caller, WorkspacePath(error.details["path"]), None)
            if followed is not None:
                _told(error, followed)

    def seen(self, caller: Caller, path: WorkspacePath) -> bool:
        """Whether the session was shown a file under this path, or changed it there."""
        session = self._s.state.sessions.get(caller.session)
        return session is not None and path in session.seen

    async def _base(
        self, caller: Caller, old: WorkspacePath, new: WorkspacePath, base: p.Version | None
    ) -> p.Version | None:
        if base is None:
            session = self._s.state.sessions.get(caller.session)
            seen = session.seen.get(old) if session else None
            if session is None or seen is None or seen.newest is None or new in session.seen:
                return None
            digest = await self._digest(old, seen.newest)
        elif isinstance(base, str) and parse_digest(base) is not None:
            return base
        else:
            at = parse_seq(base, parameter="base")
            if at > self._s.journal.head:
                return base
            digest = await self._digest(old, at)
        return digest if digest and await self._s.journal.version_with(new, digest) else base

    async def _digest(self, path: WorkspacePath, at: Seq) -> Digest | None:
        row = await self._s.journal.version_at(path, at)
        return row.digest if row is not None else None


def _told(error: FileNotFound, followed: FollowedRename, note: str = "") -> FileNotFound:
    """The refusal, with the new path in its message, its details and its hint."""
    error.message = f"{error.message}; it was moved to {followed.path} at {show(followed.at)}"
    error.details = {**error.details, "moved_to": followed.path, "moved_at": show(followed.at)}
    error.hint = f"Send the call again with {followed.path} in place of the old path.{note}"
    return error
