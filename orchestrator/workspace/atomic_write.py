"""One durable change of one path: stage, commit with verification, finish.

Nothing is ever overwritten: content is exchanged, or renamed to a free name, and what
comes out must be what the change was made against, or it goes back.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack, suppress
from typing import Literal, NoReturn

from orchestrator.core.errors import DescriptorsExhausted, FileBusy, FileExists, OrchestratorError, WritesStopped
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.ports.machine import Step
from orchestrator.ports.workspace import ChangedMeanwhile, DiskChange, FileStat
from orchestrator.workspace.confine import Confinement, UnexpectedContent, absent, refusal, translated
from orchestrator.workspace.disk import Identity, identity_of, kind_of, signature_of, stat_of
from orchestrator.workspace.temporary_file import sync, write_temporary

_NO_SUCH_RENAME = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
Name = tuple[int, str]
"""A directory's handle, and a name in it."""

_OF_BYTES = ("st_ino", "st_size", "st_mtime_ns")


class LocalAtomicWrite:
    """See `ports.AtomicWrite`."""

    def __init__(self, confinement: Confinement, change: DiskChange, step: Step) -> None:
        self._at, self._disk, self._change, self._step = confinement, confinement.disk, change, step
        self._held = ExitStack()  # the handles of the directories, and the lease on what was swapped out
        self._parent, self._name, self._source, self._source_name = -1, "", -1, ""
        self._directory: Identity | None = None  # the parent's, which has the temporary file
        self._temp = change.temp or ""
        self._exchanges = change.before is not None and change.data is not None
        self._ours: os.stat_result | None = None  # our own file, as it was when it was verified or written
        self._in_temp: Literal["nothing", "ours", "theirs"] = "nothing"
        self._made: list[WorkspacePath] = []
        self._moved = False  # a name was changed, and not changed back: a failure now leaves the outcome unknown
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
        """The directory, or again the same one. Raises ChangedMeanwhile where another one has its name by now."""
        path = self._change.path
        parent, name = self._at.open_parent(path)
        self._held.callback(self._disk.close, parent)
        with translated(path):
            identity = identity_of(self._disk.stat(parent))
        if self._directory not in (None, identity):
            raise ChangedMeanwhile(path)
        self._directory, self._parent, self._name = identity, parent, name

    def _reopen(self) -> None:
        """What `release` closed. Raises ChangedMeanwhile as `_open`, and where nothing has its name."""
        if self._parent < 0:
            with absent():
                self._open()
        if self._parent < 0:
            raise ChangedMeanwhile(self._change.path)

    def _can_reopen(self) -> bool:
        with suppress(ChangedMeanwhile):
            self._reopen()
        return self._parent >= 0

    def _open_source(self) -> None:
        if self._change.moved_from is not None and self._source < 0:
            self._source, self._source_name = self._at.open_parent(self._change.moved_from)
            self._held.callback(self._disk.close, self._source)

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
            self._reopen()
            self._change_names()
            self._sync(self._parent)
            if change.moved_from is not None:
                # After the destination's: a crash between them may show the file twice, never not at all.
                self._sync(self._source)
            self._step("directory_synced")
            stat = self._stat() if change.after is not None or change.directory == "made" else None
        except ChangedMeanwhile as displaced:
            self._kept = displaced.unexpected
            self._give_up()
            raise
        except (OrchestratorError, OSError) as error:
            if self._moved:
                self._leave(error)
            self._give_up()
            if isinstance(error, OSError):
                raise refusal(change.path, error) from error
            raise
        return stat

    def _leave(self, error: OrchestratorError | OSError) -> NoReturn:
        """Nobody knows which content is at the path now; the next start finds out. Raises WritesStopped."""
        self.release()
        if isinstance(error, WritesStopped):
            raise error
        behind = error if isinstance(error, OSError) else error.__cause__
        why = behind.strerror if isinstance(behind, OSError) else error
        raise WritesStopped(
            f"{self._change.path}: the system failed in the middle of a change ({why})",
            hint="The next start finds out which content is there. Look at the system's log first.",
        ) from error

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

    # --- the rename -------------------------------------------------------------------

    @property
    def _from(self) -> Name:
        """With `_to` the names that are exchanged; or the old one, and the new one."""
        if self._change.data is not None:
            return self._parent, self._temp
        return (self._source, self._source_name) if self._change.moved_from is not None else (self._parent, self._name)

    @property
    def _to(self) -> Name:
        return self._parent, self._temp if self._change.after is None else self._name

    def _change_names(self) -> None:
        """Create, replace, remove or move, by one rename; what came out of it is verified."""
        change, place, temp = self._change, (self._parent, self._name), (self._parent, self._temp)
        if change.directory is not None:
            self._check_place(self._parent, change.path)
            self._change_directory(remove=change.directory == "removed")
            self._moved = True
            return
        expected, there = change.before, place  # the content that is changed; None: the name must be free
        if change.moved_from is not None:
            if change.after is None:
                raise ValueError("a move has content")
            self._open_source()
            self._check_place(self._source, change.moved_from)
            expected, there = change.after, (self._source, self._source_name)
        self._recheck(there, expected)
        try:
            verified = self._rename(expected)
        except (FileExistsError, FileNotFoundError):
            raise ChangedMeanwhile(change.path) from None
        out = temp if change.before is not None else place
        self._moved, self._in_temp = True, "theirs" if verified and out == temp else "nothing"
        self._step("swapped")
        if verified:
            self._verify(out, expected)

    def _rename(self, expected: Digest | None) -> bool:
        """Exchange the names, or give one that is free; False where nothing comes out that can be verified."""
        if not self._exchanges:
            self._rename_new(self._from, self._to)
            return True
        try:
            self._disk.rename(*self._from, *self._to, "exchange")
        except OSError as error:
            if error.errno not in _NO_SUCH_RENAME:
                raise
            self._check_content(self._to, expected)
            self._disk.rename(*self._from, *self._to, "replace")  # `features` says so
            return False
        return True

    def _rename_back(self) -> None:
        """What comes out of an exchange now must be our own content; if not, another program wrote there since."""
        theirs = self._in_temp == "theirs"
        try:
            if self._exchanges:
                self._disk.rename(*self._from, *self._to, "exchange")
            else:
                self._rename_new(self._to, self._from)
        except FileExistsError:  # something took the name meanwhile
            raise self._diverged(self._temp_content() if theirs else None) from None
        except FileNotFoundError:
            if not self._exchanges:
                raise
            # Our content was deleted meanwhile; theirs must not be lost with it.
            self._rename_new(self._from, self._to)
            self._in_temp = "nothing"
            self._sync(self._parent)
            self._moved = False
            return
        for directory in dict.fromkeys((self._from[0], self._to[0])):
            self._sync(directory)
        if self._exchanges and not self._temp_is(self._change.after):
            if self._temp_content() is None:
                # a link or a folder took our name: it has it again, and what was there is kept as bytes
                with suppress(FileNotFoundError):
                    self._disk.rename(*self._from, *self._to, "exchange")
                    self._sync(self._parent)
            if not self._temp_is(self._change.after):
                raise self._diverged(self._temp_content())
        self._in_temp, self._moved = "ours" if self._change.data is not None else "nothing", False

    # --- verification -----------------------------------------------------------------

    def _recheck(self, there: Name, expected: Digest | None) -> None:
        """A last look before the names change, which saves most changes that would have to go back.

        An equal stat signature is enough for it, where the change itself is verified.
        """
        if expected is not None and (self._change.signature is None or not self._unmoved()):
            self._check_content(there, expected)
        self._check_place(self._parent, self._change.path)
        self._step("hash_rechecked")

    def _check_content(self, there: Name, expected: Digest | None) -> None:
        if not self._at.holds(*there, expected, self._change.path):
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
        if not self._at.still_has(directory, path):
            raise ChangedMeanwhile(self._change.path)

    def _verify(self, out: Name, expected: Digest | None) -> None:
        """What came out is `expected`, and no program is writing to it; anything else goes back."""
        path = self._change.path
        try:
            self._check_place(self._parent, path)
            if expected is None:
                return
            handle = self._at.open_expected(*out, expected, path)
        except (UnexpectedContent, FileBusy, ChangedMeanwhile, DescriptorsExhausted) as trouble:
            self._step("swapped_stale")
            self._rename_back()
            raise (ChangedMeanwhile(path) if isinstance(trouble, UnexpectedContent) else trouble) from None
        self._held.callback(self._disk.close, handle)  # the lease ends with it
        if self._change.moved_from is not None:
            self._ours = self._disk.stat(handle)

    def _diverged(self, out: bytes | None) -> ChangedMeanwhile:
        """With what is at the path, then what is in the temporary file."""
        there = self._at.content(self._parent, self._name, self._change.path)
        unexpected = tuple(data for data in (there, out) if data is not None)
        return ChangedMeanwhile(self._change.path, diverged=True, unexpected=unexpected)

    def _temp_is(self, expected: Digest | None) -> bool:
        """Whether the temporary file has this content."""
        with absent():
            return self._at.holds(self._parent, self._temp, expected, self._change.path)
        return False

    def _temp_content(self) -> bytes | None:
        return self._at.content(self._parent, self._temp, self._change.path)

    # --- roll back --------------------------------------------------------------------

    def roll_back(self) -> None:
        try:
            self._step("rolling_back")
            self._reopen()
            self._open_source()
            self._reverse()
        except ChangedMeanwhile as displaced:
            self._kept = displaced.unexpected
            self.release()
            raise
        except (OrchestratorError, OSError) as error:
            self._leave(error)
        self._moved = False
        self._give_up()

    def _reverse(self) -> None:
        change = self._change
        if change.directory is not None:
            self._change_directory(remove=change.directory == "made")
            self._sync(self._parent)
            return
        if change.after is not None and not self._is_there(change.after):
            raise self._diverged(self._temp_content() if self._in_temp == "theirs" else None)
        self._rename_back()

    def _change_directory(self, *, remove: bool) -> None:
        if not remove:
            self._disk.make_directory(self._parent, self._name)
            return
        try:
            self._disk.remove_directory(self._parent, self._name)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise FileExists(self._change.path, "something is in it", hint="list_files shows what.") from error

    def _is_there(self, after: Digest) -> bool:
        """Whether what was written is still at the path. Raises IoFailed."""
        path = self._change.path
        with absent():
            return self._at.still_has(self._parent, path) and self._at.holds(self._parent, self._name, after, path)
        return False

    # --- finish -----------------------------------------------------------------------

    def finish(self) -> tuple[bytes, ...]:
        change = self._change
        if self._in_temp == "theirs" and self._can_reopen():
            expected = self._temp_is(change.before)
            found = None if expected else self._temp_content()
            if found is not None and found not in self._kept:
                self._kept += (found,)
                return (found,)
            if expected or found is not None:
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
            with suppress(OSError, OrchestratorError):  # a leftover is swept at the next start
                if self._can_reopen():
                    self._unlink()
            self._in_temp = "nothing"
        self.release()
        made, self._made = self._made, []
        for path in reversed(made):
            try:
                with self._at.parent(path) as (above, name):
                    self._disk.remove_directory(above, name)
            except (OSError, OrchestratorError):  # other parts of the change may have something in it still
                self._made.insert(0, path)

    def release(self) -> None:
        self._held.close()
        self._parent = self._source = -1

    def _unlink(self) -> None:
        with suppress(FileNotFoundError):
            self._disk.unlink_at(self._parent, self._temp)

    # --- small things -----------------------------------------------------------------

    def _rename_new(self, old: Name, new: Name) -> None:
        """Rename to a name that nothing has. Raises FileExistsError."""
        try:
            self._disk.rename(*old, *new, "noreplace")
        except OSError as error:
            if error.errno not in _NO_SUCH_RENAME:
                raise
            with suppress(FileNotFoundError):
                self._disk.stat_at(*new)
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new[1]) from error
            self._disk.rename(*old, *new, "replace")

    def _sync(self, directory: int) -> None:
        sync(self._disk, directory, self._change.path)
