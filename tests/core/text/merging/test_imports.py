"""Imports that both sides added: what is merged, and its neighbours that stay a conflict."""

from __future__ import annotations

import pytest

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.merge import MergeConflict
from orchestrator.core.text.merging.automatic_merge import AutomaticMerge
from tests.core.text.merging.scenarios import check, lines, merging

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
            id="Python, modules of one package: both bind it",
        ),
        pytest.param(
            "a.py",
            "import b\n\nx = 1",
            "import b\nimport a.c\n\nx = 1",
            "import b\nfrom d import a\n\nx = 1",
            None,
            id="Python, a package and a name",
        ),
        pytest.param(
            "a.py",
            "import b\n\nx = 1",
            "import b\nimport a.c\n\nx = 1",
            "import b\nimport d as a\n\nx = 1",
            None,
            id="Python, a package and an alias",
        ),
        pytest.param(
            "a.py",
            MANY.format(""),
            MANY.format("    two,\n"),
            MANY.format("    three,\n").replace("from a", "from z"),
            None,
            id="Python, names in brackets, from another module",
        ),
        pytest.param(
            "a.py",
            "from a.b import p\nfrom b import s\nx = 1\nfrom c import a\n\ny",
            "from b import s\nx = 1\nfrom c import a, p\nimport q\n\ny",
            "from a.b import p\nfrom b import s\nx = 1\nfrom c import a\nfrom a.b import r\n\ny",
            None,
            id="Python, from a module that one side imports no more",
        ),
        pytest.param(
            "a.ts",
            "import a from 'a';\nx();",
            "import a from 'a';\nimport './x.css';\nx();",
            "import a from 'a';\nimport './y.css';\nx();",
            "import a from 'a';\nimport './x.css';\nimport './y.css';\nx();",
            id="TypeScript, for the effect",
        ),
        pytest.param(
            "a.go",
            GO.format(""),
            GO.format('\t_ "a/x"\n'),
            GO.format('\t_ "a/y"\n'),
            GO.format('\t_ "a/x"\n\t_ "a/y"\n'),
            id="Go, for the effect",
        ),
        pytest.param(
            "a.ts",
            "import a from 'a';\nx();",
            "import a from 'a';\nimport { b } from 'b';\nx();",
            "import a from 'a';\nimport * as c from 'c';\nx();",
            "import a from 'a';\nimport { b } from 'b';\nimport * as c from 'c';\nx();",
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
        assert isinstance(result, MergeConflict), result
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
