"""What else a unit's transaction may do to the journal: keep a snapshot, redact, archive, bring back, collect."""

from __future__ import annotations

import sqlite3

import msgspec

from orchestrator.core.errors import JournalChanged, JournalCorrupt
from orchestrator.core.ids import Digest, Seq
from orchestrator.journal.append_validation import Row
from orchestrator.journal.blobs import LEVEL, Blobs, zstd
from orchestrator.journal.database_file import sql
from orchestrator.journal.garbage import named_since
from orchestrator.journal.segments import Segment
from orchestrator.journal.signing_key import KeyFile
from orchestrator.journal.snapshot_table import KEPT, sealed_bytes
from orchestrator.ports.journal import Snapshot


class TransactionHook:
    """Work on the journal itself in the transaction of a unit; such a unit commits alone."""

    name = ""
    """Of its steps, where its unit has no events."""
    scrubs = False
    """Whether it takes out what must not stay in the write-ahead log either."""
    removes: frozenset[Digest] = frozenset()
    """Contents that are kept no more after the commit."""
    scrubbed = True
    """After the commit of one that `scrubs`: whether nothing of that is left in the journal's files."""

    def inside(self, connection: sqlite3.Connection) -> None:
        """When the unit's rows are in and nothing is committed; what it raises undoes all."""

    def after(self) -> None:
        """Right after the commit."""


class KeepSnapshot(TransactionHook):
    """Puts a snapshot beside the events, and drops all but the newest `KEPT`. Blocking to make: it packs and seals.

    Raises SigningKeyUnusable.
    """

    name = "snapshot"

    def __init__(self, snapshot: Snapshot, data: bytes, *, journal: str, key: KeyFile) -> None:
        seal, packed = key.seal(sealed_bytes(journal, snapshot)), zstd.compress(data, LEVEL)
        self._values = (snapshot.seq, snapshot.hash, snapshot.digest, snapshot.version, seal, packed)

    def inside(self, connection: sqlite3.Connection) -> None:
        connection.execute(sql("add_snapshot"), self._values)
        connection.execute(sql("drop_older_snapshots"), (KEPT,))


class RedactPayload(TransactionHook):
    """Replaces an event's payload and salt, and takes the details of its call out.

    SQLite overwrites the free space itself (`secure_delete`); older pages go with the write-ahead log.
    """

    scrubs = True

    def __init__(self, target: Seq, *, old_salt: bytes, rest: bytes, salt: bytes) -> None:
        self._values = (rest, salt, int(target), old_salt)

    def inside(self, connection: sqlite3.Connection) -> None:
        if connection.execute(sql("redact_event"), self._values).rowcount != 1:
            raise JournalChanged("the event was archived or redacted meanwhile")


class RedactContent(TransactionHook):
    """Removes a content, and its file if it has one; a file that can't be unlinked now goes at the next start."""

    scrubs = True

    def __init__(self, digest: Digest, blobs: Blobs) -> None:
        self._digest, self._blobs, self.removes = digest, blobs, frozenset((digest,))

    def inside(self, connection: sqlite3.Connection) -> None:
        connection.execute(sql("forget_blob"), (self._digest,))

    def after(self) -> None:
        try:
            self._blobs.remove(self._digest)
        except OSError:
            self.scrubbed = False


class ArchiveEvents(TransactionHook):
    """Takes the events of a segment out of the database, whose file is whole; `as_of`: the head that it was made at."""

    def __init__(self, segment: Segment, as_of: int) -> None:
        self._segment, self._as_of = segment, as_of

    def inside(self, connection: sqlite3.Connection) -> None:
        segment = self._segment
        if connection.execute(sql("redacted_since"), (self._as_of,)).fetchone():
            raise JournalChanged("an event was redacted while the file was written")
        connection.execute(sql("note_archived_streams"), (segment.last,))
        dropped = connection.execute(sql("drop_events"), (segment.first, segment.last)).rowcount
        if dropped != segment.last - segment.first + 1:
            raise JournalCorrupt(f"events @{segment.first} to @{segment.last} are not all in the database")
        connection.execute(sql("add_segment"), msgspec.structs.astuple(segment))


class RestoreEvents(TransactionHook):
    """Puts the events of a segment back into the database."""

    def __init__(self, segment: Segment, rows: list[Row]) -> None:
        self._segment, self._rows = segment, rows

    def inside(self, connection: sqlite3.Connection) -> None:
        connection.executemany(sql("append_event"), self._rows)
        connection.execute(sql("drop_segment"), (self._segment.first,))


class CollectContents(TransactionHook):
    """Removes contents, unless an event named one of them after position `as_of`."""

    def __init__(self, digests: tuple[Digest, ...], as_of: int, blobs: Blobs) -> None:
        self.removes, self._as_of, self._blobs = frozenset(digests), as_of, blobs

    def inside(self, connection: sqlite3.Connection) -> None:
        if not named_since(connection, self._as_of).isdisjoint(self.removes):
            raise JournalChanged("one of the contents is needed again")
        connection.executemany(sql("forget_blob"), [(digest,) for digest in self.removes])

    def after(self) -> None:
        self._blobs.remove_all(self.removes)
