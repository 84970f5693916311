"""Patches by hand that may be read in two ways, or that may not be all of what was meant."""

from __future__ import annotations

from collections.abc import Iterator

from tests.corpus.case import AMBIGUOUS, INVALID, TWO_WAYS, Case
from tests.corpus.handmade import BEGIN, DONE, END, HEAD, SHOP, TWINS, TWO, A, applies, refused


def cases() -> Iterator[Case]:
    yield from _fences()
    yield from _headed()
    yield from _cut_off()


def _fences() -> Iterator[Case]:
    """Fences that are a hunk, a part of a file or the whole of it."""
    fix = "-import os\n+import re\n import sys\n"
    py = f"import os\nimport sys\n\n\n{SHOP}"
    bullets, entries = "- a\n- b\n- c\n", "- name: a\n  x: 1\n- name: b\n  x: 2\n"
    yield refused("fence: rows of a diff, by its tag", py, f"```diff\n{fix}```\n", TWO_WAYS, path="a.txt")
    yield refused("fence: rows of a diff, named above", py, f"`a.txt`:\n\n```patch\n{fix}```\n", TWO_WAYS)
    yield refused("fence: rows of a diff, by their signs", py, f"```\n{fix}```\n", TWO_WAYS, path="a.txt")
    yield refused("fence: rows of a diff, blank rows bare", py, f"```\n{fix}\n\n```\n", TWO_WAYS, path="a.txt")
    yield refused("fence: rows of a diff without a path", py, f"```diff\n{fix}```\n", INVALID)
    yield refused("fence: rows that only add", py, "```diff\n+import re\n```\n", TWO_WAYS, path="a.txt")
    yield refused(
        "fence: rows that only remove, untagged", py, "```\n-import os\n import sys\n```\n", TWO_WAYS, path="a.txt"
    )
    yield refused("fence: a list with one more", bullets, f"```\n{bullets}- d\n```\n", TWO_WAYS, path="a.txt")
    yield refused(
        "fence: entries with one more", entries, f"```yaml\n{entries}- name: c\n  x: 3\n```\n", TWO_WAYS, path="a.txt"
    )
    yield refused(
        "fence: rows with a blank behind the sign", py, "```\n- import os\n+ import re\n```\n", TWO_WAYS, path="a.txt"
    )
    order = "    def order(self, item, count):\n        self.stock.take(item, count)\n        return count\n"
    yield refused("fence: one method", py, f"```python\n{order}```\n", TWO_WAYS, path="a.txt")
    yield refused("fence: one method, named above", py, f"a.txt\n```python\n{order}```\n", TWO_WAYS)
    yield refused(
        "fence: the same few lines again and again", "}\n" * 4 + A, "a.txt\n```\n" + "}\n" * 4 + "```\n", TWO_WAYS
    )
    yield refused(
        "fence: a diff among whole lines", A, "a.txt\n```\n" + A.replace("two", "-two\n+TWO") + "```\n", TWO_WAYS
    )
    yield applies(
        "fence: half of the file stays",
        A,
        "a.txt\n```\none\ntwo\nthree\nfour\n5\n6\n```\n",
        "one\ntwo\nthree\nfour\n5\n6\n",
        form="whole_file",
    )
    yield applies(
        "fence: indented anew", "if x:\n  y\n", "a.txt\n```\nif x:\n    y\n    z\n```\n", "if x:\n    y\n    z\n"
    )
    yield applies(
        "fence: a file with a list in it",
        f"# T\n\n{bullets}",
        f"a.txt\n```\n# T\n\n{bullets}- d\n```\n",
        f"# T\n\n{bullets}- d\n",
    )
    yield applies("fence: signs that the file has", "a\n-5,3\n", "a.txt\n```\nb\na\n-5,3\n```\n", "b\na\n-5,3\n")
    yield applies("fence: an empty file", "", "a.txt\n```\nx\n```\n", "x\n")


FLOW = """\
func A() error {
\tif err := run(); err != nil {
\t\treturn err
\t}
\treturn nil
}

func B() error {
\tif err := run(); err != nil {
\t\treturn err
\t}
\treturn nil
}
"""
CART = """\
class Cart:
    def __init__(self):
        self.items = []
        self.total = 0

    def clear(self):
        self.items = []
        self.total = 0
"""


def _headed() -> Iterator[Case]:
    """A stated line and a stated heading, with lines that stand below two headings."""
    wrap = " \tif err := run(); err != nil {\n-\t\treturn err\n+\t\treturn wrap(err)\n \t}\n"
    empty = "         self.items = []\n-        self.total = 0\n+        self.total = None\n"
    first = FLOW.replace("return err\n", "return wrap(err)\n", 1)
    second = FLOW[:60] + FLOW[60:].replace("return err\n", "return wrap(err)\n")
    yield applies("headed: both name the first", FLOW, f"{HEAD}@@ -2,3 +2,3 @@ func A() error {{\n{wrap}", first)
    yield applies("headed: both name the second", FLOW, f"{HEAD}@@ -9,3 +9,3 @@ func B() error {{\n{wrap}", second)
    yield applies(
        "headed: the function before, as git has it", FLOW, f"{HEAD}@@ -9,3 +9,3 @@ func A() error {{\n{wrap}", second
    )
    yield applies("headed: a heading that is nowhere", FLOW, f"{HEAD}@@ -9,3 +9,3 @@ func C() error {{\n{wrap}", second)
    yield applies("headed: it is cut short, as git does", FLOW, f"{HEAD}@@ -9,3 +9,3 @@ func B() err\n{wrap}", second)
    yield applies(
        "headed: a wrong line, a right heading", FLOW, f"{HEAD}@@ -5,3 +5,3 @@ func B() error {{\n{wrap}", second
    )
    yield applies(
        "headed: inside the hunk",
        CART,
        f"{HEAD}@@ -6,3 +6,3 @@ def clear(self):\n     def clear(self):\n{empty}",
        CART[: -len("0\n")] + "None\n",
    )
    yield refused(
        "headed: the line of the one, the heading of the other",
        FLOW,
        f"{HEAD}@@ -2,3 +2,3 @@ func B() error {{\n{wrap}",
        AMBIGUOUS,
    )
    yield refused(
        "headed: a method's line, another's heading",
        CART,
        f"{HEAD}@@ -3,2 +3,2 @@ def clear(self):\n{empty}",
        AMBIGUOUS,
    )
    yield refused(
        "headed: so too where the counts are wrong", CART, f"{HEAD}@@ -3,1 +3,1 @@ def clear(self):\n{empty}", AMBIGUOUS
    )


def _cut_off() -> Iterator[Case]:
    """Patches of which the end is missing, or seems to be."""
    update = f"{BEGIN}*** Update File: a.txt\n@@\n one\n-two\n+TWO\n three\n"
    yield refused("cut off: no end of the patch", A, update, INVALID)
    yield refused("cut off: no end of the patch, fenced", A, f"```\n{update}```\n", INVALID)
    yield refused("cut off: within the end", A, f"{update}*** End Pa", INVALID)
    yield refused("cut off: an added file", {}, f"{BEGIN}*** Add File: n.txt\n+a\n+b", INVALID)
    yield refused("cut off: a file to delete", A, f"{BEGIN}*** Delete File: a.txt\n", INVALID)
    yield refused("cut off: the first of two", A, f"{update}{update}{END}", INVALID)
    yield applies("cut off: no frame at all is none", A, update.removeprefix(BEGIN), DONE)
    yield refused("cut off: behind a removed line", A, f"{HEAD}@@ -1,5 +1,5 @@\n one\n-two\n-three\n", INVALID)
    yield refused("cut off: within a removed line", A, f"{HEAD}@@ -1,5 +1,5 @@\n one\n-two\n-three\n-fou", INVALID)
    yield refused("cut off: behind an added line", A, f"{HEAD}@@ -1,3 +1,4 @@\n one\n-two\n+TWO\n", INVALID)
    yield refused("cut off: a new file", {}, "--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1,9 @@\n+a\n+b\n", INVALID)
    yield refused(
        "cut off: twins", TWINS, f"{HEAD}@@ -7,9 +7,9 @@\n     y = 1\n-    return y\n+    return 2\n", INVALID
    )
    yield applies("cut off: not behind context", A, f"{HEAD}{TWO.replace('3 @@', '9 @@')}", DONE)
    yield applies("cut off: not with too low counts", A, f"{HEAD}@@ -2,0 +2,1 @@\n-two\n+TWO\n", DONE)
