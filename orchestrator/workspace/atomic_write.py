"""One durable change of one path: stage, commit with verification, finish.

Nothing is ever overwritten: content is exchanged, or renamed to a free name, and what
comes out must be what the change was made against, or it goes back.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Literal

from orchestrator.core.content import digest_of
from orchestrator.core.errors import DiskFull, FileBusy, IoFailed, PathError, WritesStopped
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.ports.machine import Step
from orchestrator.ports.workspace import ChangedMeanwhile, DiskChange, FileStat
from orchestrator.workspace.confine import Confinement, kind_of, refusal, signature_of, stat_of, translated
from orchestrator.workspace.exchange_verification import (
    UnexpectedContent,
    content,
    holds,
    same_directory,
    verify_content,
)
from orchestrator.workspace.temporary_file import sync, write_temporary

_NO_SUCH_RENAME = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
_OF_BYTES = ("st_ino", "st_size", "st_mtime_ns")


class LocalAtomicWrite:
    """See `ports.AtomicWrite`."""

    def __init__(self, confinement: Confinement, change: DiskChange, step: Step) -> None:
        self._at, self._disk, self._change, self._step = confinement, confinement.disk, change, step
        self._held = ExitStack()  # the handles of the directories, and the lease on what was swapped out
        self._parent, self._name, self._source, self._source_name = -1, "", -1, ""
        self._temp = change.temp or ""
        self._ours: os.stat_result | None = None  # our own file, as it was when it was verified or written
        self._in_temp: Literal["nothing", "ours", "theirs"] = "nothing"
        self._made: list[WorkspacePath] = []
        self._moved = False  # a name was changed: from here on a failure leaves the outcome unknown
        self._kept: tuple[bytes, ...] = ()
        self.warnings: tuple[str, ...] = ()

    # --- stage ------------------------------------------------------------------------

    def stage(self) -> None:
        try:
            for directory in self._change.parents:
                self._make_parent(directory)
            self._open()
            if self._change.data is not None and self._change.temp is not None:
                with translated(self._change.path):
                    self._ours, self.warnings = write_temporary(self._at, self._change, self._parent, self._step)
                self._in_temp = "ours"
                self._step("temp_synced")
        except Exception:
            self.abandon()
            raise

    def _open(self) -> None:
        self._parent, self._name = self._at.open_parent(self._change.path)
        self._held.callback(self._disk.close, self._parent)

    def _make_parent(self, path: WorkspacePath) -> None:
        with self._at.parent(path) as (above, name), translated(path):
            try:
                self._disk.make_directory(above, name)
            except FileExistsError:
                pass  # somebody else made it meanwhile; whether it is a directory shows when it is opened
            else:
                self._made.append(path)
            self._sync(above)

    # --- commit -------------------------------------------------------------------------

    def commit(self) -> FileStat | None:
        change = self._change
        try:
            self._change_names()
            self._sync(self._parent)
            if change.moved_from is not None:
                # After the destination's: a crash between them may show the file twice, never not at all.
                self._sync(self._source)
            self._step("directory_synced")
            stat = self._stat() if change.after is not None or change.directory else None
        except ChangedMeanwhile as displaced:
            self._kept = displaced.unexpected
            self._give_up()
            raise
        except (PathError, DiskFull) as error:
            if self._moved and isinstance(error, IoFailed):
                raise self._unknown(error) from error
            self._give_up()
            raise
        except OSError as error:
            if not self._moved:
                self._give_up()
                raise refusal(change.path, error) from error
            raise self._unknown(error) from error
        return stat

    def _unknown(self, error: OSError | IoFailed) -> WritesStopped:
        self.release()
        why = error.message if isinstance(error, IoFailed) else error.strerror
        return WritesStopped(
            f"{self._change.path}: the disk failed in the middle of a change ({why})",
            hint="The next start finds out which content is there. Look at the system's log first.",
        )

    def _change_names(self) -> None:
        change = self._change
        if change.directory:
            self._disk.make_directory(self._parent, self._name)
            self._moved = True
        elif change.moved_from is not None:
            self._move(change.moved_from, change.after)
        elif change.before is None:
            self._create()
        elif change.after is None:
            self._remove(change.before)
        else:
            self._replace(change.before, change.after)

    def _stat(self) -> FileStat | None:
        """Of our own file; None if it is gone again. A change since then shows as another stat at the next look."""
        try:
            found = self._disk.stat_at(self._parent, self._name)
        except FileNotFoundError:
            return None
        ours = self._ours
        # In a rename these stay: the file, its size, and when its bytes were last written.
        if ours is not None and any(getattr(ours, name) != getattr(found, name) for name in _OF_BYTES):
            return stat_of(ours)
        return stat_of(found)

    # --- the four ways ----------------------------------------------------------------

    def _create(self) -> None:
        self._check_place(self._parent, self._change.path)
        self._step("hash_rechecked")
        try:
            self._rename_new(self._parent, self._temp, self._parent, self._name)
        except FileExistsError:
            raise ChangedMeanwhile(self._change.path) from None
        self._names_changed("nothing")
        try:
            self._check_place(self._parent, self._change.path)
        except ChangedMeanwhile:
            self._step("swapped_stale")
            self._rename_new(self._parent, self._name, self._parent, self._temp)
            self._in_temp = "ours"
            self._sync(self._parent)
            raise

    def _replace(self, before: Digest, after: Digest) -> None:
        self._recheck(self._parent, self._name, before)
        try:
            self._disk.rename(self._parent, self._temp, self._parent, self._name, "exchange")
        except FileNotFoundError:
            raise ChangedMeanwhile(self._change.path) from None
        except OSError as error:
            if error.errno not in _NO_SUCH_RENAME:
                raise
            self._check_content(self._parent, self._name, before)
            self._disk.rename(self._parent, self._temp, self._parent, self._name, "replace")
            self._names_changed("nothing")
            return  # nothing came out, so nothing can be verified; `features` says so
        self._names_changed("theirs")
        self._verify(self._parent, self._temp, before, lambda: self._exchange_back(after))

    def _exchange_back(self, after: Digest) -> None:
        """What comes out now must be our own content; if not, another program changed it a second time."""
        path = self._change.path
        try:
            self._disk.rename(self._parent, self._temp, self._parent, self._name, "exchange")
        except FileNotFoundError:  # our content was deleted meanwhile; theirs must not be lost with it
            self._rename_new(self._parent, self._temp, self._parent, self._name)
            self._in_temp = "nothing"
            self._sync(self._parent)
            return
        self._sync(self._parent)
        out = content(self._at, self._parent, self._temp, path)
        if out is None or digest_of(out) != after:
            raise self._diverged(out)
        self._in_temp = "ours"

    def _remove(self, before: Digest) -> None:
        self._recheck(self._parent, self._name, before)
        try:
            self._rename_new(self._parent, self._name, self._parent, self._temp)
        except FileNotFoundError:
            raise ChangedMeanwhile(self._change.path) from None
        self._names_changed("theirs")
        self._verify(self._parent, self._temp, before, self._name_again)

    def _name_again(self) -> None:
        """Give a file that should not go its name back, unless something took the name meanwhile."""
        path = self._change.path
        try:
            self._rename_new(self._parent, self._temp, self._parent, self._name)
        except FileExistsError:
            out = content(self._at, self._parent, self._temp, path)
            raise self._diverged(out) from None
        self._in_temp = "nothing"
        self._sync(self._parent)

    def _move(self, source: WorkspacePath, after: Digest | None) -> None:
        if after is None:
            raise ValueError("a move has content")
        self._source, name = self._at.open_parent(source)
        self._held.callback(self._disk.close, self._source)
        self._check_place(self._source, source)
        self._recheck(self._source, name, after)
        try:
            self._rename_new(self._source, name, self._parent, self._name)
        except (FileExistsError, FileNotFoundError):
            raise ChangedMeanwhile(self._change.path) from None
        self._names_changed("nothing")
        self._source_name = name
        self._ours = self._verify(self._parent, self._name, after, self._move_back)

    def _move_back(self) -> None:
        try:
            self._rename_new(self._parent, self._name, self._source, self._source_name)
        except FileExistsError:
            raise self._diverged(None) from None
        self._sync(self._source)
        self._sync(self._parent)

    # --- verification -----------------------------------------------------------------

    def _recheck(self, directory: int, name: str, expected: Digest) -> None:
        """A last look before the names change, which saves most changes that would have to go back.

        An equal stat signature is enough for it, where the change itself is verified.
        """
        if self._change.signature is None or not self._unmoved():
            self._check_content(directory, name, expected)
        self._check_place(self._parent, self._change.path)
        self._step("hash_rechecked")

    def _check_content(self, directory: int, name: str, expected: Digest) -> None:
        if not holds(self._at, directory, name, expected, self._change.path):
            raise ChangedMeanwhile(self._change.path)

    def _unmoved(self) -> bool:
        """Whether the file is as it was when it was last hashed; not known of a move's source."""
        try:
            found = self._disk.stat_at(self._parent, self._name)
        except OSError:
            return False
        return kind_of(found) == "file" and signature_of(found) == self._change.signature

    def _check_place(self, directory: int, path: WorkspacePath) -> None:
        """The directory still has its name, so what is changed in it is changed at `path`."""
        if not same_directory(self._at, directory, path):
            raise ChangedMeanwhile(self._change.path)

    def _names_changed(self, in_temp: Literal["nothing", "theirs"]) -> None:
        self._moved, self._in_temp = True, in_temp
        self._step("swapped")

    def _verify(self, directory: int, name: str, expected: Digest, back: Callable[[], None]) -> os.stat_result:
        """The stat of what came out: `expected`, which no program is writing to; anything else goes `back`."""
        path = self._change.path
        try:
            self._check_place(self._parent, path)
            handle = verify_content(self._at, directory, name, expected, path)
        except (UnexpectedContent, FileBusy, ChangedMeanwhile) as trouble:
            self._step("swapped_stale")
            back()
            raise (ChangedMeanwhile(path) if isinstance(trouble, UnexpectedContent) else trouble) from None
        self._held.callback(self._disk.close, handle)  # the lease ends with it
        return self._disk.stat(handle)

    def _diverged(self, out: bytes | None) -> ChangedMeanwhile:
        """With what is at the path, then what is in the temporary file."""
        there = content(self._at, self._parent, self._name, self._change.path)
        unexpected = tuple(data for data in (there, out) if data is not None)
        return ChangedMeanwhile(self._change.path, diverged=True, unexpected=unexpected)

    # --- roll back --------------------------------------------------------------------

    def roll_back(self) -> None:
        try:
            self._step("rolling_back")
            self._reverse()
        except ChangedMeanwhile as displaced:
            self._kept = displaced.unexpected
            self.release()
            raise
        except (OSError, IoFailed) as error:
            raise self._unknown(error) from error
        self._moved = False
        self._give_up()

    def _reverse(self) -> None:
        change = self._change
        if change.directory:
            self._disk.remove_directory(self._parent, self._name)
            self._sync(self._parent)
            return
        if change.after is None:
            self._name_again()
            return
        if not self._is_there(change.after):
            out = content(self._at, self._parent, self._temp, change.path) if self._in_temp == "theirs" else None
            raise self._diverged(out)
        if change.moved_from is not None:
            self._move_back()
        elif change.before is None:
            self._rename_new(self._parent, self._name, self._parent, self._temp)
            self._sync(self._parent)
            self._in_temp = "ours"
        else:
            self._exchange_back(change.after)

    def _is_there(self, after: Digest) -> bool:
        """Whether what was written is still at the path. Raises IoFailed."""
        try:
            return same_directory(self._at, self._parent, self._change.path) and holds(
                self._at, self._parent, self._name, after, self._change.path
            )
        except IoFailed:
            raise
        except PathError:
            return False

    # --- finish -----------------------------------------------------------------------

    def finish(self) -> tuple[bytes, ...]:
        change = self._change
        if self._in_temp == "theirs":
            if self._parent < 0:
                self._open()  # a divergence gave the handles back
            found = content(self._at, self._parent, self._temp, change.path)
            if found is not None:
                expected = digest_of(found) == change.before
                if not expected and found not in self._kept:
                    self._kept += (found,)
                    return (found,)
                self._unlink()
        self._in_temp = "nothing"
        self._step("unlinked")
        self.release()
        return ()

    def abandon(self) -> None:
        if self._moved:
            self.release()
        else:
            self._give_up()

    def _give_up(self) -> None:
        """Remove what this change created; what other programs wrote stays."""
        if self._in_temp == "ours":
            with suppress(OSError):  # a leftover is swept at the next start
                self._unlink()
            self._in_temp = "nothing"
        self.release()
        while self._made:
            path = self._made.pop()
            with suppress(OSError, PathError), self._at.parent(path) as (above, name):
                self._disk.remove_directory(above, name)

    def release(self) -> None:
        self._held.close()
        self._parent = self._source = -1

    def _unlink(self) -> None:
        with suppress(FileNotFoundError):
            self._disk.unlink_at(self._parent, self._temp)

    # --- small things -----------------------------------------------------------------

    def _rename_new(self, from_dir: int, old: str, to_dir: int, new: str) -> None:
        """Rename to a name that nothing has. Raises FileExistsError."""
        try:
            self._disk.rename(from_dir, old, to_dir, new, "noreplace")
        except OSError as error:
            if error.errno not in _NO_SUCH_RENAME:
                raise
            with suppress(FileNotFoundError):
                self._disk.stat_at(to_dir, new)
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from error
            self._disk.rename(from_dir, old, to_dir, new, "replace")

    def _sync(self, directory: int) -> None:
        sync(self._disk, directory, self._change.path)
