"""A signed checkpoint: what is signed, byte for byte, and the file that carries it."""

from __future__ import annotations

import re

import msgspec

from orchestrator.core.errors import CheckpointInvalid
from orchestrator.core.ids import Seq

FORMAT = "orchestrator-checkpoint"
FORMAT_VERSION = 1

_JOURNAL = re.compile(r"[0-9a-f]{32}\Z")
_HASH = re.compile(r"[0-9a-f]{64}\Z")
_SIGNATURE = re.compile(r"[0-9a-f]{128}\Z")


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody with `key` said that the chain of `journal` has `hash` at event `seq`.

    As a file: this as JSON, indented, for people to read; `signed_at` is told, not signed.
    """

    format: str = FORMAT
    version: int = FORMAT_VERSION
    journal: str  # the journal's own id, 32 hex digits
    seq: Seq
    hash: str  # of event `seq`, hex
    key: str  # the public key, Ed25519, hex
    signature: str  # of `message`, hex
    signed_at: int = 0  # ms since the epoch; 0: not told

    @property
    def message(self) -> bytes:
        """The signed bytes."""
        return message(self.journal, self.seq, self.hash)

    def text(self) -> str:
        """The file's content."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode() + "\n"


def message(journal: str, seq: int, head_hash: str) -> bytes:
    """What is signed, format 1: four lines of ASCII, each ended by a line feed. It never changes.

    A first line of its own keeps the signature from standing for anything else.
    """
    return f"{FORMAT} {FORMAT_VERSION}\njournal {journal}\nseq {seq}\nhash {head_hash}\n".encode("ascii")


def parse_checkpoint(text: str | bytes) -> Checkpoint:
    """Read a checkpoint file. Raises CheckpointInvalid, naming what is wrong with its form."""
    try:
        found = msgspec.json.decode(text, type=Checkpoint)
    except msgspec.MsgspecError as error:
        raise CheckpointInvalid(f"this is no checkpoint file: {error}") from error
    if found.format != FORMAT:
        raise CheckpointInvalid(f"its format is {found.format!r}, not {FORMAT!r}")
    if found.version != FORMAT_VERSION:
        raise CheckpointInvalid(
            f"its format version is {found.version}; this program knows {FORMAT_VERSION}",
            hint="Verify it with the version of the program that made it, or a newer one.",
        )
    for name, value, form in (
        ("journal", found.journal, _JOURNAL),
        ("hash", found.hash, _HASH),
        ("key", found.key, _HASH),
        ("signature", found.signature, _SIGNATURE),
    ):
        if not form.match(value):
            raise CheckpointInvalid(f"its {name} is not the hexadecimal number that it should be")
    if found.seq < 1:
        raise CheckpointInvalid(f"its seq is {found.seq}; events begin at 1")
    return found
