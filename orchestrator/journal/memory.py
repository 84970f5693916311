"""The journal's twin in memory: keeps the same promises, forgets everything at the end."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from itertools import islice

import msgspec
from anyio.lowlevel import checkpoint

from orchestrator.core.content import digest_of
from orchestrator.core.errors import JournalCorrupt, WritesStopped
from orchestrator.core.events import chain
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.catalog import tag_of
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.projections.history import VersionRow, history
from orchestrator.journal.history import Versions
from orchestrator.journal.ledger import Ledger, Row
from orchestrator.journal.rows import link_problem, origin_of
from orchestrator.journal.snapshots import KEPT
from orchestrator.ports import EVERYTHING, Clock, Entropy, EventFilter, RequestSeen, Snapshot, Unit, VerifyReport


class MemoryJournal:
    """See `ports.Journal`."""

    def __init__(self, *, clock: Clock, entropy: Entropy) -> None:
        self._streams: dict[str, int] = {}
        self._requests: dict[tuple[str, str], RequestSeen] = {}
        self._ledger = Ledger(
            clock=clock,
            entropy=entropy,
            version_of=self.stream_version,
            claim_of=lambda agent, request_id: self._requests.get((agent, request_id)),
        )
        self._recorded: list[Recorded] = []
        self._rows: list[Row] = []
        self._blobs: dict[Digest, bytes] = {}
        self._versions = Versions()
        self._snapshots: dict[int, tuple[Snapshot, bytes]] = {}
        self._folds: list[Callable[[Recorded], None]] = []
        self._stopped = ""

    @property
    def head(self) -> Seq:
        return Seq(len(self._recorded))

    def stream_version(self, stream: str) -> int:
        return self._streams.get(stream, 0)

    def subscribe(self, fold: Callable[[Recorded], None]) -> None:
        self._folds.append(fold)

    async def append(self, unit: Unit) -> tuple[Recorded, ...]:
        if self._stopped:
            raise WritesStopped(self._stopped)
        recorded, rows = self._ledger.admit(unit)
        self._requests.update(self._ledger.claims)
        self._ledger.keep()
        self._rows += rows
        for digest, data in unit.blobs:
            self._blobs.setdefault(digest, data)
        for event in recorded:
            self._recorded.append(event)
            self._streams[event.stream] = event.stream_version
            for item in history(event):
                self._versions.add(item)
            self._fold(event)
        await checkpoint()
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
        await checkpoint()
        return self._requests.get((agent, request_id))

    async def events(self, wanted: EventFilter = EVERYTHING, *, batch: int = 1000) -> AsyncIterator[Recorded]:
        after = wanted.after
        while True:
            await checkpoint()
            found = list(islice(_fitting(self._recorded[after:], wanted), batch))
            for recorded in found:
                yield recorded
            if len(found) < batch:
                return
            after = found[-1].seq

    async def replay(self, *, after: int = 0, until: int | None = None) -> AsyncGenerator[list[Recorded], None]:
        await checkpoint()
        found = self._recorded[after:until]
        if found:
            yield found

    async def keep_snapshot(self, snapshot: Snapshot, data: bytes) -> None:
        await checkpoint()
        self._snapshots[snapshot.seq] = snapshot, data
        for seq in sorted(self._snapshots)[:-KEPT]:
            self._snapshots[seq] = msgspec.structs.replace(self._snapshots[seq][0], kept=False), b""

    async def snapshots(self) -> list[Snapshot]:
        await checkpoint()
        return [self._snapshots[seq][0] for seq in sorted(self._snapshots, reverse=True)]

    async def snapshot(self, seq: int) -> bytes:
        await checkpoint()
        snapshot, data = self._snapshots.get(seq) or (None, b"")
        if snapshot is None or not snapshot.kept:
            raise JournalCorrupt(f"the snapshot at @{seq} is not there")
        if hashlib.sha256(data).digest() != snapshot.digest:
            raise JournalCorrupt(f"the snapshot at @{seq} is not what its digest says")
        return data

    async def checks(self) -> AsyncGenerator[Seq, None]:
        await checkpoint()
        yield self.head

    async def table_difference(self) -> str | None:
        await checkpoint()
        return None

    async def newest(self, wanted: EventFilter = EVERYTHING, *, limit: int) -> list[Recorded]:
        await checkpoint()
        return list(islice(_fitting(reversed(self._recorded[wanted.after :]), wanted), limit))

    async def event(self, seq: int) -> Recorded | None:
        await checkpoint()
        return self._recorded[seq - 1] if 0 < seq <= len(self._recorded) else None

    async def blob(self, digest: Digest) -> bytes | None:
        await checkpoint()
        data = self._blobs.get(digest)
        if data is not None and digest_of(data) != digest:
            raise JournalCorrupt(f"the content {digest} is not what its name says")
        return data

    async def has_blob(self, digest: Digest) -> bool:
        await checkpoint()
        return digest in self._blobs

    async def versions(self, path: WorkspacePath, *, limit: int, before: int | None = None) -> list[VersionRow]:
        await checkpoint()
        rows = (row for row in self._of(path) if before is None or row.seq < before)
        return sorted(rows, key=lambda row: -row.seq)[:limit]

    async def version_at(self, path: WorkspacePath, at: int) -> VersionRow | None:
        await checkpoint()
        rows = (row for row in self._of(path) if row.effective <= at)
        return max(rows, key=lambda row: (row.effective, row.seq), default=None)

    async def version_with(self, path: WorkspacePath, digest: Digest) -> VersionRow | None:
        await checkpoint()
        return max((row for row in self._of(path) if row.digest == digest), key=lambda row: row.seq, default=None)

    def _of(self, path: WorkspacePath) -> Iterable[VersionRow]:
        return self._versions.by_path.get(path, {}).values()

    async def verify(self) -> VerifyReport:
        await checkpoint()
        problems: list[str] = []
        end = (0, chain.GENESIS)
        for row in self._rows:
            problem = link_problem(row, origin_of(row), end)
            if problem is not None:
                problems.append(problem)
            end = (row[0], row[17])
        problems += [f"the content {digest} is not what its name says" for digest, data in self._blobs.items()
                     if digest_of(data) != digest]  # fmt: skip
        return VerifyReport(
            events=len(self._rows),
            head=self.head,
            head_hash=end[1].hex(),
            blobs=len(self._blobs),
            problems=tuple(problems),
            unchecked=("nothing of this outlives the process",),
        )

    async def close(self) -> None:
        self._stopped = "the journal is not open for writing"
        await checkpoint()


def _fitting(events: Iterable[Recorded], wanted: EventFilter) -> Iterable[Recorded]:
    for recorded in events:
        if (
            (not wanted.tags or tag_of(recorded.event) in wanted.tags)
            and wanted.stream in (None, recorded.stream)
            and wanted.agent in (None, recorded.agent)
            and wanted.session in (None, recorded.session)
            and (wanted.until is None or recorded.seq <= wanted.until)
        ):
            yield recorded
