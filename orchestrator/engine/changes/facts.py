"""What a decision needs to know: what is at each path now, and which base a change has."""

from __future__ import annotations

from collections.abc import Mapping

import anyio.lowlevel

from orchestrator.api import parameters as p
from orchestrator.core.decisions.commands import Command
from orchestrator.core.decisions.decision import Base, Facts, Held
from orchestrator.core.errors import (
    ChangedWhileRead,
    Denied,
    IoFailed,
    ParameterInvalid,
    PathError,
    StaleBase,
    VersionNotKept,
)
from orchestrator.core.ids import Digest, WorkspacePath, parse_digest, parse_seq, show
from orchestrator.core.projections.read_sets import Rule
from orchestrator.core.projections.sessions import Sessions
from orchestrator.engine.caller import ChangeRequest
from orchestrator.engine.contents import Contents
from orchestrator.engine.external.observer import CurrentFile, Observer, required
from orchestrator.engine.past_versions import PastVersions
from orchestrator.engine.permissions import Permissions
from orchestrator.ports.journal import Journal

SLICE = 20
"""Files of one change that are looked at before other callers have their turn: some 5 ms."""

LOOKED_BACK = 50
"""Versions that are looked at for others' work; beyond, there is some."""


UNHASHED = Digest("unhashed")
"""Of a base that differs from what is there now only by its version."""


class FactFinder:
    """Looks, with the locks of the paths held."""

    def __init__(
        self,
        journal: Journal,
        contents: Contents,
        permissions: Permissions,
        sessions: Sessions,
        observer: Observer,
        past: PastVersions,
    ) -> None:
        self._journal, self._contents, self._permissions, self._sessions = journal, contents, permissions, sessions
        self._observer, self._past = observer, past

    async def find(self, command: Command, wanted: ChangeRequest) -> dict[WorkspacePath, Facts]:
        """Of every path of a command. Raises ParameterInvalid, StaleBase, VersionNotKept, Denied."""
        facts = {}
        based = command.based
        for number, path in enumerate(command.paths, 1):
            if number % SLICE == 0:
                await anyio.lowlevel.checkpoint()
            try:
                present = await self._observer.refresh(path, content=True)
                held = await self._held(present)
            except PathError as error:
                if not command.lenient or isinstance(error, IoFailed | ChangedWhileRead):
                    raise  # these say nothing of what is there
                facts[path] = Facts(path, None, None, error=error)
                continue
            base = await self._base(based, wanted, present)
            version = present.entry.version if present.entry else None
            blind = not self._permissions.readable(wanted.caller, path)
            alone = held is not None and base is not None and await self._alone(wanted, path, base, held)
            facts[path] = Facts(
                path,
                held,
                version,
                base,
                content_hidden=blind,
                only_own_changes=alone,
                edits=self._permissions.policy.edits,
            )
        return facts

    async def _held(self, present: CurrentFile) -> Held | None:
        if present.stat is None:
            return None
        _, digest, data = required(present)
        return Held(data, digest, present.stat.mode, await self._contents.text(digest, data))

    async def _alone(self, wanted: ChangeRequest, path: WorkspacePath, base: Base, held: Held) -> bool:
        """Whether the caller made all of the last changes, since the base."""
        if base.digest == held.digest:
            return True
        rows = await self._journal.versions(path, limit=LOOKED_BACK)
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
            raise ParameterInvalid("base", "must be '@N' for a change of several files")
        if wanted.base is not None:
            readable = self._permissions.readable(wanted.caller, path)  # else no outcome depends on the content anyway
            base = await self._named_base(wanted.base, present, readable=readable)
            if readable and (present.entry is None or present.entry.version != base.version):
                row = await self._journal.version_at(path, base.version)
                if row is not None:
                    await self._past.permit(wanted.caller, row)
            return base
        session = self._sessions.get(wanted.caller.session)
        seen = session.seen.get(path) if session else None
        implied = seen.base(rule) if seen else None
        if implied is None:
            return None
        version, whole = implied
        entry = present.entry
        digest = entry.digest if entry is not None and entry.version == version else None
        if digest is None:
            row = await self._journal.version_at(path, version)
            digest = row.digest if row is not None else None
        return Base(version, digest, True, whole) if digest is not None else None

    async def _named_base(self, raw: p.Version, present: CurrentFile, *, readable: bool) -> Base:
        path, entry = present.path, present.entry
        digest = parse_digest(raw) if isinstance(raw, str) else None
        if digest is not None and not readable:
            raise Denied(  # a guessed content could be tried by its hash
                f"{path}: its content is not shown, so its hash is no base",
                hint="Send its newest @N in file_history as base.",
                details={"path": path},
            )
        if digest is not None:
            row = await self._journal.version_with(path, digest)
            if row is None:
                raise StaleBase(f"{path} never had the content {digest}", details={"path": path})
            return Base(row.seq, digest)
        at = parse_seq(raw, parameter="base")
        if at > self._journal.head:
            raise ParameterInvalid("base", f"{show(at)} is ahead of the journal")
        row = await self._journal.version_at(path, at)
        if row is None or not row.present:
            raise StaleBase(f"{path} was not there at {show(at)}", details={"path": path, "base": show(at)})
        if entry is not None and entry.version == row.seq and entry.digest is not None:
            return Base(row.seq, entry.digest)  # the journal has no hash of it where nobody may read it
        if row.digest is None and not readable:
            return Base(row.seq, UNHASHED)
        if row.digest is None:
            raise VersionNotKept(f"the content of {path} at {show(at)} was never hashed")
        return Base(row.seq, row.digest)


def _is_version(raw: p.Version) -> bool:
    return not isinstance(raw, str) or parse_digest(raw) is None
