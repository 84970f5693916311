"""What signatures prove of a journal: those in it, and the one of a file that was kept elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from orchestrator.core.checkpoint import Checkpoint, message
from orchestrator.core.errors import ArchiveMissing, CheckpointOfAnotherJournal, JournalCorrupt
from orchestrator.core.events.journal_maintenance import CheckpointSigned
from orchestrator.core.ids import Seq, show
from orchestrator.core.timestamps import written
from orchestrator.journal.signing_key import holds


class Seals:
    """The checkpoints of one verification. Raises CheckpointOfAnotherJournal when made with another journal's."""

    def __init__(self, journal: str, checkpoint: Checkpoint | None) -> None:
        self._journal, self._file = journal, checkpoint
        if checkpoint is not None and checkpoint.journal != journal:
            raise CheckpointOfAnotherJournal(
                f"the checkpoint is of journal {checkpoint.journal}; this one is {journal}"
            )
        self.signed: list[tuple[Seq, CheckpointSigned]] = []
        """The checkpoints inside, by the position of each, as a walk meets them."""
        self._held: list[tuple[Seq, CheckpointSigned]] = []

    def problems(self, end: int, hash_of: Callable[[int], str | None]) -> Iterator[str]:
        """What does not hold: first of the checkpoints inside, then of the file."""
        for seq, event in self.signed:
            try:
                problem = self._inside(seq, event, hash_of)
            except (ArchiveMissing, JournalCorrupt):
                continue  # of an archived event whose file can't be read, which is reported elsewhere
            if problem is not None:
                yield f"the checkpoint @{seq} {problem}"
            else:
                self._held.append((seq, event))
        if self._file is not None:
            yield from self._of_file(self._file, end, hash_of)

    def _inside(self, seq: Seq, event: CheckpointSigned, hash_of: Callable[[int], str | None]) -> str | None:
        if event.journal != self._journal:
            return f"is of another journal, {event.journal}"
        if event.head >= seq:
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
        """What the signatures prove; nothing while there are problems."""
        if not whole:
            return ()
        proven: list[str] = []
        if self._held:
            last = self._held[-1][1]
            proven.append(
                f"{len(self._held)} signed checkpoints inside hold, the last one of {show(last.head)}, "
                f"by key {last.key}"
            )
        if self._file is not None:
            when = f" since {written(self._file.signed_at)}" if self._file.signed_at else ""
            proven.append(
                f"up to {show(self._file.seq)} no event was altered, left out or put in{when}, "
                f"if you trust the checkpoint file and key {self._file.key}"
            )
        return tuple(proven)

    def unchecked(self, head: Seq) -> Iterator[str]:
        """What they do not prove."""
        keys = {event.key: seq for seq, event in reversed(self._held)}  # by the first checkpoint of each
        for key, seq in sorted(keys.items(), key=lambda item: item[1])[1:]:
            yield f"the journal's key changed: checkpoint {show(seq)} is the first by {key}"
        if self._file is None:
            if keys:
                yield (
                    "the checkpoints inside were signed with a key that lies beside the journal: who has both can "
                    "write another history; `--checkpoint FILE` compares one that you kept elsewhere"
                )
            return
        if self._file.seq < head:
            yield f"events after {show(self._file.seq)}: the checkpoint file says nothing of them"
        if keys and self._file.key not in keys:
            yield f"key {self._file.key} signed the file, and no checkpoint inside: who had it can't be told from here"
        yield "who had the journal's key could have signed another history: trust the file if you know its way to you"
