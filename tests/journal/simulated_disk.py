"""A file system for SQLite that fails when it is told to, and that forgets what was not synced.

The bytes go to real files. Beside them stands what is on the disk: a file's content at its last sync, and the
writes since, which a power cut may take away, wholly or from some sector on.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Literal

import apsw
import msgspec

SECTOR_BYTES = 512

Call = Literal["open", "read", "write", "truncate", "sync", "delete"]
Kind = Literal["error", "full", "half", "cut"]

ERRORS: dict[Call, tuple[type[apsw.Error], int]] = {
    "open": (apsw.CantOpenError, apsw.SQLITE_CANTOPEN),
    "read": (apsw.IOError, apsw.SQLITE_IOERR_READ),
    "write": (apsw.IOError, apsw.SQLITE_IOERR_WRITE),
    "truncate": (apsw.IOError, apsw.SQLITE_IOERR_TRUNCATE),
    "sync": (apsw.IOError, apsw.SQLITE_IOERR_FSYNC),
    "delete": (apsw.IOError, apsw.SQLITE_IOERR_DELETE),
}


class Fault(msgspec.Struct):
    """What happens at the n-th of these calls, and at `lasting` later ones too; `fired` when it has."""

    kind: Kind
    calls: frozenset[Call]
    nth: int
    lasting: bool = False
    seen: int = 0
    fired: bool = False

    def due(self, call: Call) -> bool:
        if call not in self.calls:
            return False
        self.seen += 1
        now = self.seen == self.nth or (self.lasting and self.seen > self.nth)
        self.fired = self.fired or now
        return now


class Platter:
    """What would be there after a power cut."""

    def __init__(self) -> None:
        self.synced: dict[str, bytes] = {}  # names that a directory sync made durable, with their content
        self.pending: dict[str, list[Write]] = {}
        self._unlinked: set[str] = set()
        self._unnamed: set[str] = set()

    def born(self, path: str, content: bytes) -> None:
        if path in self._unlinked or path not in self.pending:
            self.pending.setdefault(path, [])
            self._unlinked.discard(path)
            if content or path.endswith(".db"):  # the journal makes and syncs the name of this one itself
                self.synced[path] = content
            else:
                self._unnamed.add(path)

    def removed(self, path: str) -> None:
        """Its name may come back with the power, and whoever makes it again begins with nothing."""
        self.pending.setdefault(path, []).append(Write(0, None))
        self._unlinked.add(path)

    def sync(self, path: str) -> None:
        """The content; with a new file's first SQLite syncs the directory too, and so what was unlinked in it."""
        if path in self._unnamed:
            self._unnamed.remove(path)
            for gone in self._unlinked:
                self.synced.pop(gone, None)
                self.pending.pop(gone, None)
            self._unlinked.clear()
        self.synced[path] = applied(self.synced.get(path, b""), self.pending.get(path, []))
        self.pending[path] = []

    def left(self, path: str, chance: random.Random | None) -> bytes | None:
        """The content after the cut; without `chance` all that was not synced is gone. None: no such file."""
        if path not in self.synced and (chance is None or chance.random() < 0.5):
            return None
        if chance is None:
            return self.synced.get(path, b"")
        survived = [torn(write, chance) for write in self.pending.get(path, []) if chance.random() < 0.5]
        return applied(self.synced.get(path, b""), survived)


class Write(msgspec.Struct, frozen=True):
    """Bytes put at an offset; data None: the file was cut off there."""

    offset: int
    data: bytes | None


def applied(content: bytes, writes: list[Write]) -> bytes:
    held = bytearray(content)
    for write in writes:
        if write.data is None:
            del held[write.offset :]
            continue
        held.extend(bytes(max(0, write.offset - len(held))))
        held[write.offset : write.offset + len(write.data)] = write.data
    return bytes(held)


def torn(write: Write, chance: random.Random) -> Write:
    """Some first sectors of it, often all."""
    if write.data is None or chance.random() < 0.5:
        return write
    return Write(write.offset, write.data[: SECTOR_BYTES * chance.randrange(len(write.data) // SECTOR_BYTES + 1)])


class Disk(apsw.VFS):
    """The file system, by its `name`. `syncs` False: it answers that it synced, and does not."""

    def __init__(self, name: str, fault: Fault | None = None, *, syncs: bool = True) -> None:
        super().__init__(name, "unix", maxpathname=0)
        self.name, self.fault, self.syncs = name, fault, syncs
        self.platter = Platter()
        self.off = False
        self.calls: list[tuple[Call, str]] = []
        self.cut = -1  # the call at which the power went

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> File:  # noqa: N802  # SQLite\'s name
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        if not flags[0] & apsw.SQLITE_OPEN_READONLY:
            self.meet("open", path)
        return File(self, name, path, flags)

    def xDelete(self, path: str, sync_directory: bool) -> None:  # noqa: N802  # SQLite\'s name
        self.meet("delete", path)
        if sync_directory:
            raise NotImplementedError("no journal of ours asks for it")
        super().xDelete(path, sync_directory)
        self.platter.removed(path)

    def meet(self, call: Call, path: str) -> Kind | None:
        """Count a call, and fail it if it is its turn; "half" is for the caller to do."""
        self.calls.append((call, path))
        if self.off:
            raise failed(call)
        if self.fault is None or not self.fault.due(call):
            return None
        if self.fault.kind == "cut":
            self.off, self.cut = True, len(self.calls) - 1
        if self.fault.kind == "full":
            raise coded(apsw.FullError("database or disk is full"), apsw.SQLITE_FULL)
        if self.fault.kind == "half":
            return "half"
        raise failed(call)

    def after_cut(self, state_dir: Path, target: Path, chance: random.Random | None = None) -> None:
        """A state directory as the next start finds it."""
        shutil.copytree(state_dir, target, ignore=lambda _, names: [name for name in names if ".db" in name])
        for path in {*self.platter.synced, *self.platter.pending}:
            left = self.platter.left(path, chance)
            if left is not None:
                target.joinpath(Path(path).name).write_bytes(left)


class File(apsw.VFSFile):
    """An open file of it."""

    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, path: str, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._disk, self._path = disk, path
        self._kept = bool(flags[0] & (apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL))
        if self._kept:
            disk.platter.born(path, Path(path).read_bytes())

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802  # SQLite\'s name
        if self._path.endswith("-wal"):
            self._disk.meet("read", self._path)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802  # SQLite\'s name
        if self._disk.meet("write", self._path) == "half":
            self._put(data[: len(data) // 2], offset)
            raise failed("write")
        self._put(data, offset)

    def _put(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        if self._kept:
            self._disk.platter.pending.setdefault(self._path, []).append(Write(offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802  # SQLite\'s name
        self._disk.meet("truncate", self._path)
        super().xTruncate(size)
        if self._kept:
            self._disk.platter.pending.setdefault(self._path, []).append(Write(size, None))

    def xSync(self, flags: int) -> None:  # noqa: N802  # SQLite\'s name
        self._disk.meet("sync", self._path)
        if self._kept and self._disk.syncs:
            self._disk.platter.sync(self._path)


def failed(call: Call) -> apsw.Error:
    kind, code = ERRORS[call]
    return coded(kind("disk I/O error"), code)


def coded(error: apsw.Error, code: int) -> apsw.Error:
    error.extendedresult = code  # type: ignore[attr-defined]  # read by apsw, and in no stub of it
    return error
