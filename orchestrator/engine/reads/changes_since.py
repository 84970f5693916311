"""changes_since: what happened to the files after a version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import anyio.lowlevel
import msgspec
from anyio import to_thread

from orchestrator.api import blame as t
from orchestrator.core.change import PathChange
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.catalog import CHANGE_TAGS
from orchestrator.core.events.files import (
    ChangeApplied,
    DirectoryListed,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
)
from orchestrator.core.globs import Globs
from orchestrator.core.ids import AgentName, Digest, WorkspacePath, parse_seq, show
from orchestrator.core.text.encoding import EMPTY, Document
from orchestrator.core.text.room import size
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.positions import not_beyond
from orchestrator.engine.services import Services
from orchestrator.ports.journal import EventFilter

BATCH = 200

FRAME_BYTES = 900
"""Of an answer beside its changes: `head`, `next`."""

NEXT_BYTES = 600
_ENCODER = msgspec.json.Encoder()


def _next(params: t.ChangesSince, version: str, skip: int) -> str:
    """The call that goes on."""
    start = f'version="{version}"' + (f", skip={skip}" if skip else "")
    globs = f", globs={_ENCODER.encode(params.globs).decode()}" if params.globs else ""
    limit = f", limit={params.limit}" if params.limit != t.CHANGES_LIMIT else ""
    called = f"changes_since({start}{globs}{limit})"
    return called if size(called) <= NEXT_BYTES else f"the same call with {start}"


class ChangeSummaries:
    """Tells changes in the journal's order, as far as the caller may list the paths."""

    def __init__(self, services: Services) -> None:
        self._s = services

    async def changes_since(self, caller: Caller, call: Call, params: t.ChangesSince) -> t.Changes:
        head = self._s.journal.head
        after = not_beyond(parse_seq(params.version), head)
        globs = await to_thread.run_sync(Globs, params.globs) if params.globs else None
        told: list[t.PathChanged] = []
        left_out, more, at, skip = 0, False, after, params.skip
        room = call.room.less(FRAME_BYTES)
        wanted = EventFilter(tags=CHANGE_TAGS, after=after, until=head)
        async for recorded in self._s.journal.events(wanted, batch=min(BATCH, params.limit + 1)):
            await anyio.lowlevel.checkpoint()  # a batch takes its time where globs are long
            if len(told) >= params.limit:
                more = True
                break
            for number, act in enumerate(path_events(recorded)):
                if number < skip:
                    continue
                if globs is not None and not globs.match(act.changed.path):
                    continue
                if not self._s.listable(caller, act.changed.path):
                    left_out += 1
                    continue
                target = act.moved_to  # where this is the old place of a move, which is told with the new one
                if target is None or not self._s.listable(caller, target) or (globs and not globs.match(target)):
                    row = await self._told(caller, recorded, act)
                    cost = size(_ENCODER.encode(row).decode()) + 1
                    if told and cost > room.bytes:
                        more, skip = True, number
                        break
                    room = room.less(cost)
                    told.append(row)
            if more:
                break
            at, skip = recorded.seq, 0
        event = DirectoryListed(
            operation=call.operation.name, path=WorkspacePath("."), globs=params.globs, entries=len(told)
        )
        await self._s.note_shown(caller, call, event)
        follow = _next(params, show(at), skip) if more else None
        return t.Changes(
            changes=tuple(told), head=show(at if more else head), more=more, next=follow, left_out=left_out
        )

    async def _told(self, caller: Caller, recorded: Recorded, act: PathEvent) -> t.PathChanged:
        event, changed = recorded.event, act.changed
        ours = event if isinstance(event, ChangeApplied) else None
        why = ours.provenance if ours else None
        counts = await self._counts(changed) if self._s.readable(caller, changed.path) else None
        source = changed.moved_from
        if source is not None and not self._s.listable(caller, source):
            source = None
        return t.PathChanged(
            version=show(recorded.seq),
            at=recorded.at,
            path=changed.path,
            kind=act.kind,
            by="change" if ours else "external",
            operation=why.operation if why else None,
            agent=recorded.agent or _by(recorded) or (None if ours else "outside"),
            session=recorded.session,
            task=show(why.task) if why and why.task else None,
            change=show(ours.change) if ours else None,
            moved_from=source,
            reverts=tuple(map(show, why.reverts)) if why else (),
            added=counts[0] if counts else None,
            removed=counts[1] if counts else None,
        )

    async def _counts(self, changed: PathChange) -> tuple[int, int] | None:
        """Lines added and removed; None where a content is binary or not kept."""
        if changed.moved_from is not None:
            return 0, 0
        hunks = changed.hunks
        if changed.binary:
            return None
        if not hunks and changed.before != changed.after:
            old, new = await self._document(changed.before), await self._document(changed.after)
            if old is None or new is None:
                return None
            hunks = await self._s.contents.line_hunks(old, new)
        return sum(h.new_len for h in hunks), sum(h.old_len for h in hunks)

    async def _document(self, digest: Digest | None) -> Document | None:
        return EMPTY if digest is None else await self._s.contents.kept_text(digest)


class PathEvent(msgspec.Struct, frozen=True):
    """What an event did to one path."""

    changed: PathChange
    kind: Literal["created", "changed", "deleted", "moved"]
    moved_to: WorkspacePath | None = None  # where this is the old place of a move


def path_events(recorded: Recorded) -> Iterator[PathEvent]:
    """What an event did to files; nothing for most. `binary` where a content was never hashed."""
    match recorded.event:
        case ChangeApplied(paths=paths):
            targets = {c.moved_from: c.path for c in paths if c.moved_from is not None}
            for changed in paths:
                if changed.directory:
                    continue
                if changed.after is None:
                    yield PathEvent(changed, "deleted", targets.get(changed.path))
                elif changed.moved_from is not None:
                    yield PathEvent(changed, "moved")
                else:
                    yield PathEvent(changed, "created" if changed.before is None else "changed")
        case ExternalFileChanged(path=path, before=before, after=after, moved_from=source):
            binary = before is None or after is None
            yield PathEvent(
                PathChange(path, before, after, moved_from=source, binary=binary), "moved" if source else "changed"
            )
        case ExternalFileCreated(path=path, after=after, moved_from=source):
            yield PathEvent(
                PathChange(path, None, after, moved_from=source, binary=after is None), "moved" if source else "created"
            )
        case ExternalFileRemoved(path=path, before=before, moved_to=target):
            yield PathEvent(PathChange(path, before, None, binary=before is None), "deleted", target)
        case _:
            return


def _by(recorded: Recorded) -> AgentName | None:
    event = recorded.event
    return event.by if isinstance(event, ExternalFileChanged | ExternalFileCreated | ExternalFileRemoved) else None
