"""Contents by digest: zstd in the database up to 256 KiB, above that as synced files beside it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import msgspec

from orchestrator.core.content import digest_of
from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.ids import Digest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

IN_DATABASE_BYTES = 256 * 1024
LEVEL = 1
"""Of zstd: the bytes are on the way of every write."""


class StoredBlob(msgspec.Struct, frozen=True):
    """A row of the blobs table; data None: the bytes are in a file already."""

    digest: Digest
    size: int
    data: bytes | None


class BlobFiles:
    """The large contents: one file each, named by digest, never changed once it is there."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def prepare(self, contents: Iterable[tuple[Digest, bytes]]) -> tuple[StoredBlob, ...]:
        """Compress; publish the large ones durably, before any row names them. Blocking. Raises OSError."""
        return tuple(self._prepared(digest, data) for digest, data in contents)

    def _prepared(self, digest: Digest, data: bytes) -> StoredBlob:
        if len(data) <= IN_DATABASE_BYTES:
            return StoredBlob(digest, len(data), zstd.compress(data, LEVEL))
        self._publish(digest, data)
        return StoredBlob(digest, len(data), None)

    def _publish(self, digest: Digest, data: bytes) -> None:
        folder, path = self._place(digest)
        if os.path.exists(path):
            return
        if not os.path.isdir(folder):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            _sync_directory(self._directory)
            _sync_directory(os.path.dirname(self._directory))
        temp = f"{path}.{os.getpid()}.{id(data):x}.tmp"
        with open(os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(zstd.compress(data, LEVEL))
            file.flush()
            os.fsync(file.fileno())
        os.rename(temp, path)
        _sync_directory(folder)

    def read(self, digest: Digest, size: int, data: bytes | None) -> bytes:
        """The plain bytes, proven. Raises JournalCorrupt when they are not there or not those."""
        try:
            if data is None:
                with open(self._place(digest)[1], "rb") as file:
                    data = file.read()
            decompressor = zstd.ZstdDecompressor()
            plain = decompressor.decompress(data, max_length=size + 1)
        except (OSError, zstd.ZstdError) as error:
            raise JournalCorrupt(f"the content {digest} can't be read: {error}") from error
        if len(plain) != size or digest_of(plain) != digest:
            raise JournalCorrupt(f"the content {digest} is not what its name says")
        return plain

    def _place(self, digest: Digest) -> tuple[str, str]:
        name = digest.removeprefix("sha256:")
        folder = os.path.join(self._directory, name[:2])
        return folder, os.path.join(folder, name[2:])


def _sync_directory(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
