"""Small events, units and ports for the journal's tests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from orchestrator.core.change import PathChange, Provenance
from orchestrator.core.content import FoundFile, Signature, digest_of
from orchestrator.core.events.base import Event, Origin, Recorded
from orchestrator.core.events.files import ChangeAborted, ChangeApplied, ChangeIntended, FilesFound, MetadataRead
from orchestrator.core.events.sessions import TaskBegun
from orchestrator.core.ids import AgentName, Digest, EscapedPath, Seq, SessionId, WorkspacePath
from orchestrator.ports.journal import ANY_VERSION, AppendBatch, NewEvent

PATH = WorkspacePath("src/a.py")
STREAM = f"file:{PATH}"


class SteppingClock:
    """One millisecond later at each look."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms

    def ticks_us(self) -> int:
        return self.ms * 1000


class SeededEntropy:
    """The same bytes in every run."""

    def __init__(self) -> None:
        self.count = 0

    def bytes(self, count: int) -> bytes:
        self.count += 1
        return hashlib.sha256(self.count.to_bytes(8, "big")).digest()[:count]


def looked(path: str = "a") -> MetadataRead:
    """An event that means nothing to any table."""
    return MetadataRead(operation="file_info", path=EscapedPath(path))


def unit(
    *events: Event,
    stream: str = "session:s",
    expected: int = ANY_VERSION,
    origin: Origin | None = None,
    blobs: Iterable[bytes] = (),
) -> AppendBatch:
    """All to one stream, each after the other if a version is expected."""
    return AppendBatch(
        tuple(
            NewEvent(stream, event, expected if expected == ANY_VERSION else expected + number)
            for number, event in enumerate(events)
        ),
        origin or Origin(),
        tuple((digest_of(data), data) for data in blobs),
    )


def by(agent: str = "bot", *, session: str = "s", request: str | None = None, digest: str = "d") -> Origin:
    return Origin(
        agent=AgentName(agent),
        session=SessionId(session),
        request_id=request,
        request_digest=digest if request else None,
    )


def signature(size: int) -> Signature:
    return Signature(size, 1, 1, 1)


def found(data: bytes | None, *, version: int | None = None) -> FilesFound:
    """PATH as a scan met it; None: not hashed."""
    digest = digest_of(data) if data is not None else None
    return FilesFound(
        entries=(FoundFile(path=PATH, signature=signature(5), mode=0o644, digest=digest, version=version),)
    )


def intended(before: bytes, after: bytes) -> ChangeIntended:
    item = PathChange(path=PATH, before=digest_of(before), after=digest_of(after), mode=0o644)
    return ChangeIntended(provenance=Provenance(operation="edit_file"), paths=(item,))


def applied(change: Seq, before: bytes, after: bytes) -> ChangeApplied:
    item = PathChange(
        path=PATH, before=digest_of(before), after=digest_of(after), mode=0o644, signature=signature(len(after))
    )
    return ChangeApplied(change=change, provenance=Provenance(operation="edit_file", reverts=(Seq(1),)), paths=(item,))


def aborted(change: Seq) -> ChangeAborted:
    return ChangeAborted(change=change, cause="crash")


def seqs(events: Iterable[Recorded]) -> list[int]:
    return [recorded.seq for recorded in events]


def digest(data: bytes) -> Digest:
    return digest_of(data)


TASK = TaskBegun(session=SessionId("s"), title="t")


def having(data: bytes | None, mode: int, *, version: int | None = None) -> FilesFound:
    """The file as a scan met it; with `version` only what became known of that version."""
    known = digest(data) if data is not None else None
    return FilesFound(entries=(FoundFile(PATH, signature(1), mode, known, False, version),))
