"""One durable change of one path: stage, land with proof, finish. DESIGN §4, steps 4 to 9.

Nothing is ever overwritten: content is exchanged, or renamed to where nothing stands, and what
comes out must be what the change was made against, or it goes back.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import msgspec

from orchestrator.core.content import digest_of
from orchestrator.core.errors import FileBusy, FileExists, FileNotFound, WritesStopped
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.ports import DiskChange, Displaced, FileStat, Step
from orchestrator.workspace.confine import Confinement, refusal, signature_of, stat_of, translated

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_LOOK = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_NO_SUCH_RENAME = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
BLOCK_BYTES = 1024 * 1024


class LocalLanding:
    """See `ports.Landing`."""

    def __init__(self, confinement: Confinement, change: DiskChange, step: Step) -> None:
        self._at, self._disk, self._change, self._step = confinement, confinement.disk, change, step
        self._held = ExitStack()  # the parent's handle, and the lease on what was swapped out
        self._parent = -1
        self._name = ""
        self._staged = False  # the temporary name holds our content, and nobody's else
        self._swapped = False
        self._kept: tuple[bytes, ...] = ()
        self._proven: os.stat_result | None = None  # of the new content, while it was known to be ours
        self.warnings: tuple[str, ...] = ()

    # --- stage ------------------------------------------------------------------------

    def stage(self) -> None:
        """Make missing parents; write and sync the temporary file."""
        change = self._change
        for directory in change.parents:
            self._make_directory(directory)
        self._parent, self._name = self._held.enter_context(self._at.parent(change.path))
        if change.data is None or change.temp is None:
            return
        with translated(change.path):
            handle = self._disk.open_at(self._parent, change.temp, _NEW, 0o666)
        self._staged = True
        try:
            with translated(change.path):
                self._step("temp_created")
                self._write(handle, change.data)
                self._dress(handle)
            self._sync_content(handle)
            self._proven = self._disk.stat(handle)
        except BaseException:
            self._disk.close(handle)
            self.abandon()
            raise
        self._disk.close(handle)
        self._step("temp_synced")

    def _write(self, handle: int, data: bytes) -> None:
        view = memoryview(data)
        half = len(view) // 2
        for start, end in ((0, half), (half, len(view))):
            at = start
            while at < end:
                at += self._disk.write(handle, view[at:end])
            self._step("temp_half_written")

    def _dress(self, handle: int) -> None:
        """The new content wears what the old one wore."""
        change = self._change
        if change.before is None:
            if change.mode is not None:
                self._disk.set_mode(handle, change.mode)
            return
        try:
            with self._at.regular(self._parent, self._name, change.path) as (old, found):
                warnings = self._disk.copy_attributes(old, handle)
                if found.st_nlink > 1:
                    warnings += (f"the file had {found.st_nlink} names; this one is now a file of its own",)
        except FileNotFound:
            return  # gone since it was read: `land` finds that out
        self.warnings += warnings

    def _make_directory(self, path: WorkspacePath) -> None:
        with self._at.parent(path) as (parent, name):
            try:
                with translated(path, self._at):
                    self._disk.make_directory(parent, name)
            except FileExists:
                pass  # by another change just now, which may not have synced it yet
            self._sync(parent)

    # --- land -------------------------------------------------------------------------

    def land(self) -> FileStat | None:
        """See `ports.Landing.land`."""
        try:
            return self._land()
        except OSError as error:
            if not self._swapped:
                raise refusal(self._change.path, error, self._at) from error
            raise WritesStopped(
                f"{self._change.path}: the disk failed in the middle of a change ({error.strerror})",
                hint="The next start finds out which content stands there. Look at the system's log first.",
            ) from error

    def _land(self) -> FileStat | None:
        change = self._change
        if change.directory:
            self._disk.make_directory(self._parent, self._name)
        elif change.moved_from is not None:
            self._move(change.moved_from)
        elif change.before is None:
            self._create()
        elif change.after is None:
            self._remove(change.before)
        else:
            self._replace(change.before, change.after)
        self._sync(self._parent)
        self._step("directory_synced")
        if change.after is None and not change.directory:
            return None
        return self._stands()

    def _stands(self) -> FileStat | None:
        """The stat of what landed; one that equals no later one if another program has touched it since."""
        try:
            found = self._disk.stat_at(self._parent, self._name)
        except FileNotFoundError:
            return None
        stat, proven = stat_of(found), self._proven
        if proven is None or _content_of(found) == _content_of(proven):
            return stat
        return msgspec.structs.replace(stat, signature=msgspec.structs.replace(stat.signature, ctime_ns=0))

    def _swap_done(self) -> None:
        """From here on the temporary name, if there is one, holds what was swapped out, not our content."""
        self._swapped, self._staged = True, False
        self._step("swapped")

    def _create(self) -> None:
        self._step("hash_rechecked")
        try:
            self._rename_new(self._parent, self._temp, self._parent, self._name)
        except FileExistsError:
            self.abandon()
            raise Displaced(self._change.path) from None
        self._swap_done()

    def _replace(self, before: Digest, after: Digest) -> None:
        self._recheck(before)
        try:
            self._disk.rename(self._parent, self._temp, self._parent, self._name, "exchange")
        except FileNotFoundError:
            self.abandon()
            raise Displaced(self._change.path) from None
        except OSError as error:
            if error.errno not in _NO_SUCH_RENAME:
                raise
            self._check_content(before)
            self._disk.rename(self._parent, self._temp, self._parent, self._name, "replace")
            self._swap_done()
            return  # nothing came out, so nothing can be proven; `features` says so
        self._swap_done()
        self._prove(before, self._parent, self._temp, self._put_back, after)

    def _put_back(self, after: Digest) -> None:
        """Exchange once more; what comes out now must be our own content."""
        self._step("swapped_stale")
        self._disk.rename(self._parent, self._temp, self._parent, self._name, "exchange")
        self._sync(self._parent)
        ours = self._content(self._parent, self._temp)
        if ours is not None and digest_of(ours) == after:
            self._staged = True
            self.abandon()
            return
        raise Displaced(self._change.path, diverged=True, foreign=(ours,) if ours is not None else ())

    def _remove(self, before: Digest) -> None:
        self._recheck(before)
        try:
            self._rename_new(self._parent, self._name, self._parent, self._temp)
        except FileNotFoundError:
            raise Displaced(self._change.path) from None
        self._swap_done()
        self._prove(before, self._parent, self._temp, lambda _: self._name_again(), before)

    def _name_again(self) -> None:
        """Give a file that should not go its name back, unless something took the name meanwhile."""
        self._step("swapped_stale")
        try:
            self._rename_new(self._parent, self._temp, self._parent, self._name)
        except FileExistsError:
            kept = self._content(self._parent, self._temp)
            raise Displaced(self._change.path, diverged=True, foreign=(kept,) if kept is not None else ()) from None
        self._sync(self._parent)

    def _move(self, source: WorkspacePath) -> None:
        path, after = self._change.path, self._change.after
        if after is None:
            raise ValueError("a move has content")
        with self._at.parent(source) as (from_dir, name):
            self._step("hash_rechecked")
            try:
                self._rename_new(from_dir, name, self._parent, self._name)
            except (FileExistsError, FileNotFoundError):
                raise Displaced(path) from None
            self._swap_done()

            def back(_: Digest) -> None:
                self._step("swapped_stale")
                try:
                    self._rename_new(self._parent, self._name, from_dir, name)
                except FileExistsError:
                    raise Displaced(path, diverged=True) from None
                self._sync(from_dir)
                self._sync(self._parent)

            self._proven = self._prove(after, self._parent, self._name, back, after)
            self._sync(from_dir)

    # --- proof ------------------------------------------------------------------------

    def _recheck(self, before: Digest) -> None:
        """A last look before the swap, which saves most swaps that would have to go back.

        An equal stat signature is enough for it, where the swap itself is proven.
        """
        if self._change.signature is None or not self._unmoved():
            self._check_content(before)
        self._step("hash_rechecked")

    def _check_content(self, before: Digest) -> None:
        content = self._content(self._parent, self._name)
        if content is None or digest_of(content) != before:
            self.abandon()
            raise Displaced(self._change.path)

    def _unmoved(self) -> bool:
        try:
            found = self._disk.stat_at(self._parent, self._name)
        except OSError:
            return False
        return signature_of(found) == self._change.signature

    def _prove(
        self, expected: Digest, directory: int, name: str, back: Callable[[Digest], None], other: Digest
    ) -> os.stat_result:
        """What came out must be `expected`, with nobody still writing to it; else it goes back.

        The stat that held before it was read.
        """
        path = self._change.path
        try:
            handle = self._disk.open_at(directory, name, _LOOK)
        except OSError:
            back(other)
            raise Displaced(path) from None
        try:
            self._disk.take_lease(handle)
        except OSError as error:
            self._disk.close(handle)
            back(other)
            if error.errno == errno.EAGAIN:
                raise FileBusy(path, "another program holds it open for writing") from None
            raise
        proven = self._disk.stat(handle)
        if digest_of(self._read(handle)) != expected:
            self._disk.close(handle)
            back(other)
            raise Displaced(path)
        self._held.callback(self._disk.close, handle)  # the lease ends with it
        return proven

    def _content(self, directory: int, name: str) -> bytes | None:
        """What a name holds; None for anything but a regular file."""
        try:
            with self._at.regular(directory, name, self._change.path) as (handle, _):
                return self._read(handle)
        except FileNotFound:
            return None

    def _read(self, handle: int) -> bytes:
        blocks: list[bytes] = []
        at = 0
        while block := self._disk.read(handle, BLOCK_BYTES, at):
            blocks.append(block)
            at += len(block)
        return b"".join(blocks)

    # --- finish -----------------------------------------------------------------------

    def finish(self) -> tuple[bytes, ...]:
        """See `ports.Landing.finish`."""
        change = self._change
        if change.before is not None and change.temp is not None:
            content = self._content(self._parent, self._temp)
            if content is not None and digest_of(content) != change.before and content not in self._kept:
                self._kept = (content,)
                return self._kept
            self._unlink(self._temp)
        self._step("unlinked")
        self._held.close()
        return ()

    def abandon(self) -> None:
        """See `ports.Landing.abandon`."""
        if self._staged:
            self._unlink(self._temp)
            self._staged = False
        self._held.close()

    def _unlink(self, name: str) -> None:
        try:
            self._disk.unlink_at(self._parent, name)
        except FileNotFoundError:
            return

    # --- small things -----------------------------------------------------------------

    @property
    def _temp(self) -> str:
        if self._change.temp is None:
            raise ValueError("this change has no temporary file")
        return self._change.temp

    def _rename_new(self, from_dir: int, old: str, to_dir: int, new: str) -> None:
        """Rename to a name that nothing has. Raises FileExistsError."""
        try:
            self._disk.rename(from_dir, old, to_dir, new, "noreplace")
        except OSError as error:
            if error.errno not in _NO_SUCH_RENAME:
                raise
            with _absent(self._disk.stat_at, to_dir, new):
                self._disk.rename(from_dir, old, to_dir, new, "replace")

    def _sync_content(self, handle: int) -> None:
        try:
            self._disk.sync(handle)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise refusal(self._change.path, error) from error
            raise WritesStopped(
                f"the new content of {self._change.path} could not be synced: {error.strerror}",
                hint="Nothing was changed. The disk may be failing: look at the system's log, then restart the daemon.",
            ) from error

    def _sync(self, directory: int) -> None:
        try:
            self._disk.sync(directory)
        except OSError as error:
            raise WritesStopped(
                f"the directory of {self._change.path} could not be synced: {error.strerror}",
                hint="The disk may be failing. Look at the system's log, then restart the daemon.",
            ) from error


def _content_of(found: os.stat_result) -> tuple[int, int, int]:
    """What a rename leaves as it is, and a write does not."""
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def _absent(stat_at: Callable[[int, str], object], directory: int, name: str) -> Iterator[None]:
    """Where the file system can't refuse by itself: look, then go on. The threat model names the gap."""
    try:
        stat_at(directory, name)
    except FileNotFoundError:
        yield
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
