"""The tags of paths: set, taken off, and taken along by files that move."""

from __future__ import annotations

from orchestrator.core.change import PathChange, Provenance
from orchestrator.core.content import Signature
from orchestrator.core.events.base import Event
from orchestrator.core.events.files import ChangeApplied, ExternalFileCreated, ExternalFileRemoved, FileTagged
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.projections.tags import Tags
from tests.core.projections.histories import record

A, B, C = map(WorkspacePath, ("a.py", "b.py", "c.py"))
DIGEST = Digest("sha256:" + "a" * 64)


def folded(*events: Event) -> dict[WorkspacePath, tuple[str, ...]]:
    tags = Tags()
    for seq, event in enumerate(events, 1):
        tags.apply(record(seq, event, None, None))
    return dict(tags)


def applied(*paths: PathChange) -> ChangeApplied:
    return ChangeApplied(change=Seq(1), provenance=Provenance(operation="move_file"), paths=paths)


def test_tags_are_set_and_taken_off() -> None:
    first = FileTagged(path=A, added=("todo", "reviewed"))
    assert folded(first) == {A: ("reviewed", "todo")}
    assert folded(first, FileTagged(path=A, added=("todo",), removed=("reviewed",))) == {A: ("todo",)}
    assert folded(first, FileTagged(path=A, removed=("reviewed", "todo", "other"))) == {}


def test_a_moved_file_takes_its_tags_along_and_leaves_them() -> None:
    tagged = (FileTagged(path=A, added=("x",)), FileTagged(path=B, added=("y",)))
    moved = applied(PathChange(A, DIGEST, None), PathChange(B, None, DIGEST, moved_from=A))
    assert folded(*tagged, moved) == {A: ("x",), B: ("x", "y")}
    outside = (
        ExternalFileRemoved(path=A, before=DIGEST, moved_to=C),
        ExternalFileCreated(path=C, after=DIGEST, signature=Signature(1, 2, 3, 4), mode=0o644, kept=True, moved_from=A),
    )
    assert folded(*tagged, *outside) == {A: ("x",), B: ("y",), C: ("x",)}


def test_what_is_deleted_and_written_again_keeps_its_tags() -> None:
    tagged = FileTagged(path=A, added=("x",))
    assert folded(tagged, applied(PathChange(A, DIGEST, None)), applied(PathChange(A, None, DIGEST))) == {A: ("x",)}
