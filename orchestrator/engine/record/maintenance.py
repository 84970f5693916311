"""Journal maintenance: backup, archive, garbage collection, redaction. Events still in progress are never archived."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio

from orchestrator.api import journal_operations as k
from orchestrator.core import errors as e
from orchestrator.core.annotations import brought_by, contents_of
from orchestrator.core.errors import escaped, plural
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.codec import PROPOSAL_TAGS
from orchestrator.core.events.journal_maintenance import ContentRedacted, PayloadRedacted
from orchestrator.core.events.visibility import fields_to_blank, texts_of
from orchestrator.core.ids import Digest, Seq, parse_digest, show
from orchestrator.core.positions import parse_seq
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.services import Services
from orchestrator.ports.journal import ArchivedFile, EventFilter, JournalMaintenance, Redaction

DAY_MS = 24 * 60 * 60 * 1000

SHORTEST_SOUGHT = 4
"""Letters; a shorter text is in too many events to be worth a warning."""

MOST_NAMED = 20

NOT_SCRUBBED = (
    "a reader holds an older state of the journal, so its write-ahead log still has the bytes; "
    "they go with one of the next commits, at the latest when the daemon stops"
)
OTHER_COPIES = "backups, snapshots and copies of the state directory keep what they hold"


class Maintenance:
    """What people do to the journal itself."""

    def __init__(
        self,
        services: Services,
        gate: ApproverGate,
        keeper: JournalMaintenance,
        *,
        state_dir: str,
        keep_snapshot: Callable[[], Awaitable[None]],
        forget_copies: Callable[[Digest], Awaitable[None]],
    ) -> None:
        self._s, self._gate, self._keeper, self._state_dir = services, gate, keeper, state_dir
        self._keep_snapshot, self._forget_copies = keep_snapshot, forget_copies
        self._redacting = anyio.Lock()

    async def journal_backup(self, caller: Caller, call: Call, params: k.JournalBackup) -> k.BackupAnswer:
        directory = backup_place(params.directory, workspace=self._s.workspace.root, state_dir=self._state_dir)
        return await self._keeper.backup(str(directory))

    # --- archiving ----------------------------------------------------------------------

    async def journal_archive(self, caller: Caller, call: Call, params: k.JournalArchive) -> k.ArchiveAnswer:
        await self._gate.check(caller, params.approver)
        last = Seq(parse_seq(params.before, parameter="before") - 1)
        if not 0 < last < self._s.journal.head:
            raise e.ParameterInvalid("before", f"must lie after @1 and up to the head, {show(self._s.journal.head)}")
        await self._check_over(last)
        moved = await self._keeper.archive(last, caller.origin(call))
        events = plural(sum(item.last - item.first + 1 for item in moved), "event")
        done = f"{events} moved into {plural(len(moved), 'file')}" if moved else "these events were archived already"
        return self._answer(done, moved)

    async def _check_over(self, last: Seq) -> None:
        """Raises StillNeeded if an event up to `last` is still in progress, or a start needs it."""
        seq, what = min(self._in_progress(), default=(last + 1, ""))
        if seq <= last:
            raise e.StillNeeded(
                f"{what} {show(seq)} is not over yet", hint=f"Resolve it, or archive --before {show(seq)}."
            )
        await self._keep_snapshot()  # a start begins there, and reads no archived event
        kept = await self._s.journal.snapshots()
        if not kept or last >= kept[0].seq:
            newest = f"the newest snapshot is of {show(kept[0].seq)}" if kept else "there is no snapshot"
            raise e.StillNeeded(
                f"{newest}, and a start needs every event from there on",
                hint="A newer one could not be kept: the daemon's log says why. Try again.",
            )

    def _in_progress(self) -> Iterator[tuple[int, str]]:
        pending = self._s.state.pending
        yield from ((seq, "the change") for seq, _ in pending.open_intents())
        yield from ((approval.seq, "the approval") for approval in (*pending.waiting(), *pending.granted()))
        yield from ((conflict.seq, "the conflict") for conflict in pending.open_conflicts())
        yield from ((lease.seq, "the lease") for lease in self._s.state.leases.live())

    async def journal_unarchive(self, caller: Caller, call: Call, params: k.JournalUnarchive) -> k.ArchiveAnswer:
        await self._gate.check(caller, params.approver)
        moved = await self._keeper.unarchive(params.file, caller.origin(call))
        message = f"events {show(moved.first)} to {show(moved.last)} are in the database again; {moved.file} may go"
        return self._answer(message, (moved,))

    def _answer(self, message: str, moved: tuple[ArchivedFile, ...]) -> k.ArchiveAnswer:
        return k.ArchiveAnswer(
            message=message,
            moved=tuple(map(_line, moved)),
            archived=tuple(map(_line, self._keeper.archived)),
        )

    # --- collecting ---------------------------------------------------------------------

    async def journal_collect(self, caller: Caller, call: Call, params: k.JournalCollect) -> k.CollectAnswer:
        if not params.dry_run:
            await self._gate.check(caller, params.approver)
        as_of = self._s.journal.head
        found = await self._keeper.collect(
            needed=await self._needed(),
            as_of=as_of,
            before_ms=self._s.clock.now_ms() - params.grace_days * DAY_MS,
            origin=caller.origin(call),
            dry_run=params.dry_run,
        )
        if not params.dry_run:
            for digest in found.digests:
                self._s.contents.drop(digest)
        done = "would be removed" if params.dry_run else "removed"
        return k.CollectAnswer(
            message=f"{plural(len(found.digests), 'content')} {done}",
            contents=len(found.digests),
            size=found.size,
            dry_run=params.dry_run,
        )

    async def _needed(self) -> frozenset[Digest]:
        """The contents of what waits, with those of its conflicts' earlier sides, and of changes that diverged."""
        pending = self._s.state.pending
        conflicts = frozenset(conflict.seq for conflict in pending.open_conflicts())
        approvals = (approval.seq for approval in (*pending.waiting(), *pending.granted()))
        needed = {digest for _, intent in pending.open_intents() for digest in contents_of(intent)}
        needed.update(self._s.state.policies.contents())
        for seq in (*conflicts, *approvals, *pending.diverged):
            recorded = await self._s.journal.event(seq)
            needed.update(contents_of(recorded.event) if recorded is not None else ())
        if conflicts:
            async for recorded in self._s.journal.events(EventFilter(tags=PROPOSAL_TAGS, after=min(conflicts))):
                if getattr(recorded.event, "conflict", None) in conflicts:
                    needed.update(contents_of(recorded.event))
        return frozenset(needed)

    # --- redacting ----------------------------------------------------------------------

    async def journal_redact(self, caller: Caller, call: Call, params: k.JournalRedact) -> k.Redacted:
        await self._gate.check(caller, params.approver)
        if (params.event is None) == (params.blob is None):
            raise e.ParameterInvalid("event", "name either an event or a blob")
        if params.blob is not None and params.fields:
            raise e.ParameterInvalid("fields", "a blob has no fields")
        if params.path is not None and (params.blob is None or parse_digest(str(params.blob)) is not None):
            raise e.ParameterInvalid("path", "goes with a blob that is named by '@N'")
        async with self._redacting:
            if params.event is not None:
                return await self._event(caller, call, params, params.event)
            return await self._content(caller, call, params, params.blob or "")

    async def _event(self, caller: Caller, call: Call, params: k.JournalRedact, raw: str | int) -> k.Redacted:
        target = await self._found(raw, parameter="event")
        fields = fields_to_blank(target.seq, target.event, params.fields)
        texts = dict.fromkeys(text for name, text in texts_of(target.event) if name in fields)
        event = PayloadRedacted(target=target.seq, fields=fields, by=caller.agent, reason=params.reason)
        done = await self._s.journal.redact(event, caller.origin(call))
        warnings: list[str] = []
        for text in texts:
            others = await self._s.journal.holding(text, limit=MOST_NAMED + 1) if len(text) >= SHORTEST_SOUGHT else ()
            if others:
                named = ", ".join(map(show, others[:MOST_NAMED])) + (" and more" if len(others) > MOST_NAMED else "")
                warnings.append(f"the same text is also in {named}: redact those too")
        return _redacted(done, warnings, event=show(target.seq), fields=fields)

    async def _content(self, caller: Caller, call: Call, params: k.JournalRedact, raw: str | int) -> k.Redacted:
        digest = parse_digest(str(raw)) or await self._digest(raw, params.path)
        if not await self._s.journal.has_blob(digest):
            raise e.VersionNotKept(f"the content {digest} is not in the journal", hint="There is nothing to take out.")
        self._refuse_needed(digest)
        for spliced in await self._s.journal.spliced_of(digest):
            await self._content(caller, call, params, spliced)
        try:
            size = len(await self._s.contents.find(digest) or b"")
        except e.JournalCorrupt:
            size = 0  # a damaged content can be taken out too
        await self._forget_copies(digest)
        event = ContentRedacted(digest=digest, size=size, by=caller.agent, reason=params.reason)
        try:
            done = await self._s.journal.forget(event, caller.origin(call))
        finally:
            self._s.contents.drop(digest)
        return _redacted(done, list(self._still_needed(digest)), digest=digest, size=size)

    async def _digest(self, raw: str | int, raw_path: str | None) -> Digest:
        """The content that an event brought; with a path the one for that path, or else what the path had then."""
        recorded = await self._found(raw, parameter="blob")
        path = self._s.paths.file(raw_path) if raw_path is not None else None
        brought = {item.digest: item.path for item in brought_by(recorded.event) if path in (None, item.path)}
        if path is not None and not brought:
            row = await self._s.journal.version_at(path, recorded.seq)
            if row is not None and row.present and row.digest is not None:
                return row.digest
            what = "held nothing" if row is None or not row.present else "had a content that was never hashed or kept"
            raise e.NotRedactable(f"{path} {what} at {show(recorded.seq)}", hint="file_history lists its versions.")
        if not brought:
            raise e.NotRedactable(
                f"event {show(recorded.seq)} brought no content by itself",
                hint="Name its file, too (path; --path on the command line), or the content by its hash.",
            )
        if path is None and len(brought) > 1:
            few = list(brought.items())[:MOST_NAMED]
            listed = ", ".join(f"{digest} ({path})" if path is not None else digest for digest, path in few)
            raise e.NotRedactable(
                f"event {show(recorded.seq)} brought {len(brought)} contents", hint=f"Name one: {listed}."
            )
        return next(iter(brought))

    def _refuse_needed(self, digest: Digest) -> None:
        """A change on its way may need it again, if the daemon ends now."""
        for seq, intent in self._s.state.pending.open_intents():
            if digest in contents_of(intent):
                raise e.NotRedactable(
                    f"the change {show(seq)} is under way with this content", hint="Try again when it is done."
                )

    def _still_needed(self, digest: Digest) -> Iterator[str]:
        """Warnings: which files bring the content back, and what waits for it."""
        paths = sorted(self._s.state.registry.holding(digest))
        for path in paths[:MOST_NAMED]:
            yield (
                f"{path} holds this content now: it is kept again when it is read, or at the next start. "
                "Change the file, then redact once more"
            )
        if digest in self._s.state.policies.contents():
            yield "a policy file has this content, and can't hold on any more when its file is broken at a start"
        for approval in self._s.state.pending.waiting():
            if any(content.digest == digest for content in brought_by(approval.request)):
                yield f"the approval {show(approval.seq)} asks for this content and can't be granted any more"
        for conflict in self._s.state.pending.open_conflicts():
            if digest in contents_of(conflict):
                yield f"the conflict {show(conflict.seq)} needs this content, and can't be resolved with it any more"
        yield "other versions of the same file are other contents: file_history names them"

    async def _found(self, raw: str | int, *, parameter: str) -> Recorded:
        seq = parse_seq(raw, parameter=parameter)
        recorded = await self._s.journal.event(seq)
        if recorded is None:
            raise e.VersionUnknown(f"the journal has no event {show(seq)}", hint="journal_query lists them.")
        return recorded


def backup_place(directory: str, *, workspace: str, state_dir: str) -> Path:
    """Where a backup may be put. Raises ParameterInvalid, BackupRefused."""
    given = Path(directory)
    if not given.is_absolute():
        raise e.ParameterInvalid("directory", "must be an absolute path: the daemon does not start from your folder")
    place = given.resolve()
    for root, what in ((workspace, "the workspace"), (state_dir, "the state directory")):
        if place.is_relative_to(Path(root).resolve()):
            raise e.BackupRefused(
                f"{escaped(str(place))} is in {what}", hint="Name a folder elsewhere, best on another disk."
            )
    return place


def _line(item: ArchivedFile) -> k.ArchivedLine:
    return k.ArchivedLine(first=show(item.first), last=show(item.last), file=item.file, size=item.size)


def _redacted(done: Redaction, warnings: list[str], **facts: Any) -> k.Redacted:
    """The answer, with what a redaction does not reach."""
    left = (OTHER_COPIES,) if done.scrubbed else (NOT_SCRUBBED, OTHER_COPIES)
    return k.Redacted(redaction=show(done.recorded.seq), scrubbed=done.scrubbed, warnings=(*warnings, *left), **facts)
