"""The workspace: its files, what ignores them, how a change is written, and hints of what other programs do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Literal, Protocol, TypeVar

import msgspec

from orchestrator.core.change import DirectoryChange
from orchestrator.core.content import Signature
from orchestrator.core.events.files import ExternalTrigger
from orchestrator.core.ids import Digest, WorkspacePath

T = TypeVar("T")


class FileStat(msgspec.Struct, frozen=True, gc=False):
    """What the kernel says of a path, without following a link."""

    kind: Literal["file", "directory", "symlink", "other"]
    signature: Signature
    mode: int  # permission bits, incl. setuid, setgid, sticky
    uid: int
    target: str | None = None  # of a symlink, escaped
    device: int = 0

    @property
    def identity(self) -> tuple[int, int]:
        """(device, inode): the same under every name."""
        return self.device, self.signature.inode


class FileBytes(msgspec.Struct, frozen=True):
    """A file's whole content, and the stat that held before and after it was read."""

    data: bytes
    stat: FileStat
    digest: Digest


class FilePieces(Protocol):
    """A regular file, open, of which only pieces are ever in memory. Calls are blocking, and raise IoFailed."""

    @property
    def stat(self) -> FileStat:
        """As it was opened."""

    @property
    def handle(self) -> int:
        """Its descriptor, for a program that inherits it."""

    def stat_now(self) -> FileStat:
        """Of the same file, by now: it may have grown, or been cut or written to."""

    def read(self, at: int, count: int) -> bytes:
        """So many bytes from an offset on; fewer at the end."""

    def data_from(self, at: int) -> int:
        """The first offset from there on that is not in a hole, whose bytes are all zero."""

    def close(self) -> None: ...


PIECE_BYTES = 1024 * 1024


def blocks_of(pieces: FilePieces) -> Iterator[bytes]:
    """All of a file, piece by piece."""
    at = 0
    while block := pieces.read(at, PIECE_BYTES):
        yield block
        at += len(block)


class ListedName(msgspec.Struct, frozen=True):
    """One name in a directory."""

    name: str  # escaped if it breaks the name rule
    valid: bool  # False: breaks the name rule; shown, never opened
    stat: FileStat


class Streamed(msgspec.Struct, frozen=True):
    """Bytes that are written piece by piece. `blocks` may be called again, and raises JournalCorrupt."""

    size: int
    blocks: Callable[[], Iterator[bytes]]


class DiskChange(msgspec.Struct, frozen=True, kw_only=True):
    """One path's part of a change, as the workspace carries it out.

    before None: the path must be absent; after None: it will be. `data` has the bytes of `after`, or is None where
    `moved_from` is renamed, whose content must be `after`. `directory`: make a directory, or remove one that is empty.
    """

    path: WorkspacePath
    before: Digest | None
    after: Digest | None
    data: bytes | Streamed | None = None
    mode: int | None = None  # None: keep the present mode, or 0666 & ~umask for a new file
    temp: str | None = None
    moved_from: WorkspacePath | None = None
    directory: DirectoryChange | None = None
    parents: tuple[WorkspacePath, ...] = ()
    signature: Signature | None = None  # of `before`, when it was last hashed


class ChangedMeanwhile(Exception):
    """What came out (or was there) was not `before` but somebody else's content, which is back in its place.

    `diverged`: twice somebody came between, so it could not be put back; nothing was overwritten. `unexpected` holds
    the contents met, first that at the path, then that of the temporary file: keep them, then call
    `AtomicWrite.finish`.
    """

    def __init__(self, path: WorkspacePath, *, diverged: bool = False, unexpected: tuple[bytes, ...] = ()) -> None:
        super().__init__(path)
        self.path, self.diverged, self.unexpected = path, diverged, unexpected


class AtomicWrite(Protocol):
    """One change on its way to the disk. Steps are blocking; run them off the loop, in this order.

    After `release` the next step opens the directories again, and raises ChangedMeanwhile where they are others.
    """

    warnings: tuple[str, ...]

    def stage(self) -> None:
        """Make missing parents; write and sync the temporary file, if there is one.

        Raises DiskFull, WritesStopped (a sync failed) and the PathError family; nothing is left behind then.
        """

    def commit(self) -> FileStat | None:
        """Exchange, verify what came out, sync the directory; the stat of what is at `path` now (None: absent).

        Raises ChangedMeanwhile, FileBusy, FileExists, PathError, WritesStopped (a sync failed: the outcome is unknown).
        """

    def finish(self) -> tuple[bytes, ...]:
        """Unlink what was swapped out, after hashing it once more.

        Returns contents that were not `before`, as somebody wrote to it after the verification: the caller keeps
        them and calls `finish` again, which unlinks it.
        """

    def roll_back(self) -> None:
        """Undo a `commit` that is not finished, because another part of the same change failed.

        Raises ChangedMeanwhile with `diverged` where
        somebody's content is there since, and WritesStopped as `commit` does.
        """

    def abandon(self) -> None:
        """Unlink the temporary file of an uncommitted change, and the parents made for it. Safe at any point."""

    def release(self) -> None:
        """Close every handle, and so end the lease; what is on disk stays as it is. Safe at any point."""


class Scanned(msgspec.Struct, frozen=True, gc=False):
    """One file that the scan met."""

    path: WorkspacePath
    signature: Signature
    mode: int


class ScanResult(msgspec.Struct, frozen=True):
    """The tree as it is."""

    files: tuple[Scanned, ...]  # those that were not known, in path order
    skipped: dict[str, int]  # how many names were left out though nothing ignores them, by reason
    lines: list[str]  # all names, as a `NameIndex` holds them, in order


Known = Callable[[WorkspacePath, Signature, int], bool]
"""Whether a file is as it was, with this signature and mode, so that nobody need look at it."""


class Workspace(Protocol):
    """The files under one root; every path is resolved by the kernel under a handle of that root.

    Calls are blocking and thread-safe, and raise the PathError family for what the path leads to.
    """

    @property
    def root(self) -> str:
        """The real path of the root."""

    def in_place(self) -> bool:
        """Whether that path still leads to the directory whose handle is open: it may be deleted, moved or replaced."""

    def stat(self, path: WorkspacePath) -> FileStat | None:
        """None if nothing has this name (a missing parent too)."""

    def stats(self, paths: Sequence[WorkspacePath]) -> list[FileStat | None]:
        """Of each; None where it can't be had. Those of one directory are best beside one another."""

    def read(self, path: WorkspacePath, *, most: int, growing: bool = False) -> FileBytes:
        """The whole content; with `growing`, of a file that only grows meanwhile, as it was when it was opened.

        Raises FileTooLarge over `most` bytes, ChangedWhileRead.
        """

    def hash(self, path: WorkspacePath, *, most: int) -> tuple[Digest, FileStat]:
        """The digest of a file, which is read piece by piece, and its stat meanwhile. Raises as `read`."""

    def pieces(self, path: WorkspacePath) -> FilePieces:
        """A file, open for reading piece by piece; the caller closes it."""

    def names(self, path: WorkspacePath) -> list[ListedName]:
        """The names in a directory, unsorted, without our temporary files and the daemon's state."""

    def atomic_write(self, change: DiskChange) -> AtomicWrite: ...

    async def off_loop(self, work: Callable[[], T]) -> T:
        """Run what changes files, in a thread that may do so below the root only where the system can hold it to that.

        What it raises is raised here. Who is cancelled meanwhile waits for its end.
        """

    def temps(self) -> list[WorkspacePath]:
        """All leftovers in the tree: regular files of our uid with our prefix."""

    def read_temp(self, temp: WorkspacePath, *, most: int) -> FileBytes | None:
        """A leftover's content; None when it is gone, or not a regular file of ours. Raises as `read`."""

    def in_use(self, temp: WorkspacePath) -> bool:
        """Whether another program holds a leftover open for writing; False where that can't be found out."""

    def unlink_temp(self, temp: WorkspacePath) -> None:
        """Remove a leftover and sync its directory; nothing happens if it is not a regular file of ours."""

    def exchange_back(self, temp: WorkspacePath, path: WorkspacePath) -> None:
        """Put a leftover's content back at `path` by exchange, and sync the directory (recovery only)."""

    def sync_directory(self, path: WorkspacePath) -> None:
        """Sync the directory that holds `path` (recovery only)."""

    def remove_empty(self, path: WorkspacePath, *, below: bool = True) -> None:
        """Remove a directory and those below it, where nothing is left in them but each other; else it alone."""

    def scan(self, known: Known = lambda path, signature, mode: False) -> ScanResult:
        """Every name that is not ignored."""

    def close(self) -> None: ...


class TextSweep(Protocol):
    """Chooses, among many files, those in which an expression fits: quickly, and without knowing what we know."""

    @property
    def health(self) -> str:
        """For `status`: "on", or "off: …" with the reason; searches are slower then."""

    async def containing(
        self, expressions: Sequence[str], paths: Sequence[WorkspacePath], *, multiline: bool
    ) -> list[WorkspacePath]:
        """Those of regular files that may hold one of these (ripgrep's syntax), and those that could not be read.

        What is not among them holds none. They are opened by their names, so nothing of them may be shown before it
        was read again. All of them, where it can't be told.
        """

    async def offsets(
        self, expressions: Sequence[str], file: FilePieces, *, multiline: bool, most: int
    ) -> Offsets | None:
        """Where one of these may fit in a file that is no UTF-16; None where it can't be told."""

    async def count(self, expressions: Sequence[str], file: FilePieces) -> int | None:
        """In how many lines of it one of these may fit."""


class Offsets(msgspec.Struct, frozen=True):
    """The first place in each line, ascending; `all`: there are no more.

    `lines`: of what is found over several lines, how many each has; else empty.
    """

    at: list[int]
    all: bool
    lines: list[int] = []


class Ignore(Protocol):
    """What listings, searches and scans leave out; never who may read or write what."""

    def ignored(self, path: WorkspacePath, *, directory: bool) -> bool: ...

    def refresh(self) -> None:
        """Look at the rule files again from now on."""

    def over_budget(self) -> tuple[tuple[str, str], ...]:
        """The rule files that are not used because comparing names with them would take too long, and why."""

    def unwatched(self) -> Signature | None:
        """Of the rule file outside the tree, which no watcher hints at; None: there is none."""


class Hints(msgspec.Struct, frozen=True):
    """Where something may have changed; never what, nor that it did: the disk is asked for that."""

    paths: frozenset[WorkspacePath] = frozenset()  # files, or not known to be anything else
    folders: frozenset[WorkspacePath] = frozenset()  # made, removed or moved, with all that is in them
    rescan: ExternalTrigger | None = None
    """Look everywhere. overflow: hints were lost; scan: there are none now; watch: other files are ignored now."""
    added: frozenset[WorkspacePath] = frozenset()  # of the folders, those that were made or moved there
    unnamed: frozenset[WorkspacePath] = frozenset()  # directories in which names came or went that no path may hold

    def __bool__(self) -> bool:
        return bool(self.paths or self.folders or self.unnamed) or self.rescan is not None


class Watcher(Protocol):
    """Says where to look, and decides nothing.

    Left out are our temporary files, version control's own folders, the daemon's own files, and ignored directories.
    It never follows a link.
    """

    @property
    def health(self) -> str:
        """ "live", or "degraded: …" with what is missing and what to do about it."""

    def start(self) -> None:
        """From the return on, nothing that happens is missed without a `rescan`. Blocking; degrades, never raises."""

    def hints(self) -> AsyncIterator[Hints]:
        """Until cancelled. While degraded, a `rescan` comes at intervals."""

    def subscribe(self, heard: Callable[[Hints], None]) -> None:
        """Before the start: each hint is told at once, in the thread that met it."""

    def drain(self) -> Hints:
        """What waits to be reported; `hints` does not give it then. Blocking.

        When it returns, all that happened before the call has been told to who subscribed, if the watcher is `exact`.
        """

    @property
    def exact(self) -> bool:
        """Whether nothing goes unreported now."""

    def close(self) -> None: ...
