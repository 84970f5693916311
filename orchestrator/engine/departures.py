"""Files that were moved: where they stand now, for a patch that still names the old path."""

from __future__ import annotations

import msgspec

from orchestrator.api import parameters as p
from orchestrator.core.decisions.bases import implied_base
from orchestrator.core.ids import Digest, Seq, WorkspacePath, parse_digest, parse_seq
from orchestrator.engine.caller import Caller
from orchestrator.engine.services import Services


class Departed(msgspec.Struct, frozen=True):
    """Where a file went, at which @N, and the base that a change of it has there, as its caller would write it."""

    path: WorkspacePath
    at: Seq
    base: p.Version | None


class Departures:
    """Reads moves from the journal."""

    def __init__(self, services: Services) -> None:
        self._s = services

    async def follow(self, caller: Caller, path: WorkspacePath, base: p.Version | None) -> Departed | None:
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
        return Departed(here, moved, await self._base(caller, path, here, base))

    async def _base(
        self, caller: Caller, old: WorkspacePath, new: WorkspacePath, base: p.Version | None
    ) -> p.Version | None:
        if base is None:
            session = self._s.state.sessions.get(caller.session)
            seen = implied_base("seen", session.seen.get(old)) if session else None
            if session is None or seen is None or new in session.seen:
                return None
            digest = await self._digest(old, seen[0])
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
