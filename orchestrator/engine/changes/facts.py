"""What a decision needs to know: what is at each path now, where it was moved to, and which base a change has."""

from __future__ import annotations

from collections.abc import Mapping

import anyio.lowlevel
import msgspec

from orchestrator.api import parameters as p
from orchestrator.core import errors as e
from orchestrator.core.decisions.commands import Command
from orchestrator.core.decisions.decision import Base, Facts, Held
from orchestrator.core.ids import Digest, Seq, WorkspacePath, parse_digest, show
from orchestrator.core.positions import parse_seq
from orchestrator.core.projections.read_sets import Rule
from orchestrator.engine.caller import Caller, ChangeRequest
from orchestrator.engine.external.observer import CurrentFile, Observer, required_content
from orchestrator.engine.services import Services

SLICE = 20
"""Files of one change that are looked at before other callers have their turn: some 5 ms."""

LOOKED_BACK = 50
"""Versions that are looked at for others' work; beyond, there is some."""


UNHASHED = Digest("unhashed")
"""Of a base that differs from what is there now only by its version."""


class FactFinder:
    """Looks, with the locks of the paths held."""

    def __init__(self, services: Services, observer: Observer) -> None:
        self._s, self._observer = services, observer

    async def find(self, command: Command, wanted: ChangeRequest) -> dict[WorkspacePath, Facts]:
        """Of every path of a command. Raises ParameterInvalid, StaleBase, VersionNotKept, Denied."""
        facts = {}
        based = command.based
        for number, path in enumerate(command.paths, 1):
            if number % SLICE == 0:
                await anyio.lowlevel.checkpoint()
            try:
                present = await self._observer.keep(path)
                held = await self._held(present)
            except e.PathError as error:
                if not command.lenient or isinstance(error, e.IoFailed | e.ChangedWhileRead):
                    raise  # these say nothing of what is there
                facts[path] = Facts(path, None, None, error=error)
                continue
            base = await self._base(based, wanted, present)
            version = present.entry.version if present.entry else None
            blind = not self._s.access.shows(wanted.caller, path)
            alone = held is not None and base is not None and await self._alone(wanted, path, base, held)
            facts[path] = Facts(
                path,
                held,
                version,
                base,
                content_hidden=blind,
                only_own_changes=alone,
                edits=self._s.permissions.policy.edits,
            )
        return facts

    async def _held(self, present: CurrentFile) -> Held | None:
        if present.stat is None:
            return None
        _, digest, data = required_content(present)
        document = await self._s.contents.text(digest, data) if isinstance(data, bytes) else None
        return Held(data, digest, present.stat.mode, document)

    async def _alone(self, wanted: ChangeRequest, path: WorkspacePath, base: Base, held: Held) -> bool:
        """Whether the caller made all of the last changes, since the base."""
        if base.digest == held.digest:
            return True
        rows = await self._s.journal.versions(path, limit=LOOKED_BACK)
        since = [row for row in rows if row.seq > base.version]
        return len(since) < LOOKED_BACK and all(row.agent == wanted.caller.agent for row in since)

    async def _base(
        self, based: Mapping[WorkspacePath, Rule], wanted: ChangeRequest, present: CurrentFile
    ) -> Base | None:
        """The base of CONTRACT's three rules; the third, the present content, is None here."""
        path = present.path
        rule = based.get(path)
        if rule is None:
            return None
        if wanted.base is not None and len(based) > 1 and not _is_version(wanted.base):
            raise e.ParameterInvalid("base", "must be '@N' for a change of several files")
        if wanted.base is not None:
            readable = self._s.access.shows(wanted.caller, path)  # else no outcome depends on the content
            base = await self._named_base(wanted.base, present, readable=readable)
            if readable and (present.entry is None or present.entry.version != base.version):
                row = await self._s.journal.version_at(path, base.version)
                if row is not None:
                    await self._s.past.permit(self._s.access.content(wanted.caller, wanted.call, path), row)
            return base
        session = self._s.state.sessions.get(wanted.caller.session)
        seen = session.seen.get(path) if session else None
        implied = seen.base(rule) if seen else None
        if implied is None:
            return None
        version, whole = implied
        entry = present.entry
        digest = entry.digest if entry is not None and entry.version == version else None
        if digest is None:
            row = await self._s.journal.version_at(path, version)
            digest = row.digest if row is not None else None
        return Base(version, digest, True, whole) if digest is not None else None

    async def _named_base(self, raw: p.Version, present: CurrentFile, *, readable: bool) -> Base:
        path, entry = present.path, present.entry
        digest = parse_digest(raw) if isinstance(raw, str) else None
        if digest is not None and not readable:
            raise e.Denied(  # a guessed content could be tried by its hash
                f"{path}: its content is not shown, so its hash is no base",
                hint="Send its newest @N in file_history as base.",
                details={"path": path},
            )
        if digest is not None:
            row = await self._s.journal.version_with(path, digest)
            if row is None:
                raise e.StaleBase(f"{path} never had the content {digest}", details={"path": path})
            return Base(row.seq, digest)
        at = parse_seq(raw, parameter="base", start=self._s.state.registry.start)
        if at > self._s.journal.head:
            raise e.ParameterInvalid("base", f"{show(at)} is ahead of the journal")
        row = await self._s.journal.version_at(path, at)
        if row is None or not row.present:
            raise e.StaleBase(f"{path} was not there at {show(at)}", details={"path": path, "base": show(at)})
        if entry is not None and entry.version == row.seq and entry.digest is not None:
            return Base(row.seq, entry.digest)  # the journal has no hash of it where nobody may read it
        if row.digest is None and not readable:
            return Base(row.seq, UNHASHED)
        if row.digest is None:
            raise e.VersionNotKept(f"the content of {path} at {show(at)} was never hashed")
        return Base(row.seq, row.digest)


def _is_version(raw: p.Version) -> bool:
    return not isinstance(raw, str) or parse_digest(raw) is None


class Renamed(msgspec.Struct, frozen=True):
    """Where a file was moved to, and the version with which it came there."""

    path: WorkspacePath
    at: Seq


class RenameTracker:
    """Reads moves from the journal."""

    def __init__(self, services: Services) -> None:
        self._s = services

    async def follow(self, caller: Caller, path: WorkspacePath) -> Renamed | None:
        """Where the file of a path with nothing at it was moved to, if it was and the caller may read that."""
        known: set[WorkspacePath] = set()
        here = path
        at: Seq | None = None
        while self._s.workspace.stat(here) is None and here not in known:
            known.add(here)
            rows = await self._s.journal.moved_away((here,))
            if not rows:
                return None
            here, at = rows[-1].path, rows[-1].seq
        lists = self._s.access.lists
        if at is None or here in known or not self._s.permissions.readable(caller, here) or not lists(caller, here):
            return None
        return Renamed(here, at)

    async def base_of(self, request: ChangeRequest, old: WorkspacePath, new: WorkspacePath) -> p.Version | None:
        """The base of a change of a file that was moved: the caller's, as a content that the file had since too."""
        base = request.base
        if isinstance(base, str) and parse_digest(base) is not None:
            return base
        if base is None:
            session = self._s.state.sessions.get(request.caller.session)
            seen = session.seen.get(old) if session and new not in session.seen else None
            if seen is None or seen.newest is None:
                return None
            at = seen.newest
        else:
            at = parse_seq(base, parameter="base", start=self._s.state.registry.start)
            if at > self._s.journal.head:
                return base
        row = await self._s.journal.version_at(old, at)
        digest = row.digest if row is not None else None
        return digest if digest and await self._s.journal.version_with(new, digest) else base

    async def moved_to(self, path: WorkspacePath, *, after: int) -> Renamed | None:
        """Where the file that was at a path at `after` was moved to since, step by step; None if it was not.

        What was made at the old path later is another file. An external rename counts for less: a file that is
        at its old path now may be the same one, saved by renaming.
        """
        here, found = path, None
        while True:
            rows = [row for row in await self._s.journal.moved_away((here,)) if row.seq > after and row.present]
            if not rows or (rows[0].kind == "external" and self._s.state.registry.get(here) is not None):
                return found if found is not None and found.path != path else None
            here, after = rows[0].path, rows[0].seq
            found = Renamed(here, rows[0].seq)

    async def refuse(self, caller: Caller, path: WorkspacePath) -> None:
        """Refuse a change of a file that was moved. Raises FileNotFound, which names the new path."""
        error = e.FileNotFound(path, "there is no such file")
        await self.name(caller, error)
        if "moved_to" in error.details:
            raise error

    async def name(self, caller: Caller, error: e.OrchestratorError) -> None:
        """Let a refusal say where the file was moved to, if that is why it is not there."""
        if type(error) is not e.FileNotFound or "moved_to" in error.details:
            return
        try:
            followed = await self.follow(caller, WorkspacePath(error.details["path"]))
        except e.PathError:  # what is there by now is refused for itself, and no reason to lose this refusal
            return
        if followed is not None:
            error.message += f"; it was moved to {followed.path} at {show(followed.at)}"
            error.details = {**error.details, "moved_to": followed.path, "moved_at": show(followed.at)}
            error.hint = f"Send the call again with {followed.path} in place of the old path, "
            error.hint += 'where write_file with mode "create" makes a new file.'

    def seen(self, caller: Caller, path: WorkspacePath) -> bool:
        """Whether the session was shown a file under this path, or changed it there."""
        session = self._s.state.sessions.get(caller.session)
        return session is not None and path in session.seen
