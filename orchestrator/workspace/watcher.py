"""Watches the tree for changes with inotify, directory by directory.

Called directly, because watchfiles keeps three things from us: that the queue overflowed, which
folders it could not watch, and (it follows links) that it watches outside the workspace.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import sys
import termios
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

import anyio
import msgspec
from anyio import to_thread

from orchestrator.core.errors import OrchestratorError
from orchestrator.core.events.files import ExternalTrigger
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import valid_name
from orchestrator.logs import logger
from orchestrator.ports.workspace import Hints
from orchestrator.workspace.confine import Confinement
from orchestrator.workspace.ignore import BUILT_IN, RULE_FILES, IgnoreRules, is_temp

IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE = 0x2, 0x4, 0x8
IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE = 0x40, 0x80, 0x100, 0x200
IN_DELETE_SELF, IN_MOVE_SELF = 0x400, 0x800
IN_UNMOUNT, IN_Q_OVERFLOW, IN_IGNORED = 0x2000, 0x4000, 0x8000
IN_ONLYDIR, IN_EXCL_UNLINK, IN_ISDIR = 0x1000000, 0x4000000, 0x40000000

_OF_NAMES = IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE
WATCHED = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | _OF_NAMES | IN_ONLYDIR | IN_EXCL_UNLINK
"""Never that something was opened or read: our own reads would fill the queue."""

WATCHED_ROOT = WATCHED | IN_DELETE_SELF | IN_MOVE_SELF

_HEADER = struct.Struct("iIII")
_READ_BYTES = 256 * 1024

STEP_S = 0.02
"""Hints are gathered this long before they are reported: one save of an editor is several events."""

RESCAN_S = 30.0
"""How often everything is looked at while watching is degraded."""

_ADDED = IN_CREATE | IN_MOVED_TO
_NO_ROOM = {
    errno.ENOSPC: "the limit of watches is reached: raise fs.inotify.max_user_watches, then restart the daemon",
    errno.EMFILE: "the limit of notifiers is reached: raise fs.inotify.max_user_instances, then restart the daemon",
}


class Notice(msgspec.Struct, frozen=True):
    """One event, as the kernel gives it; `watch` is -1 for an overflow."""

    watch: int
    mask: int
    name: str  # in the watched directory; "" is the directory itself


class Inotify:
    """One notifier. Thread-safe, as the kernel is. Raises OSError; NotImplementedError off Linux."""

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise NotImplementedError("inotify is Linux's")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.handle = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, directory: int, mask: int) -> int:
        """Watch an open directory, whatever its name is by now; the same one twice gives the same number.

        ENOSPC: the machine's limit of watches is reached.
        """
        at = f"/proc/self/fd/{directory}".encode()
        return self._checked(self._libc.inotify_add_watch(self.handle, at, ctypes.c_uint32(mask)))

    def remove(self, watch: int) -> None:
        """Watch it no more; one that is gone already is no error."""
        try:
            self._checked(self._libc.inotify_rm_watch(self.handle, watch))
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise

    def read(self) -> Iterator[Notice]:
        """What waits in the queue now; not what comes while it is read, which may never end."""
        waiting = bytearray(4)
        fcntl.ioctl(self.handle, termios.FIONREAD, waiting)
        left = int.from_bytes(waiting, sys.byteorder)
        while left > 0:
            try:
                data = os.read(self.handle, _READ_BYTES)
            except BlockingIOError:
                return
            left -= len(data)
            at = 0
            while at < len(data):
                watch, mask, _, length = _HEADER.unpack_from(data, at)
                at += _HEADER.size
                yield Notice(watch, mask, os.fsdecode(data[at : at + length].rstrip(b"\0")))
                at += length

    def close(self) -> None:
        os.close(self.handle)

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return int(result)


class _Report:
    """Hints while they are gathered."""

    def __init__(self) -> None:
        self.paths: set[WorkspacePath] = set()
        self.folders: set[WorkspacePath] = set()
        self.added: set[WorkspacePath] = set()
        self.unnamed: set[WorkspacePath] = set()
        self.opened: set[WorkspacePath] = set()  # folders that may have been closed to us
        self.rescan: ExternalTrigger | None = None

    def hints(self, left: set[WorkspacePath]) -> Hints:
        folders = frozenset(self.folders | left)
        return Hints(frozenset(self.paths), folders, self.rescan, frozenset(self.added), frozenset(self.unnamed))


class InotifyWatcher:
    """See `ports.Watcher`. Watches every directory that is not ignored, by its handle."""

    def __init__(self, confinement: Confinement, ignore: IgnoreRules, *, rescan_s: float = RESCAN_S) -> None:
        self._at, self._ignore, self._rescan_s = confinement, ignore, rescan_s
        self._kernel: Inotify | None = None
        self._folders: dict[int, str] = {}  # watch → folder; "" is the root
        self._watches: dict[str, int] = {}  # and back
        self._left: set[WorkspacePath] = set()  # old names of folders that were found under a new one
        self._trouble = ""
        self._lost = ""
        self._heard: list[Callable[[Hints], None]] = []
        self._lock = threading.Lock()
        self._log = logger("watcher")

    @property
    def health(self) -> str:
        trouble = self._lost or self._trouble
        return f"degraded: {trouble}; a full rescan runs every {self._rescan_s:g} s" if trouble else "live"

    def start(self) -> None:
        try:
            self._kernel = Inotify()
        except OSError as error:
            self._degrade(error)
            return
        with self._lock:
            self._enter([""])

    def close(self) -> None:
        kernel, self._kernel = self._kernel, None
        if kernel is not None:
            kernel.close()

    async def hints(self) -> AsyncIterator[Hints]:
        kernel = self._kernel
        while True:
            if kernel is None:
                await anyio.sleep(self._rescan_s)
                yield Hints(rescan="scan")
                continue
            moved = False
            with anyio.move_on_after(self._rescan_s if self._trouble or self._lost else None):
                await anyio.wait_readable(kernel.handle)
                moved = True
            if not moved:
                yield Hints(rescan="scan")
                continue
            await anyio.sleep(STEP_S)
            hints = await to_thread.run_sync(self._gather, kernel)
            if hints:
                yield hints

    def subscribe(self, heard: Callable[[Hints], None]) -> None:
        self._heard.append(heard)

    def drain(self) -> Hints:
        kernel = self._kernel
        return Hints() if kernel is None else self._gather(kernel)

    @property
    def exact(self) -> bool:
        return self._kernel is not None and not (self._lost or self._trouble)

    # --- what the kernel reports --------------------------------------------------------

    def _gather(self, kernel: Inotify) -> Hints:
        report = _Report()
        with self._lock:
            for notice in kernel.read():
                self._take(notice, report)
            self._enter_new(report)
            if report.rescan is not None:
                self._ignore.refresh()
                self._enter([""])
            left, self._left = self._left, set()
            hints = report.hints(left)
            for heard in self._heard if hints else ():
                heard(hints)
        return hints

    def _take(self, notice: Notice, report: _Report) -> None:
        if notice.mask & IN_Q_OVERFLOW:
            report.rescan = "overflow"
            return
        folder = self._folders.get(notice.watch)
        if folder is None:
            return
        if not notice.name:
            self._of_itself(notice, folder)
        elif notice.name in BUILT_IN or is_temp(notice.name):
            return
        elif not valid_name(notice.name):
            if notice.mask & _OF_NAMES:
                report.unnamed.add(WorkspacePath(folder or "."))
        else:
            path = WorkspacePath(f"{folder}/{notice.name}" if folder else notice.name)
            if notice.name in RULE_FILES:
                report.rescan = report.rescan or "watch"
            if not notice.mask & IN_ISDIR:
                report.paths.add(path)
            else:
                self._of_folder(notice, path, report)

    def _of_itself(self, notice: Notice, folder: str) -> None:
        """A watched directory's own end."""
        if notice.mask & IN_IGNORED:
            self._forget(notice.watch)
        if not folder and notice.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT):
            self._lost = "the workspace's folder was moved or removed: restart the daemon where it is now"
            self._log.warning("watching is degraded", why=self._lost)

    def _of_folder(self, notice: Notice, path: WorkspacePath, report: _Report) -> None:
        """A directory was added to a watched one, removed (after all that was in it), or its mode or times changed."""
        if notice.mask & IN_MOVED_FROM and path in self._watches:
            self._leave(path)
            report.folders.add(path)
        elif notice.mask & (IN_DELETE | IN_MOVED_FROM):
            report.paths.add(path)
        elif notice.mask & _ADDED:
            report.added.add(path)
        elif notice.mask & IN_ATTRIB and path not in self._watches:
            report.opened.add(path)

    def _enter_new(self, report: _Report) -> None:
        """Watch what was added, once each: a program may rename directories faster than they can be watched."""
        report.added = {path for path in report.added if self._wanted(path)}
        self._enter(sorted(report.added))
        opened = {path for path in report.opened - report.added if self._wanted(path)}
        self._enter(sorted(opened))
        report.folders |= report.added | {path for path in opened if path in self._watches}

    # --- which directories are watched ----------------------------------------------------

    def _wanted(self, path: str) -> bool:
        return not self._ignore.ignored(WorkspacePath(path), directory=True)

    def _enter(self, pending: list[str]) -> None:
        """Watch these directories and all below them; first the watch, then the look, so that nothing falls between."""
        while pending:
            pending += self._watch(pending.pop())

    def _watch(self, folder: str) -> Iterable[str]:
        """The directories in it that are not ignored; none if it can't be entered."""
        kernel, above = self._kernel, f"{folder}/" if folder else ""
        if kernel is None:
            return ()
        try:
            with self._at.directory(WorkspacePath(folder or ".")) as handle:
                watch = kernel.add(handle, WATCHED if folder else WATCHED_ROOT)
                known = self._folders.get(watch, folder)
                if known != folder:  # found under a new name, before the move from its old one is reported
                    self._left.add(WorkspacePath(known))
                self._folders[watch], self._watches[folder] = folder, watch
                with self._at.disk.entries(handle) as entries:
                    names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
                rules = self._ignore.folder(folder, handle)
                return [above + name for name in names if valid_name(name) and not rules.ignores(name, directory=True)]
        except OSError as error:
            if error.errno in _NO_ROOM:
                self._degrade(error)
            return ()
        except OrchestratorError:
            return ()  # gone, a link, another file system, closed to us, or the daemon's own

    def _leave(self, folder: str) -> None:
        """What was moved away is watched at its new place, where it may have been found already."""
        for name in [name for name in self._watches if f"{name}/".startswith(f"{folder}/")]:
            watch = self._watches.pop(name)
            if self._folders.get(watch) == name:
                del self._folders[watch]
                if self._kernel is not None:
                    self._kernel.remove(watch)

    def _forget(self, watch: int) -> None:
        folder = self._folders.pop(watch, None)
        if folder is not None and self._watches.get(folder) == watch:
            del self._watches[folder]

    def _degrade(self, error: OSError) -> None:
        trouble = _NO_ROOM.get(error.errno or 0, f"there is no notifier: {error.strerror}")
        if not self._trouble:
            self._log.warning("watching is degraded", why=trouble)
        self._trouble = trouble
