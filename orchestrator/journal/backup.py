"""Backups: a consistent copy of the database, every content and segment that it names, and last of all a manifest.

A restore puts one in place, or nothing: the journal that was there is moved aside, never deleted.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from orchestrator.api.journal_operations import BackupAnswer
from orchestrator.core.errors import BackupInvalid, BackupRefused, JournalCorrupt
from orchestrator.core.ids import Digest, show
from orchestrator.core.system_errors import system_trouble
from orchestrator.journal.blobs import FOLDER_NAME, INCOMING, Blobs
from orchestrator.journal.database_file import FILE_NAME, naming_trouble, open_reader, sql
from orchestrator.journal.segments import ARCHIVE, segments_of
from orchestrator.journal.state_files import publish, sync_above, sync_directory, sync_tree
from orchestrator.journal.verification import verify

MANIFEST = "manifest.json"
FORMAT = "orchestrator backup 2"
PAGES = 512
"""Copied in one step; writers go on between and during them."""

PARTS = (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm", FOLDER_NAME, ARCHIVE)
"""All that belongs to one journal in its state directory."""

_COMING = "restoring"


class Manifest(msgspec.Struct, frozen=True):
    """Which journal a backup holds, and up to where; written when all the rest is there."""

    format: str
    journal: str
    head: int
    head_hash: str  # hex


def make_backup(state_dir: Path, target: Path) -> BackupAnswer:
    """Copy a journal, in use or not, into a new folder, and check the copy. Blocking.

    Writers are not held up. Nothing may be collected or archived meanwhile.
    Raises BackupRefused, DiskFull, JournalCorrupt; then nothing of it is left.
    """
    try:
        target.mkdir(mode=0o700)
    except OSError as error:
        raise BackupRefused(
            f"{target} can't be made: {error.strerror}",
            hint="Name a folder that is not there yet; a backup is never written over.",
        ) from error
    try:
        with naming_trouble(target):
            journal = _copy_database(state_dir / FILE_NAME, target / FILE_NAME)
            copy_parts(state_dir, target)
            sync_tree(target)
            found = verify(target / FILE_NAME, Blobs(target))
            if found.problems:
                raise JournalCorrupt(
                    f"the journal was copied, but the copy does not hold: {found.problems[0]}",
                    hint="`orchestrator journal verify` says more; this backup was removed.",
                )
            manifest = msgspec.json.encode(Manifest(FORMAT, journal, found.head, found.head_hash))
            publish(msgspec.json.format(manifest, indent=1) + b"\n", target / f"{MANIFEST}.part", target / MANIFEST)
            sync_above(target)
    except BaseException as error:
        shutil.rmtree(target, ignore_errors=True)
        if isinstance(error, OSError):
            trouble = system_trouble(error, f"{target} was not written, and what was written of it is removed again")
            raise trouble or BackupRefused(
                f"{target} can't be written: {error.strerror}", hint="Name another folder."
            ) from error
        raise
    return BackupAnswer(
        directory=str(target),
        journal=journal,
        head=show(found.head),
        head_hash=found.head_hash,
        unchecked=found.unchecked,
    )


def read_manifest(folder: Path) -> Manifest:
    """Raises BackupInvalid."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError as error:
        raise BackupInvalid(f"{folder} has no {MANIFEST}: it is no backup, or one that was not finished") from error
    except (OSError, msgspec.MsgspecError) as error:
        raise BackupInvalid(f"{folder / MANIFEST} can't be read: {error}") from error
    if manifest.format != FORMAT:
        raise BackupInvalid(f"{folder} has the format {manifest.format!r}; this program reads {FORMAT!r}")
    return manifest


def copy_backup(backup: Path, target: Path) -> Manifest:
    """Copy a backup into a folder, synced, and verify the copy. Blocking. Raises BackupInvalid, JournalTooNew, OSError.

    Only what the database names comes along, so a doctored backup brings no policy and no key.
    """
    manifest = read_manifest(backup)
    try:
        copy_file(backup / FILE_NAME, target / FILE_NAME)
        copy_parts(backup, target)
        sync_tree(target)
        report = verify(target / FILE_NAME, Blobs(target))
    except (JournalCorrupt, FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise BackupInvalid(f"{backup}: {error}") from error
    if report.problems:
        raise BackupInvalid(f"the journal in {backup} does not hold: {report.problems[0]}")
    if (report.head, report.head_hash) != (manifest.head, manifest.head_hash):
        raise BackupInvalid(f"the journal in {backup} ends at @{report.head}, its manifest says @{manifest.head}")
    return manifest


def copy_parts(source: Path, target: Path) -> None:
    """Copy the files that the database in `target` names: contents and segments. Raises JournalCorrupt, OSError."""
    with closing(open_reader(target / FILE_NAME)) as copy:
        blobs = Blobs(source)
        names = [blobs.name_of(digest) for digest, _ in copy.execute(sql("filed_blobs"))]
        names += [f"{ARCHIVE}/{segment.file}" for segment in segments_of(copy)]
    for name in names:
        try:
            copy_file(source / name, target / name)
        except FileNotFoundError as error:
            raise JournalCorrupt(
                f"the journal names {source / name}, which is not there", hint="Put it back from an older backup."
            ) from error


def copy_file(source: Path, target: Path) -> None:
    """Copy a file's bytes, synced, 0600. Raises OSError."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with source.open("rb") as old, open(handle, "wb") as new:  # a descriptor has no path
        shutil.copyfileobj(old, new)
        new.flush()
        os.fsync(new.fileno())


def _copy_database(source: Path, target: Path) -> str:
    """By SQLite's own means, in steps, all from the state that the first one met; the journal's id."""
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(open_reader(source)) as reader, closing(sqlite3.connect(target, isolation_level=None)) as copy:
        reader.execute("BEGIN")
        (journal,) = reader.execute(sql("journal_id")).fetchone()
        reader.backup(copy, pages=PAGES)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, complete without a log beside it
    with target.open("rb") as file:
        os.fsync(file.fileno())
    return str(journal)


# --- restoring ----------------------------------------------------------------------------


def restore_backup(backup: Path, state_dir: Path, *, now_ms: int) -> tuple[Manifest, Path | None]:
    """Copy a backup beside the journal, verify the copy, then change places. Blocking; nobody may use the journal.

    Answers what was restored, and the folder that the journal before it lies in now. Raises BackupInvalid, DiskFull;
    then all is as it was.
    """
    coming = state_dir / _COMING
    shutil.rmtree(coming, ignore_errors=True)
    try:
        coming.mkdir(mode=0o700)
        manifest = copy_backup(backup, coming)
    except BaseException as error:
        shutil.rmtree(coming, ignore_errors=True)
        if isinstance(error, OSError):
            raise system_trouble(error, f"nothing was restored in {state_dir}") or BackupRefused(
                f"{state_dir}: {error.strerror}", hint="Nothing was restored. Mend the disk."
            ) from error
        raise
    aside = set_aside(state_dir, now_ms=now_ms)
    for item in sorted(coming.iterdir(), key=lambda item: item.name == FILE_NAME):  # the database last
        item.rename(state_dir / item.name)
    coming.rmdir()
    sync_directory(state_dir)
    return manifest, aside


def set_aside(state_dir: Path, *, now_ms: int, more: Iterable[Path] = ()) -> Path | None:
    """Move a state directory's journal, and `more`, into a folder named by the time; None if there was nothing."""
    there = [path for path in (*(state_dir / name for name in PARTS), *more) if path.exists()]
    if not there:
        return None
    folder = _new_folder(state_dir, now_ms)
    for path in there:
        shutil.move(path, folder / path.name)  # the mark may lie on another file system
    sync_directory(folder)
    sync_directory(state_dir)
    return folder


def set_unnamed_contents_aside(state_dir: Path, *, now_ms: int) -> Path | None:
    """Move contents that this journal does not know: of one that went further, which may come back."""
    with closing(open_reader(state_dir / FILE_NAME)) as reader:
        named = {Digest(row[0]) for row in reader.execute(sql("filed_blobs"))}
    unnamed = [file for file in Blobs(state_dir).strays(named) if file.parent.name != INCOMING]
    if not unnamed:
        return None
    folder = _new_folder(state_dir, now_ms)
    for file in unnamed:
        place = folder / file.relative_to(state_dir)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.rename(place)
    return folder


def _new_folder(state_dir: Path, now_ms: int) -> Path:
    stamp = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y%m%d-%H%M%S")
    return Path(tempfile.mkdtemp(prefix=f"before-{stamp}-", dir=state_dir))
