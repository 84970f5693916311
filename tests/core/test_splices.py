"""Splices of contents, against the same done with bytes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.content import Splice
from orchestrator.core.splices import composed, merged, size_after, spliced


def plainly(data: bytes, splices: Sequence[Splice]) -> bytes:
    """The content with the splices in it."""
    made, at = b"", 0
    for splice in splices:
        made, at = made + data[at : splice.offset] + splice.inserted, splice.offset + splice.removed
    return made + data[at:]


@st.composite
def splices_of(draw: st.DrawFn, size: int) -> tuple[Splice, ...]:
    """Ascending, with bytes between them."""
    found, at = list[Splice](), 0
    while at <= size and draw(st.booleans()):
        offset = draw(st.integers(at, size))
        removed = draw(st.integers(0, min(5, size - offset)))
        found.append(Splice(offset, removed, draw(st.binary(max_size=4))))
        at = offset + removed + 1
    return tuple(found)


@given(st.data())
def test_pieces_are_spliced_as_the_whole(data: st.DataObject) -> None:
    content, block = data.draw(st.binary(max_size=40)), data.draw(st.integers(1, 9))
    splices = data.draw(splices_of(len(content)))
    blocks = [content[at : at + block] for at in range(0, len(content), block)]
    made = b"".join(spliced(blocks, splices))
    assert made == plainly(content, splices)
    assert size_after(len(content), splices) == len(made)


@given(st.data())
def test_two_lists_are_composed_to_one(data: st.DataObject) -> None:
    content = data.draw(st.binary(max_size=40))
    first = data.draw(splices_of(len(content)))
    between = plainly(content, first)
    then = data.draw(splices_of(len(between)))
    both = composed(first, then, len(content))
    assert plainly(content, both) == plainly(between, then)
    assert all(one.offset + one.removed < other.offset for one, other in pairwise(both))


@given(st.data())
def test_a_change_is_undone_where_the_other_side_is_elsewhere(data: st.DataObject) -> None:
    """Of two changes on top of each other, that do not touch, the first is taken out and the second stays."""
    content = bytes(range(65, 65 + 40))
    ours = Splice(data.draw(st.integers(0, 15)), data.draw(st.integers(0, 3)), data.draw(st.binary(max_size=4)))
    theirs = Splice(data.draw(st.integers(20, 36)), data.draw(st.integers(0, 3)), data.draw(st.binary(max_size=4)))
    both = merged((), (ours,), (theirs,))
    assert both == (ours, theirs)
    assert merged((ours,), both, ()) == (theirs,)
    assert plainly(content, both) == plainly(plainly(content, (theirs,)), (ours,))


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        pytest.param([Splice(5, 2, b"x")], [Splice(5, 2, b"x")], (Splice(5, 2, b"x"),), id="the same on both sides"),
        pytest.param([Splice(5, 2, b"x")], [Splice(6, 2, b"y")], None, id="one place"),
        pytest.param([Splice(5, 2, b"x")], [Splice(7, 2, b"y")], None, id="places that touch"),
        pytest.param([Splice(5, 2, b"x")], [], (Splice(5, 2, b"x"),), id="one side alone"),
    ],
)
def test_places_of_both_sides(ours: list[Splice], theirs: list[Splice], expected: tuple[Splice, ...] | None) -> None:
    assert merged((), ours, theirs) == expected


def test_a_content_that_is_too_short_is_said() -> None:
    with pytest.raises(ValueError, match="shorter than its splices"):
        list(spliced([b"abc"], [Splice(2, 4, b"")]))
