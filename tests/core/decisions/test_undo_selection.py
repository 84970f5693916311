"""Which versions an undo chooses."""

from __future__ import annotations

import pytest

from orchestrator.core.change import PathChange, Provenance
from orchestrator.core.decisions.lineage import Made, UndoFilter, in_effect, made_by, selection, undone
from orchestrator.core.errors import NothingToChange
from orchestrator.core.events.base import Event
from orchestrator.core.events.files import ChangeAborted, ChangeApplied, ExternalFileRemoved
from orchestrator.core.globs import Globs
from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath
from orchestrator.core.positions import Timestamp
from tests.core.projections.histories import record

A, B, D = (WorkspacePath(name) for name in ("a.py", "b.md", "d"))
ONE, TWO = Digest("1"), Digest("2")
APPLIED = ChangeApplied(
    change=Seq(7),
    paths=(
        PathChange(path=A, before=ONE, after=TWO),
        PathChange(path=B, before=None, after=TWO),
        PathChange(path=D, before=None, after=None, directory="made"),
    ),
    provenance=Provenance(operation="edit_file", task=Seq(3)),
)


@pytest.mark.parametrize(
    ("event", "made"),
    [
        pytest.param(APPLIED, [(A, 8, "bob"), (B, 8, "bob")], id="a change, without the directory that it made"),
        pytest.param(ExternalFileRemoved(path=A, before=ONE), [(A, 8, "bob")], id="what an agent's command did"),
        pytest.param(ChangeAborted(change=Seq(7), cause="crash"), [], id="what never took effect"),
    ],
)
def test_made_by(event: Event, made: list[Made]) -> None:
    assert made_by(record(8, event, None, AgentName("bob"))) == made


def test_an_external_change_below_a_lease_is_nobodys_own() -> None:
    event = ExternalFileRemoved(path=A, before=ONE, lease_holder=AgentName("bob"), lease=Seq(2))
    assert made_by(record(8, event, None, None)) == [(A, 8, None)]


@pytest.mark.parametrize(
    ("span", "globs", "made"),
    [
        pytest.param(UndoFilter(), None, [A, B], id="all"),
        pytest.param(UndoFilter(), ("*.py",), [A], id="by path"),
        pytest.param(UndoFilter(), ("*.c",), [], id="no path of it"),
        pytest.param(UndoFilter(task=Seq(3)), None, [A, B], id="its task"),
        pytest.param(UndoFilter(task=Seq(4)), None, None, id="another task"),
        pytest.param(UndoFilter(since=Timestamp(seq=Seq(6))), None, [A, B], id="after that"),
        pytest.param(UndoFilter(since=Timestamp(seq=Seq(7))), None, None, id="its intent is not after that"),
        pytest.param(UndoFilter(until=Timestamp(seq=Seq(7))), None, [A, B], id="its intent is not past that"),
        pytest.param(UndoFilter(until=Timestamp(seq=Seq(6))), None, None, id="later"),
    ],
)
def test_filter(span: UndoFilter, globs: tuple[str, ...] | None, made: list[WorkspacePath] | None) -> None:
    found = span.made(record(8, APPLIED, None, AgentName("bob")), Globs(globs) if globs else None)
    assert (None if found is None else [path for path, _, _ in found]) == made


@pytest.mark.parametrize(
    ("reverters", "gone"),
    [
        pytest.param([], {}, id="nothing was undone"),
        pytest.param([(20, (10,))], {10: 20}, id="one"),
        pytest.param([(30, (20,)), (20, (10,))], {20: 30}, id="the undo was undone, so the change is back"),
        pytest.param([(40, (10,)), (30, (20,)), (20, (10,))], {10: 40, 20: 30}, id="and undone again"),
    ],
)
def test_undone(reverters: list[tuple[Seq, tuple[Seq, ...]]], gone: dict[Seq, Seq]) -> None:
    assert undone(reverters) == gone


@pytest.mark.parametrize(
    ("chosen", "kept"),
    [
        pytest.param([11], [11], id="in effect"),
        pytest.param([10, 11], [11], id="one is undone already"),
        pytest.param([10, 20], [10, 20], id="with its undo: one after the other"),
        pytest.param([10], None, id="all undone"),
        pytest.param([], None, id="none chosen"),
    ],
)
def test_in_effect(chosen: list[int], kept: list[int] | None) -> None:
    made: dict[Seq, list[Made]] = {Seq(seq): [(A, Seq(seq), "bob")] for seq in chosen}
    reverters = [(Seq(20), (Seq(10),))]
    if kept is None:
        with pytest.raises(NothingToChange):
            in_effect(made, reverters)
    else:
        assert [seq for _, seq, _ in in_effect(made, reverters)] == kept


def test_a_selection_knows_whose_each_file_is() -> None:
    chosen = selection([(A, Seq(8), "bob"), (A, Seq(9), None), (B, Seq(8), "bob")], [(D,), ()])
    assert chosen.keys == {(A, 8), (A, 9), (B, 8)}
    assert chosen.authors == {A: {"bob", None}, B: {"bob"}}
    assert chosen.folders == {D}
