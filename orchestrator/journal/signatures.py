"""The journal's Ed25519 key, made when it is first needed, and what its signatures prove of a journal."""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.core.errors import CheckpointOfAnotherJournal, SigningKeyUnusable
from orchestrator.core.events.chain import Checkpoint, message
from orchestrator.core.events.journal_maintenance import CheckpointSigned
from orchestrator.core.ids import Seq, show, written
from orchestrator.journal.state_files import sync_directory, write_synced

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


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
            problem = self._inside(seq, event, hash_of)
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
        found = hash_of(file.seq)
        if found is None:
            yield f"the journal ends at {show(head)}; event {show(file.seq)}, which the checkpoint is of, is not there"
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
        if self._file is None and keys:
            yield (
                "the checkpoints inside were signed with a key that lies beside the journal: who has both can "
                "write another history; `--checkpoint FILE` compares one that you kept elsewhere"
            )
        if self._file is not None:
            if self._file.seq < head:
                yield f"events after {show(self._file.seq)}: the checkpoint file says nothing of them"
            yield "who had the key of the file could have signed another history: trust it if you know its way to you"


KEY_FILE = "journal.key"


class KeyFile:
    """See `ports.Signer`. The key is a PEM file (PKCS 8, not encrypted) of mode 0600 in the state directory.

    `cryptography` is imported at first need: 40 ms that a start need not wait for.
    """

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / KEY_FILE
        self._lock = threading.Lock()
        self._key: Ed25519PrivateKey | None = None

    def sign(self, message: bytes) -> tuple[str, str]:
        with self._lock:
            if self._key is None:
                self._key = self._load() or self._make()
        return self._key.public_key().public_bytes_raw().hex(), self._key.sign(message).hex()

    def seal(self, message: bytes) -> bytes:
        """A keyed hash that only who has the key can make (HMAC-SHA-256). Raises SigningKeyUnusable."""
        with self._lock:
            if self._secret() is None:
                self._make()
            return hmac.digest(self._secret() or b"", message, "sha256")

    def sealed(self, message: bytes, seal: bytes) -> bool:
        """Whether `seal` made this of these bytes; False also where there is no key. Raises SigningKeyUnusable."""
        secret = self._secret()
        return secret is not None and hmac.compare_digest(hmac.digest(secret, message, "sha256"), seal)

    def _secret(self) -> bytes | None:
        """Of the file's bytes, so that a start need not import `cryptography`."""
        try:
            return hashlib.sha256(b"orchestrator snapshot seal 1\n" + self._path.read_bytes()).digest()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(str(error)) from error

    def _load(self) -> Ed25519PrivateKey | None:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(self._path.read_bytes(), password=None)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise self._unusable(str(error)) from error
        if not isinstance(key, Ed25519PrivateKey):
            raise self._unusable("it is of another kind than Ed25519")
        return key

    def _make(self) -> Ed25519PrivateKey:
        """A new key, whole and synced under its name or not there at all."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        key = Ed25519PrivateKey.generate()
        temp = self._path.with_suffix(f".key.{os.getpid()}-{threading.get_ident()}")
        try:
            write_synced(temp, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
            try:
                os.link(temp, self._path)  # unlike a rename never over a key that another has made meanwhile
            except FileExistsError:
                return self._load() or key
            finally:
                temp.unlink()
            sync_directory(self._path.parent)
        except OSError as error:
            raise self._unusable(str(error)) from error
        return key

    def _unusable(self, why: str) -> SigningKeyUnusable:
        return SigningKeyUnusable(
            f"the journal's key {self._path} can't be used: {why}",
            hint="Restore it from a backup; or move it away, and a new one is made: verify then names the change.",
        )


def holds(key: str, message: bytes, signature: str) -> bool:
    """Whether this public key made this signature of these bytes; all hex but the message. Cost: 0.1 ms."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True
