"""Patches by hand: what no rule makes, and what must be refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.corpus.case import AMBIGUOUS, INVALID, NOT_FOUND, NOTHING, OVERLAP, TWO_WAYS, Case

A = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"
TWINS = "def f(x):\n    y = 1\n    return y\n\n\ndef g(x):\n    y = 1\n    return y\n"
NESTED = "class A:\n    def f(self):\n        pass\n\nclass B:\n    def f(self):\n        pass\n"
DOC = "# Patches\n\n```diff\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n```\n\nThat was one.\n"
CONFLICT = "top\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\nend\n"
HEAD = "--- a/a.txt\n+++ b/a.txt\n"
BEGIN, END = "*** Begin Patch\n", "*** End Patch\n"
TWO = "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
DONE = A.replace("two", "TWO")


def applies(
    name: str,
    before: str | Mapping[str, str],
    patch: str,
    after: str | Mapping[str, str | None],
    path: str | None = None,
    form: str | None = None,
) -> Case:
    old = {"a.txt": before} if isinstance(before, str) else before
    new = {"a.txt": after} if isinstance(after, str) else after
    return Case(name=name, before=old, patch=patch, after=new, path=path, form=form)


def refused(name: str, before: str | Mapping[str, str], patch: str, *codes: str, path: str | None = None) -> Case:
    old = {"a.txt": before} if isinstance(before, str) else before
    return Case(name=name, before=old, patch=patch, codes=frozenset(codes), path=path)


def cases() -> Iterator[Case]:
    yield from _unified()
    yield from _begin_patch()
    yield from _blocks()
    yield from _as_agents_send_them()
    yield from _whole_files()
    yield from _several()
    yield from _misquoted()
    yield from _indented_by_one()


def _unified() -> Iterator[Case]:
    yield applies(
        "a mailed patch",
        A,
        f"From 1a2b Mon Sep 17\nSubject: two\n\n---\n a.txt | 2 +-\n\ndiff --git a/a.txt b/a.txt\nindex 1..2 100644\n{HEAD}{TWO}-- \n2.43.0\n\n",
        DONE,
    )
    yield applies(
        "subversion's header",
        A,
        f"Index: a.txt\n{'=' * 67}\n--- a.txt\t(revision 1)\n+++ a.txt\t(working copy)\n{TWO}",
        DONE,
    )
    yield applies("a command above", A, f"$ git diff\n{HEAD}{TWO}", DONE)
    yield applies("one prefix only", A, f"--- a/a.txt\n+++ a.txt\n{TWO}", DONE)
    yield applies("a byte order mark", A, f"\ufeff{HEAD}{TWO}", DONE)
    yield applies("no blank behind the last at-signs", A, f"{HEAD}@@ -1,3 +1,3 @@one\n one\n-two\n+TWO\n three\n", DONE)
    yield applies("three at-signs", A, f"{HEAD}@@@ -1,3 +1,3 @@@\n one\n-two\n+TWO\n three\n", DONE)
    yield applies("counted from 0", A, f"{HEAD}@@ -0,3 +0,3 @@\n one\n-two\n+TWO\n three\n", DONE)
    yield applies("removed after added", A, f"{HEAD}@@ -1,3 +1,3 @@\n one\n+TWO\n-two\n three\n", DONE)
    yield applies("signs with a tab", "one\n\ttwo\n", f"{HEAD}@@ -1,2 +1,2 @@\n one\n-\ttwo\n+\tTWO\n", "one\n\tTWO\n")
    yield applies("a removed line that looks like a header", "-- a\nx\n", f"{HEAD}@@ -1,2 +1,1 @@\n--- a\n x\n", "x\n")
    yield applies("an added line that looks like a header", "x\n", f"{HEAD}@@ -1,1 +1,2 @@\n x\n+++ y\n", "x\n++ y\n")
    yield applies("a removed and an added one", "-- a\nx\n", f"{HEAD}@@ -1,2 +1,2 @@\n--- a\n+++ b\n x\n", "++ b\nx\n")
    yield applies(
        "a patch in a document is changed",
        {"d.md": DOC},
        "--- a/d.md\n+++ b/d.md\n@@ -6,3 +6,3 @@\n @@ -1 +1 @@\n--a\n+-z\n +b\n",
        {"d.md": DOC.replace("\n-a\n", "\n-z\n")},
    )
    yield applies(
        "a conflict is settled",
        CONFLICT,
        f"{HEAD}@@ -1,7 +1,3 @@\n top\n-<<<<<<< HEAD\n-ours\n-=======\n theirs\n->>>>>>> other\n end\n",
        "top\ntheirs\nend\n",
    )
    yield applies(
        "below a heading",
        TWINS,
        f"{HEAD}@@ def g(x):\n     y = 1\n-    return y\n+    return 2\n",
        TWINS[: -len("return y\n")] + "return 2\n",
    )
    yield applies(
        "below a part of one",
        TWINS,
        f"{HEAD}@@ def g\n     y = 1\n-    return y\n+    return 2\n",
        TWINS[: -len("return y\n")] + "return 2\n",
    )
    yield applies(
        "below two",
        NESTED,
        f"{HEAD}@@ class B:\n@@ def f(self):\n-        pass\n+        return 1\n",
        NESTED[: -len("pass\n")] + "return 1\n",
    )
    yield applies(
        "the heading is repeated as context",
        TWINS,
        f"{HEAD}@@ def g(x):\n def g(x):\n-    y = 1\n+    y = 2\n",
        TWINS.replace("    y = 1", "    y = 2").replace("    y = 2", "    y = 1", 1),
    )
    yield applies(
        "the right line among twins",
        TWINS,
        f"{HEAD}@@ -7,2 +7,2 @@\n     y = 1\n-    return y\n+    return 2\n",
        TWINS[: -len("return y\n")] + "return 2\n",
    )
    yield applies(
        "a mark narrows twins to the end",
        "a\nb\na\nb",
        f"{HEAD}@@ -8,2 +8,2 @@\n a\n-b\n\\ No newline at end of file\n+B\n\\ No newline at end of file\n",
        "a\nb\na\nB",
    )
    yield applies(
        "prose between two pieces of one file",
        A,
        "First:\n```\n@@ @@\n-two\n+TWO\n```\nthen:\n```\n@@ @@\n-six\n+SIX\n```\n",
        DONE.replace("six", "SIX"),
        "a.txt",
    )
    yield applies("an empty file is filled", "", f"{HEAD}@@ -0,0 +1,2 @@\n+a\n+b\n", "a\nb\n")
    yield applies("a file is made", {}, "--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n", {"n.txt": "a\nb\n"})
    yield applies(
        "a file is made, counts wrong", {}, "--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1,1 @@\n+a\n+b\n", {"n.txt": "a\nb\n"}
    )
    yield applies("a file is removed", "a\n", "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", {"a.txt": None})
    removed = "--- a/a.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"
    made = "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+c\n"
    yield refused("a file is removed and made anew", "a\nb\n", removed + made, INVALID)
    yield refused("a file is made and removed", "a\nb\n", made + removed, INVALID)
    yield refused("a file is made that is there", "a\nb\n", made, "already_exists")
    yield refused("a file is removed in part", A, "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", INVALID)
    yield refused(
        "the wrong twin's line", TWINS, f"{HEAD}@@ -4,2 +4,2 @@\n     y = 1\n-    return y\n+    return 2\n", AMBIGUOUS
    )
    yield refused("twins without numbers", TWINS, f"{HEAD}@@ @@\n     y = 1\n-    return y\n+    return 2\n", AMBIGUOUS)
    yield refused(
        "twins, a line by a header that miscounts",
        TWINS,
        f"{HEAD}@@ -7,9 +7,9 @@\n-    y = 1\n+    y = 2\n     return y\n",
        AMBIGUOUS,
    )
    yield refused(
        "a heading that is nowhere", TWINS, f"{HEAD}@@ def h(x):\n     y = 1\n-    return y\n+    return 2\n", NOT_FOUND
    )
    yield refused(
        "a heading of another block",
        TWINS.replace("y = 1", "y = 3", 1),
        f"{HEAD}@@ def f(x):\n     y = 1\n-    return y\n+    return 2\n",
        NOT_FOUND,
    )
    yield refused(
        "a heading that stands twice", NESTED, f"{HEAD}@@ def f(self):\n-        pass\n+        return 1\n", AMBIGUOUS
    )
    yield refused("added lines alone, by number", A, f"{HEAD}@@ -3,0 +4,1 @@\n+new\n", AMBIGUOUS)
    yield applies("added lines alone, no number", A, f"{HEAD}@@ @@\n+new\n", f"{A}new\n")
    yield refused("added lines alone, below a heading", TWINS, f"{HEAD}@@ def g(x):\n+new\n", AMBIGUOUS)
    yield refused("two hunks on one line", A, f"{HEAD}@@ @@\n-two\n+TWO\n@@ @@\n-two\n+2\n", OVERLAP)
    yield refused("the same hunk twice", A, f"{HEAD}{TWO}{TWO}", OVERLAP)
    yield refused(
        "one hunk removes another's context", A, f"{HEAD}@@ @@\n-two\n three\n@@ @@\n two\n-three\n+3\n", OVERLAP
    )
    yield refused("context only", A, f"{HEAD}@@ -1,2 +1,2 @@\n one\n two\n", NOTHING)
    yield refused("nothing but blanks", A, " \n\n", INVALID, path="a.txt")
    yield refused("prose", A, "Please change two to TWO.\n", INVALID, path="a.txt")
    yield refused("ed's commands", A, "2c\nTWO\n.\n", INVALID, path="a.txt")
    yield refused(
        "a context diff",
        A,
        "*** a.txt\n--- a.txt\n***************\n*** 2 ****\n! two\n--- 2 ----\n! TWO\n",
        INVALID,
        path="a.txt",
    )
    yield refused("a header without hunks", A, HEAD, INVALID)
    yield refused("an empty hunk", A, f"{HEAD}@@ -1,2 +1,2 @@\n", INVALID)
    yield refused(
        "a binary patch",
        A,
        "diff --git a/a.txt b/a.txt\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZ\n",
        INVALID,
    )
    yield refused(
        "a copy", A, "diff --git a/a.txt b/b.txt\nsimilarity index 100%\ncopy from a.txt\ncopy to b.txt\n", INVALID
    )
    yield refused(
        "a link is made",
        {},
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+a.txt\n",
        INVALID,
    )
    yield refused(
        "escaped line ends", A, "--- a/a.txt\\n+++ b/a.txt\\n@@ -2 +2 @@\\n-two\\n+TWO\\n", INVALID, path="a.txt"
    )
    yield refused("a conflict is sent for a patch", A, CONFLICT, INVALID, path="a.txt")
    yield refused("changed lines after the fence", A, f"```\n{HEAD}{TWO}```\nand\n+more\n", INVALID)
    yield refused(
        "a line stands for those left out",
        A,
        f"{HEAD}@@ -1,2 +1,3 @@\n one\n-two\n+TWO\n+// ... rest of the file\n",
        INVALID,
    )
    yield refused("a carriage return in a line", A, f"{HEAD}@@ -2 +2 @@\n-two\n+TW\rO\n", INVALID)


def _begin_patch() -> Iterator[Case]:
    hunk = "@@\n one\n-two\n+TWO\n three\n"
    yield applies(
        "begin: all four acts",
        {"a.txt": A, "b.txt": "b\n", "c.txt": "c\n"},
        f"{BEGIN}*** Add File: n/new.txt\n+new\n+\n+lines\n*** Update File: a.txt\n{hunk}*** Delete File: b.txt\n*** Update File: c.txt\n*** Move to: d/c.txt\n@@\n-c\n+C\n{END}",
        {"n/new.txt": "new\n\nlines\n", "a.txt": DONE, "b.txt": None, "c.txt": None, "d/c.txt": "C\n"},
        form="begin_patch",
    )
    yield applies("begin: without the frame", A, f"*** Update File: a.txt\n{hunk}", DONE)
    yield applies("begin: without at-signs", A, f"{BEGIN}*** Update File: a.txt\n one\n-two\n+TWO\n three\n{END}", DONE)
    yield applies("begin: numbers", A, f"{BEGIN}*** Update File: a.txt\n{TWO}{END}", DONE)
    yield applies(
        "begin: at the end",
        "a\nb\na\nb\n",
        f"{BEGIN}*** Update File: a.txt\n@@\n a\n-b\n+B\n*** End of File\n{END}",
        "a\nb\na\nB\n",
    )
    yield applies(
        "begin: more at the end", A, f"{BEGIN}*** Update File: a.txt\n@@\n+nine\n*** End of File\n{END}", A + "nine\n"
    )
    yield applies(
        "begin: stacked headings",
        NESTED,
        f"{BEGIN}*** Update File: a.txt\n@@ class B:\n@@     def f(self):\n-        pass\n+        return 1\n{END}",
        NESTED[: -len("pass\n")] + "return 1\n",
    )
    yield applies(
        "begin: moved only", A, f"{BEGIN}*** Update File: a.txt\n*** Move to: b.txt\n{END}", {"a.txt": None, "b.txt": A}
    )
    yield applies(
        "begin: blank rows between files",
        {"a.txt": A, "b.txt": "b\n"},
        f"{BEGIN}\n*** Update File: a.txt\n{hunk}\n*** Update File: b.txt\n@@\n-b\n+B\n\n{END}",
        {"a.txt": DONE, "b.txt": "B\n"},
    )
    yield applies(
        "begin: a blank row in an added file", {}, f"{BEGIN}*** Add File: n.txt\n+a\n\n+b\n{END}", {"n.txt": "a\n\nb\n"}
    )
    yield applies(
        "begin: a patch is added as a file",
        {},
        f"{BEGIN}*** Add File: n.txt\n+*** Begin Patch\n+@@\n+<<<<<<< SEARCH\n{END}",
        {"n.txt": "*** Begin Patch\n@@\n<<<<<<< SEARCH\n"},
    )
    yield refused(
        "begin: twins",
        TWINS,
        f"{BEGIN}*** Update File: a.txt\n@@\n     y = 1\n-    return y\n+    return 2\n{END}",
        AMBIGUOUS,
    )
    yield refused("begin: a signless line in an added file", {}, f"{BEGIN}*** Add File: n.txt\n+a\nb\n{END}", INVALID)
    yield refused("begin: nothing inside", A, f"{BEGIN}{END}", INVALID)
    yield refused("begin: a deletion with other lines", A, f"{BEGIN}*** Delete File: a.txt\n-one\n-zzz\n{END}", INVALID)
    yield refused("begin: a file without hunks", A, f"{BEGIN}*** Update File: a.txt\n{END}", INVALID)
    yield refused("begin: a hunk without lines", A, f"{BEGIN}*** Update File: a.txt\n@@ one\n{END}", INVALID)
    yield refused("begin: no path", A, f"{BEGIN}*** Update File:\n{hunk}{END}", INVALID)
    yield refused(
        "begin: an unknown act", A, f"{BEGIN}*** Update File: a.txt\n{hunk}*** Rename File: a.txt\n{END}", INVALID
    )
    add = "*** Add File: a.txt\n+a\n"
    yield applies("begin: added over a file", A, f"{BEGIN}{add}{END}", "a\n")
    yield applies("begin: nothing is added over a file", A, f"{BEGIN}*** Add File: a.txt\n{END}", "")
    yield applies(
        "begin: added over a file, beside another",
        {"a.txt": A, "b.txt": "b\n"},
        f"{BEGIN}{add}*** Update File: b.txt\n@@\n-b\n+B\n*** Add File: n.txt\n+n\n{END}",
        {"a.txt": "a\n", "b.txt": "B\n", "n.txt": "n\n"},
    )
    yield applies("begin: deleted and added", A, f"{BEGIN}*** Delete File: a.txt\n{add}{END}", "a\n")
    yield applies(
        "begin: deleted and added, another between",
        {"a.txt": A, "b.txt": "b\n"},
        f"{BEGIN}*** Delete File: a.txt\n*** Delete File: b.txt\n{add}{END}",
        {"a.txt": "a\n", "b.txt": None},
    )
    yield refused("begin: deleted and added twice", A, f"{BEGIN}*** Delete File: a.txt\n{add}{add}{END}", INVALID)
    yield refused(
        "begin: deleted, added and updated",
        A,
        f"{BEGIN}*** Delete File: a.txt\n{add}*** Update File: a.txt\n@@\n-a\n+b\n{END}",
        INVALID,
    )
    yield refused("begin: added over a file that is so", "a\n", f"{BEGIN}{add}{END}", NOTHING)
    yield refused("begin: added and deleted", A, f"{BEGIN}{add}*** Delete File: a.txt\n{END}", INVALID)
    yield refused("begin: added twice", A, f"{BEGIN}{add}{add}{END}", INVALID)
    yield refused("begin: an absent file is deleted", {}, f"{BEGIN}*** Delete File: a.txt\n{END}", "not_found")
    yield refused(
        "begin: updated and deleted", A, f"{BEGIN}*** Update File: a.txt\n{hunk}*** Delete File: a.txt\n{END}", INVALID
    )


def _as_agents_send_them() -> Iterator[Case]:
    """What other tools take, and how their agents therefore write."""
    add = "*** Add File: n.txt\n+x\n"
    two = "@@\n-two\n+TWO\n"
    yield applies(
        "sent: added lines alone at a bare @@", A, f"{BEGIN}*** Update File: a.txt\n@@\n+nine\n{END}", f"{A}nine\n"
    )
    yield refused("sent: blanks before the file's row", A, f"{BEGIN}  *** Update File: a.txt\n{two}{END}", INVALID)
    yield refused("sent: blanks before a row alone", A, f"{BEGIN}{add} *** Delete File: a.txt\n{END}", INVALID)
    yield refused("sent: blanks before a first row", A, f"{BEGIN} *** Delete File: a.txt\n{add}{END}", INVALID)
    yield applies(
        "sent: two sections of one file",
        A,
        f"{BEGIN}*** Update File: a.txt\n{two}*** Update File: a.txt\n@@\n-six\n+SIX\n{END}",
        DONE.replace("six", "SIX"),
    )
    yield applies(
        "sent: two sections, the second quotes what the first changes",
        A,
        f"{BEGIN}*** Update File: a.txt\n@@\n one\n-two\n+TWO\n three\n"
        f"*** Update File: a.txt\n@@\n two\n-three\n+THREE\n four\n{END}",
        DONE.replace("three", "THREE"),
    )
    yield applies(
        "sent: three sections, each of the file as it was",
        A,
        f"{BEGIN}*** Update File: a.txt\n{two}*** Update File: a.txt\n@@\n-six\n+SIX\n"
        f"*** Update File: a.txt\n@@\n two\n+2.5\n three\n{END}",
        DONE.replace("six", "SIX").replace("TWO\n", "TWO\n2.5\n"),
    )
    yield refused(
        "sent: two sections, the second of the first one's result",
        A,
        f"{BEGIN}*** Update File: a.txt\n{two}*** Update File: a.txt\n@@\n-TWO\n+2\n{END}",
        AMBIGUOUS,
    )
    yield refused(
        "sent: a file's row with a blank before it", A, " *** Update File: b.txt\n@@\n-two\n+2\n", INVALID, path="a.txt"
    )
    yield refused("sent: the same before another form", A, f" *** Delete File: b.txt\n{HEAD}{TWO}", INVALID)
    yield refused(
        "sent: two sections that change one line",
        A,
        f"{BEGIN}*** Update File: a.txt\n{two}*** Update File: a.txt\n@@\n one\n-two\n+2\n{END}",
        OVERLAP,
        NOT_FOUND,
    )
    yield refused(
        "sent: the second section adds within what the first removes",
        A,
        f"{BEGIN}*** Update File: a.txt\n@@\n-two\n-three\n+2\n*** Update File: a.txt\n@@\n two\n+2.5\n three\n{END}",
        OVERLAP,
        NOT_FOUND,
    )
    yield refused(
        "sent: blanks before a file's row below a hunk",
        {"a.txt": A, "b.txt": "b\n"},
        f"{BEGIN}*** Update File: a.txt\n{two} three\n  *** Update File: b.txt\n@@\n-b\n+B\n{END}",
        NOT_FOUND,
    )
    yield applies(
        "sent: a line of the file that is like a file's row",
        "two\n*** Update File: b.txt\nend\n",
        f"{BEGIN}*** Update File: a.txt\n{two} *** Update File: b.txt\n end\n{END}",
        "TWO\n*** Update File: b.txt\nend\n",
    )
    yield applies(
        "sent: twins in the order of the file",
        TWINS + "end\n",
        f"{BEGIN}*** Update File: a.txt\n@@\n-def g(x):\n+def h(x):\n@@\n-    return y\n+    return 2\n{END}",
        (TWINS + "end\n").replace("g(x)", "h(x)")[: -len("return y\nend\n")] + "return 2\nend\n",
    )
    yield applies(
        "sent: line numbers with a bar",
        A,
        "a.txt\n<<<<<<< SEARCH\n1 | one\n2 | two\n=======\n1 | one\n2 | TWO\n>>>>>>> REPLACE\n",
        DONE,
    )
    yield applies(
        "sent: the line at which a block starts",
        TWINS,
        "a.txt\n<<<<<<< SEARCH\n:start_line:7\n-------\n    y = 1\n=======\n    y = 2\n>>>>>>> REPLACE\n",
        TWINS[:30] + TWINS[30:].replace("y = 1", "y = 2"),
    )
    yield applies(
        "sent: the lines at which a block starts and ends",
        A,
        "a.txt\n<<<<<<< SEARCH\n:start_line:2\n:end_line:2\n-------\ntwo\n=======\nTWO\n>>>>>>> REPLACE\n",
        DONE,
    )
    for left, middle, right in ((5, 7, 9), (9, 9, 5), (7, 5, 7)):
        yield refused(
            f"sent: marks of {left}, {middle} and {right} signs",
            A,
            f"a.txt\n{'<' * left} SEARCH\ntwo\n{'=' * middle}\nTWO\n{'>' * right} REPLACE\n",
            INVALID,
        )
    code = "def f():\n    a(1)\n    b(2)\n"
    yield applies(
        "sent: the first line of a block without its indentation",
        code,
        "a.txt\n<<<<<<< SEARCH\na(1)\n    b(2)\n=======\na(1)\n    c(3)\n    b(2)\n>>>>>>> REPLACE\n",
        code.replace("    b(2)", "    c(3)\n    b(2)"),
    )
    prose = "One \u2013 \u201cthe first\u201d \u2013 and so on\u2026\nTwo.\n"
    yield applies(
        "sent: plain signs for typographic ones in what is replaced",
        prose,
        f'{HEAD}@@ @@\n-One - "the first" - and so on...\n+One - "the best" - and so on...\n Two.\n',
        prose.replace("first", "best"),
    )
    for name in (
        "# ...",
        "# same as before",
        "(rest of methods ...)",
        "// ... unchanged ...",
        "[... rest of file ...]",
        "<!-- rest unchanged -->",
        "-- rest unchanged",
        "// etc.",
        "# <existing code>",
        "{ ... }",
    ):
        yield refused(f"sent: {name} for lines", A, f"{HEAD}@@ @@\n one\n-two\n+{name}\n", INVALID)


def _blocks() -> Iterator[Case]:
    def block(search: str, replace: str, width: int = 7) -> str:
        return f"{'<' * width} SEARCH\n{search}{'=' * width}\n{replace}{'>' * width} REPLACE\n"

    two, six = block("two\n", "TWO\n"), block("five\nsix\n", "five\nSIX\n")
    yield applies(
        "block: several of one file", A, f"a.txt\n{two}\n{six}", DONE.replace("six", "SIX"), form="search_replace"
    )
    yield applies(
        "block: several files",
        {"a.txt": A, "b.txt": A},
        f"a.txt\n{two}\nb.txt\n{six}",
        {"a.txt": DONE, "b.txt": A.replace("six", "SIX")},
    )
    yield applies(
        "block: several files, fenced",
        {"a.txt": A, "b.txt": A},
        f"a.txt\n```\n{two}```\n\nThen `b.txt`:\n\nb.txt\n```\n{six}```\n",
        {"a.txt": DONE, "b.txt": A.replace("six", "SIX")},
    )
    yield applies("block: the path behind the fence's marks", A, f"```text:a.txt\n{two}```\n", DONE)
    yield applies("block: a heading names the file", A, f"### a.txt\n\n{two}", DONE)
    yield applies("block: removed", A, "a.txt\n" + block("two\n", ""), A.replace("two\n", ""))
    yield applies("block: a file is made", {}, "n.txt\n" + block("", "a\nb\n"), {"n.txt": "a\nb\n"})
    yield applies("block: other widths", A, "a.txt\n" + block("two\n", "TWO\n", 5), DONE)
    yield applies(
        "block: a line of another width inside",
        "T\n=====\n",
        "a.txt\n" + block("T\n=====\n", "Tt\n=====\n"),
        "Tt\n=====\n",
    )
    yield applies(
        "block: a diff inside",
        {"d.md": DOC},
        "d.md\n" + block("@@ -1 +1 @@\n-a\n", "@@ -1 +1 @@\n-z\n"),
        {"d.md": DOC.replace("\n-a\n", "\n-z\n")},
    )
    yield refused("block: twins", TWINS, "a.txt\n" + block("    return y\n", "    return 2\n"), AMBIGUOUS)
    yield refused("block: absent", A, "a.txt\n" + block("nine\n", "NINE\n"), NOT_FOUND)
    yield refused("block: the same on both sides", A, "a.txt\n" + block("two\n", "two\n"), NOTHING)
    yield refused("block: not ended", A, f"a.txt\n{two.replace('>>>>>>> REPLACE', '')}", INVALID)
    yield refused("block: a second begins inside", A, f"a.txt\n<<<<<<< SEARCH\n{two}", INVALID)
    yield refused("block: divided twice", CONFLICT, "a.txt\n" + block("ours\n=======\ntheirs\n", "ours\n"), TWO_WAYS)
    yield refused("block: two over one line", A, "a.txt\n" + two + block("one\ntwo\n", "one\n2\n"), OVERLAP)
    yield refused("block: lines left out", A, "a.txt\n" + block("two\n", "TWO\n# ... rest of code ...\n"), INVALID)
    yield refused("block: dots for lines", A, "a.txt\n" + block("one\n...\nthree\n", "one\n...\n3\n"), NOT_FOUND)
    yield refused("block: made over a file", A, "a.txt\n" + block("", "a\n"), "already_exists")


def _whole_files() -> Iterator[Case]:
    yield applies(
        "whole: a new file",
        {},
        "Here:\n\n**src/n.py**\n```python\nx = 1\n```\n",
        {"src/n.py": "x = 1\n"},
        form="whole_file",
    )
    yield applies("whole: the path behind the marks", "x\ny\n", "```txt a.txt\nx\n```\n", "x\n")
    yield applies("whole: fences inside longer ones", "x\n", "a.txt\n````\n```\nx\n```\n````\n", "```\nx\n```\n")
    yield refused("whole: no path", A, "```\nx\n```\n", INVALID)
    yield refused("whole: the fence is open", A, "a.txt\n```\nx\n", INVALID)
    yield refused("whole: two fences", A, "a.txt\n```\nx\n```\nb.txt\n```\ny\n```\n", TWO_WAYS)
    yield refused("whole: fences inside", A, "a.txt\n```\nx\n```sh\ny\n```\nz\n```\n", TWO_WAYS)
    yield refused("whole: lines left out", A, "a.txt\n```\none\n# ... existing code ...\n```\n", INVALID)
    yield refused("whole: with a patch inside", {"d.md": DOC}, f"d.md\n````\n{DOC}````\n", TWO_WAYS)
    yield refused("whole: without a fence", A, "one\n2\nthree\n", INVALID, path="a.txt")


def _several() -> Iterator[Case]:
    other = "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-b\n+B\n"
    both = {"a.txt": A, "b.txt": "b\n"}
    yield applies("several: two files", both, f"{HEAD}{TWO}{other}", {"a.txt": DONE, "b.txt": "B\n"})
    yield applies(
        "several: two fences",
        both,
        f"```diff\n{HEAD}{TWO}```\nand\n```diff\n{other}```\n",
        {"a.txt": DONE, "b.txt": "B\n"},
    )
    yield applies(
        "several: counts wrong before the next header",
        both,
        f"{HEAD}{TWO.replace('3 @@', '9 @@')}{other}",
        {"a.txt": DONE, "b.txt": "B\n"},
    )
    yield applies(
        "several: renamed with changes",
        A,
        f"diff --git a/a.txt b/b.txt\nsimilarity index 90%\nrename from a.txt\nrename to b.txt\n--- a/a.txt\n+++ b/b.txt\n{TWO}",
        {"a.txt": None, "b.txt": DONE},
    )
    yield applies(
        "several: one file twice",
        A,
        f"{HEAD}@@ -2 +2 @@\n-two\n+six\n{HEAD}@@ -6 +6 @@\n-six\n+6\n",
        A.replace("six", "6").replace("two", "six"),
    )
    yield refused("several: one file in turn", A, f"{HEAD}{TWO}{HEAD}@@ -2 +2 @@\n-TWO\n+2\n", AMBIGUOUS)
    yield refused(
        "several: in turn, what the first writes is elsewhere, too",
        A,
        f"{HEAD}@@ -2 +2 @@\n-two\n+six\n{HEAD}@@ -2 +2 @@\n-six\n+6\n",
        AMBIGUOUS,
    )
    yield refused(
        "several: in turn, below a line that the first writes, and that is elsewhere, too",
        "a\nb\nc\nb\nb\nc\nb\n",
        f"{BEGIN}*** Update File: a.txt\n@@\n a\n+n\n+c\n b\n-c\n b\n*** Update File: a.txt\n@@\n c\n-b\n+B\n b\n{END}",
        AMBIGUOUS,
    )
    yield refused(
        "several: in turn, a line that the first moves, and an equal one at the line stated",
        "head\np\nq\np\nq\np\nq\n",
        f"{HEAD}@@ -1,3 +1 @@\n head\n-p\n-q\n{HEAD}@@ -4,2 +4,2 @@\n p\n-q\n+Q\n",
        AMBIGUOUS,
    )
    yield refused("several: one does not fit", both, f"{HEAD}{TWO}{other.replace('-b', '-x')}", NOT_FOUND)
    yield refused(
        "several: made, then changed",
        {},
        "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\n--- a/n\n+++ b/n\n@@ -1 +1 @@\n-a\n+b\n",
        INVALID,
    )
    yield refused("several: one without a name", both, f"@@ -1 +1 @@\n-b\n+B\n{HEAD}{TWO}", INVALID)


SHOP = """\
class Shop:
    def price(self, item):
        found = self.stock.find(item)
        return found.price

    def order(self, item, count):
        price = self.price(item)
        self.stock.take(item, count)
        return price * count

    def offer(self, item, count):
        price = self.price(item)
        self.stock.show(item, count)
        return price * count
"""


def _misquoted() -> Iterator[Case]:
    """Hunks that stand in the file only nearly as they are quoted."""
    price = "price =  self.price(item);\n"
    take, taken = "        self.stock.take(item, count)\n", "        self.stock.take(item, count, now=True)\n"
    yield applies(
        "misquoted: blanks and a semicolon in the context",
        SHOP,
        f"{HEAD}@@ @@\n         {price}-{take}+{taken}         return price * count\n",
        SHOP.replace(take, taken),
    )
    yield refused(
        "misquoted: a name of the context",
        SHOP,
        f"{HEAD}@@ @@\n         cost = self.price(item)\n-{take}+{taken}         return price * count\n",
        NOT_FOUND,
    )
    yield applies(
        "misquoted: other indentation",
        SHOP,
        f"{HEAD}@@ @@\n   price = self.price(item)\n-  {take.lstrip()}+  {taken.lstrip()}   return price * count\n",
        SHOP.replace(take, taken),
    )
    yield applies(
        "misquoted: begin patch below its heading",
        SHOP,
        f"{BEGIN}*** Update File: a.txt\n@@ def order(self, item, count):\n         {price}-{take}+{taken}{END}",
        SHOP.replace(take, taken),
    )
    yield refused(
        "misquoted: below another heading",
        SHOP,
        f"{BEGIN}*** Update File: a.txt\n@@ def offer(self, item, count):\n      {price}-{take}+{taken}{END}",
        NOT_FOUND,
    )
    yield refused(
        "misquoted: as like to one place as to another",
        SHOP,
        f"{HEAD}@@ @@\n         {price}-        self.stock.sh0w(item, count)\n+        pass\n"
        "         return price * count\n",
        NOT_FOUND,
        AMBIGUOUS,
    )
    yield refused(
        "misquoted: blanks in each of two places",
        SHOP,
        f"{HEAD}@@ @@\n-  return price * count\n+  return count * price\n",
        AMBIGUOUS,
    )
    yield refused(
        "misquoted: another number",
        "a = 1\nlimit = 100\nb = 2\n",
        f"{HEAD}@@ @@\n a = 1\n-limit = 1000\n+limit = 2000\n b = 2\n",
        NOT_FOUND,
    )
    yield refused(
        "misquoted: what is removed does not stand there",
        SHOP,
        f"{HEAD}@@ @@\n         price = self.price(item)\n         self.stock.take(item, count)\n-        log(item)\n"
        "         return price * count\n",
        NOT_FOUND,
    )
    yield refused(
        "misquoted: at the end of a file that ends otherwise",
        SHOP,
        f"{HEAD}@@ @@\n         self.stock.show(item,  count);\n-        return price * count\n+        return 0\n"
        "\\ No newline at end of file\n",
        NOT_FOUND,
    )


def _indented_by_one() -> Iterator[Case]:
    """Where one blank is the file's indentation, the blank of a diff is not taken for it."""
    doc = "/**\n * Adds.\n * @param a\n */\n"
    for name, before, old, new, after in (
        ("python", "def f():\n a()\n c()\n", ("a()", "c()"), "b()", "def f():\n a()\n b()\n c()\n"),
        ("a comment", doc, ("* Adds.", "* @param a"), "* Two.", doc.replace("Adds.\n", "Adds.\n * Two.\n")),
        ("a list", "k:\n - a\n - b\n", ("- a", "- b"), "- x", "k:\n - a\n - x\n - b\n"),
    ):
        first, last = old
        block = f"<<<<<<< SEARCH\n{first}\n{last}\n=======\n{first}\n{new}\n{last}\n>>>>>>> REPLACE\n"
        rows = f" {first}\n+{new}\n {last}\n"
        yield applies(f"one blank in {name}: a block", before, f"a.txt\n{block}", after)
        yield applies(f"one blank in {name}: unified", before, f"{HEAD}@@ -2,2 +2,3 @@\n{rows}", after)
        yield applies(
            f"one blank in {name}: begin patch", before, f"{BEGIN}*** Update File: a.txt\n@@\n{rows}{END}", after
        )
        kept = f"{HEAD}@@ @@\n {first}\n+ {new}\n {last}\n"
        yield applies(f"one blank in {name}: new lines have it", before, kept, after)
