"""Putting a backup in place, or nothing: what was there before is moved aside, never deleted."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.core.errors import BackupOfAnotherJournal, BackupRefused
from orchestrator.core.ids import Digest
from orchestrator.core.system_errors import system_trouble
from orchestrator.journal.backup import Manifest, copy_backup, read_manifest
from orchestrator.journal.blobs import FOLDER_NAME, INCOMING, Blobs
from orchestrator.journal.schema import FILE_NAME, open_reader, sql, sync_directory
from orchestrator.journal.segments import ARCHIVE

PARTS = (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm", FOLDER_NAME, ARCHIVE)
"""All that belongs to one journal in its state directory."""

_COMING = "restoring"


def restore_backup(
    backup: Path, state_dir: Path, *, now_ms: int, of: str | None = None
) -> tuple[Manifest, Path | None]:
    """Copy a backup beside the journal, verify the copy, then change places. Blocking; nobody may use the journal.

    `of`: the id of the only journal that it may be of; None: of any. Answers what was restored, and the
    folder that the journal before it lies in now. Raises BackupInvalid, BackupOfAnotherJournal, DiskFull; then
    all is as it was.
    """
    manifest = read_manifest(backup)
    if of is not None and manifest.journal != of:
        raise BackupOfAnotherJournal(
            f"{backup} is a backup of another journal ({manifest.journal[:8]}…) than this workspace's ({of[:8]}…)"
        )
    coming = state_dir / _COMING
    shutil.rmtree(coming, ignore_errors=True)
    try:
        coming.mkdir(mode=0o700)
        copy_backup(backup, coming)
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
        try:
            path.rename(folder / path.name)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            shutil.copy2(path, folder / path.name)
            path.unlink()
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
    for number in range(1, 1000):
        folder = state_dir / (f"before-{stamp}" if number == 1 else f"before-{stamp}-{number}")
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            return folder
    raise BackupRefused(f"{state_dir} holds a thousand journals that were set aside in one second")
