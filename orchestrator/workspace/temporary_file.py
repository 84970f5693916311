"""A temporary file with the new content and the old file's metadata, synced."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from orchestrator.core.errors import FileNotFound, IoFailed, WritesStopped
from orchestrator.core.ids import WorkspacePath
from orchestrator.ports.machine import Step
from orchestrator.ports.workspace import DiskChange, Streamed
from orchestrator.workspace.confine import Confinement, digest_from
from orchestrator.workspace.disk import Disk

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL
_DROPPED_BITS = stat.S_ISUID | stat.S_ISGID
_ACL = "system.posix_acl_access"
_CAPABILITY = "security.capability"


def write_temporary(
    at: Confinement, change: DiskChange, parent: int, step: Step
) -> tuple[os.stat_result, tuple[str, ...]]:
    """Write the new content under the change's temporary name, with the metadata, and sync it: its stat, and warnings.

    What the disk gives back is hashed. Raises IoFailed, WritesStopped, OSError; then the file is removed again.
    """
    disk, temp = at.disk, change.temp or ""
    # Nobody else may read it before it has the mode that it is to have.
    private = change.before is not None or change.mode is not None
    handle = disk.open_at(parent, temp, _NEW, 0o600 if private else 0o666)
    try:
        step("temp_created")
        warnings = _with_metadata(at, change, parent, handle)
        _write_whole(disk, handle, change.data or b"", step)
        sync(disk, handle, change.path)
        written = disk.stat(handle)
        if digest_from(disk, handle) != change.after:
            raise IoFailed(
                change.path,
                "the disk does not give back what was written to it, so nothing was changed",
                hint="The disk may be failing. Look at the system's log, then send the same call again.",
            )
    except Exception:
        with suppress(OSError):  # a leftover is swept at the next start
            disk.unlink_at(parent, temp)
        raise
    finally:
        disk.close(handle)
    return written, warnings


def _with_metadata(at: Confinement, change: DiskChange, parent: int, handle: int) -> tuple[str, ...]:
    """Give the new file the old one's metadata, then the mode that the change names; warnings."""
    warnings: tuple[str, ...] = ()
    if change.before is not None:
        name = change.path.rpartition("/")[2]
        # A file that is gone since it was read: `commit` finds that out.
        with suppress(FileNotFound), at.regular(parent, name, change.path) as (old, found):
            warnings += _copy_metadata(at.disk, old, handle)
            if found.st_nlink > 1:
                warnings += (f"the file had {found.st_nlink} names; this one is now a file of its own",)
    if change.mode is not None:
        if change.mode & 0o6000:
            warnings += ("the setuid and setgid bits were dropped",)
        at.disk.set_mode(handle, change.mode & 0o1777)
    return warnings


def _write_whole(disk: Disk, handle: int, data: bytes | Streamed, step: Step) -> None:
    """Every byte, in two halves with a step after each."""
    if isinstance(data, Streamed):
        written = 0
        for block in data.blocks():
            _write(disk, handle, memoryview(block))
            if written <= data.size // 2 < written + len(block):
                step("temp_half_written")
            written += len(block)
        step("temp_half_written")
        return
    view, half = memoryview(data), len(data) // 2
    for part in (view[:half], view[half:]):
        _write(disk, handle, part)
        step("temp_half_written")


def _write(disk: Disk, handle: int, part: memoryview) -> None:
    while part:
        taken = disk.write(handle, part)
        if taken == 0:
            raise OSError(errno.EIO, "the disk accepted no bytes")
        part = part[taken:]


def _copy_metadata(disk: Disk, old: int, new: int) -> tuple[str, ...]:
    """Give `new` the owner, group, mode, attributes and ACL of `old`; warnings for what could not be kept.

    Done before a byte is written, and never wider than `old`: where its group or its ACL can't
    be kept, the group bits are cut down to what everybody has. The setuid and setgid bits and
    file capabilities go, as after any write.
    """
    known = disk.stat(old)
    warnings, group_kept = _own(disk, known, new)
    mode = stat.S_IMODE(known.st_mode) & ~_DROPPED_BITS
    if known.st_mode & _DROPPED_BITS:
        warnings.append("the setuid and setgid bits were dropped, as after any write")
    acl_kept, more = _attributes(disk, old, new)
    warnings += more
    if not group_kept or not acl_kept:
        mode &= ~0o070 | (mode & 0o007) << 3
    disk.set_mode(new, mode)
    return tuple(warnings)


def _own(disk: Disk, known: os.stat_result, new: int) -> tuple[list[str], bool]:
    """Owner and group, as far as they may be set; whether the group is the old one's."""
    ours = disk.stat(new)
    if (known.st_uid, known.st_gid) == (ours.st_uid, ours.st_gid):
        return [], True
    try:
        disk.set_owner(new, known.st_uid, known.st_gid)
    except PermissionError:
        try:
            disk.set_owner(new, -1, known.st_gid)
        except PermissionError:
            return ["owner and group could not be kept: the daemon's user may not set them"], False
        return ["the owner could not be kept: the daemon's user may not set it"], True
    return [], True


def _attributes(disk: Disk, old: int, new: int) -> tuple[bool, list[str]]:
    """Extended attributes; False if the ACL, whose mask is the mode's group bits, could not be kept."""
    warnings: list[str] = []
    acl_kept = True
    wanted = disk.attribute_names(old)
    present = disk.attribute_names(new)
    if _ACL in present and _ACL not in wanted:
        disk.remove_attribute(new, _ACL)  # inherited from the directory; the old file has none
    for name in wanted:
        if name == _CAPABILITY:
            warnings.append("file capabilities were dropped, as after any write")
            continue
        try:
            value = disk.attribute(old, name)
            if name not in present or disk.attribute(new, name) != value:
                disk.set_attribute(new, name, value)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                raise
            acl_kept = acl_kept and name != _ACL
            warnings.append(f"the attribute {name} could not be kept: {error.strerror}")
    return acl_kept, warnings


def sync(disk: Disk, handle: int, path: WorkspacePath) -> None:
    """Sync a file or directory. Raises WritesStopped; a full disk is left to the caller, as OSError."""
    try:
        disk.sync(handle)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise WritesStopped(
            f"{path} could not be synced: {error.strerror}",
            hint="The disk may be failing. Look at the system's log, then restart the daemon.",
        ) from error
