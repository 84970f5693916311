"""Events as a caller may see them: what only the daemon may know is left out, and hashes of what they may not read."""

from __future__ import annotations

from typing import Any

import msgspec

from orchestrator.api import results as r
from orchestrator.core.content import PathChange
from orchestrator.core.events.base import Event, Recorded
from orchestrator.core.events.catalog import outcome_of, tag_of
from orchestrator.core.events.conflicts import ApprovalRequested
from orchestrator.core.events.files import (
    ChangeApplied,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    FilesFound,
)
from orchestrator.core.events.sessions import AgentAdded, ApproverSet
from orchestrator.core.ids import Digest, Seq, WorkspacePath, show
from orchestrator.engine.caller import Caller
from orchestrator.engine.services import Services

OF_CONTENT = frozenset(
    (
        *("before", "after", "current", "proposed", "proposal", "found", "temp_found", "digest"),
        *("hunks", "sides", "regions", "ranges", "total_lines", "signature", "size", "binary", "encoding", "kept"),
        *(
            "rung",
            "score",
            "settled",
            "settleable",
            "same_symbol",
            "fits",
            "why",
            "unseen",
            "warnings",
            "on_seen_whole",
        ),
    )
)
"""Members of events that tell of a content: a hash lets it be guessed at leisure, places say if a guess fits."""

_HASHED = (*OF_CONTENT, "base")
"""A conflict's base is a hash; a change's is a version."""

_OF_FILE = ("file:", "conflict:", "approval:")


class Entries:
    """Makes the entries of one answer."""

    def __init__(self, services: Services, caller: Caller) -> None:
        self._s, self._caller = services, caller
        self._readable: dict[str, bool] = {}

    async def entry(self, item: Recorded, *, path: WorkspacePath | None = None) -> r.JournalEntry:
        """One event; with `path` a scan's list is cut down to it."""
        event, call = item.event, item.origin.call
        if path is not None and isinstance(event, FilesFound):
            event = FilesFound(entries=tuple(found for found in event.entries if found.path == path))
        approval = item.seq if isinstance(event, ApprovalRequested) else getattr(event, "approval", None)
        return r.JournalEntry(
            seq=show(item.seq),
            at=item.at,
            kind=tag_of(event),
            stream=item.stream,
            agent=item.agent,
            session=item.session,
            event=self.plain(event, item.stream),
            owner=item.origin.owner,
            outcome=outcome_of(event),
            operation=(call.operation if call is not None else getattr(event, "operation", None)) or None,
            arguments=call.arguments if call is not None else None,
            took_us=call.took_us if call is not None else None,
            tokens=getattr(event, "tokens", None),
            approval=show(approval) if isinstance(approval, int) else None,
            cause=show(item.origin.cause) if item.origin.cause is not None else None,
            paths=await self._paths(item.seq, event),
        )

    def readable(self, path: str) -> bool:
        """Whether this caller may be shown hashes of a path."""
        known = self._readable.get(path)
        if known is None:
            known = self._readable[path] = self._s.readable(self._caller, WorkspacePath(path))
        return known

    async def _paths(self, seq: Seq, event: Event) -> tuple[r.EntryPath, ...]:
        """The files that an event left otherwise than they were."""
        match event:
            case ChangeApplied(paths=paths):
                return tuple([self._changed(seq, change) for change in paths])
            case ExternalFileChanged(path=path, before=before, after=after, moved_from=moved_from):
                entry = await self._outside(seq, path, before=before, after=after, there=True)
                return (msgspec.structs.replace(entry, moved_from=moved_from),)
            case ExternalFileCreated(path=path, after=after, moved_from=moved_from):
                entry = await self._outside(seq, path, before=None, after=after, there=True)
                return (msgspec.structs.replace(entry, before=None, moved_from=moved_from),)
            case ExternalFileRemoved(path=path, before=before):
                return (await self._outside(seq, path, before=before, after=None, there=False),)
            case _:
                return ()

    def _changed(self, seq: Seq, change: PathChange) -> r.EntryPath:
        shown = self.readable(change.path)
        return r.EntryPath(
            path=change.path,
            before=show(change.previous) if change.previous is not None else None,
            after=show(seq) if change.after is not None or change.directory else None,
            before_hash=change.before if shown else None,
            after_hash=change.after if shown else None,
            moved_from=change.moved_from,
        )

    async def _outside(
        self, seq: Seq, path: WorkspacePath, *, before: Digest | None, after: Digest | None, there: bool
    ) -> r.EntryPath:
        earlier = await self._s.journal.versions(path, limit=1, before=seq)
        shown = self.readable(path)
        return r.EntryPath(
            path=path,
            before=show(earlier[0].seq) if earlier else None,
            after=show(seq) if there else None,
            before_hash=before if shown else None,
            after_hash=after if shown else None,
        )

    def plain(self, event: Event, stream: str) -> dict[str, Any]:
        """An event without what only the daemon may know, nor anything of contents that the caller may not read."""
        plain: dict[str, Any] = msgspec.to_builtins(event)
        plain.pop("event", None)
        if isinstance(event, AgentAdded | ApproverSet):
            for secret in ("token_hash", "salt", "scrypt"):
                plain.pop(secret, None)
        about = stream.partition(":")[2] if stream.startswith(_OF_FILE) else None
        return self._bare({name: self._within(value) for name, value in plain.items()}, about)

    def _within(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._within(item) for item in value]
        if not isinstance(value, dict):
            return value
        return self._bare({name: self._within(item) for name, item in value.items()}, None)

    def _bare(self, plain: dict[str, Any], about: str | None) -> dict[str, Any]:
        """A struct without what tells of contents, if one of the paths that it is about is hidden."""
        parts = plain.get("paths")
        named = [part.get("path") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        others = (plain.get(name) for name in ("moved_from", "renamed_from", "moved_to"))
        about_all = (plain.get("path", about), *named, *others, *plain.get("names", ()))
        paths = {path for path in about_all if isinstance(path, str)}
        if all(map(self.readable, paths)):
            return plain
        hidden = OF_CONTENT if named else _HASHED
        return {name: value for name, value in plain.items() if name not in hidden}
