"""What the journal remembers of encodings."""

from __future__ import annotations

from orchestrator.core.change import PathChange, Provenance
from orchestrator.core.content import Signature
from orchestrator.core.events.base import Event
from orchestrator.core.events.conflicts import ConflictFound, ConflictSides
from orchestrator.core.events.files import ChangeApplied, ExternalFileChanged
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.projections.registry import NOTHING, Encodings, Known
from tests.core.projections.histories import record

PATH = WorkspacePath("a.txt")
A, B, C, D = (Digest(f"sha256:{letter * 64}") for letter in "abcd")
EDIT = Provenance(operation="edit_file")
SIGNATURE = Signature(1, 2, 3, 4)


def changed(before: Digest, after: Digest, encoding: str | None) -> ChangeApplied:
    return ChangeApplied(change=Seq(1), provenance=EDIT, paths=(PathChange(PATH, before, after, encoding=encoding),))


def outside(before: Digest | None, after: Digest | None) -> ExternalFileChanged:
    return ExternalFileChanged(path=PATH, before=before, after=after, signature=SIGNATURE, mode=0o644, kept=True)


def folded(*events: Event) -> Encodings:
    encodings = Encodings()
    for seq, event in enumerate(events, 1):
        encodings.apply(record(seq, event, None, None))
    return encodings


def test_what_a_change_wrote_is_certain_and_its_neighbours_are_alike() -> None:
    found = folded(changed(A, B, "cp1252"), outside(B, C), outside(C, D))
    assert found.of(B) == Known(written="cp1252")
    assert found.of(A) == found.of(C) == found.of(D) == Known(like="cp1252")


def test_what_is_certain_is_not_made_less_so() -> None:
    found = folded(changed(A, B, "latin-1"), changed(B, A, "latin-1"), outside(A, B))
    assert found.of(A) == found.of(B) == Known(written="latin-1")


def test_what_a_conflict_proposes_is_read_like_what_is_there() -> None:
    conflict = ConflictFound(
        provenance=EDIT,
        path=PATH,
        sides=ConflictSides(base=A, current=B, proposed=C, base_version=Seq(1), current_version=Seq(2)),
    )
    assert folded(changed(A, B, "latin-1"), conflict).of(C) == Known(like="latin-1")


def test_of_utf_8_nothing_is_kept() -> None:
    found = folded(changed(A, B, None), outside(B, C), outside(None, D))
    assert found.table("known") == {}
    assert found.of(None) is NOTHING
