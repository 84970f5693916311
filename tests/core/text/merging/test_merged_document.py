"""Line ends and damaged bytes of what comes of a merge: undone, made on an older version, or chosen in a conflict."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from orchestrator.core.conflicts.sides import Sides
from orchestrator.core.content import Region, Span, ThreeWay, digest_of
from orchestrator.core.decisions.decision import Base, ConflictOutcome, Facts, Held
from orchestrator.core.decisions.rebase import rebase
from orchestrator.core.errors import NothingToChange
from orchestrator.core.ids import Seq
from orchestrator.core.text.encoding import Document, decode
from orchestrator.core.text.merging.merged_document import merged_document
from tests.core.decisions.fixtures import PATH, new_data
from tests.core.text.strategies import quick

BETWEEN = f"--- é ---\r\n=== {'größe € ' * 20} ===\n+++ é +++\n".encode()
"""Lines that nobody changes, so that all is UTF-8 for certain."""
a_line = st.builds(
    lambda line, end: line + end,
    st.sampled_from([b"a", b"b", b"c \xff", b"c \xfe", b"}", b"d e"]),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
part = st.lists(a_line, max_size=6).map(b"".join)


def text(data: bytes) -> Document:
    document = decode(data)
    assert document is not None
    return document


def carried(old: bytes, new: bytes, now: bytes) -> bytes:
    """The change old → new, made in a file that holds `now`."""
    facts = Facts(PATH, Held(now, digest_of(now), 0o644), Seq(9), Base(Seq(5), digest_of(old)))
    outcome = rebase(text(old), text(new), facts, anchors=())
    assume(not isinstance(outcome, ConflictOutcome))
    return new_data(outcome)


@quick
@given(part, part, part, part, st.booleans())
@example(b"c\r\nd\n", b"\r\n", b"i\r\n", b"i\r\nz\r\n", True)
@example(b"a\n", b"a\r\n", b"", b"b\n", True)
@example(b"c \xff\n", b"", b"c \xfe\n", b"c \xfe\nc \xfe\n", False)
def test_an_undo_gives_back_the_bytes_and_keeps_those_of_others(
    before: bytes, edited: bytes, elsewhere: bytes, changed: bytes, above: bool
) -> None:
    def whole(mine: bytes, other: bytes) -> bytes:
        return mine + BETWEEN + other if above else other + BETWEEN + mine

    assume(before != edited and elsewhere != changed)
    try:
        undone = carried(whole(edited, elsewhere), whole(before, elsewhere), whole(edited, changed))
    except NothingToChange:
        assume(False)
    assert undone == whole(before, changed)


@pytest.mark.parametrize(
    ("base", "current", "proposed", "lines", "expected"),
    [
        pytest.param(
            b"a\nb\r\nc\n",
            b"a\nX\nb\r\nc\n",
            b"a\nY\r\nb\r\nc\n",
            "a X Y b c",
            b"a\nX\nY\r\nb\r\nc\n",
            id="both, by a rule",
        ),
        pytest.param(
            b"a\nb\n", b"a\r\nX\r\nb\r\n", b"a\nY\nb\n", "a X Y b", b"a\r\nX\r\nY\r\nb\r\n", id="converted since"
        ),
    ],
)
def test_where_the_ends_conflict(base: bytes, current: bytes, proposed: bytes, lines: str, expected: bytes) -> None:
    sides = ThreeWay(text(base), text(current), text(proposed))
    made = merged_document(sides, sides.current, lines.split(), ended=True)
    assert "".join(line + end for line, end in zip(made.lines, made.ends, strict=True)).encode() == expected


def test_a_proposed_side_that_is_chosen_keeps_its_line_ends() -> None:
    region = Region(Span(1, 1), Span(1, 1), Span(1, 2))
    sides = Sides(text(b"a\nb\nc\r\n"), text(b"a\nX\nc\r\n"), text(b"a\nY\nZ\r\nc\r\n"), (region,))
    assert sides.chosen({0: "proposed"}) == b"a\nY\nZ\r\nc\r\n"
