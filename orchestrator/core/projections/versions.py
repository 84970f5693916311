"""Versions of files: the rows of history, how two trees differ, and the latest versions of each file at hand."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from orchestrator.core.change import PathChange
from orchestrator.core.content import FoundFile
from orchestrator.core.events.base import OUTSIDE, ExternalChange, Recorded, RecordedLike, author_of
from orchestrator.core.events.files import (
    ChangeApplied,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    FilesFound,
    path_changes,
)
from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath
from orchestrator.core.projections.registry import Registry

HISTORY_VERSION = 2
"""Raised when the rows change; the table is then rebuilt."""


class VersionRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One version of one file, as history knows it."""

    path: WorkspacePath
    seq: Seq  # the version_id
    effective: Seq  # from which @N on it is the content: the intent of a change, else seq
    at: int  # ms
    kind: Literal["found", "change", "external"]
    operation: str = ""
    digest: Digest | None = None  # None: absent from here on, or never hashed (see `present`)
    present: bool = True
    size: int | None = None
    mode: int | None = None
    change: Seq | None = None  # the intent
    agent: AgentName | None = None
    session: str | None = None
    task: Seq | None = None
    approval: Seq | None = None
    undoes: bool = False  # its change undoes others; the event says which
    moved_from: WorkspacePath | None = None

    @property
    def author(self) -> str | None:
        """Who changed it."""
        return self.agent or (OUTSIDE if self.kind == "external" else None)


class DigestLearned(msgspec.Struct, frozen=True):
    """The content of an earlier version is known by its hash now; the version stays the same.

    So it does where only permission bits changed: from `seq` on the file has `mode`.
    """

    path: WorkspacePath
    version: Seq
    digest: Digest
    size: int
    seq: Seq
    mode: int


def history(recorded: Recorded) -> Iterator[VersionRow | DigestLearned]:
    """What one event adds to history; most add nothing."""
    external = partial(
        VersionRow,
        seq=recorded.seq,
        effective=recorded.seq,
        at=recorded.at,
        kind="external",
        agent=recorded.agent,  # that ran the command which did it
        session=recorded.session,
    )
    match recorded.event:
        case FilesFound(entries=entries):
            yield from (_found(recorded, entry) for entry in entries)
        case ChangeApplied() as applied:
            yield from (_changed(recorded, applied, change) for change in applied.paths if not change.directory)
        case ExternalFileChanged() | ExternalFileCreated() as event:
            yield external(
                path=event.path,
                digest=event.after,
                size=event.signature.size,
                mode=event.mode,
                moved_from=event.moved_from,
            )
        case ExternalFileRemoved(path=path):
            yield external(path=path, present=False)
        case _:
            return


def _changed(recorded: Recorded, applied: ChangeApplied, change: PathChange) -> VersionRow:
    provenance = applied.provenance
    return VersionRow(
        path=change.path,
        seq=recorded.seq,
        effective=applied.change,
        at=recorded.at,
        kind="change",
        operation=provenance.operation,
        digest=change.after,
        present=change.after is not None,
        size=change.signature.size if change.signature else None,
        mode=change.mode,
        change=applied.change,
        agent=recorded.agent,
        session=recorded.session,
        task=provenance.task,
        approval=provenance.approval,
        undoes=bool(provenance.reverts),
        moved_from=change.moved_from,
    )


def _found(recorded: Recorded, entry: FoundFile) -> VersionRow | DigestLearned:
    seq, size = recorded.seq, entry.signature.size
    if entry.version is not None and entry.digest is not None:
        return DigestLearned(entry.path, Seq(entry.version), entry.digest, size, seq, entry.mode)
    return VersionRow(
        path=entry.path,
        seq=seq,
        effective=seq,
        at=recorded.at,
        kind="found",
        digest=entry.digest,
        size=size,
        mode=entry.mode,
    )


# --- how two trees differ -----------------------------------------------------------------

Tree = Mapping[WorkspacePath, VersionRow]


class Difference(msgspec.Struct, frozen=True):
    """One file that is not the same in both states; of different paths: it was renamed."""

    old: VersionRow | None
    new: VersionRow | None

    @property
    def path(self) -> WorkspacePath:
        """Where it is now, else where it was."""
        row = self.new if self.new is not None else self.old
        if row is None:
            raise ValueError("absent on both sides")
        return row.path


def differences(old: Tree, new: Tree, moves: Iterable[tuple[WorkspacePath, WorkspacePath]] = ()) -> list[Difference]:
    """The files that differ in content or mode, in the order of their paths.

    A removed and an added file are one rename where `moves` (old path, new path) says so, or where their contents
    are equal and not empty; each is used once, the first by path. A content that was never hashed differs from
    every other version's.
    """
    changed = [Difference(old[path], new[path]) for path in old.keys() & new.keys() if not _same(old[path], new[path])]
    removed, added = dict.fromkeys(sorted(old.keys() - new.keys())), dict.fromkeys(sorted(new.keys() - old.keys()))
    for source, target in moves:
        if source in removed and target in added:
            del removed[source], added[target]
            changed.append(Difference(old[source], new[target]))
    sources: dict[Digest, list[WorkspacePath]] = {}
    for path in reversed(removed):
        digest = old[path].digest
        if digest is not None and old[path].size != 0:
            sources.setdefault(digest, []).append(path)
    for path in tuple(added):
        digest = new[path].digest
        if digest is not None and sources.get(digest):
            source = sources[digest].pop()
            del removed[source], added[path]
            changed.append(Difference(old[source], new[path]))
    changed += [Difference(old[path], None) for path in removed]
    changed += [Difference(None, new[path]) for path in added]
    return sorted(changed, key=lambda item: item.path)


def _same(old: VersionRow, new: VersionRow) -> bool:
    alike = old.seq == new.seq or (old.digest is not None and old.digest == new.digest)
    return alike and old.mode == new.mode


# --- at hand ------------------------------------------------------------------------------

MOST_VERSIONS = 5_000
"""Of all files together; the file that changed longest ago goes first."""

MOST_OF_ONE = 200


class Version(NamedTuple):
    """One version of a file, and by whom it came."""

    seq: Seq
    digest: Digest
    authors: tuple[tuple[str, Seq], ...] = ()  # one, with this version; not of the oldest that is kept


class RecentVersions:
    """Without a gap from the oldest that is kept to the present; a file created, removed or moved begins anew."""

    def __init__(self, registry: Registry) -> None:
        self._registry, self._held = registry, 0
        self._of: OrderedDict[WorkspacePath, dict[Seq, Version]] = OrderedDict()

    def __len__(self) -> int:
        return self._held

    def apply(self, recorded: RecordedLike) -> None:
        """To be called before the registry folds the event."""
        match recorded.event:
            case ChangeApplied() | ExternalChange() as event:
                who = author_of(recorded) or OUTSIDE
                for changed in path_changes(event):
                    if changed.moved_from is not None or changed.binary or changed.directory:
                        self._forget(changed.path)
                    else:
                        self._add(changed.path, recorded.seq, changed.before, changed.after, who)
            case FilesFound(entries=entries):
                for found in entries:
                    known = self._registry.get(found.path)
                    if known is None or found.version != known.version or known.digest not in (None, found.digest):
                        self._forget(found.path)
            case _:
                return

    def since(self, path: WorkspacePath, version: Seq) -> list[Version] | None:
        """A version and all that came after it, oldest first; None where that is not at hand."""
        versions = self._of.get(path, {})
        if version in versions:
            return [item for item in versions.values() if item.seq >= version]
        present = self._registry.get(path)
        if versions or present is None or present.version != version or present.digest is None:
            return None
        return [Version(version, present.digest)]

    def digest(self, path: WorkspacePath, version: Seq) -> Digest | None:
        """The content of a version, if it is at hand."""
        found = self._of.get(path, {}).get(version)
        return found.digest if found is not None else None

    def _add(self, path: WorkspacePath, seq: Seq, before: Digest | None, after: Digest | None, who: str) -> None:
        known = self._registry.get(path)
        if after is None or before is None or known is None or known.digest != before:
            self._forget(path)
            return
        versions = self._of.setdefault(path, {})
        if not versions:
            versions[known.version] = Version(known.version, before)
            self._held += 1
        self._of.move_to_end(path)
        versions[seq] = Version(seq, after, ((who, seq),))
        self._held += 1
        if len(versions) > MOST_OF_ONE:
            for old in [*versions][: MOST_OF_ONE // 2]:
                del versions[old]
            self._held -= MOST_OF_ONE // 2
        while self._held > MOST_VERSIONS:
            self._held -= len(self._of.popitem(last=False)[1])

    def _forget(self, path: WorkspacePath) -> None:
        self._held -= len(self._of.pop(path, ()))
