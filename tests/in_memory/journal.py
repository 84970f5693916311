"""The journal's twin in memory: keeps the same promises, forgets everything at the end."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice

import msgspec
from anyio.lowlevel import checkpoint as pause

from orchestrator.core.content import Content, LargeContent, SplicedContent, digest_of
from orchestrator.core.errors import JournalCorrupt, VersionUnknown, WritesStopped
from orchestrator.core.events import chain
from orchestrator.core.events.base import Origin, Recorded, RecordedLike
from orchestrator.core.events.chain import Checkpoint
from orchestrator.core.events.codec import encode, tag_of
from orchestrator.core.events.files import ChangeApplied
from orchestrator.core.events.journal_maintenance import CheckpointSigned, ContentRedacted, PayloadRedacted
from orchestrator.core.events.visibility import blanked
from orchestrator.core.ids import Digest, Seq, WorkspacePath, show
from orchestrator.core.projections.versions import DigestLearned, VersionRow, history
from orchestrator.core.splices import spliced
from orchestrator.journal.append_validation import AppendValidator, Row
from orchestrator.journal.event_rows import ChainWalk, recorded_of
from orchestrator.journal.signatures import Seals
from orchestrator.journal.snapshot_table import KEPT
from orchestrator.ports.journal import (
    EVERYTHING,
    AppendBatch,
    Checked,
    EventFilter,
    KnownVersion,
    Mention,
    NewEvent,
    Redaction,
    RequestSeen,
    Snapshot,
    StagedContent,
    VerifyReport,
)
from orchestrator.ports.machine import Clock, Entropy


class MemoryJournal:
    """See `ports.Journal`."""

    def __init__(self, *, clock: Clock, entropy: Entropy) -> None:
        self._streams: dict[str, int] = {}
        self._requests: dict[tuple[str, str], RequestSeen] = {}
        self._ledger = AppendValidator(
            clock=clock,
            entropy=entropy,
            version_of=self.stream_version,
            claim_of=lambda agent, request_id: self._requests.get((agent, request_id)),
        )
        self._recorded: list[Recorded] = []
        self._rows: list[Row] = []
        self._blobs: dict[Digest, bytes] = {}
        self._staged: dict[str, bytes] = {}
        self._spliced: dict[Digest, Digest] = {}
        self._versions = Versions()
        self._snapshots: dict[int, tuple[Snapshot, bytes]] = {}
        self._folds: list[Callable[[Recorded], None]] = []
        self._stopped = ""
        self._entropy = entropy
        self._id = entropy.bytes(16).hex()

    @property
    def id(self) -> str:
        return self._id

    @property
    def head(self) -> Seq:
        return Seq(len(self._recorded))

    @property
    def trouble(self) -> str:
        return self._stopped

    def stream_version(self, stream: str) -> int:
        return self._streams.get(stream, 0)

    def subscribe(self, fold: Callable[[Recorded], None]) -> None:
        self._folds.append(fold)

    async def append(self, unit: AppendBatch) -> tuple[Recorded, ...]:
        if self._stopped:
            raise WritesStopped(self._stopped)
        recorded, rows = self._ledger.validate(unit)
        self._requests.update(self._ledger.claims)
        self._ledger.keep()
        self._rows += rows
        for digest, data in unit.blobs:
            if isinstance(data, StagedContent):
                data = self._staged[data.draft]  # noqa: PLW2901  # as if it had been given whole
            if isinstance(data, SplicedContent):
                self._spliced[digest] = data.base.digest
                data = b"".join(spliced([self._blobs[data.base.digest]], data.splices))  # noqa: PLW2901  # the same
            self._blobs.setdefault(digest, data)
        for event in recorded:
            self._recorded.append(event)
            self._streams[event.stream] = event.stream_version
            for item in history(event):
                self._versions.add(item)
            self._fold(event)
        await pause()
        if self._stopped:
            raise WritesStopped(self._stopped)
        return recorded

    def _fold(self, recorded: Recorded) -> None:
        try:
            for fold in self._folds:
                fold(recorded)
        except Exception as error:  # noqa: BLE001  # as the real one: the event is kept, and nothing follows it
            self._stopped = f"a projection could not take event @{recorded.seq}: {error}"

    # --- reading ------------------------------------------------------------------------

    async def request(self, agent: str, request_id: str) -> RequestSeen | None:
        await pause()
        return self._requests.get((agent, request_id))

    async def events(self, wanted: EventFilter = EVERYTHING, *, batch: int = 1000) -> AsyncIterator[Recorded]:
        after = wanted.after
        while True:
            await pause()
            found = list(islice(_fitting(self._recorded[after:], wanted), batch))
            for recorded in found:
                yield recorded
            if len(found) < batch:
                return
            after = found[-1].seq

    async def replay(self, *, after: int = 0, until: int | None = None) -> AsyncGenerator[Sequence[RecordedLike], None]:
        await pause()
        found = self._recorded[after:until]
        if found:
            yield found

    async def keep_snapshot(self, snapshot: Snapshot, data: bytes) -> None:
        await pause()
        self._snapshots[snapshot.seq] = snapshot, data
        for seq in sorted(self._snapshots)[:-KEPT]:
            del self._snapshots[seq]

    async def snapshots(self) -> list[Snapshot]:
        await pause()
        return [self._snapshots[seq][0] for seq in sorted(self._snapshots, reverse=True)]

    async def snapshot(self, seq: int) -> bytes:
        await pause()
        snapshot, data = self._snapshots.get(seq) or (None, b"")
        if snapshot is None:
            raise JournalCorrupt(f"the snapshot at @{seq} is not there")
        if hashlib.sha256(data).digest() != snapshot.digest:
            raise JournalCorrupt(f"the snapshot at @{seq} is not what its digest says")
        return data

    async def checks(self) -> AsyncGenerator[Checked, None]:
        await pause()
        yield Checked(self.head)

    async def table_difference(self) -> str | None:
        await pause()
        return None

    async def newest(self, wanted: EventFilter = EVERYTHING, *, limit: int, archived: bool = True) -> list[Recorded]:
        await pause()
        return list(islice(_fitting(reversed(self._recorded[wanted.after :]), wanted), limit))

    async def event(self, seq: int) -> Recorded | None:
        await pause()
        return self._recorded[seq - 1] if 0 < seq <= len(self._recorded) else None

    async def blob(self, digest: Digest) -> bytes | None:
        await pause()
        data = self._blobs.get(digest)
        if data is not None and digest_of(data) != digest:
            raise JournalCorrupt(f"the content {digest} is not what its name says")
        return data

    async def content(self, digest: Digest, *, most: int) -> Content | None:
        data = await self.blob(digest)
        return LargeContent(digest, len(data)) if data is not None and len(data) > most else data

    def blocks(self, content: LargeContent) -> Iterator[bytes]:
        yield self._blobs[content.digest]

    def stage(self, blocks: Iterable[bytes], size: int) -> StagedContent | None:
        data = b"".join(blocks)
        digest = digest_of(data)
        self._staged[digest] = data
        return StagedContent(digest, size, digest) if len(data) == size else None

    def discard(self, staged: StagedContent) -> None:
        self._staged.pop(staged.draft, None)

    async def has_blob(self, digest: Digest) -> bool:
        await pause()
        return digest in self._blobs

    async def spliced_of(self, digest: Digest) -> list[Digest]:
        await pause()
        return sorted(spliced for spliced, base in self._spliced.items() if base == digest)

    async def versions(self, path: WorkspacePath, *, limit: int, before: int | None = None) -> list[VersionRow]:
        await pause()
        rows = (row for row in self._of(path) if before is None or row.seq < before)
        return sorted(rows, key=lambda row: -row.seq)[:limit]

    async def version_at(self, path: WorkspacePath, at: int) -> VersionRow | None:
        await pause()
        rows = (row for row in self._of(path) if row.effective <= at)
        return max(rows, key=lambda row: (row.effective, row.seq), default=None)

    async def tree_at(self, at: int, *, after: str = "", limit: int) -> list[VersionRow]:
        await pause()
        tree: list[VersionRow] = []
        for path in sorted(path for path in self._versions.by_path if path > after):
            rows = (row for row in self._of(path) if row.effective <= at)
            newest = max(rows, key=lambda row: (row.effective, row.seq), default=None)
            if newest is not None and newest.present:
                tree.append(msgspec.structs.replace(newest, mode=self._versions.mode_at(newest, at)))
        return tree[:limit]

    async def lacking(self, digests: Collection[Digest]) -> set[Digest]:
        await pause()
        return {digest for digest in digests if digest not in self._blobs}

    async def version_with(self, path: WorkspacePath, digest: Digest) -> VersionRow | None:
        await pause()
        return max((row for row in self._of(path) if row.digest == digest), key=lambda row: row.seq, default=None)

    async def moved_away(self, paths: Collection[WorkspacePath]) -> list[VersionRow]:
        await pause()
        return sorted((row for row in self._all_versions() if row.moved_from in paths), key=lambda row: row.seq)

    async def histories(self, paths: Collection[WorkspacePath]) -> dict[WorkspacePath, tuple[VersionRow, ...]]:
        await pause()
        return {path: tuple(sorted(self._of(path), key=lambda row: row.seq)) for path in paths}

    async def modes(self, paths: Collection[WorkspacePath]) -> dict[WorkspacePath, tuple[tuple[Seq, int], ...]]:
        await pause()
        known = self._versions.modes
        return {
            path: tuple((Seq(at), known[path][at]) for at in sorted(known[path])) for path in paths if path in known
        }

    async def reverters(self) -> list[tuple[Seq, tuple[Seq, ...]]]:
        await pause()
        events = [self._recorded[seq - 1].event for seq in {row.seq for row in self._all_versions() if row.undoes}]
        return sorted(((e.change, e.provenance.reverts) for e in events if isinstance(e, ChangeApplied)), reverse=True)

    def _all_versions(self) -> Iterable[VersionRow]:
        return (row for rows in self._versions.by_path.values() for row in rows.values())

    async def changes_of(self, path: WorkspacePath, *, until: int) -> list[KnownVersion]:
        await pause()
        rows = sorted((row for row in self._of(path) if row.seq <= until), key=lambda row: row.seq)
        return [KnownVersion(row, self._recorded[row.seq - 1]) for row in rows]

    def _of(self, path: WorkspacePath) -> Iterable[VersionRow]:
        return self._versions.by_path.get(path, {}).values()

    async def redact(self, event: PayloadRedacted, origin: Origin) -> Redaction:
        if not 0 < event.target <= self.head:
            raise VersionUnknown(f"the journal has no event {show(event.target)}")
        old = self._rows[event.target - 1]
        rest, salt = blanked(old[13], event.fields), self._entropy.bytes(chain.REDACTED_SALT_BYTES)
        event = msgspec.structs.replace(event, rest_hash=chain.payload_hash(salt, rest).hex())
        (recorded,) = await self.append(AppendBatch((NewEvent("journal", event),), origin))
        row = self._rows[event.target - 1] = (*old[:13], rest, salt, *old[15:])
        self._recorded[event.target - 1] = recorded_of(row)
        return Redaction(recorded=recorded, scrubbed=True)

    async def forget(self, event: ContentRedacted, origin: Origin) -> Redaction:
        (recorded,) = await self.append(AppendBatch((NewEvent("journal", event),), origin))
        self._blobs.pop(event.digest, None)
        return Redaction(recorded=recorded, scrubbed=True)

    async def holding(self, text: str, *, limit: int) -> tuple[Seq, ...]:
        await pause()
        inside = msgspec.json.encode(text)[1:-1]
        return tuple(Seq(row[0]) for row in self._rows if inside in row[13])[:limit]

    async def verify(self, checkpoint: Checkpoint | None = None) -> VerifyReport:
        await pause()
        seals = Seals(self._id, checkpoint)
        problems: list[str] = []
        walk = ChainWalk()
        for row, recorded in zip(self._rows, self._recorded, strict=True):
            problem = walk.take(row)
            if problem is not None:
                problems.append(problem)
            if isinstance(recorded.event, CheckpointSigned):
                seals.signed.append((recorded.seq, recorded.event))
        problems += seals.problems(walk.end[0], self._hash_of)
        problems += [f"the content {digest} is not what its name says" for digest, data in self._blobs.items()
                     if digest_of(data) != digest]  # fmt: skip
        return VerifyReport(
            events=len(self._rows),
            head=self.head,
            head_hash=walk.end[1].hex(),
            blobs=len(self._blobs),
            problems=tuple(problems),
            unchecked=("nothing of this outlives the process", *seals.unchecked(self.head)),
            proven=seals.proven(whole=not problems),
        )

    def _hash_of(self, seq: int) -> str | None:
        return self._rows[seq - 1][17].hex() if 0 < seq <= len(self._rows) else None

    async def close(self) -> None:
        self._stopped = "the journal is not open for writing"
        await pause()


def _fitting(events: Iterable[Recorded], wanted: EventFilter) -> Iterable[Recorded]:
    for recorded in events:
        if (
            (not wanted.tags or tag_of(recorded.event) in wanted.tags)
            and wanted.stream in (None, recorded.stream)
            and wanted.agent in (None, recorded.agent)
            and wanted.session in (None, recorded.session)
            and wanted.client_call_id in (None, recorded.origin.client_call_id)
            and (wanted.until is None or recorded.seq <= wanted.until)
            and (wanted.since_at is None or recorded.at >= wanted.since_at)
            and (wanted.until_at is None or recorded.at <= wanted.until_at)
            and all(_mentioned(recorded, mention) for mention in wanted.mentions)
        ):
            yield recorded


def _mentioned(recorded: Recorded, mention: Mention) -> bool:
    return mentioned(
        mention, stream=recorded.stream, payload=encode(recorded.event), session=recorded.session, seq=recorded.seq
    )


def mentioned(mention: Mention, *, stream: str, payload: bytes, session: str | None, seq: int) -> bool:
    """Whether an event is one that a filter looks for."""
    return (
        stream in mention.streams
        or any(text in payload for text in mention.texts)
        or (mention.session is not None and session == mention.session and mention.first <= seq <= mention.last)
    )


class Versions:
    """The same rows in memory: what the table must hold after these events."""

    def __init__(self) -> None:
        self.by_path: dict[WorkspacePath, dict[int, VersionRow]] = {}
        self.modes: dict[WorkspacePath, dict[int, int]] = {}
        """By path and position: permission bits that changed without a new version."""

    def add(self, item: VersionRow | DigestLearned) -> None:
        """One row, or what became known about an earlier one."""
        rows = self.by_path.setdefault(item.path, {})
        if isinstance(item, VersionRow):
            rows[item.seq] = item
            return
        known = rows.get(item.version)
        if known is not None and known.present and known.digest is None:
            rows[item.version] = msgspec.structs.replace(known, digest=item.digest, size=item.size)
        if known is not None and self.mode_at(known, item.seq) != item.mode:
            self.modes.setdefault(item.path, {})[item.seq] = item.mode

    def mode_at(self, row: VersionRow, at: int) -> int | None:
        """The permission bits of a version at a position from which it holds."""
        later = [seq for seq in self.modes.get(row.path, {}) if row.seq < seq <= at]
        return self.modes[row.path][max(later)] if later else row.mode
