"""Given what the file holds and what the change was made against: what becomes of it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.conflicts.sides import rebased
from orchestrator.core.content import digest_of
from orchestrator.core.decisions import rebase
from orchestrator.core.decisions.decision import Apply, Base, ConflictOutcome, Facts, Held, Need, Outcome
from orchestrator.core.decisions.passages import quote
from orchestrator.core.decisions.patches import FilePart, Patch
from orchestrator.core.errors import (
    BaseRequired,
    BinaryFile,
    CharacterNotEncodable,
    FileExists,
    FileNotFound,
    NothingToChange,
    PatchInvalid,
    SearchAmbiguous,
    SearchNotFound,
    StaleBase,
)
from orchestrator.core.ids import Seq, WorkspacePath
from orchestrator.core.shown_text import NOTHING_HIDDEN, ShownText
from orchestrator.core.text.encoding import new_document
from orchestrator.core.text.forms.hunks import FilePatch
from orchestrator.core.text.forms.recognise import parse
from orchestrator.core.text.locate import Replacement
from tests.core.decisions.fixtures import PATH, facts, new_data

TEN = "".join(f"line {n}\n" for n in range(10))


def after(outcome: object) -> str:
    """The content that an applied outcome gives the file."""
    assert isinstance(outcome, Apply), outcome
    data = new_data(outcome)
    assert data is not None
    assert outcome.paths[0].after == digest_of(data)
    return data.decode()


@pytest.mark.parametrize(
    ("now", "rung", "expected"),
    [
        pytest.param(TEN, "current", TEN.replace("line 5", "LINE 5"), id="the base is what the file holds"),
        pytest.param("new\n" + TEN, "shifted", ("new\n" + TEN).replace("line 5", "LINE 5"), id="moved down"),
        pytest.param(TEN.replace("line 0\n", ""), "shifted", TEN.replace("line 0\n", "").replace("line 5", "LINE 5"),
                     id="moved up"),
        pytest.param(TEN.replace("line 9", "nine"), "shifted",
                     TEN.replace("line 9", "nine").replace("line 5", "LINE 5"), id="changed elsewhere"),
    ],
)  # fmt: skip
def test_edit_on_the_ladder(now: str, rung: str, expected: str) -> None:
    outcome = rebase.edit([Replacement("line 5", "LINE 5")], facts(now, base=TEN))
    assert after(outcome) == expected
    assert isinstance(outcome, Apply)
    assert outcome.fit.rung == rung


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(TEN.replace("line 5", "fünf"), id="the same line"),
        pytest.param(TEN.replace("line 4", "vier"), id="the line above, as git merge-file says"),
        pytest.param(TEN.replace("line 5\n", ""), id="the line was removed"),
    ],
)
def test_overlapping_edits_conflict(now: str) -> None:
    outcome = rebase.edit([Replacement("line 5", "LINE 5")], facts(now, base=TEN))
    assert isinstance(outcome, ConflictOutcome)
    assert outcome.proposed == TEN.replace("line 5", "LINE 5").encode()
    assert outcome.base == digest_of(TEN.encode())
    assert len(outcome.regions) == 1


def test_the_base_is_asked_for_only_when_it_is_needed() -> None:
    changes = [Replacement("line 5", "LINE 5")]
    assert isinstance(rebase.edit(changes, facts(TEN, base=TEN, kept=False)), Apply)
    assert rebase.edit(changes, facts("x\n" + TEN, base=TEN, kept=False)) == Need((digest_of(TEN.encode()),))


def test_an_implied_base_without_the_text_gives_way_to_the_present() -> None:
    outcome = rebase.edit([Replacement("brand new", "newer")], facts("brand new\n" + TEN, base=TEN))
    assert after(outcome) == "newer\n" + TEN
    assert isinstance(outcome, Apply)
    assert outcome.fit.warnings
    with pytest.raises(SearchNotFound):
        rebase.edit([Replacement("brand new", "newer")], facts("brand new\n" + TEN, base=TEN, implied=False))


def test_a_change_that_somebody_else_made_already_is_said_so() -> None:
    now = TEN.replace("line 5", "LINE 5")
    with pytest.raises(NothingToChange):
        rebase.edit([Replacement("line 5", "LINE 5")], facts(now, base=TEN))


@pytest.mark.parametrize(("base", "now", "new"), [
    pytest.param("import os\nimport abc\nx = 1\n", "import abc\nimport os\nx = 1\n", "import abc\nx = 1\n", id="moved"),
    pytest.param("b = 1\na = 1\nb = 1\n", "a = 1\nb = 1\nb = 1\n", "a = 1\nb = 1\n", id="one of two alike moved"),
    pytest.param("one\ntwo\nthree\n", "ONE\nnew\nTWO\nTHREE\n", "TWO\nTHREE\n", id="changed"),
])  # fmt: skip
def test_a_removal_that_did_not_happen_is_never_there_already(base: str, now: str, new: str) -> None:
    outcome = rebase.truncate(new, facts(now, base=base))
    assert isinstance(outcome, ConflictOutcome)
    assert outcome.regions
    assert not rebased(*(tuple(text.splitlines()) for text in (base, now, new))).lines  # nor when it is looked at again


@pytest.mark.parametrize(
    ("changes", "now", "error"),
    [
        pytest.param([Replacement("line", "x")], TEN, SearchAmbiguous, id="many places"),
        pytest.param([Replacement("nowhere", "x")], TEN, SearchNotFound, id="no place"),
        pytest.param([Replacement("line 5", "line 5")], TEN, NothingToChange, id="no change"),
        pytest.param([Replacement("a", "b")], None, FileNotFound, id="no file"),
        pytest.param([Replacement("a", "b")], "a\0b", BinaryFile, id="binary"),
    ],
)
def test_edit_refusals(changes: list[Replacement], now: str | None, error: type[Exception]) -> None:
    with pytest.raises(error):
        rebase.edit(changes, facts(now))


def test_a_refusal_shows_the_present_lines_and_says_which() -> None:
    with pytest.raises(SearchNotFound) as refused:
        rebase.edit([Replacement("line 5 or so\n", "x\n")], facts(TEN))
    assert refused.value.quotes == PATH
    assert refused.value.shown is None, "not before secrets in the text are hidden"
    quote(refused.value, PATH, facts(TEN).version, ShownText(new_document(TEN), NOTHING_HIDDEN))
    assert refused.value.shown is not None
    assert "     6\tline 5\n" in refused.value.shown
    seen = refused.value.seen
    assert seen is not None
    assert (seen.path, seen.version, seen.total_lines) == (PATH, facts(TEN).version, 10)
    assert any(lines.start <= 6 <= lines.end for lines in seen.ranges)


@pytest.mark.parametrize(
    ("now", "base", "whole", "expected"),
    [
        pytest.param(TEN, TEN, True, "new\n", id="seen as it is"),
        pytest.param(None, None, True, "new\n", id="not there yet"),
    ],
)
def test_truncate(now: str | None, base: str | None, whole: bool, expected: str) -> None:
    outcome = rebase.truncate("new\n", facts(now, base=base, whole=whole))
    assert after(outcome) == expected
    assert isinstance(outcome, Apply)
    assert outcome.fit.on_seen_whole


def test_truncate_needs_a_base_and_does_not_name_the_present_version() -> None:
    with pytest.raises(BaseRequired) as refused:
        rebase.truncate("new\n", facts(TEN, version=77))
    assert "77" not in refused.value.message + refused.value.hint + str(refused.value.details)


def test_a_stale_truncate_is_merged_where_it_can_be() -> None:
    now = TEN.replace("line 0", "zero")
    merged = rebase.truncate(TEN.replace("line 9", "nine"), facts(now, base=TEN))
    assert after(merged) == now.replace("line 9", "nine")
    assert isinstance(merged, Apply)
    assert (merged.fit.rung, merged.fit.on_seen_whole) == ("merged", False)
    assert isinstance(rebase.truncate("all new\n", facts(now, base=TEN)), ConflictOutcome)


def test_truncate_of_a_file_that_went_away_is_kept() -> None:
    outcome = rebase.truncate("new\n", facts(None, base=TEN))
    assert isinstance(outcome, ConflictOutcome)
    assert outcome.proposed == b"new\n"


def test_append_goes_on_whatever_is_there() -> None:
    assert after(rebase.append("more\n", facts("a\r\nb\r\n"))) == "a\r\nb\r\nmore\r\n"
    assert after(rebase.append("more\n", facts(None))) == "more\n"


@pytest.mark.parametrize(
    ("now", "more", "warned"),
    [
        pytest.param("a\nb", "c\n", True, id="the last line has no end"),
        pytest.param("a\nb", "\nc\n", False, id="the text begins with one"),
        pytest.param("a\nb\n", "c\n", False, id="the last line has one"),
        pytest.param("", "c\n", False, id="empty"),
    ],
)
def test_append_warns_where_it_continues_the_last_line(now: str, more: str, warned: bool) -> None:
    outcome = rebase.append(more, facts(now))
    assert after(outcome) == now + more
    assert isinstance(outcome, Apply)
    assert outcome.fit.warnings == ((rebase.CONTINUED,) if warned else ())


PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -5,3 +5,3 @@\n line 4\n-line 5\n+LINE 5\n line 6\n"


def patched(patch: FilePatch, here: Facts) -> Outcome:
    return Patch.of(here.path, patch).decide({here.path: here})


def test_patch_on_its_base_and_on_a_moved_one() -> None:
    parsed = parse(PATCH).files[0]
    assert after(patched(parsed, facts(TEN, base=TEN))) == TEN.replace("line 5", "LINE 5")
    moved = "x\n" + TEN
    assert after(patched(parsed, facts(moved, base=TEN))) == moved.replace("line 5", "LINE 5")


def test_patch_that_creates_and_patch_that_deletes() -> None:
    create = parse("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n").files[0]
    assert after(patched(create, facts(None))) == "one\ntwo\n"
    with pytest.raises(FileExists):
        patched(create, facts(TEN, base=TEN))
    delete = parse("--- a/a.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n").files[0]
    outcome = patched(delete, facts("one\ntwo\n", base="one\ntwo\n"))
    assert isinstance(outcome, Apply)
    assert outcome.paths[0].after is None
    with pytest.raises(PatchInvalid):
        patched(delete, facts("one\ntwo\nthree\n", base="one\ntwo\nthree\n"))


def test_patch_refusals() -> None:
    parsed = parse(PATCH).files[0]
    with pytest.raises(BaseRequired):
        patched(parsed, facts(TEN + TEN))
    with pytest.raises(FileNotFound):
        patched(parsed, facts(None))
    with pytest.raises(SearchNotFound):
        patched(parsed, facts("other\n", base="other\n"))


def test_a_character_that_the_encoding_lacks_is_named() -> None:
    latin = "caf\xe9\n".encode("latin-1")
    here = facts("")
    here = type(here)(PATH, type(here.held)(latin, digest_of(latin), 0o644) if here.held else None, here.version)
    with pytest.raises(CharacterNotEncodable, match=r"U\+20AC"):
        rebase.edit([Replacement("caf", "€")], here)


lines = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=12).map(
    lambda rows: "".join(f"{r}\n" for r in rows)
)


@settings(max_examples=300, deadline=None)
@given(base=lines, now=lines, proposed=lines)
def test_nothing_is_lost_whatever_meets(base: str, now: str, proposed: str) -> None:
    """A stale write is applied on the present, refused as done already, or kept whole as a clash."""
    try:
        outcome = rebase.truncate(proposed, facts(now, base=base))
    except NothingToChange:
        return
    if isinstance(outcome, ConflictOutcome):
        assert outcome.proposed == proposed.encode()
        return
    result = after(outcome)
    if base == now:
        assert result == proposed
    if base == proposed:
        assert result == now


def test_a_blind_caller_learns_nothing_from_the_outcome() -> None:
    """A secret's content can't be guessed by proposing it: the guess waits for a person like any other."""
    here = msgspec.structs.replace(facts(TEN, base=TEN, base_version=9, implied=False), content_hidden=True)
    for guess in (TEN, "something else\n"):
        assert isinstance(rebase.truncate(guess, here), Apply)
        assert isinstance(rebase.append(guess, here), Apply)
    for now in ("x\n" + TEN, TEN):  # also where the old content came back: the version alone tells
        stale = msgspec.structs.replace(facts(now, base=TEN, implied=False), content_hidden=True)
        for guess in (TEN, "x\n" + TEN, "something else\n"):
            with pytest.raises(StaleBase):
                rebase.truncate(guess, stale)


@pytest.mark.parametrize("data", [b"\x00\x01\x02" * 9, "\u00e9".encode("latin-1"), "a".encode("utf-16"), b""])
def test_a_blind_caller_learns_no_encoding(data: bytes) -> None:
    here = msgspec.structs.replace(facts(TEN, base=TEN, base_version=9), content_hidden=True)
    here = msgspec.structs.replace(here, held=Held(data, digest_of(data), 0o644), base=Base(Seq(9), digest_of(data)))
    for decide in (rebase.truncate, rebase.append):
        applied = decide("\u00e9\U0001f511\n", here)
        assert isinstance(applied, Apply)
        written = new_data(applied)
        assert any("\u00e9\U0001f511\n" in written.decode(as_, "replace") for as_ in ("utf-8", "utf-16"))


def test_a_patch_of_files_that_nobody_read_names_all_of_them() -> None:
    paths = tuple(map(WorkspacePath, ("a.txt", "b.txt", "c.txt")))
    rows = "".join(f"*** Add File: {path}\n+new\n" for path in paths)
    patches = parse(f"*** Begin Patch\n{rows}*** End Patch\n").files
    command = Patch(
        files=tuple(FilePart(path=path, target=path, patch=one) for path, one in zip(paths, patches, strict=True))
    )
    here = {path: facts("old\n", path=path, base="old\n" if path == "b.txt" else None) for path in paths}
    with pytest.raises(BaseRequired) as refused:
        command.decide(here)
    assert refused.value.details == {"path": "a.txt", "paths": ["a.txt", "c.txt"]}
    assert refused.value.message == (
        "a.txt: the file exists, and this session has not seen all of it. The same holds for c.txt. "
        "None of the patch's files was changed."
    )
