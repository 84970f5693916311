"""What is known of one tracked file, and the same as bytes: there may be a million of them.

As bytes an entry takes 128 bytes of memory, and 390 as objects of its own.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final, TypeAlias

import msgspec

from orchestrator.core.content import Signature
from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath


class FileEntry(msgspec.Struct, frozen=True, gc=False):
    """One tracked file that exists."""

    path: WorkspacePath
    version: Seq
    digest: Digest | None  # None: not hashed yet
    signature: Signature | None  # None: the change that wrote it was recovered
    mode: int | None
    kept: bool  # the bytes are in the blob store
    change: Seq | None = None  # the change that gave it its content
    reads: int = 0
    made_by: AgentName | None = None  # the agent that made it, where nobody else changed it since


FileRow: TypeAlias = bytes | FileEntry
"""An entry without its path and its reads; as it is where a number in it is out of all bounds."""

_ROW: Final = Struct("<BHQQQqqQ32s")
_HASHED, _SIGNED, _MODED, _KEPT, _CHANGED = (1 << bit for bit in range(5))
_ALGORITHM: Final = "sha256:"
_HASH_BYTES: Final = 32


def pack(entry: FileEntry) -> FileRow:
    """The row of an entry."""
    digest, signature, mode, change = entry.digest, entry.signature, entry.mode, entry.change
    flags = (
        (_HASHED if digest is not None else 0)
        | (_SIGNED if signature is not None else 0)
        | (_MODED if mode is not None else 0)
        | (_KEPT if entry.kept else 0)
        | (_CHANGED if change is not None else 0)
    )
    numbers = (0, 0, 0, 0) if signature is None else msgspec.structs.astuple(signature)
    try:
        hashed = bytes(_HASH_BYTES) if digest is None else bytes.fromhex(digest.removeprefix(_ALGORITHM))
        row = _ROW.pack(flags, mode or 0, entry.version, change or 0, *numbers, hashed)
    except (ValueError, error):
        hashed = b""
    if len(hashed) != _HASH_BYTES:
        return msgspec.structs.replace(entry, reads=0)
    return row + entry.made_by.encode() if entry.made_by else row


def unpack(path: WorkspacePath, row: FileRow, reads: int = 0) -> FileEntry:
    """The entry of a row."""
    if isinstance(row, FileEntry):
        return msgspec.structs.replace(row, reads=reads) if reads else row
    flags, mode, version, change, size, mtime_ns, ctime_ns, inode, hashed = _ROW.unpack_from(row)
    return FileEntry(
        path,
        version,
        Digest(_ALGORITHM + hashed.hex()) if flags & _HASHED else None,
        Signature(size, mtime_ns, ctime_ns, inode) if flags & _SIGNED else None,
        mode if flags & _MODED else None,
        bool(flags & _KEPT),
        Seq(change) if flags & _CHANGED else None,
        reads,
        AgentName(row[_ROW.size :].decode()) if len(row) > _ROW.size else None,
    )


def is_as(row: FileRow, signature: Signature, mode: int) -> bool:
    """Whether it has this signature and this mode; in half the time that it takes to unpack it."""
    if isinstance(row, FileEntry):
        return (row.signature, row.mode) == (signature, mode)
    flags, known, _, _, size, mtime_ns, ctime_ns, inode, _ = _ROW.unpack_from(row)
    return bool(
        mtime_ns == signature.mtime_ns
        and ctime_ns == signature.ctime_ns
        and inode == signature.inode
        and size == signature.size
        and known == mode
        and flags & (_SIGNED | _MODED) == _SIGNED | _MODED
    )


def is_kept(row: FileRow) -> bool:
    """Whether the bytes are in the blob store."""
    return row.kept if isinstance(row, FileEntry) else bool(row[0] & _KEPT)


def holds(row: FileRow, digest: Digest) -> bool:
    """Whether it has this content."""
    if isinstance(row, FileEntry):
        return row.digest == digest
    return bool(row[0] & _HASHED) and bytes.fromhex(digest.removeprefix(_ALGORITHM)) in row
