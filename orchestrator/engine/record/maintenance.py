"""Journal maintenance: backup, archive, garbage collection. Events still in progress are never archived."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from orchestrator.api import journal_operations as k
from orchestrator.core.annotations import contents_of
from orchestrator.core.errors import BackupRefused, ParameterInvalid, StillNeeded, escaped, plural
from orchestrator.core.events.catalog import PROPOSAL_TAGS
from orchestrator.core.ids import Digest, Seq, parse_seq, show
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.services import Services
from orchestrator.ports.journal import EventFilter
from orchestrator.ports.maintenance import ArchivedFile, JournalMaintenance

DAY_MS = 24 * 60 * 60 * 1000


class Maintenance:
    """Backing up, archiving, collecting."""

    def __init__(
        self,
        services: Services,
        gate: ApproverGate,
        keeper: JournalMaintenance,
        *,
        state_dir: str,
        keep_snapshot: Callable[[], Awaitable[None]],
    ) -> None:
        self._s, self._gate, self._keeper, self._state_dir = services, gate, keeper, state_dir
        self._keep_snapshot = keep_snapshot

    async def journal_backup(self, caller: Caller, call: Call, params: k.JournalBackup) -> k.BackupAnswer:
        directory = backup_place(params.directory, workspace=self._s.workspace.root, state_dir=self._state_dir)
        return await self._keeper.backup(str(directory))

    # --- archiving ----------------------------------------------------------------------

    async def journal_archive(self, caller: Caller, call: Call, params: k.JournalArchive) -> k.ArchiveAnswer:
        await self._gate.check(caller, params.approver)
        last = Seq(parse_seq(params.before, parameter="before") - 1)
        if not 0 < last < self._s.journal.head:
            raise ParameterInvalid("before", f"must lie after @1 and up to the head, {show(self._s.journal.head)}")
        await self._check_over(last)
        moved = await self._keeper.archive(last, caller.origin(call))
        events = plural(sum(item.last - item.first + 1 for item in moved), "event")
        done = f"{events} moved into {plural(len(moved), 'file')}" if moved else "these events were archived already"
        return self._answer(done, moved)

    async def _check_over(self, last: Seq) -> None:
        """Raises StillNeeded if an event up to `last` is still in progress, or a start needs it."""
        seq, what = min(self._in_progress(), default=(last + 1, ""))
        if seq <= last:
            raise StillNeeded(
                f"{what} {show(seq)} is not over yet", hint=f"Resolve it, or archive --before {show(seq)}."
            )
        await self._keep_snapshot()  # a start begins there, and reads no archived event
        kept = await self._s.journal.snapshots()
        if not kept or last >= kept[0].seq:
            newest = f"the newest snapshot is of {show(kept[0].seq)}" if kept else "there is no snapshot"
            raise StillNeeded(
                f"{newest}, and a start needs every event from there on",
                hint="A newer one could not be kept: the daemon's log says why. Try again.",
            )

    def _in_progress(self) -> Iterator[tuple[int, str]]:
        pending = self._s.state.pending
        yield from ((intent.seq, "the change") for intent in pending.open_intents())
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
            young=found.young,
            dry_run=params.dry_run,
        )

    async def _needed(self) -> frozenset[Digest]:
        """The contents of what waits, with those of its conflicts' earlier sides, and of changes that diverged."""
        pending = self._s.state.pending
        conflicts = frozenset(conflict.seq for conflict in pending.open_conflicts())
        approvals = (approval.seq for approval in (*pending.waiting(), *pending.granted()))
        needed = {digest for intent in pending.open_intents() for digest in contents_of(intent)}
        for seq in (*conflicts, *approvals, *pending.diverged):
            recorded = await self._s.journal.event(seq)
            needed.update(contents_of(recorded.event) if recorded is not None else ())
        if conflicts:
            async for recorded in self._s.journal.events(EventFilter(tags=PROPOSAL_TAGS, after=min(conflicts))):
                if getattr(recorded.event, "conflict", None) in conflicts:
                    needed.update(contents_of(recorded.event))
        return frozenset(needed)


def backup_place(directory: str, *, workspace: str, state_dir: str) -> Path:
    """Where a backup may be put. Raises ParameterInvalid, BackupRefused."""
    given = Path(directory)
    if not given.is_absolute():
        raise ParameterInvalid("directory", "must be an absolute path: the daemon does not start from your folder")
    place = given.resolve()
    for root, what in ((workspace, "the workspace"), (state_dir, "the state directory")):
        if place.is_relative_to(Path(root).resolve()):
            raise BackupRefused(
                f"{escaped(str(place))} is in {what}", hint="Name a folder elsewhere, best on another disk."
            )
    return place


def _line(item: ArchivedFile) -> k.ArchivedLine:
    return k.ArchivedLine(first=show(item.first), last=show(item.last), file=item.file, size=item.size)
