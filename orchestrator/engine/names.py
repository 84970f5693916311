"""The names of the workspace: from an index that a scan made and the watcher's hints keep, or from the disk.

The kernel queues what happens to names before the program that did it goes on. So whoever asks first drains that queue
and looks at each name in it: what a shell made a moment ago is in the answer. Where that can't be had (before the first
scan is over, after lost hints or changed ignore rules until the next scan, without a watcher), the disk is walked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import msgspec
from anyio import CapacityLimiter, from_thread

from orchestrator.core.content import Signature
from orchestrator.core.errors import PathError
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.name_index import LAST, NameIndex, NameKind, line_of, read_line
from orchestrator.core.paths import ROOT, join
from orchestrator.core.projections.registry import Registry
from orchestrator.engine.paths import Walked, Walker
from orchestrator.ports.workspace import FileStat, Hints, Ignore, ScanResult, Watcher, Workspace

MOST_WALKS = 4
"""At a time."""

MOST_HINTED = 20_000
"""Names that are looked at one by one, within a second; where more may be other ones, everything is scanned again."""


class Name(msgspec.Struct, frozen=True, gc=False):
    """One name; of kind `invalid` it is written escaped."""

    path: WorkspacePath
    kind: NameKind
    stat: FileStat | None = None  # where the disk was asked already

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Names:
    """Blocking, and thread-safe: for worker threads."""

    def __init__(self, workspace: Workspace, ignore: Ignore, registry: Registry, watcher: Watcher | None) -> None:
        self._workspace, self._ignore, self._watcher, self._registry = workspace, ignore, watcher, registry
        self._walker = Walker(workspace, ignore)
        self.threads = CapacityLimiter(MOST_WALKS)
        """For those that walk: on the disk that may take long."""
        self.forward: Callable[[Hints], None] = lambda hints: None
        """Where hints go on to that were drained here; called on the event loop."""
        self._index: NameIndex | None = None
        self._rules: Signature | None = None
        self._hints = Hints()
        self._newer: set[WorkspacePath] = set()  # files that the registry knew otherwise, when they were looked at last
        self._writing, self._hearing = threading.Lock(), threading.Lock()
        if watcher is not None:
            watcher.subscribe(self._hear)

    # --- asked --------------------------------------------------------------------------

    def walk(
        self,
        start: WorkspacePath,
        *,
        depth: int | None = None,
        hidden: bool = True,
        first: str = "",
        last: str = LAST,
        holding: Sequence[str] = (),
    ) -> Iterator[Name]:
        """What is below a directory, from `first` up to before `last`, in the order of the paths.

        As `Walker.walk`. Those may be left out that hold none of the texts in `holding`, if there are any.
        """
        index = self._settled()
        above = "" if start == ROOT else f"{start}/"
        if index is None or (above and self._ignore.ignored(start, directory=True)):
            for item in self._walker.walk(start, depth=depth, hidden=hidden, first=first, last=last):
                if first <= item.path < last:
                    yield Name(item.path, _kind(item), item.stat)
            return
        if not index.holds_below(above):
            self._workspace.names(start)  # there is nothing, or it is closed to us
        read = index.lines if depth is None else partial(index.down_to, depth, above)
        for lines in read(max(first, above), min(last, f"{start}0" if above else LAST), holding):
            for line in lines:
                below = line[len(above) :]
                if hidden or not (below[:1] == "." or "/." in below):
                    path, kind = read_line(line)
                    yield Name(WorkspacePath(path), kind)

    def ignored(self, directory: WorkspacePath) -> bool:
        """Whether what is in a directory is left out of the names of the directory above it."""
        return self._ignore.ignored(directory, directory=True)

    def children(self, directory: WorkspacePath, *, hidden: bool) -> Iterator[Name]:
        """What is in a directory itself: the directories in it, then all else, each by name."""
        found = list(self.walk(directory, depth=1, hidden=hidden))
        yield from (item for item in found if item.kind == "directory")
        yield from (item for item in found if item.kind != "directory")

    def stats(self, names: Sequence[Name]) -> list[FileStat | None]:
        """What the disk says of each; None where it is gone."""
        wanted = [name.path for name in names if name.stat is None and name.kind != "invalid"]
        asked = dict(zip(wanted, self._workspace.stats(wanted), strict=True))
        return [
            name.stat or (asked.get(name.path) if name.kind != "invalid" else self._invalid(name)) for name in names
        ]

    def signatures(self, names: Sequence[Name]) -> list[Signature | None]:
        """What stat says of each file; None where it is gone. Only those are asked for that may not be as noted."""
        known: list[Signature | None] = []
        unsure: list[int] = []
        for at, name in enumerate(names):
            entry = self._registry.get(name.path)
            known.append(name.stat.signature if name.stat is not None else entry.signature if entry else None)
            if name.stat is None and (known[-1] is None or name.path in self._newer):
                unsure.append(at)
        asked = self._workspace.stats([names[at].path for at in unsure])
        for at, stat in zip(unsure, asked, strict=True):
            known[at] = stat.signature if stat is not None and stat.kind == "file" else None
        return known

    def _invalid(self, name: Name) -> FileStat | None:
        with suppress(PathError):
            listed = self._workspace.names(WorkspacePath(name.path.rpartition("/")[0] or ROOT))
            return next((item.stat for item in listed if not item.valid and item.name == name.name), None)
        return None

    def current(self) -> bool:
        """Whether the index answers now."""
        return self._settled() is not None

    def pieces(self) -> tuple[str, ...] | None:
        """As `NameIndex.pieces`; None: the disk is to be asked."""
        index = self._settled()
        return index.pieces if index is not None else None

    # --- kept ---------------------------------------------------------------------------

    def begin(self) -> None:
        """Before a scan: what is heard from now on is looked at after it."""
        with self._writing:
            self._index = None
            with self._hearing:
                self._hints = Hints()
            self._rules = self._ignore.unwatched()

    def take(self, result: ScanResult) -> None:
        """What a scan met, once it is over."""
        index, known = NameIndex(result.lines), self._registry.get
        newer = {
            item.path for item in result.files if (entry := known(item.path)) and entry.signature != item.signature
        }
        with self._writing:
            self._index, self._newer = index, newer

    def settle(self) -> None:
        """Look at what was hinted at, and imported since, so that it does not pile up while nobody asks."""
        self._settled()
        with self._writing:
            for path, stat in self._stats_of(self._newer):
                self._compare(path, stat)

    def _hear(self, hints: Hints) -> None:
        with self._hearing:
            self._hints = _both(self._hints, hints)

    def _settled(self) -> NameIndex | None:
        """The index, up to date; None: the disk is to be asked."""
        watcher = self._watcher
        if watcher is None or not watcher.exact:
            return None
        drained = watcher.drain()
        with self._writing:
            index = self._index
            few = len(self._hints.paths) <= MOST_HINTED
            current = few and self._hints.rescan is None and self._rules == self._ignore.unwatched() and watcher.exact
            if index is not None and current:
                self._take_in(index)
        if index is not None and not current and self._hints.rescan is None:
            drained = _both(drained, Hints(rescan="watch"))
            self._hear(drained)
        if drained:
            from_thread.run_sync(self.forward, drained)
        return index if current else None

    def _take_in(self, index: NameIndex) -> None:
        with self._hearing:
            hints, self._hints = self._hints, Hints()
        for folder, stat in self._stats_of(hints.folders):
            self._put(index, folder, stat)
            index.replace(f"{folder}/", f"{folder}0", self._lines_below(index, folder))
        for path, stat in self._stats_of(hints.paths):
            self._put(index, path, stat)
            self._compare(path, stat)
        for folder in hints.unnamed:
            self._look_for_invalid(index, folder)

    def _stats_of(self, paths: Iterable[WorkspacePath]) -> Iterator[tuple[WorkspacePath, FileStat | None]]:
        """None for what is gone, or closed to us."""
        wanted = sorted(paths)
        return zip(wanted, self._workspace.stats(wanted), strict=True)

    def _put(self, index: NameIndex, path: WorkspacePath, stat: FileStat | None) -> None:
        gone = stat is None or self._ignore.ignored(path, directory=stat.kind == "directory")
        index.put(path, None if gone or stat is None else _kind_of(stat))

    def _lines_below(self, index: NameIndex, folder: WorkspacePath) -> list[str]:
        if index.holds(line_of(folder, "directory")):
            with suppress(PathError):
                lines = []
                for item in self._walker.walk(folder):
                    self._compare(item.path, item.stat)
                    lines.append(line_of(item.path, _kind(item)))
                return lines
        return []

    def _compare(self, path: WorkspacePath, stat: FileStat | None) -> None:
        """Whether the registry has what is there; if not, it is asked for until it has."""
        entry = self._registry.get(path)
        if stat is not None and stat.kind == "file" and entry is not None and entry.signature != stat.signature:
            self._newer.add(path)
        else:
            self._newer.discard(path)

    def _look_for_invalid(self, index: NameIndex, folder: WorkspacePath) -> None:
        above = "" if folder == ROOT else f"{folder}/"
        invalid = line_of("", "invalid")
        found = index.lines(above, f"{folder}0" if above else LAST, (invalid,))
        old = [line for lines in found for line in lines if line.endswith(invalid) and "/" not in line[len(above) :]]
        for line in old:
            index.replace(line, f"{line}{invalid}", ())
        with suppress(PathError):
            for item in self._workspace.names(folder):
                if not item.valid:
                    line = line_of(join(folder, item.name), "invalid")
                    index.replace(line, f"{line}{invalid}", (line,))


def _kind(item: Walked) -> NameKind:
    return _kind_of(item.stat) if item.valid else "invalid"


def _kind_of(stat: FileStat) -> NameKind:
    return stat.kind if stat.kind in ("file", "directory") else "other"


def _both(one: Hints, other: Hints) -> Hints:
    """The hints of two reports."""
    return Hints(
        one.paths | other.paths,
        one.folders | other.folders,
        "overflow" if "overflow" in (one.rescan, other.rescan) else one.rescan or other.rescan,
        one.added | other.added,
        one.unnamed | other.unnamed,
    )
