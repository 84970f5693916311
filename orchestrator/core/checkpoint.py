"""A signed checkpoint: what is signed, byte for byte, and the file that carries it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from orchestrator.core.errors import CheckpointInvalid
from orchestrator.core.ids import Seq

FORMAT: Final = "orchestrator-checkpoint"
FORMAT_VERSION = 1

Hex32 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]
Hex64 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Hex128 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{128}\Z")]


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The holder of `key` states that the chain of `journal` has `hash` at event `seq`; as a file, indented JSON."""

    format: Literal["orchestrator-checkpoint"] = FORMAT
    version: int = FORMAT_VERSION
    journal: Hex32  # the journal's own id
    seq: Annotated[Seq, Meta(ge=1)]
    hash: Hex64  # of event `seq`
    key: Hex64  # the public key, Ed25519
    signature: Hex128  # of `message`
    signed_at: int = 0  # ms since the epoch; 0: not known. It is not signed

    @property
    def message(self) -> bytes:
        """The signed bytes."""
        return message(self.journal, self.seq, self.hash)

    def text(self) -> str:
        """The file's content."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode() + "\n"


def message(journal: str, seq: int, head_hash: str) -> bytes:
    """What is signed, format 1: four lines of ASCII, each ended by a line feed. It never changes.

    Its first line keeps the signature from being valid for anything else.
    """
    return f"{FORMAT} {FORMAT_VERSION}\njournal {journal}\nseq {seq}\nhash {head_hash}\n".encode("ascii")


def parse_checkpoint(text: str | bytes) -> Checkpoint:
    """Read a checkpoint file. Raises CheckpointInvalid, naming what is wrong with its form."""
    try:
        found = msgspec.json.decode(text, type=Checkpoint)
    except msgspec.MsgspecError as error:
        raise CheckpointInvalid(f"this is no checkpoint file: {error}") from error
    if found.version != FORMAT_VERSION:
        raise CheckpointInvalid(
            f"its format version is {found.version}; this program knows {FORMAT_VERSION}",
            hint="Verify it with the version of the program that made it, or a newer one.",
        )
    return found
