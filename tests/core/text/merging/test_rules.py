"""Each rule: what it settles, and its neighbours that it must leave to a person."""

from __future__ import annotations

import pytest

from tests.core.text.merging.scenarios import check

ONE = "def f():\n    return 1\n"
CLASS = "class C:\n    def a(self):\n        return 1\n"


@pytest.mark.parametrize(
    ("base", "current", "proposed", "merged"),
    [
        pytest.param("a\nb\nc\nd", "a\nX1\nc\nd", "a\nX1\nY1\nd", "a\nX1\nY1\nd", id="one went on below"),
        pytest.param("a\nb\nc\nd", "a\nb\nX1\nd", "a\nY1\nX1\nd", "a\nY1\nX1\nd", id="one went on above"),
        pytest.param("a\nd", "a\nX1\nd", "a\nX1\nY1\nd", "a\nX1\nY1\nd", id="the same insertion and more"),
        pytest.param("a\nb\nc\nd", "a\nc\nd", "a\nd", "a\nd", id="the same removal and more"),
        pytest.param("a\nb\nc\nd", "a\nX1\nc\nd", "a\nX2\nY1\nd", None, id="not the same"),
        pytest.param("a\nb\nd", "a\nd", "a\nX\nd", None, id="removed and changed"),
        pytest.param("a\nb\nc\nd", "a\nc\nd", "a\nX\nd", None, id="removed one, changed both"),
        pytest.param("a\nd", "a\n}\nd", "a\n}\n{\nd", None, id="a bracket is the same by chance"),
        pytest.param("a\nd", "a\nX1\nZ1\nd", "a\nX1\nY1\nd", None, id="both went on"),
        pytest.param(
            "h\n- a\n  x\n- a\n  x\n- b", "h\n- a\n  x\n- b", "h\n- a\n  x\n- a\n- b", None, id="one of two equal items"
        ),
        pytest.param("b\n\nc\nd\n\ne", "b\n\nc\n\ne", "b\n\ne", "b\n\ne", id="a blank line above and below"),
    ],
)
def test_same_change(base: str, current: str, proposed: str, merged: str | None) -> None:
    check("same_change", base, current, proposed, merged, "a.txt")


@pytest.mark.parametrize(
    ("base", "current", "proposed", "merged"),
    [
        pytest.param(
            ONE,
            f"{ONE}\n\ndef g():\n    return 2\n",
            f"{ONE}\n\ndef h():\n    return 3\n",
            f"{ONE}\n\ndef g():\n    return 2\n\n\ndef h():\n    return 3\n",
            id="two functions at the end",
        ),
        pytest.param(
            CLASS,
            f"{CLASS}\n    def b(self):\n        pass\n",
            f"{CLASS}\n    # why\n    def c(self):\n        pass\n",
            f"{CLASS}\n    def b(self):\n        pass\n\n    # why\n    def c(self):\n        pass\n",
            id="two methods, one with a comment",
        ),
        pytest.param(
            "",
            "def g():\n    pass",
            "def h():\n    pass",
            "def g():\n    pass\ndef h():\n    pass",
            id="into nothing",
        ),
        pytest.param(
            ONE,
            f"{ONE}\n\ndef g():\n    return 2\n",
            f"{ONE}\n\ndef g():\n    return 3\n",
            None,
            id="the same name",
        ),
        pytest.param(
            ONE,
            f"{ONE}\n\ndef g():\n    return 2\n",
            f"def g():\n    return 5\n\n\n{ONE}\n\ndef h():\n    return 3\n",
            None,
            id="a name that the other added elsewhere",
        ),
        pytest.param(
            ONE,
            f"{ONE}\n\ndef g():\n    return 2\n",
            f"{ONE}\n\ndef h():\n    return 3\nh()\n",
            None,
            id="more than definitions",
        ),
        pytest.param(
            CLASS,
            f"{CLASS}\n    def b(self):\n        pass\n",
            f"{CLASS}\ndef c():\n    pass\n",
            None,
            id="a method and a function",
        ),
        pytest.param(
            ONE,
            f"{ONE}    x()\n",
            f"{ONE}\n\ndef h():\n    return 3\n",
            None,
            id="a statement and a function",
        ),
    ],
)
def test_additions(base: str, current: str, proposed: str, merged: str | None) -> None:
    check("additions", base, current, proposed, merged)


LIST = "# News\n\n- one\n- two\n{}\nMore.\n"
ROWS = "| a | b |\n|---|---|\n| 1 | 2 |\n{}\nMore.\n"


@pytest.mark.parametrize(
    ("path", "text", "current", "proposed", "merged"),
    [
        pytest.param("a.md", LIST, "- c\n", "- d\n", "- c\n- d\n", id="items"),
        pytest.param("a.rst", LIST, "- c\n  c2\n  - c3\n", "- d\n", "- c\n  c2\n  - c3\n- d\n", id="of several lines"),
        pytest.param("a.md", LIST, "- c\n- x\n", "- d\n- c\n", "- c\n- x\n- d\n", id="one item by both"),
        pytest.param("a.md", LIST, "- [ ] c\n", "- [x] d\n", "- [ ] c\n- [x] d\n", id="tasks"),
        pytest.param("a.md", "# News\n\n{}- one\n", "- c\n", "- d\n", "- c\n- d\n", id="at the top of a list"),
        pytest.param("a.md", "# News\n\n{}\nMore.\n", "- c\n", "- d\n", "- c\n- d\n", id="the first items"),
        pytest.param("a.py", LIST, "- c\n", "- d\n", None, id="no prose"),
        pytest.param("a.yaml", "steps:\n- one\n- two\n{}end: 1\n", "- c\n", "- d\n", None, id="steps"),
        pytest.param("a.md", LIST, "- c\n", "* d\n", None, id="other markers"),
        pytest.param("a.md", LIST, "- c\n", "  - d\n", None, id="other depths"),
        pytest.param("a.md", LIST, "3. c\n", "3. d\n", None, id="numbers say an order"),
        pytest.param("a.md", LIST, "- [ ] c\n", "- [x] c\n", None, id="one task, done and not"),
        pytest.param("a.md", LIST, "- c\n\n- e\n", "- d\n", None, id="a blank line inside"),
        pytest.param("a.md", LIST, "- c\n## E\n", "- d\n", None, id="a heading inside"),
        pytest.param("a.rst", LIST, "- c\n---\n", "- d\n", None, id="a rule inside"),
        pytest.param("a.md", LIST, "- c\n", "Text.\n", None, id="an item and a paragraph"),
        pytest.param("a.md", "- one\n{}  goes on\n", "- c\n", "- d\n", None, id="inside an item"),
        pytest.param("a.md", "```\n- one\n{}```\n", "- c\n", "- d\n", None, id="in a fence"),
        pytest.param("a.md", ROWS, "| 3 | 4 |\n", "| 5 | 6 |\n", None, id="rows of a table"),
        pytest.param("a.txt", "alpha\nbeta\n{}zeta\n", "gamma\n", "delta\n", None, id="words"),
    ],
)  # fmt: skip
def test_list_items(path: str, text: str, current: str, proposed: str, merged: str | None) -> None:
    whole = text.format(merged) if merged is not None else None
    check("list_items", text.format(""), text.format(current), text.format(proposed), whole, path)


THREE = "- one\n- two\n- three\n"
MORE = THREE.replace("- three", "- new\n- three")


@pytest.mark.parametrize(("current", "proposed"), [
    pytest.param(THREE.replace("two", "two!"), MORE, id="one edited"),
    pytest.param(THREE.replace("one", "ONE"), THREE.replace("two", "TWO"), id="both edited"),
    pytest.param(THREE.replace("- two\n", ""), MORE, id="one removed"),
])  # fmt: skip
def test_edits_of_items_that_touch_are_never_joined(current: str, proposed: str) -> None:
    check("list_items", THREE, current, proposed, None, "a.md")
