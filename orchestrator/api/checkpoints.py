"""Checkpoints and redaction in the contract: what people send, and what comes back."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import Operation
from orchestrator.core import errors as e


class JournalRedact(p.Approving, frozen=True):
    event: Annotated[p.Version | None, Meta(description="'@N' of the event whose texts are taken out.")] = None
    fields: Annotated[
        tuple[p.Name, ...],
        Meta(description="Which of its fields, e.g. 'reason'; all that can be, without it.", max_length=p.MOST_ENTRIES),
    ] = ()
    blob: Annotated[
        p.Version | None,
        Meta(description="Instead of an event: the content to remove, 'sha256:…' or '@N' of the version that has it."),
    ] = None
    path: Annotated[
        p.AnyPath | None,
        Meta(description="With blob '@N': of which file, where that version brought several, or is hidden."),
    ] = None
    reason: p.Reason = ""


class SignedCheckpoint(r.Result, frozen=True, kw_only=True):
    """A checkpoint; `text` is the file that `journal verify --checkpoint` takes."""

    checkpoint: str  # '@N' of the CheckpointSigned event
    seq: str  # '@N' up to which it stands
    journal: str
    hash: str
    key: str
    signed_at: int  # ms since the epoch
    text: str


class Redacted(r.Result, frozen=True, kw_only=True):
    """What was taken out."""

    redaction: str  # '@N' of the event that says so
    event: str | None = None
    fields: tuple[str, ...] = ()
    digest: str | None = None
    size: int | None = None
    scrubbed: bool = False  # nothing of it is left in the journal's files
    warnings: tuple[str, ...] = ()


JOURNAL_CHECKPOINT = Operation(
    "journal_checkpoint",
    p.Params,
    SignedCheckpoint,
    "Sign where the journal ends now, to keep elsewhere.",
    raises=(e.SigningKeyUnusable, e.WritesStopped),
    operator_only=True,
    writes=True,
)

JOURNAL_REDACT = Operation(
    "journal_redact",
    JournalRedact,
    Redacted,
    "Take the texts of one event, or one content, out of the journal for good.",
    raises=(e.ApproverCodeNeeded, e.VersionUnknown, e.VersionNotKept, e.NotRedactable, e.WritesStopped),
    operator_only=True,
    writes=True,
    destructive=True,
)
