from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.errors import ChangesOverlap, NothingToChange, PatchInvalid, SearchAmbiguous, SearchNotFound
from orchestrator.core.text.edits import replace_text, splice
from orchestrator.core.text.encoding import Document, decode, encode, new_document
from orchestrator.core.text.forms.hunks import FilePatch, PatchHunk, Tag
from orchestrator.core.text.forms.recognise import parse
from orchestrator.core.text.forms.rows import Rows
from orchestrator.core.text.forms.unified import parse_rows
from orchestrator.core.text.patch import locate_patch
from orchestrator.core.text.unified_diff import document_diff
from tests.core.text.strategies import lf_text, quick
from tests.core.text.strategies_git import ALPHABETS, three

HUNK = "@@ -1,2 +1,2 @@\n a\n-b\n+B\n"
LINES: tuple[tuple[Tag, str], ...] = ((" ", "a"), ("-", "b"), ("+", "B"))


def one(text: str) -> FilePatch:
    """A unified diff of one file."""
    (patch,) = parse_rows(Rows(text))
    return patch


@pytest.mark.parametrize(("text", "patch"), [
    pytest.param(f"--- a/x.py\n+++ b/x.py\n{HUNK}", FilePatch("x.py", "x.py", (PatchHunk(0, LINES),)), id="plain"),
    pytest.param(HUNK, FilePatch(None, None, (PatchHunk(0, LINES),), False), id="without paths"),
    pytest.param(HUNK + "\n \n\n", FilePatch(None, None, (PatchHunk(0, LINES),), False), id="blank lines after it"),
    pytest.param(HUNK.rstrip("\n"), FilePatch(None, None, (PatchHunk(0, LINES),), False), id="not ended"),
    pytest.param(HUNK.replace("\n", "\r\n"), FilePatch(None, None, (PatchHunk(0, LINES),), False), id="crlf"),
    pytest.param(
        f"diff --git a/x b/x\nindex 1..2 100644\n--- a/x\t2026\n+++ b/x\t2026\n{HUNK}",
        FilePatch("x", "x", (PatchHunk(0, LINES),)),
        id="git's preamble, time stamps",
    ),
    pytest.param(
        "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n",
        FilePatch(None, "n", (PatchHunk(0, (("+", "x"),), False, True),)),
        id="created, no final newline",
    ),
    pytest.param(
        "--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
        FilePatch("n", None, (PatchHunk(0, (("-", "x"),)),)),
        id="deleted",
    ),
    pytest.param(
        '--- "a/\\303\\251\\t\\"x"\n+++ "b/\\303\\251\\t\\"x"\n' + HUNK,
        FilePatch('é\t"x', 'é\t"x', (PatchHunk(0, LINES),)),
        id="quoted",
    ),
    pytest.param(f"--- a/x\n+++ a/x\n{HUNK}", FilePatch("a/x", "a/x", (PatchHunk(0, LINES),)), id="no prefixes"),
    pytest.param(
        "@@ -3 +3 @@ def f():\n-a\n\\ No newline at end of file\n+a\n",
        FilePatch(None, None, (PatchHunk(2, (("-", "a"), ("+", "a")), True, False, ("def f():",)),), False),
        id="only the newline, with a section name",
    ),
    pytest.param(
        "@@ -1,2 +1,3 @@\n a\n\n+b\n",
        FilePatch(None, None, (PatchHunk(0, ((" ", "a"), (" ", ""), ("+", "b"))),), False),
        id="an empty context line without its blank",
    ),
    pytest.param(
        "@@ -1,4 +1,3 @@\n a\n-b\n+B\n c\n",
        FilePatch(None, None, (PatchHunk(0, (*LINES, (" ", "c")), counted=False),), False),
        id="counts too many",
    ),
    pytest.param(
        "@@ -1 +1 @@\n a\n-b\n+B\n", FilePatch(None, None, (PatchHunk(0, LINES, counted=False),), False), id="too few"
    ),
    pytest.param("@@ @@\n a\n-b\n+B\n", FilePatch(None, None, (PatchHunk(None, LINES),), False), id="no numbers"),
    pytest.param("@@ ... @@\n a\n-b\n+B\n", FilePatch(None, None, (PatchHunk(None, LINES),), False), id="dots"),
    pytest.param(
        "@@ class X @@\n@@ def f\n a\n-b\n+B\n",
        FilePatch(None, None, (PatchHunk(None, LINES, anchors=("class X", "def f")),), False),
        id="headings, one below the other",
    ),
    pytest.param(
        "@@ -1,2 +1,2\na\n-b\n+B\n",
        FilePatch(None, None, (PatchHunk(0, LINES, bare=frozenset({0})),), False),
        id="half a header, context without its blank",
    ),
    pytest.param(
        "@@ -0,2 +0,2 @@\n a\n-b\n+B\n", FilePatch(None, None, (PatchHunk(None, LINES),), False), id="counted from 0"
    ),
    pytest.param(
        f"Here it is:\n```diff\n--- a/x\n+++ b/x\n{HUNK}```\n- done\n",
        FilePatch("x", "x", (PatchHunk(0, LINES),)),
        id="fenced, with prose around",
    ),
    pytest.param(
        f"--- x (original)\n+++ x 2026-01-02 03:04:05\n{HUNK}",
        FilePatch("x", "x", (PatchHunk(0, LINES),)),
        id="remarks behind the paths",
    ),
    pytest.param(f"{HUNK}\nThat is all.\n", FilePatch(None, None, (PatchHunk(0, LINES),), False), id="prose after it"),
    pytest.param(f"{HUNK}-- \n2.43.0\n", FilePatch(None, None, (PatchHunk(0, LINES),), False), id="signed by git"),
])  # fmt: skip
def test_parse(text: str, patch: FilePatch) -> None:
    assert one(text) == patch


@pytest.mark.parametrize(("text", "line", "why"), [
    pytest.param("", 1, "no hunk", id="empty"),
    pytest.param(f"```\n{HUNK}```\nso\n+c\n", 8, "belongs to no hunk", id="a changed line outside"),
    pytest.param("@@ -1 +1 @@\n-a\rb\n+c\n", 2, "carriage return", id="a lone carriage return"),
    pytest.param("--- a/x\n+++ b/x\n", 3, "no hunk", id="paths only"),
    pytest.param("hello\n", 2, "no hunk", id="prose"),
    pytest.param("--- a/x\n@@ -1 +1 @@\n-a\n+b\n", 2, r"'\+\+\+'", id="half the paths"),
    pytest.param(f"{HUNK}diff --git a/y b/y\n", 6, "no hunk", id="a second file without hunks"),
    pytest.param("diff --git a/x b/y\nrename from x\n", 3, "no hunk", id="half a rename"),
    pytest.param("diff --git a/x b/y\ncopy from x\ncopy to y\n", 2, "copies", id="a copy"),
    pytest.param("@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n", 2, "must follow", id="a mark without line"),
    pytest.param("@@ -0,0 +0,0 @@\n", 2, "empty", id="an empty hunk"),
    pytest.param("@@ -1,3 +1,2 @@\n a\n-b\n+B\n", 5, "cut off", id="cut off"),
    pytest.param("@@ -1,3 +1,3 @@\n a\n-b\n-c", 4, "cut off", id="cut off before what is added"),
    pytest.param("@@ x\n" * 40, 18, "headings", id="headings below headings"),
])  # fmt: skip
def test_parse_refuses(text: str, line: int, why: str) -> None:
    with pytest.raises(PatchInvalid, match=why) as caught:
        one(text)
    assert caught.value.details["line"] == line


def test_a_placeholder_for_lines_is_refused() -> None:
    with pytest.raises(PatchInvalid, match="left out") as caught:
        parse("@@ -1 +1 @@\n-a\n+# ... existing code ...\n")
    assert caught.value.details["line"] == 3


SEVERAL = """--- a/x y
+++ b/z
@@ -1,2 +1,2 @@
 k
-a
+b
--- /dev/null
+++ b/made
@@ -0,0 +1 @@
+a
diff --git a/edited b/edited
index 1..2 100644
--- a/edited
+++ b/edited
@@ -1 +1 @@
-a
+b
diff --git a/empty b/empty
new file mode 100644
index 0000000..e69de29
diff --git a/from b/to
similarity index 100%
rename from from
rename to to
diff --git "a/gr\\303\\266\\303\\237e" "b/gr\\303\\266\\303\\237e"
deleted file mode 100644
index e69de29..0000000
"""


def test_parse_several() -> None:
    found = [(patch.old_path, patch.new_path, len(patch.hunks), patch.renames) for patch in parse_rows(Rows(SEVERAL))]
    assert found == [
        ("x y", "z", 1, True),
        (None, "made", 1, False),
        ("edited", "edited", 1, False),
        (None, "empty", 0, False),
        ("from", "to", 0, True),
        ("größe", None, 0, False),
    ]


def test_a_rename_without_hunks_may_be_followed_by_a_plain_patch() -> None:
    text = f"diff --git a/x b/y\nrename from x\nrename to y\n--- a/z\n+++ b/z\n{HUNK}"
    assert [(patch.old_path, patch.new_path) for patch in parse_rows(Rows(text))] == [("x", "y"), ("z", "z")]


@pytest.mark.parametrize(("head", "executable"), [
    pytest.param("new file mode 100755\n--- /dev/null\n+++ b/x\n", True, id="made"),
    pytest.param("new file mode 100644\n--- /dev/null\n+++ b/x\n", False, id="made plain"),
    pytest.param("old mode 100644\nnew mode 100755\nindex 1..2\n--- a/x\n+++ b/x\n", True, id="set"),
    pytest.param("index 1..2 100755\n--- a/x\n+++ b/x\n", None, id="as it was"),
])  # fmt: skip
def test_whether_a_file_is_executable_is_read(head: str, executable: bool | None) -> None:
    assert one(f"diff --git a/x b/x\n{head}@@ -0,0 +1 @@\n+a\n").executable is executable


def test_only_the_mode_changes() -> None:
    (patch,) = parse_rows(Rows("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"))
    assert (patch.old_path, patch.new_path, patch.hunks, patch.executable) == ("x", "x", (), True)


@pytest.mark.parametrize("mode", ["120000", "160000", "040000", "1"])
def test_links_and_submodules_are_refused(mode: str) -> None:
    with pytest.raises(PatchInvalid, match="link or a submodule"):
        parse_rows(Rows(f"diff --git a/x b/x\nnew file mode {mode}\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"))


@pytest.mark.parametrize(("text", "why"), [
    pytest.param(f"--- /dev/null\n+++ b/x\n{HUNK}--- a/x\n+++ b/x\n{HUNK}", "twice", id="made, then changed"),
    pytest.param(f"--- a/x\n+++ b/y\n{HUNK}--- a/y\n+++ b/y\n{HUNK}", "twice", id="renamed onto another"),
    pytest.param(f"{HUNK}--- a/y\n+++ b/y\n{HUNK}", "names no file", id="one without a name"),
])  # fmt: skip
def test_parse_refuses_several(text: str, why: str) -> None:
    with pytest.raises(PatchInvalid, match=why):
        parse(text)


@pytest.mark.parametrize(("base", "patch", "after"), [
    pytest.param("a\nb\n", HUNK, "a\nB\n", id="at its line"),
    pytest.param("x\ny\na\nb\n", HUNK, "x\ny\na\nB\n", id="at the one place where it fits"),
    pytest.param("a\nb\na\nb\n", HUNK, "a\nB\na\nb\n", id="its line wins over others"),
    pytest.param("a\nb", HUNK, "a\nB", id="no final newline stays, mark or not"),
    pytest.param("a\n", "@@ -1,0 +2 @@\n+x\n", "a\nx\n", id="inserted after line 1"),
    pytest.param("", "@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n", "x\ny", id="created"),
    pytest.param("a", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", "a\n", id="the newline comes"),
    pytest.param("a\n", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", "a", id="the newline goes"),
    pytest.param("a\nb\nc\n", "@@ -1 +1 @@\n-a\n+A\n@@ -3 +3 @@\n-c\n+C\n", "A\nb\nC\n", id="two hunks"),
    pytest.param("a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", "b\n", id="a mark too many"),
    pytest.param("a\nb\n", "@@ -2 +2 @@\n-b\n+B\n@@ -1 +1 @@\n-a\n+A\n", "A\nB\n", id="out of order"),
    pytest.param("a\nb\nc\n", "@@ @@\n-a\n+A\n b\n@@ @@\n b\n-c\n+C\n", "A\nb\nC\n", id="shared context"),
    pytest.param("a\nb\n", "@@ -1,2 +1,2 @@\n 1\ta\n-2\tb\n+2\tB\n", "a\nB\n", id="with the line numbers of a read"),
    pytest.param("  a\n  b\n", "@@ @@\n  a\n-  b\n+  B\n", "  a\n  B\n", id="context without its leading blank"),
    pytest.param(
        "def f():\n    x\n    y\n\ndef g():\n    x\n    y\n", "@@ def g\n     x\n-    y\n+    z\n",
        "def f():\n    x\n    y\n\ndef g():\n    x\n    z\n", id="below a heading",
    ),
])  # fmt: skip
def test_locate(base: str, patch: str, after: str) -> None:
    doc = new_document(base)
    assert splice(doc, locate_patch(one(patch), doc).edits).text == after


@pytest.mark.parametrize(("base", "patch", "error", "lines"), [
    pytest.param("x\n", HUNK, SearchNotFound, None, id="nowhere"),
    pytest.param("x\na\nb\na\nb\n", HUNK, SearchAmbiguous, [2, 4], id="twice"),
    pytest.param("a\n", "@@ -9,0 +9 @@\n+x\n", SearchAmbiguous, [], id="inserted beyond the end"),
    pytest.param("a\nb\n", "@@ -1,0 +2 @@\n+x\n", SearchAmbiguous, [], id="a line alone says where"),
    pytest.param("a\nb\n", "@@ @@\n-a\n+A\n@@ @@\n-a\n b\n", ChangesOverlap, [1], id="removed twice"),
    pytest.param("a\nb\n", "@@ @@\n a\n+A\n b\n@@ @@\n a\n+B\n b\n", ChangesOverlap, [2], id="one gap, two added"),
    pytest.param(
        "a\nb\nq\na\nb\n", "@@ -4,3 +4,2 @@\n-a\n+A\n b\n", SearchAmbiguous, [1, 4], id="a miscounting header"
    ),
    pytest.param(
        "a\nb\nq\nz\na\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ -3 +3 @@\n-z\n+Z\n", SearchAmbiguous, [1, 5],
        id="nor is a right one beside a wrong one",
    ),
    pytest.param("a\n", "@@ -1 +1 @@\n a\n", NothingToChange, None, id="context only"),
])  # fmt: skip
def test_locate_refuses(base: str, patch: str, error: type[Exception], lines: list[int] | None) -> None:
    with pytest.raises(error) as caught:
        locate_patch(one(patch), new_document(base))
    assert getattr(caught.value, "details", {}).get("lines") == lines


def patched(doc: Document, after: Document) -> Document:
    text = document_diff(("x", "x"), doc, after).text
    return splice(doc, locate_patch(one(text), doc).edits) if text else doc


@quick
@given(lf_text, lf_text)
def test_a_diff_applied_gives_the_target(before: str, after: str) -> None:
    assert patched(new_document(before), new_document(after)).text == after


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_larger_diffs_apply_too(alphabet: str) -> None:
    r = Random(alphabet)
    for _ in range(60):
        _, a, b = three(r, ALPHABETS[alphabet])
        before, after = (Document(tuple(side), ("\n",) * len(side)) for side in (a, b))
        assert patched(before, after) == after


@quick
@given(lf_text, st.sampled_from(["\n", "\r\n"]))
def test_a_patch_keeps_the_file_s_endings(text: str, end: str) -> None:
    doc = decode(f"top{end}middle{end}".encode())
    assert doc is not None
    after = replace_text(doc, f"top\n{text}\nmiddle\n")
    assert encode(patched(doc, after)) == f"top\n{text}\nmiddle\n".replace("\n", end).encode()
