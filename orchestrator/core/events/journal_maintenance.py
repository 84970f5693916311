"""Events of the journal's upkeep: signed, redacted, archived, collected, adopted."""

from __future__ import annotations

from orchestrator.core.annotations import OldContent, Redactable
from orchestrator.core.events.base import Event
from orchestrator.core.ids import Checksum, Digest, Seq


class CheckpointSigned(Event, frozen=True, kw_only=True, tag="checkpoint_signed"):
    """The journal's key signed that at `head` the chain's hash was `head_hash`."""

    journal: str  # the journal's own id
    head: Seq
    head_hash: str  # hex
    key: str  # the public key, Ed25519, hex
    signature: str  # hex


class PayloadRedacted(Event, frozen=True, kw_only=True, tag="payload_redacted"):
    """Fields of an earlier event were blanked and its salt forgotten; its hashes remain.

    `rest_hash` is of what was left of the payload, with a salt made for it, so that the rest
    can still be checked. Of several redactions of one event the last holds.
    """

    target: Seq
    fields: tuple[str, ...]
    by: str
    reason: Redactable[str] = ""
    rest_hash: str = ""  # hex


class ContentRedacted(Event, frozen=True, kw_only=True, tag="content_redacted"):
    """A content was removed from the blob store on request; what needs it can't be undone."""

    digest: OldContent[Digest]
    size: int
    by: str
    reason: Redactable[str] = ""


class ContentsCollected(Event, frozen=True, kw_only=True, tag="contents_collected"):
    """Contents that nothing reaches any more were removed after their time of grace."""

    digests: OldContent[tuple[Digest, ...]]
    bytes: int  # of the plain contents


class SegmentArchived(Event, frozen=True, kw_only=True, tag="segment_archived"):
    """Events `first` to `last` left the database for a file, whose digest seals them."""

    first: Seq
    last: Seq
    last_hash: str  # hex: of event `last`, on which the next one hangs
    file: str  # its name in the archive folder of the state directory
    digest: Checksum  # of the file
    size: int


class SegmentRestored(Event, frozen=True, kw_only=True, tag="segment_restored"):
    """An archived segment is in the database again."""

    first: Seq
    last: Seq
    file: str


class JournalAdopted(Event, frozen=True, kw_only=True, tag="journal_adopted"):
    """A person made the daemon go on with a journal that is older than its workspace."""

    by: str
    head: Seq  # where the journal ended
    known_head: Seq  # where it had ended once, as the mark beside it says; 0: not known
    reason: Redactable[str] = ""
