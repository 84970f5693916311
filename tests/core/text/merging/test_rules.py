"""Each rule: what it settles, and its neighbours that it must leave to a person."""

from __future__ import annotations

import pytest

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.merging.automatic_merge import AutomaticMerge, UnresolvedMerge
from tests.core.text.merging.scenarios import lines, merging


def check(rule: str, base: str, current: str, proposed: str, merged: str | None, path: str = "a.py") -> None:
    """`merged` None: a conflict, either way round; else both ways round settle by the rule."""
    result = merging(base, current, proposed, path=WorkspacePath(path))
    turned = merging(base, proposed, current, path=WorkspacePath(path))
    if merged is None:
        assert isinstance(result, UnresolvedMerge), result
        assert isinstance(turned, UnresolvedMerge), turned
        return
    assert isinstance(result, AutomaticMerge), result
    assert list(result.lines) == lines(merged)
    assert [region.rule for region in result.report if region.rule != "clean"] == [rule]
    assert isinstance(turned, AutomaticMerge)
    assert sorted(turned.lines) == sorted(result.lines)


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


TWO = "def f():\n    return 1\ndef g():\n    return 2\n"


@pytest.mark.parametrize(
    ("base", "current", "proposed", "merged"),
    [
        pytest.param(
            TWO,
            TWO.replace("1", "10"),
            TWO.replace("g()", "g(a)"),
            "def f():\n    return 10\ndef g(a):\n    return 2\n",
            id="last line of one, first of the next",
        ),
        pytest.param(
            TWO,
            TWO.replace("1", "10"),
            TWO.replace("def g():\n    return 2\n", ""),
            None,
            id="one changed, the next removed",
        ),
        pytest.param(
            TWO,
            TWO.replace("1", "10"),
            TWO.replace("def g", "def h():\n    pass\ndef g"),
            "def f():\n    return 10\ndef h():\n    pass\ndef g():\n    return 2",
            id="one added after the changed one",
        ),
        pytest.param(
            "def f():\n    a = 1\n    return a",
            "def f():\n    a = 2\n    return a",
            "def f():\n    a = 1\n    return -a",
            None,
            id="the same symbol",
        ),
        pytest.param(TWO, TWO.replace("1", "10"), TWO.replace("1", "11"), None, id="the same line"),
        pytest.param(
            TWO,
            TWO.replace("def f():\n    return 1\n", ""),
            TWO.replace("    return 1", "    b()\n    return 1"),
            None,
            id="removed by one, changed by the other",
        ),
        pytest.param(
            "class C:\n    def f(self):\n        pass",
            "class D:\n    def f(self):\n        pass",
            "class C:\n    def f(self, a):\n        pass",
            None,
            id="one symbol holds the other",
        ),
        pytest.param(
            "X = 1\ndef f():\n    pass",
            "X = 2\ndef f():\n    pass",
            "X = 1\ndef f(a):\n    pass",
            None,
            id="outside of all symbols",
        ),
        pytest.param(
            TWO,
            TWO.replace("    return 1", "    return 1\n    # end"),
            TWO.replace("def g", "# about g\ndef g"),
            None,
            id="two insertions at one place",
        ),
    ],
)
def test_disjoint_symbols(base: str, current: str, proposed: str, merged: str | None) -> None:
    check("disjoint_symbols", base, current, proposed, merged)


ONE = "def f():\n    return 1\n"
CLASS = "class C:\n    def a(self):\n        return 1\n"


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


GO = 'package a\n\nimport (\n\t"fmt"\n{}\t"os"\n)\n'
JAVA = "package a;\nimport a.A;\n{}class X {{}}\n"
MANY = "from a import (\n    one,\n{})\nx = 1\n"


@pytest.mark.parametrize(
    ("path", "base", "current", "proposed", "merged"),
    [
        pytest.param(
            "a.py",
            "import a\n\nx = 1",
            "import a\nimport b\n\nx = 1",
            "import a\nfrom c import d, e as f\n\nx = 1",
            "import a\nimport b\nfrom c import d, e as f\n\nx = 1",
            id="Python, both added",
        ),
        pytest.param(
            "a.py",
            "import a\nimport b\n\nx = 1",
            "import a\nimport c\n\nx = 1",
            "import a\nimport b\nimport d\n\nx = 1",
            None,
            id="Python, one replaced and one added",
        ),
        pytest.param(
            "a.py",
            MANY.format(""),
            MANY.format("    two,\n"),
            MANY.format("    three,\n"),
            MANY.format("    two,\n    three,\n"),
            id="Python, names in brackets",
        ),
        pytest.param(
            "a.py",
            "import a.b\n\nx = 1",
            "import a.b\nimport a.c\n\nx = 1",
            "import a.b\nimport a.d\n\nx = 1",
            "import a.b\nimport a.c\nimport a.d\n\nx = 1",
            id="Python, modules of one package",
        ),
        pytest.param(
            "a.ts",
            "import a from 'a';\nx();",
            "import a from 'a';\nimport { b } from 'b';\nx();",
            "import a from 'a';\nimport * as c from 'c';\nimport './d.css';\nx();",
            "import a from 'a';\nimport { b } from 'b';\nimport * as c from 'c';\nimport './d.css';\nx();",
            id="TypeScript",
        ),
        pytest.param(
            "a.go",
            GO.format(""),
            GO.format('\t"io"\n'),
            GO.format('\tl "log"\n'),
            GO.format('\t"io"\n\tl "log"\n'),
            id="Go",
        ),
        pytest.param(
            "a.rs",
            "use a::A;\nfn f() {}",
            "use a::A;\nuse b::{C, D as E};\nfn f() {}",
            "use a::A;\npub use f::G;\nfn f() {}",
            "use a::A;\nuse b::{C, D as E};\npub use f::G;\nfn f() {}",
            id="Rust",
        ),
        pytest.param(
            "A.java",
            JAVA.format(""),
            JAVA.format("import a.B;\n"),
            JAVA.format("import static c.D.e;\n"),
            JAVA.format("import a.B;\nimport static c.D.e;\n"),
            id="Java",
        ),
        pytest.param(
            "a.c",
            "#include <a.h>\nint x;",
            "#include <a.h>\n#include <b.h>\nint x;",
            '#include <a.h>\n#include "c.h"\nint x;',
            '#include <a.h>\n#include <b.h>\n#include "c.h"\nint x;',
            id="C",
        ),
        pytest.param(
            "a.py",
            "import a\n\nx = 1",
            "import a\nfrom b import z\n\nx = 1",
            "import a\nfrom c import z\n\nx = 1",
            None,
            id="one name from two places",
        ),
        pytest.param(
            "a.py",
            "import z\nfrom c import p, s\n\nx = 1",
            "import z\n\nx = 1",
            "import z\nfrom c import p, s, r\n\nx = 1",
            None,
            id="removed by one, longer by the other",
        ),
        pytest.param(
            "a.py",
            "import a\nimport b\n\nx = 1",
            "import a\n\nx = 1",
            "import a\nimport b as bb\n\nx = 1",
            None,
            id="removed by one, renamed by the other",
        ),
        pytest.param(
            "a.py",
            "import z\nfrom a import p\n\nx = 1",
            "import z\nfrom b import p2\n\nx = 1",
            "import z\nfrom a import p, q\n\nx = 1",
            None,
            id="replaced by one, longer by the other",
        ),
        pytest.param(
            "a.py",
            'T = """\nimport a\n"""\nx = 1',
            'T = """\nimport a\nimport b\n"""\nx = 1',
            'T = """\nimport a\nimport c\n"""\nx = 1',
            None,
            id="in a string",
        ),
        pytest.param(
            "a.py",
            'T = """\n"""\nimport a\nx = 1',
            'T = """\n"""\nimport a\nimport b\nx = 1',
            'T = """\n"""\nimport a\nimport c\nx = 1',
            'T = """\n"""\nimport a\nimport b\nimport c\nx = 1',
            id="after a string",
        ),
        pytest.param(
            "a.py",
            "import a\n\nx = 1",
            "import a\nimport b\n\nx = 1",
            "import a\nlog()\n\nx = 1",
            None,
            id="not only imports",
        ),
        pytest.param(
            "a.py",
            "import a\n\nx = 1",
            "import a\nimport b\n\nx = 1",
            "import a\nfrom c import *\n\nx = 1",
            None,
            id="everything of a module",
        ),
        pytest.param(
            "a.py",
            "x = 1",
            "import b\nx = 1",
            "from __future__ import annotations\nx = 1",
            None,
            id="one that must stand first",
        ),
        pytest.param(
            "a.py",
            "try:\n    x()",
            "try:\n    import a\n    x()",
            "try:\n  import b\n    x()",
            None,
            id="other depths",
        ),
        pytest.param(
            "a.c",
            "#include <a.h>\nint x;",
            "#include <b.h>\nint x;",
            "#include <a.h>\n#include <c.h>\nint x;",
            None,
            id="C, replaced",
        ),
        pytest.param("a.txt", "x", "import a\nx", "import b\nx", None, id="no program"),
    ],
)
def test_imports(path: str, base: str, current: str, proposed: str, merged: str | None) -> None:
    check("imports", base, current, proposed, merged, path)


TS, RS = 'import {{ {} }} from "x";', "use x::{{{}}};"
FROM = "from a import {}"


@pytest.mark.parametrize(
    ("path", "line", "base", "current", "proposed", "merged"),
    [
        pytest.param("a.py", FROM, "p", "p, q", "p, r", "p, q, r", id="one line"),
        pytest.param("a.py", FROM, "p", "p, r", "p, q", "p, q, r", id="sorted as it was"),
        pytest.param("a.py", FROM, "p, a", "p, a, r", "p, a, q", "p, a, r, q", id="not sorted: the current first"),
        pytest.param("a.py", FROM, "B, p", "a, B, p", "B, p, q", "a, B, p, q", id="sorted whatever the case"),
        pytest.param("a.py", FROM, "p as x", "p as x, q", "p as x, r as y", "p as x, q, r as y", id="aliases"),
        pytest.param("a.py", FROM, "p", "p, q", "p, q, r", "p, q, r", id="one name by both"),
        pytest.param("a.py", f"{FROM}  # noqa", "p", "p, q", "p, r", "p, q, r", id="a comment behind"),
        pytest.param("a.ts", TS, "a", "a, b", "a, type C", "a, b, type C", id="TypeScript"),
        pytest.param("a.rs", RS, "A, B", "A, B, C", "A, B, D", "A, B, C, D", id="Rust"),
        pytest.param("a.py", FROM, "p, s", "p, q", "p, s, r", None, id="one name removed"),
        pytest.param("a.py", FROM, "p, s", "s, p", "p, s, r", None, id="other order"),
        pytest.param("a.py", FROM, "p", "p as x", "p, r", None, id="one name renamed"),
        pytest.param("a.py", FROM, "p", "p, q as x", "p, r as x", None, id="one alias for two"),
        pytest.param("a.py", FROM, "p", "p, q", "p, r as q", None, id="an alias like a name"),
        pytest.param("a.py", FROM, "p", "p, q, q", "p, r", None, id="one name twice"),
        pytest.param("a.py", FROM, "p,s", "p,s,q", "p,s,r", None, id="written otherwise"),
        pytest.param("a.py", FROM, "p", "p, q  # why", "p, r", None, id="a comment by one"),
        pytest.param("a.py", FROM, "p", "*", "p, r", None, id="everything"),
    ],
)
def test_import_lists(path: str, line: str, base: str, current: str, proposed: str, merged: str | None) -> None:
    texts = [f"\n{line.format(names)}\n\nx" for names in (base, current, proposed)]
    result = merging(*texts, path=WorkspacePath(path))
    if merged is None:
        assert isinstance(result, UnresolvedMerge), result
        return
    assert isinstance(result, AutomaticMerge), result
    assert result.lines == tuple(lines(f"\n{line.format(merged)}\n\nx"))


@pytest.mark.parametrize(
    ("base", "current", "proposed", "merged"),
    [
        pytest.param(
            "from a import p\n\nx",
            "from a import p, q\n\nx",
            "from a import p\nimport b\n\nx",
            "from a import p, q\nimport b\n\nx",
            id="one longer, one added",
        ),
        pytest.param(
            "from a import p\n\nx",
            "from a import p, q\nimport c\n\nx",
            "import b\nfrom a import p, r\n\nx",
            "from a import p, q, r\nimport c\nimport b\n\nx",
            id="longer and added by both",
        ),
        pytest.param(
            "from a import p\nfrom b import s\n\nx",
            "from a import p, q\nfrom b import s, t\n\nx",
            "from a import p, r\nfrom b import s, u\n\nx",
            "from a import p, q, r\nfrom b import s, t, u\n\nx",
            id="two lists",
        ),
        pytest.param(
            "from a import p\n\nx",
            "from a import p, q\n\nx",
            "from a import p, r\nfrom b import q\n\nx",
            None,
            id="the name comes from elsewhere too",
        ),
    ],
)
def test_import_lists_among_others(base: str, current: str, proposed: str, merged: str | None) -> None:
    check("imports", base, current, proposed, merged)


LIST = "# News\n\n- one\n- two\n{}\nMore.\n"
ROWS = "| a | b |\n|---|---|\n| 1 | 2 |\n{}\nMore.\n"
WORDS = "alpha\nbeta\n{}omega\n"
NAMES = '__all__ = [\n    "alpha",\n    "beta",\n{}    "omega",\n]\n'

PINS = "aaa==1\nbbb==1\n{}zzz==1\nzzzz==1\n"


@pytest.mark.parametrize(
    ("path", "text", "current", "proposed", "merged"),
    [
        pytest.param("a.md", LIST, "- c\n", "- d\n", "- c\n- d\n", id="items"),
        pytest.param("a.rst", LIST, "- c\n  c2\n  - c3\n", "- d\n", "- c\n  c2\n  - c3\n- d\n", id="of several lines"),
        pytest.param("a.md", LIST, "- c\n- x\n", "- d\n- c\n", "- c\n- x\n- d\n", id="one item by both"),
        pytest.param("a.md", LIST, "- [ ] c\n", "- [x] d\n", "- [ ] c\n- [x] d\n", id="tasks"),
        pytest.param("a.md", "# News\n\n{}- one\n", "- c\n", "- d\n", "- c\n- d\n", id="at the top of a list"),
        pytest.param("a.md", "# News\n\n{}\nMore.\n", "- c\n", "- d\n", "- c\n- d\n", id="the first items"),
        pytest.param("a.md", ROWS, "| 3 | 4 |\n", "| 5 | 6 |\n", "| 3 | 4 |\n| 5 | 6 |\n", id="rows"),
        pytest.param("a.txt", WORDS, "gamma\n", "delta\nmu\n", "delta\ngamma\nmu\n", id="sorted words"),
        pytest.param("a.py", NAMES, '    "c",\n', '    "bz",\n', '    "bz",\n    "c",\n', id="sorted names"),
        pytest.param(
            "a.json", '{{\n  "a": 1,\n  "b": "x",\n{}  "z": 3,\n  "z2": 4\n}}\n',
            '  "d": 2,\n', '  "c": "y",\n', '  "c": "y",\n  "d": 2,\n', id="sorted keys",
        ),
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
        pytest.param("a.md", ROWS, "| 3 | 4 |\n", "| 5 |\n", None, id="other cells"),
        pytest.param("a.md", "Text.\n{}End.\n", "| 3 | 4 |\n|---|---|\n", "| 5 | 6 |\n|---|---|\n", None, id="tables"),
        pytest.param("a.txt", WORDS, "zz\n", "delta\n", None, id="not sorted any more"),
        pytest.param("a.txt", "beta\nalpha\n{}omega\n", "gamma\n", "delta\n", None, id="not sorted before"),
        pytest.param("a.txt", "a\n{}z\n", "c\n", "d\n", None, id="too short to be sure"),
        pytest.param("a.txt", WORDS, "gamma one\n", "delta\n", None, id="more than a word"),
        pytest.param("a.py", "a = 1\nb = 2\n{}z = 3\nz2 = 4\n", "c = 1\n", "d = 2\n", None, id="statements"),
        pytest.param("a.py", "f(\n    a,\n    b,\n{}    z,\n    y,\n)\n", "    c,\n", "    d,\n", None, id="arguments"),
        pytest.param("a.py", NAMES, '    "gamma",\n', '    "GAMMA",\n', None, id="one key but for its case"),
        pytest.param(
            "a.json", '{{\n  "a": 1,\n  "b": "x",\n{}  "z": 3,\n  "z2": 4\n}}\n',
            '  "c": 2,\n', '  "c": 3,\n', None, id="one key, two values",
        ),
        pytest.param("a.py", NAMES, '    "gamma",\n', '  "delta",\n', None, id="depths of a block"),
        pytest.param("a.txt", PINS, "ccc==1\n", "ccd==2\n", "ccc==1\nccd==2\n", id="versions"),
        pytest.param("a.txt", PINS, "ccc==1\n", "ccc==2\n", None, id="two versions of one name"),
        pytest.param("a.txt", PINS, "ccc==1\n", "CCC>=2\n", None, id="a version and a bound of one name"),
        pytest.param("a.py", NAMES, '    "gamma==1",\n', '    "gamma==2",\n', None, id="two versions in quotes"),
        pytest.param("a.txt", PINS, "https://c\n", "https://d\n", "https://c\nhttps://d\n", id="addresses"),
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
