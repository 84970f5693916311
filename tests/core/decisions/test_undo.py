"""Undo of chosen changes; what came later stays, or a person decides."""

from __future__ import annotations

import pickle

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.core.decisions.decision import Facts, Need
from orchestrator.core.decisions.lineage import lineages
from orchestrator.core.decisions.undo import Undo, undo
from orchestrator.core.errors import NothingToChange, RevertImpossible
from orchestrator.core.ids import Seq, WorkspacePath
from tests.core.decisions.scenarios import Story

TEN = "".join(f"line {n}\n" for n in range(10))
CHANGED = TEN.replace("line 3", "LINE 3")
A = "a.txt"


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        pytest.param(None, TEN, id="nothing came after"),
        pytest.param(
            CHANGED.replace("line 9", "nine"), TEN.replace("line 9", "nine"), id="later work elsewhere is kept"
        ),
        pytest.param("top\n" + CHANGED, "top\n" + TEN, id="later work above is kept"),
    ],
)
def test_later_work_is_kept(later: str | None, expected: str) -> None:
    story = Story(**{A: TEN})
    change = story.write("alice", A, CHANGED)
    if later is not None:
        story.write("bob", A, later)
    plan = story.undo(story.at(change))
    assert story.after(plan) == {A: expected}
    assert plan.reverts == (change,)
    assert plan.fit.rung == ("current" if later is None else "merged")


def test_a_line_that_was_changed_again_is_a_conflict() -> None:
    story = Story(**{A: TEN, "b.txt": TEN})
    mine = story.write("alice", A, CHANGED), story.write("alice", "b.txt", CHANGED)
    theirs = story.write("bob", A, CHANGED.replace("LINE 3", "three"))
    plan = story.undo(story.at(*mine))
    assert story.after(plan) == {A: CHANGED.replace("LINE 3", "three"), "b.txt": TEN}
    (conflict,) = plan.conflicts
    assert (conflict.path, conflict.proposed, conflict.reverts) == (A, TEN.encode(), (mine[0],))
    assert [(r.current.start, r.current.length) for r in conflict.regions] == [(3, 1)]
    assert plan.reverts == (mine[1],)
    assert [(d.change, d.agent, d.on, d.overlaps) for d in plan.dependencies] == [(theirs, "bob", (mine[0],), True)]


def test_contents_are_asked_for() -> None:
    story = Story(**{A: TEN})
    change = story.write("alice", A, CHANGED)
    story.write("bob", A, "x\n" + CHANGED)
    rows = {WorkspacePath(A): story.rows}
    held = story._held(A)
    need = undo(lineages(rows, {}), story.at(change), {WorkspacePath(A): Facts(WorkspacePath(A), held, None)})
    assert isinstance(need, Need)
    assert set(need.digests) <= set(story.contents)


def test_what_is_undone_already_says_so() -> None:
    story = Story(**{A: TEN})
    change = story.write("alice", A, CHANGED)
    story.write("bob", A, TEN)
    with pytest.raises(NothingToChange):
        story.undo(story.at(change))


def test_several_changes_of_one_file_are_undone_as_one() -> None:
    story = Story(**{A: TEN})
    for number in range(5):
        story.write("alice", A, TEN.replace("line 3", f"LINE {number}"))
    assert story.after(story.undo(story.of("alice"))) == {A: TEN}


def test_a_creation_and_a_removal() -> None:
    story = Story(**{A: TEN})
    made = story.write("alice", "new.txt", TEN)
    story.modes[A] = 0o755
    story.rows[0] = msgspec.structs.replace(story.rows[0], mode=0o755)
    gone = story.write("alice", A, None)
    plan = story.undo(story.at(made, gone))
    assert story.after(plan) == {A: TEN}
    assert {part.path: part.mode for part in plan.paths if part.after} == {A: 0o755}


def test_a_creation_that_others_built_on_is_a_conflict() -> None:
    story = Story()
    made = story.write("alice", A, TEN)
    story.write("bob", A, CHANGED)
    plan = story.undo(story.at(made))
    assert (plan.paths, [(conflict.path, conflict.proposed) for conflict in plan.conflicts]) == ((), [(A, None)])


def test_a_removal_whose_place_is_taken_is_a_conflict() -> None:
    story = Story(**{A: TEN})
    gone = story.write("alice", A, None)
    story.write("bob", A, "bob's\n")
    plan = story.undo(story.at(gone))
    assert (plan.paths, [(conflict.path, conflict.proposed) for conflict in plan.conflicts]) == (
        (),
        [(A, TEN.encode())],
    )


def test_a_removal_and_a_new_file_in_its_place_go_back_together() -> None:
    story = Story(**{A: TEN})
    story.write("alice", A, None)
    story.write("alice", A, "another\n")
    assert story.after(story.undo(story.of("alice"))) == {A: TEN}


def test_a_file_that_was_removed_and_made_again_as_it_was_is_left_alone() -> None:
    story = Story(**{A: TEN, "b.txt": TEN})
    both = story.write("alice", A, None), story.write("alice", A, TEN)
    with pytest.raises(NothingToChange):
        story.undo(story.at(*both))
    edited = story.write("alice", "b.txt", CHANGED)
    plan = story.undo(story.at(*both, edited))
    assert [part.path for part in plan.paths] == ["b.txt"]
    again = story.write("alice", A, None), story.write("alice", A, TEN, mode=0o755)
    assert [(part.path, part.mode) for part in story.undo(story.at(*again)).paths] == [(A, 0o644)]


def test_a_move_takes_later_edits_along() -> None:
    story = Story(**{A: TEN})
    moved = story.move("alice", A, "b.txt")
    story.write("bob", "b.txt", CHANGED)
    plan = story.undo(story.at(moved))
    assert story.after(plan) == {A: CHANGED}
    assert {part.path: part.moved_from for part in plan.paths} == {A: "b.txt", "b.txt": None}


def test_an_edit_is_undone_where_the_file_was_moved_to() -> None:
    story = Story(**{A: TEN})
    change = story.write("alice", A, CHANGED)
    story.move("bob", A, "b.txt")
    story.write("bob", "b.txt", CHANGED.replace("line 8", "eight"))
    assert story.after(story.undo(story.at(change))) == {"b.txt": TEN.replace("line 8", "eight")}


def test_an_edit_and_a_move_go_back_as_one_file() -> None:
    story = Story(**{A: TEN})
    story.write("alice", A, CHANGED)
    story.move("alice", A, "b.txt")
    plan = story.undo(story.of("alice"))
    assert story.after(plan) == {A: TEN}
    assert {part.path: part.moved_from for part in plan.paths} == {A: "b.txt", "b.txt": None}


def test_a_move_whose_file_went_on_stays() -> None:
    story = Story(**{A: TEN})
    moved = story.move("alice", A, "b.txt")
    story.move("bob", "b.txt", "c.txt")
    with pytest.raises(RevertImpossible, match=r"moved on to c.txt"):
        story.undo(story.at(moved))


def test_a_move_back_to_a_name_that_is_taken_is_a_conflict() -> None:
    story = Story(**{A: TEN})
    moved = story.move("alice", A, "b.txt")
    story.write("bob", A, "bob's\n")
    plan = story.undo(story.at(moved))
    assert (plan.paths, [conflict.path for conflict in plan.conflicts]) == ((), [A])


def test_a_move_by_other_hands_is_one_step() -> None:
    story = Story(**{A: TEN})
    story.write("alice", A, CHANGED)
    gone = story.write(None, A, None)
    story.seq += 1
    came = story._row("b.txt", CHANGED, None, moved_from=A)
    assert story.after(story.undo(story.of("alice"))) == {"b.txt": TEN}
    assert story.after(story.undo(story.at(gone, came))) == {A: CHANGED}


@pytest.mark.parametrize("gone_first", [True, False])
def test_a_move_by_other_hands_over_a_file_brings_both_back(gone_first: bool) -> None:
    story = Story(**{A: TEN, "b.txt": "bob's\n"})
    story.write("alice", A, CHANGED)
    rows = [(A, None, None), ("b.txt", CHANGED, A)]
    changes = []
    for path, text, source in rows if gone_first else rows[::-1]:
        story.seq += 1
        changes.append(story._row(path, text, None, moved_from=source))
    assert story.after(story.undo(story.of("alice"))) == {"b.txt": TEN}
    for chosen in (changes, changes[:1], changes[1:]):
        assert story.after(story.undo(story.at(*chosen))) == {A: CHANGED, "b.txt": "bob's\n"}


def test_a_mode_goes_back_unless_it_was_changed_again() -> None:
    story = Story(**{A: TEN})
    change = story.write("alice", A, TEN, mode=0o755)
    plan = story.undo(story.at(change))
    assert [(part.before == part.after, part.mode) for part in plan.paths] == [(True, 0o644)]


def test_a_content_that_was_never_hashed_can_not_be_brought_back() -> None:
    story = Story(**{A: TEN})
    story.rows[0] = msgspec.structs.replace(story.rows[0], digest=None)
    change = story.write("alice", A, CHANGED)
    with pytest.raises(RevertImpossible, match=r"a\.txt"):
        story.undo(story.at(change))


# --- any story: without alice it is what bob alone would have made -------------------------

BLOCKS = 6
FILES = ("one", "two", "three")


def text_of(blocks: dict[int, str]) -> str:
    return "".join(f"{blocks.get(n, f'block {n}')}\n" + "same\nsame again\nand again\n" * 2 for n in range(BLOCKS))


acts = st.lists(
    st.tuples(
        st.sampled_from(["alice", "bob"]),
        st.sampled_from(["edit", "edit", "edit", "move"]),
        st.sampled_from(FILES),
        st.integers(0, BLOCKS // 2 - 1),
    ),
    max_size=14,
)


@given(acts, st.lists(st.sampled_from(FILES), max_size=2, unique=True))
def test_without_alice(acts: list[tuple[str, str, str, int]], deleted: list[str]) -> None:
    """Alice edits the upper blocks, bob the lower ones; both move files to new names; alice deletes some at the end."""
    story = Story(**{name: text_of({}) for name in FILES})
    blocks: dict[str, dict[int, str]] = {name: {} for name in FILES}
    where = {name: name for name in FILES}
    moved_by_bob: dict[str, str] = {}
    bobs: dict[str, dict[int, str]] = {name: {} for name in FILES}
    for number, (agent, act, name, block) in enumerate(acts):
        if act == "move":
            target = f"{name}-{number}"
            story.move(agent, where[name], target)
            where[name] = target
            if agent == "bob":
                moved_by_bob[name] = target
            continue
        at = block if agent == "alice" else block + BLOCKS // 2
        blocks[name][at] = f"{agent} {number}"
        if agent == "bob":
            bobs[name][at] = f"bob {number}"
        story.write(agent, where[name], text_of(blocks[name]))
    for name in deleted:
        story.write("alice", where[name], None)
    expected = {moved_by_bob.get(name, name): text_of(bobs[name]) for name in FILES}
    if not story.of("alice"):
        return
    try:
        plan = story.undo(story.of("alice"))
    except (NothingToChange, RevertImpossible):
        found = dict(story.tree)
    else:
        assert plan.conflicts == ()
        found = story.after(plan)
    # A file that bob moved on after alice had moved it stays where bob put it.
    assert found == expected


NAMES = ("a", "b", "c", "d", "e")
walks = st.lists(
    st.tuples(st.sampled_from(["move", "move", "write", "delete"]), *[st.sampled_from(NAMES)] * 2), max_size=8
)


@given(walks)
@example([("move", "b", "d"), ("move", "a", "b"), ("write", "a", "a")])
def test_an_undo_is_undone_whatever_took_whose_place(walk: list[tuple[str, str, str]]) -> None:
    """Bob moves files about, also to names that others had, makes some and deletes some; then there and back again."""
    story = Story(**{name: f"{name}\n" for name in NAMES[:3]})
    given_tree = dict(story.tree)
    for number, (act, name, target) in enumerate(walk):
        if act == "write":
            story.write("bob", name, f"bob {number}\n")
        elif name in story.tree and act == "delete":
            story.write("bob", name, None)
        elif name in story.tree and target not in story.tree:
            story.move("bob", name, target)
    end = dict(story.tree)
    if not story.of("bob") or end == given_tree:
        return
    there = story.carry_out("person", story.undo(story.of("bob")))
    assert story.tree == given_tree
    back = story.carry_out("person", story.undo(story.at(there)))
    assert story.tree == end
    story.carry_out("person", story.undo(story.at(back)))
    assert story.tree == given_tree


def test_the_command_is_the_same_in_a_worker() -> None:
    """It packs its many rows in one piece."""
    story = Story(**{A: TEN})
    change = story.write("alice", A, CHANGED)
    command = Undo(
        histories={WorkspacePath(A): tuple(story.rows), WorkspacePath("b.txt"): ()},
        modes={WorkspacePath(A): ((Seq(2), 0o755),)},
        chosen=frozenset(story.at(change)),
        others_work=frozenset((WorkspacePath(A),)),
        touched=(WorkspacePath(A),),
        folders=frozenset((WorkspacePath("d"),)),
    )
    packed = pickle.dumps(command)
    assert pickle.loads(packed) == command
    assert b"VersionRow" not in packed
