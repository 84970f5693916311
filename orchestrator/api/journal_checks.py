"""Whether the journal is whole, and whether state and disk follow from it; and signed checkpoints of its end."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import OperatorOperation
from orchestrator.core.errors import plural


class SignedCheckpoint(r.Result, frozen=True, kw_only=True):
    """A checkpoint; `text` is the file that `journal verify --checkpoint` takes."""

    checkpoint: str  # '@N' of the CheckpointSigned event
    seq: str  # '@N' up to which it holds
    journal: str
    hash: str
    key: str
    signed_at: int  # ms since the epoch
    text: str


JOURNAL_CHECKPOINT = OperatorOperation(
    "journal_checkpoint",
    p.Params,
    SignedCheckpoint,
    "Sign where the journal ends now, to keep elsewhere.",
    writes=True,
)


class JournalVerify(p.Params, frozen=True):
    checkpoint: Annotated[p.Content | None, Meta(description="The text of a checkpoint file, to compare with.")] = None


class VerifyAnswer(r.Result, frozen=True, kw_only=True):
    ok: bool = False
    events: int
    head: str
    head_hash: str
    blobs: int
    problems: tuple[str, ...] = ()
    proven: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    unread: int = 0  # events that could not be read, since the files that hold them are not there

    @property
    def verdict(self) -> str:
        """In words; `ok` alone only where all could be checked that this walk can check."""
        if not self.ok:
            return "not ok"
        return f"ok as far as it could be checked: {plural(self.unread, 'event')} not checked" if self.unread else "ok"


JOURNAL_VERIFY = OperatorOperation(
    "journal_verify",
    JournalVerify,
    VerifyAnswer,
    "Check the chain, the payloads and the blobs.",
)


class JournalRebuild(p.Params, frozen=True):
    check: Literal[True] = True


class RebuildAnswer(r.Result, frozen=True, kw_only=True):
    ok: bool = False
    events: int
    projections: tuple[str, ...] = ()
    first_difference: str | None = None


JOURNAL_REBUILD = OperatorOperation("journal_rebuild", JournalRebuild, RebuildAnswer, "Replay everything and compare.")


DifferenceKind = Literal["content", "mode", "missing", "extra", "kind", "unreadable", "lost", "history"]


class DiskDifference(r.Result, frozen=True, kw_only=True):
    """Where the journal and the disk disagree.

    kind: `content` or `mode` differs, `missing` on disk, `extra` on disk (no event explains it), `kind`: it is no
    regular file, `unreadable` on disk, `lost`: the journal should hold the content and does not, `history`: the
    table of versions does not follow from the events.
    """

    path: str
    kind: DifferenceKind
    journal: str | None = None
    disk: str | None = None


class WorkspaceReport(r.Result, frozen=True, kw_only=True):
    ok: bool = False
    files: int
    differences: tuple[DiskDifference, ...] = ()


WORKSPACE_CHECK = OperatorOperation(
    "workspace_check",
    p.Params,
    WorkspaceReport,
    "Compare the disk with the journal.",
    command="journal compare",
)


class ReplayReport(WorkspaceReport, frozen=True, kw_only=True):
    at: str
    events: int
    unchecked: tuple[str, ...] = ()  # paths of files whose content was never hashed


REPLAY_CHECK = OperatorOperation(
    "replay_check",
    p.Params,
    ReplayReport,
    "Rebuild every file from events and contents, and compare with the disk.",
    weight="always",
    command="replay --check",
)
