"""What is news to a session: compared with a model that follows every line by a name of its own."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.content import LineHunk, LineRange
from orchestrator.core.decisions.stale_regions import MOST_HUNKS, Lines, Piece, Tracker, hunks_between, joined
from orchestrator.core.ids import Seq, WorkspacePath
from orchestrator.core.projections.read_sets import At, ReadRecord
from orchestrator.core.text.diff import diff
from orchestrator.core.text.regions import line_by_line, merged, survivors

PATH = WorkspacePath("a.py")


def at(version: int) -> At:
    return At(PATH, Seq(version))


def read_record(version: int, *ranges: tuple[int, int]) -> ReadRecord:
    return ReadRecord(PATH, Seq(version), tuple(LineRange(*span) for span in ranges))


def own(before: int, version: int, *hunks: tuple[int, int, int, int]) -> ReadRecord:
    return ReadRecord(PATH, Seq(version), (), Seq(before), tuple(LineHunk(*hunk) for hunk in hunks))


def tracked(read_records: list[ReadRecord], texts: Mapping[At, Lines], present: Lines) -> Tracker:
    """The same history, followed from one version to the next; `present` is the newest."""
    versions = {int(where.version): text for where, text in texts.items()}
    newest = max(versions) + 1
    versions[newest] = present
    order = sorted(versions)
    tracker = Tracker(read_records[0])

    def follow(until: int) -> None:
        for before, after in pairwise(order):
            if tracker.version <= before and after <= until:
                hunks = hunks_between(versions[before], versions[after])
                tracker.follow(Seq(after), (("others", Seq(after)),), hunks)

    for item in read_records:
        follow(int(item.before if item.before is not None else item.version))
        tracker.look(item, texts.__getitem__)
    follow(newest)
    return tracker


def stale(read_records: list[ReadRecord], texts: Mapping[At, Lines], present: Lines) -> list[Piece]:
    return [*tracked(read_records, texts, present).stale(texts.__getitem__, present)]


def found(
    read_records: list[ReadRecord], versions: dict[int, str], present: str
) -> list[tuple[int, int, int, int, int]]:
    """(version, first, last, start, length) of each piece; texts are a letter a line."""
    texts: dict[At, Lines] = {at(version): list(text) for version, text in versions.items()}
    return [
        (int(piece.origin.version), piece.seen.start, piece.seen.end, piece.start, piece.length)
        for piece in joined(stale(read_records, texts, list(present)))
    ]


@pytest.mark.parametrize(
    ("read_records", "versions", "present", "pieces"),
    [
        pytest.param([read_record(1, (1, 3))], {1: "abcdef"}, "aBcdef", [(1, 2, 2, 1, 1)], id="a seen line"),
        pytest.param([read_record(1, (1, 3))], {1: "abcdef"}, "abcdEf", [], id="a line that was not seen"),
        pytest.param([read_record(1, (2, 4))], {1: "abcdef"}, "xyabcdef", [], id="moved down"),
        pytest.param([read_record(1, (2, 4))], {1: "abcdef"}, "abef", [(1, 3, 4, 2, 0)], id="taken away"),
        pytest.param(
            [read_record(1, (2, 3))], {1: "abcdef"}, "aBCDEf", [(1, 2, 3, 1, 2)], id="only the seen part of it"
        ),
        pytest.param(
            [read_record(1, (1, 6))], {1: "abcdef"}, "abcxdef", [(1, 3, 4, 3, 1)], id="a line came in between"
        ),
        pytest.param([read_record(1, (1, 3))], {1: "abcdef"}, "abcxdef", [], id="a line came below what was seen"),
        pytest.param([read_record(1, (4, 6))], {1: "abcdef"}, "abcxdef", [], id="a line came above what was seen"),
        pytest.param(
            [read_record(1, (1, 3), (5, 6))], {1: "abcdef"}, "abcdxef", [], id="a line came where nothing was seen"
        ),
        pytest.param(
            [read_record(1, (1, 3))],
            {1: "ab}de}"},
            "ab}x}de}",
            [],
            id="a block that ends as the seen one came below it",
        ),
        pytest.param(
            [read_record(1, (1, 3))],
            {1: "{b}de}"},
            "{x{b}de}",
            [],
            id="a block that begins as the seen one came above it",
        ),
        pytest.param(
            [read_record(1, (1, 5))], {1: "ab}de}"}, "ab}x}de}", [(1, 3, 4, 3, 2)], id="such a block came in between"
        ),
        pytest.param(
            [read_record(1, (1, 6)), read_record(2, (6, 7))],
            {1: "abcdef", 2: "abxcdef"},
            "abxcdef",
            [(1, 2, 3, 2, 1)],
            id="a line came in between, another place looked at",
        ),
        pytest.param(
            [read_record(1, (1, 6)), read_record(2, (7, 7))],
            {1: "abcdef", 2: "abxcdef"},
            "abyxzcdef",
            [(1, 2, 3, 2, 3)],
            id="a line came in between, another place looked at, more came beside it",
        ),
        pytest.param(
            [read_record(1, (1, 6)), read_record(2, (7, 7))],
            {1: "abcdef", 2: "abxcdef"},
            "abcdef",
            [],
            id="a line came in between, another place looked at, and it went again",
        ),
        pytest.param(
            [read_record(1, (1, 6)), read_record(2, (3, 3))],
            {1: "abcdef", 2: "abxcdef"},
            "abxcdef",
            [],
            id="a line came in between, and was looked at",
        ),
        pytest.param(
            [read_record(1, (1, 6)), read_record(2, (3, 3))],
            {1: "abcdef", 2: "abxycdef"},
            "abxycdef",
            [(1, 2, 3, 2, 2)],
            id="two lines came in between, and one was looked at",
        ),
        pytest.param(
            [read_record(1, (1, 6)), read_record(2, (5, 5))],
            {1: "abcdef", 2: "abcef"},
            "abcdef",
            [],
            id="taken away, another place looked at, and it came again",
        ),
        pytest.param(
            [read_record(1, (1, 6)), own(1, 2, (3, 0, 3, 1))],
            {1: "abcdef", 2: "abcxdef"},
            "abcxdef",
            [],
            id="its own line",
        ),
        pytest.param(
            [read_record(1, (1, 6)), own(2, 3, (5, 1, 5, 1))],
            {1: "abcdef", 2: "abxcdef", 3: "abxcdEf"},
            "abxcdEf",
            [(1, 2, 3, 2, 1)],
            id="its own change below a line that came in between",
        ),
        pytest.param([read_record(1, (1, 6))], {1: "abcdef"}, "", [(1, 1, 6, 0, 0)], id="all of it went"),
        pytest.param(
            [read_record(1, (1, 6)), read_record(2, (1, 2))],
            {1: "abcdef", 2: "aBcdEf"},
            "aBcdEf",
            [(1, 5, 5, 4, 1)],
            id="one of two is looked at again",
        ),
        pytest.param(
            [read_record(1, (1, 6)), read_record(2, (6, 6))],
            {1: "abcdef", 2: "aBcdef"},
            "abcdef",
            [],
            id="changed, another place looked at, changed back",
        ),
        pytest.param(
            [read_record(1, (1, 6)), own(1, 2, (1, 1, 1, 2))],
            {1: "abcdef", 2: "aBBcdef"},
            "aBBcdef",
            [],
            id="its own change",
        ),
        pytest.param(
            [read_record(1, (1, 6)), own(2, 3, (1, 1, 1, 0))],
            {1: "abcdef", 2: "abcdEf", 3: "acdEf"},
            "acdEf",
            [(1, 5, 5, 3, 1)],
            id="its own change onto another's",
        ),
        pytest.param(
            [read_record(1, (1, 6)), own(2, 3, (4, 1, 4, 1))],
            {1: "abcdef", 2: "abcdEf", 3: "abcdzf"},
            "abcdzf",
            [],
            id="it wrote over the other's change",
        ),
        pytest.param(
            [read_record(1, (1, 2)), own(1, 2, (4, 0, 4, 1))],
            {1: "abcdef", 2: "abcdxef"},
            "abcdyef",
            [(2, 5, 5, 4, 1)],
            id="somebody changes what it wrote",
        ),
        pytest.param([own(1, 2, (0, 1, 0, 1))], {1: "abc", 2: "Abc"}, "Abc!", [], id="it saw nothing and wrote a line"),
    ],
)
def test_what_is_stale(
    read_records: list[ReadRecord], versions: dict[int, str], present: str, pieces: list[tuple[int, int, int, int, int]]
) -> None:
    assert found(read_records, versions, present) == pieces


@pytest.mark.parametrize(
    ("then", "now", "left"),
    [
        pytest.param("aBcdef", "aBcdef", [], id="told already"),
        pytest.param("aBcdef", "aBcdEf", [5], id="another line since"),
        pytest.param("aBcdef", "aXcdef", [2], id="the same line again"),
        pytest.param("aBcdef", "xxaBcdef", [], id="it moved since"),
        pytest.param("acdef", "acdef", [], id="a line that is gone"),
    ],
)
def test_what_is_reported_again(then: str, now: str, left: list[int]) -> None:
    read_records, texts = [read_record(1, (1, 6))], {at(1): list("abcdef")}
    tracker = tracked(read_records, texts, list(then))
    assert tracker.stale(texts.__getitem__, list(then))
    tracker.notified = tracker.version
    tracker.follow(Seq(3), (("others", Seq(3)),), hunks_between(list(then), list(now)))
    again = tracker.stale(texts.__getitem__, list(now), news_only=True)
    assert [piece.seen.start for piece in again] == left


def reported(version: int, *ranges: tuple[int, int]) -> ReadRecord:
    """What a notice showed of a version."""
    return ReadRecord(PATH, Seq(version), tuple(LineRange(*span) for span in ranges), by_notice=True)


@pytest.mark.parametrize(
    ("then", "shown", "present", "pieces"),
    [
        pytest.param("aBcdef", [(2, 2)], "aBcdef", [], id="a line that it was shown"),
        pytest.param("aBcdef", [(2, 2)], "aXcdef", [(2, 2, 2, 1, 1)], id="the same line again since"),
        pytest.param("aBcdEf", [(2, 2)], "aBcdEf", [(1, 5, 5, 4, 1)], id="another line that it was not shown"),
        pytest.param("aBcef", [(2, 2)], "aBcef", [(1, 4, 4, 3, 0)], id="one taken away, and it was not shown"),
        pytest.param("abdef", [(3, 2)], "abdef", [], id="a line that it was shown to be gone"),
        pytest.param("abdef", [(3, 2)], "abcdef", [(2, 2, 3, 2, 1)], id="gone, and here again since"),
        pytest.param("abxcdef", [(3, 3)], "abxcdef", [], id="a line that came between"),
        pytest.param("abxcdef", [(3, 3)], "abxycdef", [(2, 3, 4, 3, 1)], id="another beside it since"),
    ],
)
def test_what_a_notice_showed_is_seen_and_no_more(
    then: str, shown: list[tuple[int, int]], present: str, pieces: list[tuple[int, int, int, int, int]]
) -> None:
    assert found([read_record(1, (1, 6)), reported(2, *shown)], {1: "abcdef", 2: then}, present) == pieces


# --- against a model ----------------------------------------------------------------------

spans = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 4)), min_size=1, max_size=3)
edits = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6
)  # where, how many go, how many come
step = st.one_of(
    st.tuples(st.just("others"), edits), st.tuples(st.just("own"), edits), st.tuples(st.just("read"), spans)
)


class Model:
    """A file whose lines are all different, so that there is one way to follow each; and who knows which of them."""

    def __init__(self, lines: int) -> None:
        self.lines = [f"l{n}" for n in range(lines)]
        self.known: set[str] = set()  # lines that the session saw or wrote, and has not been seen to go by itself
        self.ever: set[str] = set()  # all that it wrote
        self._made = 0

    def edit(self, where: int, gone: int, come: int, *, mine: bool) -> None:
        where = min(where, len(self.lines))
        new = []
        for _ in range(come):
            self._made += 1
            new.append(f"n{self._made}")
        if mine:
            self.known -= set(self.lines[where : where + gone])
            self.known |= set(new)
            self.ever |= set(new)
        self.lines[where : where + gone] = new

    def parted(self, start: Lines, ranges: tuple[LineRange, ...]) -> set[tuple[str, str]]:
        """Lines that followed one another in what was seen, and are both there with others between them."""
        pairs = {(start[n - 1], start[n]) for span in ranges for n in range(span.start, span.end)}
        return {
            (one, two)
            for one, two in pairs
            if {one, two} <= set(self.lines) and self.lines.index(two) != self.lines.index(one) + 1
        }


@settings(max_examples=300, deadline=None)
@given(lines=st.integers(1, 15), first=spans, changes=st.lists(edits, min_size=1, max_size=4))
def test_a_notice_is_due_exactly_for_seen_lines_that_are_gone(
    lines: int, first: list[tuple[int, int]], changes: list[list[tuple[int, int, int]]]
) -> None:
    """Others' changes only: whatever they do, in however many steps."""
    model = Model(lines)
    start = list(model.lines)
    ranges = _ranges(first, lines)
    model.known = {start[n - 1] for span in ranges for n in range(span.start, span.end + 1)}
    texts: list[Lines] = []
    for change in changes:
        for edit in change:
            model.edit(*edit, mine=False)
        texts.append(list(model.lines))
    followed = Tracker(ReadRecord(PATH, Seq(1), ranges))
    followed.look(ReadRecord(PATH, Seq(1), ranges), {at(1): start}.__getitem__)
    for number, (old, new) in enumerate(zip([start, *texts], texts, strict=False), 2):
        followed.follow(Seq(number), (("others", Seq(number)),), hunks_between(old, new))
    for pieces in (
        stale([ReadRecord(PATH, Seq(1), ranges)], {at(1): start}, model.lines),  # in one step
        [*followed.stale({at(1): start}.__getitem__, model.lines)],
    ):
        reported = {start[n - 1] for p in pieces if not p.added for n in range(p.seen.start, p.seen.end + 1)}
        assert reported == model.known - set(model.lines)
        parted = {(start[p.seen.start - 1], start[p.seen.end - 1]) for p in pieces if p.added}
        assert parted == model.parted(start, ranges)


@settings(max_examples=300, deadline=None)
@given(lines=st.integers(1, 15), first=spans, steps=st.lists(step, min_size=1, max_size=6))
def test_with_own_changes_and_further_reads_nothing_false_is_reported_and_nothing_unseen_kept_back(
    lines: int, first: list[tuple[int, int]], steps: list[tuple[str, list[tuple[int, ...]]]]
) -> None:
    model = Model(lines)
    version = 1
    texts: dict[At, Lines] = {at(1): list(model.lines)}
    every = dict(texts)
    read_records = [ReadRecord(PATH, Seq(1), _ranges(first, lines))]
    model.known = {model.lines[n - 1] for s in read_records[0].ranges for n in range(s.start, s.end + 1)}
    model.ever |= model.known
    looked = False
    for what, how in steps:
        before, old = version, list(model.lines)
        if what == "read":
            ranges = _ranges([(a, b) for a, b in how], len(model.lines))
            if ranges:
                read_records.append(ReadRecord(PATH, Seq(version), ranges))
                texts[at(version)] = list(model.lines)
                model.known |= {model.lines[n - 1] for s in ranges for n in range(s.start, s.end + 1)}
                model.ever |= model.known
                looked = True
            continue
        for where, gone, come in how:
            model.edit(where, gone, come, mine=what == "own")
        version += 1
        every[at(version)] = list(model.lines)
        if what == "own":
            texts[at(before)], texts[at(version)] = old, list(model.lines)
            hunks = tuple(diff(old, model.lines))
            read_records.append(ReadRecord(PATH, Seq(version), (), Seq(before), hunks))
            looked = True
    every[at(version)] = list(model.lines)
    # first by the versions that were looked at alone, then by all of them
    for pieces in (stale(read_records, texts, model.lines), stale(read_records, every, model.lines)):
        reported = {every[p.origin][n - 1] for p in pieces if not p.added for n in range(p.seen.start, p.seen.end + 1)}
        for piece in pieces:
            came = set(model.lines[piece.start : piece.start + piece.length])
            assert not piece.added or came - model.ever, "lines came in between that it never saw and did not write"
        due = model.known - set(model.lines)
        assert reported <= due, "a line that it never saw, or took away itself, or that is still there"
        if not looked:
            assert reported == due
            parted = {(every[p.origin][p.seen.start - 1], every[p.origin][p.seen.end - 1]) for p in pieces if p.added}
            assert parted == model.parted(every[at(1)], read_records[0].ranges)


def _ranges(given: list[tuple[int, int]], lines: int) -> tuple[LineRange, ...]:
    spans = (LineRange(start, min(start + more, lines)) for start, more in given if start <= lines)
    return merged(tuple(spans))


letters = st.lists(st.sampled_from("abc"), max_size=8)


@settings(max_examples=200, deadline=None)
@given(old=letters, new=letters, spans=spans)
def test_survivors_read_as_before(old: list[str], new: list[str], spans: list[tuple[int, int]]) -> None:
    """Repeated lines too: what survives reads the same on both sides, in the same order."""
    ranges = _ranges(spans, len(old))
    hunks = line_by_line(diff(old, new))
    gone = {n for h in hunks for n in range(h.old_start, h.old_start + h.old_len)}
    left = [old[n - 1] for s in ranges for n in range(s.start, s.end + 1) if n - 1 not in gone]
    kept = survivors(ranges, hunks)
    assert [new[n - 1] for s in kept for n in range(s.start, s.end + 1)] == left


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(["x"] * 30_000, ["x", "y"] * 15_000, id="a line after each"),
        pytest.param([str(n) for n in range(30_000)], [str(-n) for n in range(30_000)], id="each line"),
        pytest.param(["a", "b"] * 15_000, ["b", "c", "a"] * 10_000, id="lines that repeat"),
    ],
)
def test_differences_of_long_texts_are_few_and_cover_what_changed(old: list[str], new: list[str]) -> None:
    """Following them costs hunks times ranges: 30,000 times 30,000 held the daemon up for a minute."""
    hunks = hunks_between(old, new)
    assert len(hunks) <= MOST_HUNKS
    made: list[str] = []
    at = 0
    for hunk in hunks:
        made += old[at : hunk.old_start]
        assert len(made) == hunk.new_start
        made += new[hunk.new_start : hunk.new_start + hunk.new_len]
        at = hunk.old_start + hunk.old_len
    assert [*made, *old[at:]] == new
