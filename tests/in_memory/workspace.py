"""A workspace without a disk: the twin of LocalWorkspace, for tests of what stands on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal, TypeVar

from anyio import to_thread

from orchestrator.core.content import Signature, digest_of
from orchestrator.core.errors import (
    FileBusy,
    FileExists,
    FileNotFound,
    FileTooLarge,
    NotADirectory,
    NotAFile,
    NotARegularFile,
    PathError,
    SymlinkRefused,
    escaped,
)
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.name_index import line_of
from orchestrator.core.paths import valid_name
from orchestrator.ports.machine import Step
from orchestrator.ports.workspace import (
    ChangedMeanwhile,
    DiskChange,
    FileBytes,
    FileStat,
    Ignore,
    Known,
    ListedName,
    Scanned,
    ScanResult,
)
from orchestrator.workspace.ignore import BUILT_IN, is_temp

T = TypeVar("T")

_UID = 1000
_LINK = "it, or a directory in it, is a symbolic link"


class _Node:
    """A file, directory, link or something else. It keeps its inode when it is renamed."""

    def __init__(self, kind: Literal["file", "directory", "symlink", "other"], inode: int, data: bytes, mode: int):
        self.kind, self.inode, self.data, self.mode = kind, inode, data, mode
        self.changed = inode

    def stat(self) -> FileStat:
        signature = Signature(len(self.data), self.changed, self.changed, self.inode)
        target = escaped(self.data.decode()) if self.kind == "symlink" else None
        return FileStat(self.kind, signature, self.mode, _UID, target)


class _NoRules:
    def ignored(self, path: WorkspacePath, *, directory: bool) -> bool:
        return False

    def refresh(self) -> None:
        return

    def over_budget(self) -> tuple[tuple[str, str], ...]:
        return ()

    def unwatched(self) -> Signature | None:
        return None


class MemoryPieces:
    """See `ports.FilePieces`; without holes, and without a descriptor."""

    handle = -1

    def __init__(self, node: _Node) -> None:
        self._node, self.stat = node, node.stat()

    def stat_now(self) -> FileStat:
        return self._node.stat()

    def read(self, at: int, count: int) -> bytes:
        return self._node.data[at : at + count]

    def data_from(self, at: int) -> int:
        return at

    def close(self) -> None:
        return


class MemoryWorkspace:
    """See `ports.Workspace`. `put`, `link`, `pipe`, `remove` and `writers` are the outside world."""

    def __init__(
        self, root: str = "/workspace", *, ignore: Ignore | None = None, step: Step = lambda name: None
    ) -> None:
        self._root, self.step = root, step
        self.ignore: Ignore = ignore or _NoRules()
        self.lock = threading.RLock()
        self.writers: set[WorkspacePath] = set()
        """Paths that another program holds open for writing."""
        self._count = 1
        self.nodes: dict[str, _Node] = {".": _Node("directory", 1, b"", 0o755)}

    def in_place(self) -> bool:
        return True

    # --- the outside world ------------------------------------------------------------

    def put(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """A file, with the directories above it; an old one is replaced."""
        above = path.rpartition("/")[0]
        if above and above not in self.nodes:
            self.make_directory(above)
        self.add(path, "file", data, mode)

    def make_directory(self, path: str) -> None:
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            above = "/".join(parts[:end])
            if above not in self.nodes:
                self.add(above, "directory", b"", 0o755)

    def link(self, path: str, target: str) -> None:
        self.add(path, "symlink", target.encode(), 0o777)

    def pipe(self, path: str) -> None:
        self.add(path, "other", b"", 0o644)

    def remove(self, path: str) -> None:
        del self.nodes[path]

    def add(self, path: str, kind: Literal["file", "directory", "symlink", "other"], data: bytes, mode: int) -> None:
        with self.lock:
            self._count += 1
            self.nodes[path] = _Node(kind, self._count, data, mode)

    # --- looking ----------------------------------------------------------------------

    @property
    def root(self) -> str:
        return self._root

    def close(self) -> None:
        return

    def check_parent(self, path: WorkspacePath) -> None:
        """As the kernel walks: each directory above must be one."""
        parts = path.split("/")
        for end in range(1, len(parts)):
            node = self.nodes.get("/".join(parts[:end]))
            if node is None:
                raise FileNotFound(path, "nothing has this name")
            if node.kind == "symlink":
                raise SymlinkRefused(path, _LINK)
            if node.kind != "directory":
                raise NotADirectory(path, "a name in it is a file, where a directory is needed")

    def stat(self, path: WorkspacePath) -> FileStat | None:
        with self.lock:
            with suppress(FileNotFound):
                self.check_parent(path)
                node = self.nodes.get(path)
                return node.stat() if node else None
            return None

    def regular(self, path: WorkspacePath) -> _Node:
        """The file at a path; raises for anything else."""
        self.check_parent(path)
        node = self.nodes.get(path)
        if node is None:
            raise FileNotFound(path, "nothing has this name")
        if node.kind == "symlink":
            raise SymlinkRefused(path, _LINK)
        if node.kind == "directory":
            raise NotAFile(path, "it is a directory", hint="Use list_files.")
        if node.kind != "file":
            raise NotARegularFile(path, "it is a device, socket or pipe")
        return node

    def stats(self, paths: Sequence[WorkspacePath]) -> list[FileStat | None]:
        found: list[FileStat | None] = []
        for path in paths:
            try:
                found.append(self.stat(path))
            except PathError:
                found.append(None)
        return found

    def read(self, path: WorkspacePath, *, most: int, growing: bool = False) -> FileBytes:
        with self.lock:
            node = self.regular(path)
            if len(node.data) > most:
                raise FileTooLarge(path, f"it has {len(node.data)} bytes; the limit is {most}")
            return FileBytes(node.data, node.stat(), digest_of(node.data))

    def hash(self, path: WorkspacePath, *, most: int) -> tuple[Digest, FileStat]:
        read = self.read(path, most=most)
        return read.digest, read.stat

    def pieces(self, path: WorkspacePath) -> MemoryPieces:
        with self.lock:
            return MemoryPieces(self.regular(path))

    def _in(self, path: WorkspacePath) -> dict[str, _Node]:
        node = self.nodes.get(path)
        self.check_parent(path)
        if node is None:
            raise FileNotFound(path, "nothing has this name")
        if node.kind == "symlink":
            raise SymlinkRefused(path, _LINK)
        if node.kind != "directory":
            raise NotADirectory(path, "a name in it is a file, where a directory is needed")
        start = "" if path == "." else path + "/"
        return {
            key[len(start) :]: node
            for key, node in self.nodes.items()
            if key != "." and key.startswith(start) and "/" not in key[len(start) :]
        }

    def names(self, path: WorkspacePath) -> list[ListedName]:
        with self.lock:
            return [
                ListedName(name if valid_name(name) else escaped(name), valid_name(name), node.stat())
                for name, node in self._in(path).items()
                if not is_temp(name)
            ]

    def scan(self, known: Known = lambda path, signature, mode: False) -> ScanResult:
        with self.lock:
            files: list[Scanned] = []
            lines: set[str] = set()
            skipped: dict[str, int] = {}
            pending = [WorkspacePath(".")]
            while pending:
                folder = pending.pop()
                for name, node in self._in(folder).items():
                    path = WorkspacePath(name if folder == "." else f"{folder}/{name}")
                    if not valid_name(name):
                        why = "names that break the name rule"
                        skipped[why] = skipped.get(why, 0) + 1
                        lines.add(line_of(_beside(path, escaped(name)), "invalid"))
                    elif self._ignored(path, name, node):
                        continue
                    elif node.kind == "directory":
                        lines.add(line_of(path, "directory"))
                        pending.append(path)
                    elif node.kind == "file":
                        lines.add(path)
                        if not known(path, node.stat().signature, node.mode):
                            files.append(Scanned(path, node.stat().signature, node.mode))
                    else:
                        lines.add(line_of(path, "other"))
            return ScanResult(tuple(sorted(files, key=lambda item: item.path)), skipped, sorted(lines))

    def _ignored(self, path: WorkspacePath, name: str, node: _Node) -> bool:
        return name in BUILT_IN or is_temp(name) or self.ignore.ignored(path, directory=node.kind == "directory")

    # --- changing and recovery --------------------------------------------------------

    async def off_loop(self, work: Callable[[], T]) -> T:
        return await to_thread.run_sync(work)

    def atomic_write(self, change: DiskChange) -> MemoryAtomicWrite:
        return MemoryAtomicWrite(self, change)

    def temps(self) -> list[WorkspacePath]:
        with self.lock:
            found = ((key, key.rpartition("/")[2]) for key, node in self.nodes.items() if node.kind == "file")
            return [WorkspacePath(key) for key, name in found if is_temp(name)]

    def read_temp(self, temp: WorkspacePath, *, most: int) -> FileBytes | None:
        try:
            return self.read(temp, most=most)
        except (FileNotFound, SymlinkRefused, NotAFile, NotARegularFile):
            return None

    def in_use(self, temp: WorkspacePath) -> bool:
        return temp in self.nodes and temp in self.writers

    def unlink_temp(self, temp: WorkspacePath) -> None:
        node = self.nodes.get(temp)
        if node is not None and node.kind == "file" and is_temp(temp.rpartition("/")[2]):
            del self.nodes[temp]

    def exchange_back(self, temp: WorkspacePath, path: WorkspacePath) -> None:
        with self.lock:
            old = self.nodes.pop(path, None)
            self.nodes[path] = self.nodes.pop(temp)
            if old is not None:
                self.nodes[temp] = old

    def remove_empty(self, path: WorkspacePath, *, below: bool = True) -> None:
        with self.lock:
            start = f"{path}/"
            inside = (key for key in self.nodes if key == path or (below and key.startswith(start)))
            for key in sorted(inside, reverse=True):
                empty = not any(other.startswith(f"{key}/") for other in self.nodes)
                if self.nodes[WorkspacePath(key)].kind == "directory" and empty:
                    del self.nodes[WorkspacePath(key)]

    def sync_directory(self, path: WorkspacePath) -> None:
        self.check_parent(path)


class MemoryAtomicWrite:
    """See `ports.Landing`."""

    def __init__(self, workspace: MemoryWorkspace, change: DiskChange) -> None:
        self._w, self._change = workspace, change
        self._temp = _beside(change.path, change.temp) if change.temp else None
        self._in_temp: Literal["nothing", "ours", "theirs"] = "nothing"
        self._made: list[str] = []
        self._kept: tuple[bytes, ...] = ()
        self.warnings: tuple[str, ...] = ()

    def stage(self) -> None:
        change = self._change
        for path in change.parents:
            if path not in self._w.nodes:
                self._w.make_directory(path)
                self._made.append(path)
        try:
            self._w.check_parent(change.path)
            if change.data is None or self._temp is None:
                return
            old = self._w.regular(change.path) if change.before is not None and change.path in self._w.nodes else None
        except PathError:
            self.abandon()
            raise
        mode = change.mode if change.mode is not None else old.mode if old else 0o644
        self._w.add(self._temp, "file", b"", mode & 0o1777)
        self._in_temp = "ours"
        self._w.step("temp_created")
        node = self._w.nodes[self._temp]
        data = change.data if isinstance(change.data, bytes) else b"".join(change.data.blocks())
        node.data = data[: len(data) // 2]
        self._w.step("temp_half_written")
        node.data = data
        self._w.step("temp_half_written")
        self._w.step("temp_synced")

    def commit(self) -> FileStat | None:
        try:
            applied = self._apply()
        except (ChangedMeanwhile, PathError) as error:
            self._kept = error.unexpected if isinstance(error, ChangedMeanwhile) else ()
            self.abandon()
            raise
        self._w.step("directory_synced")
        return applied

    def _apply(self) -> FileStat | None:
        change, nodes = self._change, self._w.nodes
        self._w.check_parent(change.path)
        if change.directory == "removed":
            if any(name.startswith(f"{change.path}/") for name in nodes):
                raise FileExists(change.path, "something is in it")
            if change.path not in nodes:
                raise FileNotFound(change.path, "nothing is there")
            del nodes[change.path]
            return None
        if change.directory == "made":
            if change.path in nodes:
                raise FileExists(change.path, "this name is taken")
            self._w.make_directory(change.path)
            return nodes[change.path].stat()
        source = change.moved_from or (change.path if change.before is not None else None)
        if source is not None:
            self._recheck(source, change.after if change.moved_from else change.before)
        self._w.step("hash_rechecked")
        if change.moved_from is not None:
            return self._rename(change.moved_from, change.path, change.after)
        if change.before is None:
            if change.path in nodes:
                raise ChangedMeanwhile(change.path)
            nodes[change.path] = nodes.pop(self._named_temp)
            self._in_temp = "nothing"
            self._w.step("swapped")
            return nodes[change.path].stat()
        if change.after is None:
            self._rename(change.path, WorkspacePath(self._named_temp), change.before)
            self._in_temp = "theirs"
            return None
        return self._exchange(change.before, change.after)

    def _recheck(self, path: WorkspacePath, expected: Digest | None) -> None:
        try:
            node = self._w.regular(path)
        except FileNotFound:
            raise ChangedMeanwhile(self._change.path) from None
        if digest_of(node.data) != expected:
            raise ChangedMeanwhile(self._change.path)

    def _rename(self, source: WorkspacePath, target: WorkspacePath, expected: Digest | None) -> FileStat:
        nodes, path = self._w.nodes, self._change.path
        if target in nodes or source not in nodes:
            raise ChangedMeanwhile(path)
        node = nodes[target] = nodes.pop(source)
        self._w.step("swapped")
        busy = source in self._w.writers
        if busy or node.kind != "file" or digest_of(node.data) != expected:
            self._w.step("swapped_stale")
            if source in nodes:
                self._in_temp = "theirs"
                raise ChangedMeanwhile(path, diverged=True, unexpected=(nodes[source].data, node.data))
            nodes[source] = nodes.pop(target)
            raise FileBusy(path, "another program holds it open for writing") if busy else ChangedMeanwhile(path)
        return node.stat()

    def _exchange(self, before: Digest, after: Digest) -> FileStat:
        nodes, path, temp = self._w.nodes, self._change.path, self._named_temp
        if path not in nodes:
            raise ChangedMeanwhile(path)
        nodes[path], nodes[temp] = nodes[temp], nodes[path]
        self._in_temp = "theirs"
        self._w.step("swapped")
        busy = path in self._w.writers
        if busy or nodes[temp].kind != "file" or digest_of(nodes[temp].data) != before:
            self._w.step("swapped_stale")
            theirs, came = nodes.pop(temp), nodes.pop(path, None)
            nodes[path] = theirs
            if came is not None:
                nodes[temp] = came
                if digest_of(came.data) != after:
                    raise ChangedMeanwhile(path, diverged=True, unexpected=(theirs.data, came.data))
            self._in_temp = "ours"
            raise FileBusy(path, "another program holds it open for writing") if busy else ChangedMeanwhile(path)
        return nodes[path].stat()

    def roll_back(self) -> None:
        change, nodes = self._change, self._w.nodes
        self._w.step("rolling_back")
        if change.directory == "removed":
            self._w.make_directory(change.path)
        elif change.directory == "made":
            del nodes[change.path]
        elif change.after is None:
            if change.path in nodes:
                self._in_temp = "theirs"
                raise ChangedMeanwhile(change.path, diverged=True, unexpected=(nodes[change.path].data,))
            nodes[change.path] = nodes.pop(self._named_temp)
        else:
            self._take_back_content(change.after)
        self._in_temp = "nothing"
        if self._temp is not None:
            nodes.pop(self._temp, None)
        self._remove_made()

    def _take_back_content(self, after: Digest) -> None:
        change, nodes = self._change, self._w.nodes
        present = nodes.get(change.path)
        taken = change.moved_from is not None and change.moved_from in nodes
        if present is None or present.kind != "file" or digest_of(present.data) != after or taken:
            out = nodes.get(self._temp) if self._temp is not None else None
            self._kept = tuple(node.data for node in (present, out) if node is not None)
            raise ChangedMeanwhile(change.path, diverged=True, unexpected=self._kept)
        del nodes[change.path]
        if change.moved_from is not None:
            nodes[change.moved_from] = present
        elif change.before is not None:
            nodes[change.path] = nodes[self._named_temp]

    def finish(self) -> tuple[bytes, ...]:
        node = self._w.nodes.get(self._temp) if self._temp and self._in_temp == "theirs" else None
        if node is not None:
            if digest_of(node.data) != self._change.before and node.data not in self._kept:
                self._kept += (node.data,)
                return (node.data,)
            del self._w.nodes[self._named_temp]
        self._in_temp = "nothing"
        self._w.step("unlinked")
        return ()

    def abandon(self) -> None:
        if self._in_temp == "ours":
            self._w.nodes.pop(self._named_temp, None)
            self._in_temp = "nothing"
        self._remove_made()

    def release(self) -> None:
        """Nothing is open."""

    def _remove_made(self) -> None:
        """The parents that were made for it, where nothing is in them."""
        while self._made:
            path = self._made.pop()
            if not any(key.startswith(path + "/") for key in self._w.nodes):
                self._w.nodes.pop(path, None)

    @property
    def _named_temp(self) -> str:
        if self._temp is None:
            raise ValueError("this change has no temporary file")
        return self._temp


def _beside(path: WorkspacePath, name: str) -> str:
    above = path.rpartition("/")[0]
    return f"{above}/{name}" if above else name
