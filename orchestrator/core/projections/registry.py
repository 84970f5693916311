"""The registry: the content of each tracked file, its author, and how often it was read; and contents' encodings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal

import msgspec

from orchestrator.core.change import PathChange
from orchestrator.core.content import FoundFile, Signature
from orchestrator.core.events.base import Event, ExternalChange, RecordedLike
from orchestrator.core.events.conflicts import ApprovalRequested, ConflictFound, ConflictSides
from orchestrator.core.events.files import (
    ChangeApplied,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    FileRead,
    FilesFound,
)
from orchestrator.core.events.journal_maintenance import ContentRedacted
from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath
from orchestrator.core.projections.base import Projection
from orchestrator.core.projections.file_rows import FileEntry, FileRow, holds, is_as, is_kept, pack, unpack


class Registry(Projection):
    """Every tracked path; a removed file leaves a tombstone with the version that removed it."""

    folds: ClassVar[frozenset[type[Event]]] = frozenset(
        {FileRead, FilesFound, ChangeApplied, ContentRedacted, ExternalChange}
    )
    _files: dict[WorkspacePath, FileRow]
    _reads: dict[WorkspacePath, int]
    _removed: dict[WorkspacePath, Seq]
    _first_scan: dict[Literal["over"], Seq]
    part_entries: ClassVar[int] = 1000  # encoding as many holds the interpreter lock for about 1 ms

    @property
    def start(self) -> Seq | None:
        """The position at which the first scan was over: all files are known from there on."""
        return self._first_scan.get("over")

    def get(self, path: WorkspacePath) -> FileEntry | None:
        """The entry of a file that exists as far as the journal knows."""
        row = self._files.get(path)
        return None if row is None else unpack(path, row, self._reads.get(path, 0))

    def knows(self, path: WorkspacePath, signature: Signature, mode: int) -> bool:
        """Whether the file that exists as far as the journal knows has this signature and this mode."""
        row = self._files.get(path)
        return row is not None and is_as(row, signature, mode)

    def removed_at(self, path: WorkspacePath) -> Seq | None:
        """The version that removed the file that once was here, if the path is absent now."""
        return self._removed.get(path)

    def removed(self) -> list[WorkspacePath]:
        """All paths that once held a file, and hold none now."""
        return list(self._removed)

    def files(self) -> Iterator[FileEntry]:
        """All entries, in no order."""
        return (unpack(path, row, self._reads.get(path, 0)) for path, row in self._files.items())

    def unkept(self) -> int:
        """How many files' bytes are not in the blob store."""
        return sum(not is_kept(row) for row in self._files.values())

    def holding(self, digest: Digest) -> list[WorkspacePath]:
        """The files that have this content now."""
        return [path for path, row in self._files.items() if holds(row, digest)]

    def plain(self, table: str) -> Any:
        if table != "files":
            return super().plain(table)
        return {path: msgspec.to_builtins(unpack(path, row)) for path, row in self._files.items()}

    def paths(self) -> list[WorkspacePath]:
        """All paths, as they are at this moment: safe to walk while events go on."""
        return list(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def apply(self, recorded: RecordedLike) -> None:
        match recorded.event:
            case FileRead(seen=seen):
                if seen.path in self._files:
                    self._reads[seen.path] = self._reads.get(seen.path, 0) + 1
            case FilesFound() as event:
                self._met(recorded.seq, event)
            case ChangeApplied(paths=paths) as event:
                makers = [self._maker(recorded.agent, event, changed) for changed in paths]
                for changed, maker in zip(paths, makers, strict=True):
                    self._changed(recorded.seq, event.change, changed, maker)
            case ExternalFileChanged() | ExternalFileCreated() as event:
                maker, known = recorded.agent, self.get(event.path)
                if known is not None or event.moved_from is not None:
                    maker = maker if known is not None and known.made_by == maker else None
                self._put(
                    FileEntry(
                        event.path,
                        recorded.seq,
                        event.after,
                        event.signature,
                        event.mode,
                        event.kept,
                        made_by=maker,
                    )
                )
            case ExternalFileRemoved(path=path):
                self._remove(path, recorded.seq)
            case ContentRedacted(digest=digest):
                for path in self.holding(digest):
                    entry = unpack(path, self._files[path])
                    self._files[path] = pack(msgspec.structs.replace(entry, kept=False))
            case _:
                return

    def _met(self, seq: Seq, event: FilesFound) -> None:
        for found in event.entries:
            self._found(seq, found)
        if not event.more:
            self._first_scan.setdefault("over", seq)

    def _maker(self, agent: AgentName | None, event: ChangeApplied, changed: PathChange) -> AgentName | None:
        """Who made what is at a path after a change, and is the only one who changed it."""
        provenance, known = event.provenance, self.get(changed.moved_from or changed.path)
        if provenance.resolves is not None:  # it may hold what others proposed
            return None
        if known is not None:
            return agent if known.made_by == agent else None
        return agent if changed.before is None and changed.moved_from is None and not provenance.reverts else None

    def _found(self, seq: Seq, found: FoundFile) -> None:
        known, kept, change, maker = self.get(found.path), found.kept, None, None
        if found.version is not None and known is not None and known.version == found.version:
            seq, kept, change, maker = known.version, known.kept or kept, known.change, known.made_by
        self._put(FileEntry(found.path, seq, found.digest, found.signature, found.mode, kept, change, made_by=maker))

    def _changed(self, seq: Seq, change: Seq, changed: PathChange, maker: AgentName | None) -> None:
        if changed.after is not None:
            signature, mode = changed.signature, changed.mode
            self._put(FileEntry(changed.path, seq, changed.after, signature, mode, True, change, made_by=maker))
        elif not changed.directory:
            self._remove(changed.path, seq)

    def _put(self, entry: FileEntry) -> None:
        self._files[entry.path] = pack(entry)
        self._removed.pop(entry.path, None)

    def _remove(self, path: WorkspacePath, seq: Seq) -> None:
        self._files.pop(path, None)
        self._reads.pop(path, None)
        self._removed[path] = seq


# --- encodings ---------------------------------------------------------------------------


class Known(msgspec.Struct, frozen=True, gc=False):
    """What `decode` gets to know of a content."""

    written: str | None = None  # the daemon wrote it so
    like: str | None = None  # another version of the same file was so


NOTHING = Known()


class Encodings(Projection):
    """Contents whose encoding must be remembered, as nothing in their bytes says it; of all others it holds nothing.

    A guess may change with one word; what a change recorded does not. So a file keeps its encoding within its
    history, and the same journal reads the same after a replay.
    """

    folds: ClassVar[frozenset[type[Event]]] = frozenset(
        {ChangeApplied, ApprovalRequested, ExternalFileChanged, ConflictFound}
    )
    _known: dict[Digest, Known]

    def of(self, digest: Digest | None) -> Known:
        """What is known of a content."""
        return self._known.get(digest, NOTHING) if digest is not None else NOTHING

    def apply(self, recorded: RecordedLike) -> None:
        match recorded.event:
            case ChangeApplied(paths=paths) | ApprovalRequested(paths=paths):
                self._written(paths)
            case ExternalFileChanged(before=before, after=after):
                self._alike(before, after)
            case ConflictFound(sides=ConflictSides(current=current, proposed=proposed)):
                self._alike(current, proposed)
            case _:
                return

    def _written(self, paths: Iterable[PathChange]) -> None:
        for item in paths:
            if item.encoding is None:
                continue
            if item.before is not None:
                self._known.setdefault(item.before, Known(like=item.encoding))
            if item.after is not None:
                self._known[item.after] = Known(written=item.encoding)

    def _alike(self, known: Digest | None, other: Digest | None) -> None:
        here = self.of(known)
        if other is not None and here is not NOTHING:
            self._known.setdefault(other, Known(like=here.written or here.like))
