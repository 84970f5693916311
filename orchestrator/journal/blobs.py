"""Contents by digest: zstd in the database up to 256 KiB, above that as synced files beside it."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

import msgspec

from orchestrator.core.content import digest_of
from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.ids import Digest, parse_digest
from orchestrator.core.system_errors import system_trouble
from orchestrator.journal.state_files import publish, sync_directory

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["FOLDER_NAME", "INCOMING", "IN_DATABASE_BYTES", "LEVEL", "Blobs", "StoredBlob", "zstd"]

FOLDER_NAME = "blobs"
IN_DATABASE_BYTES = 256 * 1024
LEVEL = 1
"""Of zstd; the bytes are on the way of every write.

Source: 700 KB of Python took 1.8 ms at level 1 (28 % left) and 2.5 ms at level 3 (26 % left).
"""

INCOMING = "incoming"
_HEADER_BYTES = 18  # of a zstd frame, at most


class StoredBlob(msgspec.Struct, frozen=True):
    """A row of the blobs table; data None: the bytes are in a file already."""

    digest: Digest
    size: int
    data: bytes | None


class Blobs:
    """The contents' bytes: packed for their row, or published as files that never change.

    All calls are blocking and thread-safe.
    """

    def __init__(self, state_dir: Path) -> None:
        self._root = state_dir / FOLDER_NAME
        self._numbers = itertools.count()
        self._synced: set[Path] = set()
        """Folders of contents whose own names are durable."""

    def strays(self, named: Container[Digest]) -> Iterator[Path]:
        """Files half written, and those of no content that is named; only while nothing is being prepared."""
        for file in self._root.rglob("*"):
            if file.is_file() and f"sha256:{file.parent.name}{file.name}" not in named:
                yield file

    def remove(self, digests: Iterable[Digest]) -> bool:
        """Unlink the files of contents that no row names any more, synced; False: one stays, until the next start."""
        all_gone = True
        for digest in digests:
            path = self._place(digest)
            try:
                path.unlink()
                sync_directory(path.parent)
            except FileNotFoundError:
                continue
            except OSError:
                all_gone = False
        return all_gone

    def name_of(self, digest: Digest) -> str:
        """Where the file of a content lies, relative to the state directory."""
        return str(self._place(digest).relative_to(self._root.parent))

    def prepare(self, contents: Iterable[tuple[Digest, bytes]]) -> tuple[StoredBlob, ...]:
        """Pack them; the large ones are on disk, synced, when this returns. Raises OSError.

        700 KB: about 2 ms to pack and 1 ms to publish.
        """
        return tuple(self._prepared(digest, data) for digest, data in contents)

    def _prepared(self, digest: Digest, data: bytes) -> StoredBlob:
        if len(data) <= IN_DATABASE_BYTES:
            return StoredBlob(digest, len(data), zstd.compress(data, LEVEL))
        self._publish(digest, data)
        return StoredBlob(digest, len(data), None)

    def is_there(self, blob: StoredBlob) -> bool:
        """Whether what was prepared still has its bytes: another unit may have removed the file."""
        return blob.data is not None or self._published(self._place(blob.digest), blob.size)

    def _publish(self, digest: Digest, data: bytes) -> None:
        path, incoming = self._place(digest), self._root / INCOMING
        for folder in (self._root, incoming, path.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
        if path.parent not in self._synced:  # by this process: whoever made it may have crashed before its sync
            sync_directory(self._root)
            sync_directory(self._root.parent)
            self._synced.add(path.parent)
        if self._published(path, len(data)):
            # No row says so yet: whoever put it there may have crashed before the name was synced.
            sync_directory(path.parent)
            return
        publish(zstd.compress(data, LEVEL), incoming / f"{os.getpid()}.{next(self._numbers)}", path)

    @staticmethod
    def _published(path: Path, size: int) -> bool:
        try:
            with path.open("rb") as file:
                return zstd.get_frame_info(file.read(_HEADER_BYTES)).decompressed_size == size
        except (FileNotFoundError, zstd.ZstdError):
            return False

    def read(self, digest: Digest, size: int, data: bytes | None) -> bytes:
        """The plain bytes, verified by their hash; never more than `size` of them are unpacked.

        Raises JournalCorrupt when they are not there or not those.
        """
        return self._unpacked(digest, size, data)[0]

    def check(self, digest: Digest, size: int, data: bytes | None) -> None:
        """As `read`; also that nothing is stored behind the content, which no reader would look at."""
        if self._unpacked(digest, size, data)[1]:
            raise JournalCorrupt(f"the content {digest} is stored with bytes behind it that are not its own")

    def _unpacked(self, digest: Digest, size: int, data: bytes | None) -> tuple[bytes, bool]:
        """The plain bytes, and whether more is stored than they need."""
        unpacker = zstd.ZstdDecompressor()
        if type(size) is not int or not isinstance(data, bytes | None):
            raise JournalCorrupt(f"the row of the content {digest} can't be read: its values are of the wrong types")
        try:
            packed = self._packed(digest, size) if data is None else data
            plain = unpacker.decompress(packed, max_length=size + 1)
        except (OSError, zstd.ZstdError, EOFError) as error:
            trouble = (
                system_trouble(error, f"the content {digest} can't be read") if isinstance(error, OSError) else None
            )
            raise trouble or JournalCorrupt(f"the content {digest} can't be read: {error}") from error
        if len(plain) != size or digest_of(plain) != digest:
            raise JournalCorrupt(f"the content {digest} is not what its name says")
        return plain, bool(unpacker.unused_data)

    def _packed(self, digest: Digest, size: int) -> bytes:
        with self._place(digest).open("rb") as file:
            return file.read(size + size // 128 + 1024)

    def _place(self, digest: Digest) -> Path:
        if parse_digest(digest) is None:
            raise JournalCorrupt(f"{digest!r} is no digest")
        name = digest.removeprefix("sha256:")
        return self._root / name[:2] / name[2:]
