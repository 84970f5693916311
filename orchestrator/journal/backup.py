"""Backups: a consistent copy of the database, every content and segment that it names, and last of all a manifest."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from orchestrator.core.errors import JournalCorrupt, escaped
from orchestrator.core.events import chain
from orchestrator.core.maintenance_errors import BackupInvalid, BackupRefused
from orchestrator.core.system_errors import system_trouble
from orchestrator.journal.blobs import FOLDER_NAME, Blobs
from orchestrator.journal.schema import FILE_NAME, naming_trouble, open_reader, sql, sync_directory, sync_tree
from orchestrator.journal.segments import ARCHIVE, segments_of
from orchestrator.journal.verification import verify
from orchestrator.ports.journal import VerifyReport

MANIFEST = "manifest.json"
FORMAT = "orchestrator backup 1"
PAGES = 512
"""Copied in one step; writers go on between and during them."""

BLOCK_BYTES = 1024 * 1024

_PART = re.compile(rf"{FOLDER_NAME}/[0-9a-f]{{2}}/[0-9a-f]{{62}}|{ARCHIVE}/[0-9]{{12,}}-[0-9]{{12,}}\.segment\.zst")
"""What a backup holds beside the database. Nothing else may come into the state directory: there lie policy and key."""


class Copied(msgspec.Struct, frozen=True):
    """One file of a backup."""

    size: int
    sha256: str  # hex


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds; it is written when all the rest is there."""

    format: str
    journal: str
    head: int
    head_hash: str  # hex
    made_at: int  # ms since the epoch
    files: dict[str, Copied]


def make_backup(state_dir: Path, target: Path, *, made_at: int) -> tuple[Manifest, VerifyReport]:
    """Copy a journal, in use or not, into a new or empty folder, and check the copy. Blocking.

    Writers are not held up. Nothing may be collected or archived meanwhile.
    Raises BackupRefused, DiskFull, JournalCorrupt; then nothing of it is left.
    """
    made = _prepared(target)
    try:
        with _naming_target(target):
            manifest = _copy_all(state_dir, target, made_at)
            report = verify(target / FILE_NAME, Blobs(target))
            if not report.problems:
                _write_manifest(target, manifest)
    except BaseException:
        _clear(target, itself=made)
        raise
    if report.problems:
        _clear(target, itself=made)
        raise JournalCorrupt(
            f"the journal was copied, but the copy does not hold: {report.problems[0]}",
            hint="`orchestrator journal verify` says more; this backup was removed.",
        )
    return manifest, report


def check_backup(folder: Path) -> tuple[Manifest, VerifyReport]:
    """A backup's manifest, after everything it names was compared and the journal in it verified. Blocking.

    Raises BackupInvalid, JournalTooNew.
    """
    manifest = _manifest(folder)
    for name, copied in manifest.files.items():
        path = folder / name
        if name != FILE_NAME and not _PART.fullmatch(name):
            raise BackupInvalid(f"the manifest names {escaped(name)}, which is no part of a journal")
        if not path.resolve().is_relative_to(folder.resolve()):
            raise BackupInvalid(f"the manifest names {name}, which is not in the backup")
        try:
            found = _hashed(path)
        except OSError as error:
            raise BackupInvalid(f"{path} can't be read: {error.strerror}") from error
        if found != copied:
            raise BackupInvalid(f"{path} is not what was backed up")
    if FILE_NAME not in manifest.files:
        raise BackupInvalid(f"the manifest of {folder} names no {FILE_NAME}")
    try:
        report = verify(folder / FILE_NAME, Blobs(folder))
    except JournalCorrupt as error:
        raise BackupInvalid(error.message) from error
    if report.problems:
        raise BackupInvalid(f"the journal in {folder} does not hold: {report.problems[0]}")
    if (report.head, report.head_hash) != (manifest.head, manifest.head_hash):
        raise BackupInvalid(f"the journal in {folder} ends at @{report.head}, its manifest says @{manifest.head}")
    return manifest, report


def copy_file(source: Path, target: Path) -> Copied:
    """Copy a file's bytes, synced, 0600; what was copied. Raises OSError."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    hashed, size = hashlib.sha256(), 0
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with source.open("rb") as old, open(handle, "wb") as new:  # a descriptor has no path
        while block := old.read(BLOCK_BYTES):
            hashed.update(block)
            size += len(block)
            new.write(block)
        new.flush()
        os.fsync(new.fileno())
    return Copied(size, hashed.hexdigest())


def _prepared(target: Path) -> bool:
    """Make the folder; whether it was made. Raises BackupRefused."""
    try:
        target.mkdir(mode=0o700)
    except FileExistsError:
        if not target.is_dir():
            raise BackupRefused(f"{target} is no folder", hint="Name a new or an empty folder.") from None
        if any(target.iterdir()):
            hint = "Name a new or an empty folder; a backup is never written over."
            raise BackupRefused(f"{target} is not empty", hint=hint) from None
        return False
    except OSError as error:
        raise BackupRefused(f"{target} can't be made: {error.strerror}", hint="Name another folder.") from error
    return True


def _copy_all(state_dir: Path, target: Path, made_at: int) -> Manifest:
    _copy_database(state_dir / FILE_NAME, target / FILE_NAME)
    with closing(open_reader(target / FILE_NAME)) as copy:
        (journal,) = copy.execute(sql("journal_id")).fetchone()
        head, tip = copy.execute(sql("last_event")).fetchone() or (0, chain.GENESIS)
        blobs = Blobs(state_dir)
        names = [blobs.name_of(digest) for digest, _ in copy.execute(sql("filed_blobs"))]
        names += [f"{ARCHIVE}/{segment.file}" for segment in segments_of(copy)]
    files = {FILE_NAME: _hashed(target / FILE_NAME)}
    for name in names:
        try:
            files[name] = copy_file(state_dir / name, target / name)
        except FileNotFoundError as error:
            raise JournalCorrupt(
                f"the journal names {state_dir / name}, which is not there", hint="Put it back from an older backup."
            ) from error
    sync_tree(target)
    return Manifest(format=FORMAT, journal=journal, head=head, head_hash=tip.hex(), made_at=made_at, files=files)


def _copy_database(source: Path, target: Path) -> None:
    """By SQLite's own means, in steps, all from the state that the first one met."""
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(open_reader(source)) as reader, closing(sqlite3.connect(target, isolation_level=None)) as copy:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM meta").fetchone()
        reader.backup(copy, pages=PAGES)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, complete without a log beside it
    with target.open("rb") as file:
        os.fsync(file.fileno())


def _write_manifest(target: Path, manifest: Manifest) -> None:
    draft = target / f"{MANIFEST}.part"
    with draft.open("xb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.rename(target / MANIFEST)
    sync_directory(target)


def _manifest(folder: Path) -> Manifest:
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError as error:
        raise BackupInvalid(f"{folder} has no {MANIFEST}: it is no backup, or one that was not finished") from error
    except (OSError, msgspec.MsgspecError) as error:
        raise BackupInvalid(f"{folder / MANIFEST} can't be read: {error}") from error
    if manifest.format != FORMAT:
        raise BackupInvalid(f"{folder} has the format {manifest.format!r}; this program reads {FORMAT!r}")
    return manifest


def _hashed(path: Path) -> Copied:
    with path.open("rb") as file:
        return Copied(os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256").hexdigest())


def _clear(target: Path, *, itself: bool) -> None:
    """Remove what was written; the folder was new or empty, so all of it is ours."""
    if itself:
        shutil.rmtree(target, ignore_errors=True)
        return
    for item in target.iterdir():
        if item.is_dir():
            shutil.rmtree(item)
        else:
            item.unlink(missing_ok=True)


@contextmanager
def _naming_target(target: Path) -> Iterator[None]:
    """Errors of the target's disk as ours: what was written of the backup is removed again."""
    try:
        with naming_trouble(target):
            yield
    except OSError as error:
        trouble = system_trouble(error, f"{target} was not written, and what was written of it is removed again")
        raise trouble or BackupRefused(
            f"{target} can't be written: {error.strerror}", hint="Name another folder."
        ) from error
