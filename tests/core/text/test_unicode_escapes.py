r"""Passages that a client decoded: found as the file spells them, and no other byte is changed."""

from __future__ import annotations

import json
import re
from difflib import unified_diff

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.errors import ExpectMismatch, SearchAmbiguous, SearchNotFound
from orchestrator.core.text.edits import splice
from orchestrator.core.text.encoding import encode, new_document
from orchestrator.core.text.forms.recognise import parse
from orchestrator.core.text.locate import Change, Found, LineReplacement, Replacement, locate_changes
from orchestrator.core.text.patch import locate_patch, respelled_patch


def located(text: str, *changes: Change) -> tuple[str, Found]:
    doc = new_document(text)
    found = locate_changes(doc, changes, lenient=True)
    return encode(splice(doc, found.edits)).decode(), found


def decoded(text: str) -> str:
    """As the client does it: every escape, with no regard to what stands before it."""
    units = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@pytest.mark.parametrize(
    ("text", "search", "replace", "after"),
    [
        pytest.param(r'a = "caf\u00e9"', 'a = "café"', 'b = "café"', r'b = "caf\u00e9"', id="kept"),
        pytest.param(r'"caf\u00E9"', '"café"', '"naïve"', r'"na\u00EFve"', id="a new one, in the file's hex digits"),
        pytest.param(r'"\u003cb\u003e"', '"<b>"', '"<i>"', r'"\u003ci\u003e"', id="ASCII"),
        pytest.param(r'"\u003cb\u003e"', "<b>", "<b>x<b>", r'"\u003cb\u003ex\u003cb\u003e"', id="ASCII again"),
        pytest.param(r"x \ud83d\ude00 y", "😀 y", "😀😁 z", r"x \ud83d\ude00\ud83d\ude01 z", id="a pair"),
        pytest.param(r"x \u00e9", "x é", "x é😀", r"x \u00e9😀", id="no pair was there, so none is made"),
        pytest.param(r"\u001b[0m", "\x1b[0m", "\x1b[1m\x07", r"\u001b[1m\u0007", id="controls"),
        pytest.param(r"é \u00e9 x", "é é x", "é é y", r"é \u00e9 y", id="both ways, in what is kept"),
        pytest.param("é\n" + r"b = '\u00e9 '", "b = 'é '", "b = ''", "é\nb = ''", id="removed"),
        pytest.param(r"\\u00e9 x", "\\é x", "\\é y", r"\\u00e9 y", id="behind a backslash"),
        pytest.param(r"1 \u00e9" + "\n2\n", "1 é\n2\n", "1 é\n3\n", r"1 \u00e9" + "\n3\n", id="lines"),
    ],
)
def test_it_is_found_and_its_replacement_spelled_likewise(text: str, search: str, replace: str, after: str) -> None:
    changed, found = located(text, Replacement(search, replace, unescaped=True))
    assert changed == after
    (warning,) = found.warnings
    assert "as the file spells it" in warning
    with pytest.raises(SearchNotFound):
        located(text, Replacement(search, replace, fuzzy=True))


@pytest.mark.parametrize(
    ("text", "search", "replace", "why"),
    [
        pytest.param(r"\u00e9 \u00e9", "é", "e", "is not in the file", id="twice"),
        pytest.param(r"é\u00e9 x", "éé x", "é x", "not certain", id="which of the two goes"),
        pytest.param(r"\u00e9 ü", "é ü", "é ä", "not certain", id="beside one unescaped"),
        pytest.param(r"\u00e9 é x", "é é x", "é é é", "not certain", id="one more of both"),
        pytest.param(r"a\u000ab", "a\nb", "a\nc", "is not in the file", id="a line's end"),
        pytest.param(r"\ud83d x", "\ufffd x", "y", "is not in the file", id="half a pair"),
        pytest.param(r"\u00zz é", "\u00e9 ü", "y", "is not in the file", id="no escape"),
    ],
)
def test_what_is_not_certain_is_refused(text: str, search: str, replace: str, why: str) -> None:
    with pytest.raises(SearchNotFound, match=why):
        located(text, Replacement(search, replace, unescaped=True))


def test_what_is_there_as_quoted_is_changed_there() -> None:
    changed, found = located(r"é \u00e9", Replacement("é", "e", unescaped=True))
    assert (changed, found.warnings) == (r"e \u00e9", ())


def test_lines_by_number() -> None:
    text = r"é \u00e9" + "\n" + r"x = '\u00e9'" + "\n"
    changed, found = located(text, LineReplacement(2, 2, "x = 'é'", "y = 'é'", unescaped=True))
    assert changed == r"é \u00e9" + "\n" + r"y = '\u00e9'" + "\n"
    assert found.warnings
    for change in (LineReplacement(2, 2, "x = 'é'", "y"), LineReplacement(2, 2, "'é'", "y", unescaped=True)):
        with pytest.raises(ExpectMismatch):
            located(text, change)


ROWS = r"""a = 1
b = "caf\u00e9"
c = 3
d = "\u2713"
"""
DECODED = """--- a/f
+++ b/f
@@ -1,4 +1,4 @@
 a = 1
 b = "café"
-c = 3
-d = "✓"
+c = 4
+d = "✗✓"
"""


def patched(patch: str, text: str, *, unescaped: bool) -> str:
    doc = new_document(text)
    given = parse(patch, None).files[0]
    found = locate_patch(respelled_patch(given, doc) if unescaped else given, doc)
    return encode(splice(doc, found.edits)).decode()


def test_a_patch_is_respelled_with_its_context() -> None:
    after = ROWS.replace("c = 3", "c = 4").replace(r'"\u2713"', r'"\u2717\u2713"')
    assert patched(DECODED, ROWS, unescaped=True) == after
    with pytest.raises(SearchNotFound):
        patched(DECODED, ROWS, unescaped=False)


def test_a_patch_that_is_not_certain_stays_as_it_was_sent() -> None:
    with pytest.raises(SearchNotFound):
        patched(DECODED, ROWS.replace("c = 3", "c = 3 # ü").replace("b =", "bb ="), unescaped=True)
    mixed = DECODED.replace(' b = "café"', ' b = "café" é').replace('"✗✓"', '"é"')
    with pytest.raises(SearchNotFound):
        patched(mixed, ROWS.replace('u00e9"', 'u00e9" é'), unescaped=True)


PIECES = st.sampled_from(["a", "b ", "é", "ü", "😀", "<", "\\", "'", *map(json.dumps, "éü😀"), r"\u003c", r"\u00E9"])
TEXTS = st.lists(PIECES.map(lambda piece: piece.strip('"')), max_size=12).map("".join)


@given(before=TEXTS, passage=TEXTS, after=TEXTS, new=TEXTS, more=TEXTS)
def test_no_byte_beside_the_passage_is_changed(before: str, passage: str, after: str, new: str, more: str) -> None:
    """Whatever file, quote and replacement: what is written reads as was asked for, and what surrounds it stays."""
    text = f"{before}[{passage}]{after}\n{more}\n"
    search, wanted = decoded(f"[{passage}]"), decoded(f"[{new}]")
    if search in text or search == wanted:
        return
    try:
        changed, found = located(text, Replacement(search, wanted, unescaped=True))
    except (SearchNotFound, SearchAmbiguous):
        return
    assert found.warnings
    assert changed.startswith(f"{before}[")
    assert changed.endswith(f"]{after}\n{more}\n")
    assert decoded(changed) == decoded(f"{before}{wanted}{after}\n{more}\n")
    assert decoded(text).count(search) == 1


@given(before=TEXTS, passage=TEXTS, after=TEXTS, new=st.text("abc <", max_size=8))
def test_a_passage_that_is_there_once_is_replaced_by_what_was_meant(
    before: str, passage: str, after: str, new: str
) -> None:
    """Of characters whose spelling is known."""
    text, search = f"{before}[{passage}]{after}", decoded(f"[{passage}]")
    spelled_twice = "<" in passage.replace(r"\u003c", "") and r"\u003c" in passage
    if search in text or decoded(text).count(search) != 1 or spelled_twice:
        return
    meant = new.replace("<", r"\u003c") if r"\u003c" in passage else new
    if decoded(text) == decoded(f"{before}[{new}]{after}"):
        return
    changed, _ = located(text, Replacement(search, f"[{new}]", unescaped=True))
    assert changed == f"{before}[{meant}]{after}"


@given(rows=st.lists(TEXTS, min_size=2, max_size=6), at=st.integers(0, 5), new=TEXTS)
def test_a_patch_changes_the_bytes_of_no_other_line(rows: list[str], at: int, new: str) -> None:
    at %= len(rows)
    after = [*rows[:at], f"new {new}", *rows[at + 1 :]]
    diff = unified_diff([f"{row}\n" for row in rows], [f"{row}\n" for row in after], "a/f", "b/f", n=1)
    try:
        changed = patched(decoded("".join(diff)), "".join(f"{row}\n" for row in rows), unescaped=True).split("\n")[:-1]
    except (SearchNotFound, SearchAmbiguous):
        return
    assert [*changed[:at], *changed[at + 1 :]] == [*rows[:at], *rows[at + 1 :]]
    assert decoded(changed[at]) == decoded(after[at])
