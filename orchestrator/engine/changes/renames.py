"""Files that were moved: where they are now, for callers who still name the old path."""

from __future__ import annotations

import msgspec

from orchestrator.api import parameters as p
from orchestrator.core.errors import FileNotFound, OrchestratorError
from orchestrator.core.ids import Seq, WorkspacePath, parse_digest, parse_seq, show
from orchestrator.core.projections.state import State
from orchestrator.engine.caller import Caller
from orchestrator.engine.permissions import Permissions
from orchestrator.ports.journal import Journal
from orchestrator.ports.workspace import Workspace


class Renamed(msgspec.Struct, frozen=True):
    """Where a file was moved to, and the version with which it came there."""

    path: WorkspacePath
    at: Seq
    base: p.Version | None = None  # of a change that follows it: as its caller would write it


class RenameTracker:
    """Reads moves from the journal."""

    def __init__(self, journal: Journal, workspace: Workspace, permissions: Permissions, state: State) -> None:
        self._journal, self._workspace, self._permissions, self._state = journal, workspace, permissions, state

    async def follow(self, caller: Caller, path: WorkspacePath, base: p.Version | None) -> Renamed | None:
        """Where the file of a path with nothing at it was moved to; None where it is there, or was never moved.

        The caller's base is taken along if the file had that content after the move; one that it may not
        read is not named.
        """
        known: set[WorkspacePath] = set()
        here = path
        at: Seq | None = None
        while self._workspace.stat(here) is None and here not in known:
            known.add(here)
            rows = await self._journal.moved_away((here,))
            if not rows:
                return None
            here, at = rows[-1].path, rows[-1].seq
        if at is None or here in known or not self._permissions.readable(caller, here):
            return None
        return Renamed(here, at, await self._base(caller, path, here, base))

    async def moved_to(self, path: WorkspacePath, *, after: int) -> Renamed | None:
        """Where the file that was at a path at `after` was moved to since, step by step; None if it was not.

        What was made at the old path later is another file. An external rename counts for less: a file that is
        at its old path now may be the same one, saved by renaming.
        """
        here, found = path, None
        while True:
            rows = [row for row in await self._journal.moved_away((here,)) if row.seq > after and row.present]
            if not rows or (rows[0].kind == "external" and self._state.registry.get(here) is not None):
                return found if found is not None and found.path != path else None
            here, after = rows[0].path, rows[0].seq
            found = Renamed(here, rows[0].seq)

    async def refuse(self, caller: Caller, path: WorkspacePath, *, note: str = "") -> None:
        """Refuse a call about a path whose file was moved. Raises FileNotFound, which names the new one."""
        followed = await self.follow(caller, path, None)
        if followed is not None:
            raise _named(FileNotFound(path, "there is no such file"), followed, note)

    async def name(self, caller: Caller, error: OrchestratorError) -> None:
        """Let a refusal say where the file was moved to, if that is why it is not there."""
        if type(error) is FileNotFound and "moved_to" not in error.details:
            followed = await self.follow(caller, WorkspacePath(error.details["path"]), None)
            if followed is not None:
                _named(error, followed)

    def seen(self, caller: Caller, path: WorkspacePath) -> bool:
        """Whether the session was shown a file under this path, or changed it there."""
        session = self._state.sessions.get(caller.session)
        return session is not None and path in session.seen

    async def _base(
        self, caller: Caller, old: WorkspacePath, new: WorkspacePath, base: p.Version | None
    ) -> p.Version | None:
        if isinstance(base, str) and parse_digest(base) is not None:
            return base
        if base is None:
            session = self._state.sessions.get(caller.session)
            seen = session.seen.get(old) if session and new not in session.seen else None
            if seen is None or seen.newest is None:
                return None
            at = seen.newest
        else:
            at = parse_seq(base, parameter="base")
            if at > self._journal.head:
                return base
        row = await self._journal.version_at(old, at)
        digest = row.digest if row is not None else None
        return digest if digest and await self._journal.version_with(new, digest) else base


def _named(error: FileNotFound, followed: Renamed, note: str = "") -> FileNotFound:
    """The refusal, with the new path in its message, its details and its hint."""
    error.message = f"{error.message}; it was moved to {followed.path} at {show(followed.at)}"
    error.details = {**error.details, "moved_to": followed.path, "moved_at": show(followed.at)}
    error.hint = f"Send the call again with {followed.path} in place of the old path.{note}"
    return error
