"""What signatures prove of a journal: those in it, and the one of a file that was kept elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from orchestrator.core.checkpoint import Checkpoint, message
from orchestrator.core.errors import ArchiveMissing, CheckpointOfAnotherJournal, JournalCorrupt
from orchestrator.core.events.journal import CheckpointSigned
from orchestrator.core.ids import Seq, show
from orchestrator.journal.signing_key import holds


class Signed(msgspec.Struct, frozen=True):
    """A CheckpointSigned, and where it stands."""

    seq: Seq
    event: CheckpointSigned


class Seals:
    """The checkpoints of one verification. Raises CheckpointOfAnotherJournal when made with another journal's."""

    def __init__(self, journal: str, checkpoint: Checkpoint | None) -> None:
        self._journal, self._file = journal, checkpoint
        if checkpoint is not None and checkpoint.journal != journal:
            raise CheckpointOfAnotherJournal(
                f"the checkpoint is of journal {checkpoint.journal}; this one is {journal}"
            )
        self._keys: dict[str, Seq] = {}
        self._last: Signed | None = None
        self._count = 0

    def problems(
        self, signed: Sequence[Signed], end: tuple[int, bytes], hash_of: Callable[[int], str | None]
    ) -> Iterator[str]:
        """What does not hold: first of the checkpoints inside, then of the file."""
        for one in signed:
            try:
                problem = self._inside(one, hash_of)
            except (ArchiveMissing, JournalCorrupt):
                continue  # of an archived event whose file can't be read, which is told elsewhere
            if problem is not None:
                yield f"the checkpoint @{one.seq} {problem}"
                continue
            self._keys.setdefault(one.event.key, one.seq)
            self._last, self._count = one, self._count + 1
        if self._file is not None:
            yield from self._of_file(self._file, end[0], hash_of)

    def _inside(self, one: Signed, hash_of: Callable[[int], str | None]) -> str | None:
        event = one.event
        if event.journal != self._journal:
            return f"is of another journal, {event.journal}"
        if event.head >= one.seq:
            return f"is of {show(event.head)}, which comes after it"
        found = hash_of(event.head)
        if found is None:
            return "is of an event that is gone"
        if found != event.head_hash:
            return f"does not fit: event {show(event.head)} has another hash"
        if not holds(event.key, message(event.journal, event.head, event.head_hash), event.signature):
            return "has a signature that does not hold"
        return None

    @staticmethod
    def _of_file(file: Checkpoint, head: int, hash_of: Callable[[int], str | None]) -> Iterator[str]:
        if not holds(file.key, file.message, file.signature):
            yield "the checkpoint file's signature does not hold: the file was altered"
            return
        try:
            found = hash_of(file.seq)
        except (ArchiveMissing, JournalCorrupt) as error:
            yield f"event {show(file.seq)}, which the checkpoint is of, can't be compared: {error.message}"
            return
        if file.seq > head:
            yield f"the journal ends at {show(head)}, the checkpoint is of {show(file.seq)}: the end was cut off"
        elif found is None:
            yield f"event {show(file.seq)}, which the checkpoint is of, is not there"
        elif found != file.hash:
            yield (
                f"event {show(file.seq)} has another hash than the checkpoint says: "
                "events up to there were altered or written anew"
            )

    def proven(self, *, whole: bool) -> tuple[str, ...]:
        """What the signatures stand for; nothing while there are problems."""
        if not whole:
            return ()
        told: list[str] = []
        if self._last is not None:
            told.append(
                f"{self._count} signed checkpoints inside hold, the last one of {show(self._last.event.head)}, "
                f"by key {self._last.event.key}"
            )
        if self._file is not None:
            when = f" since {_when(self._file.signed_at)}" if self._file.signed_at else ""
            told.append(
                f"up to {show(self._file.seq)} no event was altered, left out or put in{when}, "
                f"if you trust the checkpoint file and key {self._file.key}"
            )
        return tuple(told)

    def unchecked(self, head: Seq) -> Iterator[str]:
        """What they do not stand for."""
        for key, seq in list(self._keys.items())[1:]:
            yield f"the journal's key changed: checkpoint {show(seq)} is the first by {key}"
        if self._file is None:
            if self._last is not None:
                yield (
                    "the checkpoints inside were signed with a key that lies beside the journal: who has both can "
                    "write another history; `--checkpoint FILE` compares one that you kept elsewhere"
                )
            return
        if self._file.seq < head:
            yield f"events after {show(self._file.seq)}: the checkpoint file says nothing of them"
        if self._keys and self._file.key not in self._keys:
            yield f"key {self._file.key} signed the file, and no checkpoint inside: who had it can't be told from here"
        yield "who had the journal's key could have signed another history: trust the file if you know its way to you"


def _when(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
