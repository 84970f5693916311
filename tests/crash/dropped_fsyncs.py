"""A disk in memory that keeps what is synced and what is pending apart; at a power cut any part of that survives.

It stands in for the kernel under `LocalWorkspace`, call for call (tests/contracts runs over it too).
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, cast

from orchestrator.workspace.disk import Disk, Rename

_DEVICE = 77
_FIRST_HANDLE = 1_000


class PowerGone(OSError):
    """Nothing reaches this disk any more."""

    def __init__(self) -> None:
        super().__init__(errno.EIO, "the power is gone")


class Node:
    """A file or a directory; it keeps its number when it is renamed.

    A file's `synced` are the bytes that surely survive; None: none do. A directory's are its names.
    """

    def __init__(self, number: int, mode: int) -> None:
        self.number, self.mode = number, mode
        self.data = b""
        self.synced: bytes | None = None
        self.names: dict[str, Node] = {}
        self.synced_names: dict[str, Node] = {}
        self.pending: list[_Entry] = []
        self.attributes: dict[str, bytes] = {}
        self.changed_ns = number

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)

    def put(self, entry: _Entry) -> None:
        """Change names, for now only in memory."""
        _write_names(self.names, entry.names)
        self.pending.append(entry)


class _Entry:
    """What one call did to the names of one directory, all of it or nothing.

    `needs`: where a rename left this directory for another, what it did there: the name is not
    gone here as long as it is not there, which every file system with a log of its own promises.
    """

    def __init__(self, names: dict[str, Node | None], needs: _Entry | None = None) -> None:
        self.names, self.needs = names, needs
        self.kept = False


class _Listed(NamedTuple):
    """As os.DirEntry."""

    name: str
    found: os.stat_result

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISDIR(self.found.st_mode)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return self.found


class ForgettingDisk(Disk):
    """`meet` is called with the name of each call that changes something, before it.

    The outside world uses `put`, `remove` and `tree`; `cut` makes every later call fail, and
    `after_the_cut` is what the machine finds when it comes up again.
    """

    degraded = ()

    def __init__(self, root: Node | None = None) -> None:
        self._numbers = itertools.count(1 if root is None else _highest(root) + 1)
        self._handles: dict[int, Node] = {}
        self._writing: set[int] = set()
        self._next_handle = itertools.count(_FIRST_HANDLE)
        self._lock = threading.RLock()
        self.root = root or self._node(stat.S_IFDIR | 0o755)
        self.gone = False
        self.meet: Callable[[str], None] = lambda name: None

    # --- the outside world ------------------------------------------------------------

    def put(self, path: str, data: bytes) -> None:
        """A file of somebody else's that has long been synced, with the directories above it."""
        with self._lock:
            *above, name = path.split("/")
            here = self.root
            for part in above:
                if part not in here.names:
                    here.names[part] = here.synced_names[part] = self._node(stat.S_IFDIR | 0o755)
                here = here.names[part]
            made = self._node(stat.S_IFREG | 0o644)
            made.data = made.synced = data
            here.names[name] = here.synced_names[name] = made

    def remove(self, path: str) -> None:
        """Somebody else's doing, synced at once."""
        with self._lock:
            above, _, name = path.rpartition("/")
            folder = self._find(self.root, above) if above else self.root
            del folder.names[name]
            folder.synced_names.pop(name, None)

    def tree(self) -> dict[str, bytes]:
        """Every file's content, as a program sees it now."""
        return dict(_files(self.root, ""))

    def cut(self) -> None:
        """Pull the plug."""
        self.gone = True

    def after_the_cut(self, chance: random.Random) -> ForgettingDisk:
        """A disk of what was synced and of some of what was not, drawn by `chance`."""
        with self._lock:
            _draw(self.root, chance)
            return ForgettingDisk(_survivor(self.root, chance, {}))

    # --- opening ----------------------------------------------------------------------

    def open_root(self, path: str) -> int:
        return self._handle(self.root)

    def open_beneath(self, root: int, path: str, flags: int) -> int:
        if path.startswith("/") or ".." in path.split("/"):
            raise _error(errno.EXDEV, path)
        with self._lock:
            found = self._find(self._of(root), path) if path != "." else self._of(root)
            if flags & os.O_DIRECTORY and not found.is_directory:
                raise _error(errno.ENOTDIR, path)
            return self._handle(found)

    def open_at(self, directory: int, name: str, flags: int, mode: int = 0) -> int:
        with self._lock:
            folder = self._of(directory)
            if flags & os.O_CREAT:
                self._begin("create")
                if name in folder.names:
                    raise _error(errno.EEXIST, name)
                folder.put(_Entry({name: self._node(stat.S_IFREG | mode & ~0o022)}))
            handle = self._handle(self._named(folder, name))
            if flags & (os.O_WRONLY | os.O_RDWR):
                self._writing.add(handle)
            return handle

    def close(self, handle: int) -> None:
        with self._lock:
            self._handles.pop(handle, None)
            self._writing.discard(handle)

    # --- looking ----------------------------------------------------------------------

    def stat_root(self, path: str) -> os.stat_result:
        with self._lock:
            return self._stat_of(self.root)

    def stat(self, handle: int) -> os.stat_result:
        with self._lock:
            return self._stat_of(self._of(handle))

    def stat_at(self, directory: int, name: str) -> os.stat_result:
        with self._lock:
            return self._stat_of(self._named(self._of(directory), name))

    def read_link(self, directory: int, name: str) -> str:
        raise _error(errno.EINVAL, name)

    def names(self, directory: int) -> list[str]:
        with self._lock:
            return list(self._of(directory).names)

    def entries(self, directory: int) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        with self._lock:
            found = [_Listed(name, self._stat_of(node)) for name, node in self._of(directory).names.items()]
        return nullcontext(iter(cast("list[os.DirEntry[str]]", found)))

    def read(self, handle: int, count: int, offset: int) -> bytes:
        with self._lock:
            return self._of(handle).data[offset : offset + count]

    # --- writing ----------------------------------------------------------------------

    def write(self, handle: int, data: memoryview) -> int:
        with self._lock:
            self._begin("write")
            node = self._of(handle)
            node.data += bytes(data)
            node.synced = None
            node.changed_ns += 1
            return len(data)

    def sync(self, handle: int) -> None:
        with self._lock:
            node = self._of(handle)
            self._begin("sync directory" if node.is_directory else "sync file")
            if not node.is_directory:
                node.synced = node.data
                return
            for entry in node.pending:
                entry.kept = True
                _write_names(node.synced_names, entry.names)
            node.pending.clear()

    def rename(self, from_dir: int, old: str, to_dir: int, new: str, how: Rename) -> None:
        with self._lock:
            self._begin(how)
            source, target = self._of(from_dir), self._of(to_dir)
            moved = self._named(source, old)
            if how == "noreplace" and new in target.names:
                raise _error(errno.EEXIST, new)
            left = self._named(target, new) if how == "exchange" else None
            if source is target:
                source.put(_Entry({old: left, new: moved}))
                return
            arrived = _Entry({new: moved})
            target.put(arrived)
            source.put(_Entry({old: left}, needs=arrived))

    def unlink_at(self, directory: int, name: str) -> None:
        with self._lock:
            self._begin("unlink")
            folder = self._of(directory)
            self._named(folder, name)
            folder.put(_Entry({name: None}))

    def make_directory(self, directory: int, name: str) -> None:
        with self._lock:
            self._begin("make directory")
            folder = self._of(directory)
            if name in folder.names:
                raise _error(errno.EEXIST, name)
            folder.put(_Entry({name: self._node(stat.S_IFDIR | 0o755)}))

    def remove_directory(self, directory: int, name: str) -> None:
        with self._lock:
            self._begin("remove directory")
            folder = self._of(directory)
            found = self._named(folder, name)
            if not found.is_directory or found.names:
                raise _error(errno.ENOTEMPTY if found.is_directory else errno.ENOTDIR, name)
            folder.put(_Entry({name: None}))

    # --- what a file wears ------------------------------------------------------------

    def set_mode(self, handle: int, mode: int) -> None:
        with self._lock:
            self._begin("set mode")
            node = self._of(handle)
            node.mode = stat.S_IFMT(node.mode) | mode

    def set_owner(self, handle: int, uid: int, gid: int) -> None:
        self._begin("set owner")

    def attribute_names(self, handle: int) -> list[str]:
        return list(self._of(handle).attributes)

    def attribute(self, handle: int, name: str) -> bytes:
        return self._of(handle).attributes[name]

    def set_attribute(self, handle: int, name: str, value: bytes) -> None:
        self._begin("set attribute")
        self._of(handle).attributes[name] = value

    def remove_attribute(self, handle: int, name: str) -> None:
        self._begin("remove attribute")
        del self._of(handle).attributes[name]

    def take_lease(self, handle: int) -> bool:
        with self._lock:
            if any(self._handles[other] is self._of(handle) for other in self._writing):
                raise _error(errno.EAGAIN, "")
            return True

    # --- small things -----------------------------------------------------------------

    def _begin(self, name: str) -> None:
        self.meet(name)
        if self.gone:
            raise PowerGone

    def _node(self, mode: int) -> Node:
        return Node(next(self._numbers), mode)

    def _handle(self, node: Node) -> int:
        with self._lock:
            handle = next(self._next_handle)
            self._handles[handle] = node
            return handle

    def _of(self, handle: int) -> Node:
        if self.gone:
            raise PowerGone
        return self._handles[handle]

    def _named(self, folder: Node, name: str) -> Node:
        if not folder.is_directory:
            raise _error(errno.ENOTDIR, name)
        if name not in folder.names:
            raise _error(errno.ENOENT, name)
        return folder.names[name]

    def _find(self, root: Node, path: str) -> Node:
        here = root
        for part in path.split("/"):
            here = self._named(here, part)
        return here

    @staticmethod
    def _stat_of(node: Node) -> os.stat_result:
        when_ns = node.changed_ns
        ids = (node.mode, node.number, _DEVICE, 1, os.getuid(), os.getgid())
        times = {"st_mtime_ns": when_ns, "st_ctime_ns": when_ns, "st_atime_ns": when_ns}
        return os.stat_result((*ids, len(node.data), 0, 0, 0), times)


def _write_names(names: dict[str, Node], change: dict[str, Node | None]) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _files(folder: Node, above: str) -> Iterator[tuple[str, bytes]]:
    for name, node in folder.names.items():
        if node.is_directory:
            yield from _files(node, f"{above}{name}/")
        else:
            yield above + name, node.data


def _directories(root: Node) -> list[Node]:
    """Every directory that has a name, or had one when it was last synced."""
    seen: dict[int, Node] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_directory and node.number not in seen:
            seen[node.number] = node
            waiting += node.names.values()
            waiting += node.synced_names.values()
            waiting += (named for entry in node.pending for named in entry.names.values() if named is not None)
    return [seen[number] for number in sorted(seen)]


def _draw(root: Node, chance: random.Random) -> None:
    """Which of the pending names survive; in no order, but never half a call."""
    directories = _directories(root)
    for entry in (entry for node in directories for entry in node.pending):
        entry.kept = chance.random() < 0.5
    for node in directories:
        for entry in node.pending:
            if entry.kept and (entry.needs is None or entry.needs.kept):
                _write_names(node.synced_names, entry.names)


def _survivor(node: Node, chance: random.Random, copies: dict[int, Node]) -> Node:
    """What is left of a node; one with two names stays one."""
    if node.number in copies:
        return copies[node.number]
    copy = copies[node.number] = Node(node.number, node.mode)
    copy.changed_ns = node.changed_ns
    copy.attributes = dict(node.attributes)
    copy.data = copy.synced = node.synced if node.synced is not None else _torn(node.data, chance)
    copy.names = {name: _survivor(below, chance, copies) for name, below in sorted(node.synced_names.items())}
    copy.synced_names = dict(copy.names)
    return copy


def _torn(data: bytes, chance: random.Random) -> bytes:
    """Bytes that were never synced: a part of them, with the rest missing or zero."""
    whole = data[: chance.randint(0, len(data))]
    return whole + b"\0" * (len(data) - len(whole)) if chance.random() < 0.3 else whole


def _highest(node: Node) -> int:
    return max(found.number for folder in _directories(node) for found in (folder, *folder.names.values()))


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
