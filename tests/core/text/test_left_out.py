"""Which lines stand for others that were left out, by the language of the file."""

from __future__ import annotations

import pytest

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.text.forms.left_out import left_out, left_out_of, refuse_elided
from orchestrator.core.text.locate import Replacement

DOTS = (
    *("# ...", "// ... existing code ...", "# … unchanged …", "[...]", "{ ... }", "{/* ... */}", "# . . .", "# ⋮"),
    *("# ... 10 lines ...", "(rest of methods ...)", "return 20  # ... rest unchanged", "... rest of the file"),
)
WORDS = (
    *(("<!-- rest unchanged -->", "a.md"), ("-- rest unchanged", "a.sql"), ("// etc.", "a.js"), ("…", "a.py")),
    *(("# keep existing code here", "a.py"), ("# --- existing code ---", "a.py"), ("# <existing code>", "a.py")),
    *(("# code unchanged", "a.py"), ("# body unchanged", "a.py"), ("# lines 2-3 unchanged", "a.py"), ("⋮", "a.py")),
    *(("# No changes below", "a.py"), ("// unchanged code above", "a.js"), ("[rest of the text unchanged]", "a.md")),
    *(("...", "a.js"), ("...", "a.json"), ("...", "a.md"), ("# same as before", "a.yaml")),
    *(("# as before", "a.py"), ("# implementation as above", "a.py"), ("// as before", "a.js"), ("# idem", "a.py")),
    *(("# <rest>", "a.py"), ("// [remainder]", "a.js"), ("# body as before", "a.py"), ("# ditto", "a.py")),
)
CODE = (
    *((line, "a.js") for line in ("...rest,", "...other,", "...existing", "...remaining,", "...previous,", "...same,")),
    *((line, "a.md") for line in ("# Remaining tests", "# Existing code", "# Same", "## Omitted")),
    *(
        (line, "a.py")
        for line in ("...", "...,", "def f(): ...", "Tuple[int, ...]", "# loading ... then more", "# Other")
    ),
    *(
        (line, "a.py")
        for line in (
            "# Order the rest by name",
            "# as before, but sorted",
            "# Rest",
            "# [rest] of the call",
            "# see other code in lib.py",
            '"""Existing code."""',
        )
    ),
    *(("---", "a.yaml"), ("...", "a.yaml"), ("#!/bin/sh", "a.sh"), ("...unchanged,", "a.ts")),
)


@pytest.mark.parametrize("line", DOTS)
def test_dots_stand_for_lines_everywhere(line: str) -> None:
    assert left_out(line)


@pytest.mark.parametrize(("line", "path"), WORDS)
def test_words_in_a_comment_do_where_lines_go(line: str, path: str) -> None:
    assert left_out_of(line, path)


@pytest.mark.parametrize(("line", "path"), CODE)
def test_code_and_headings_stand_for_themselves(line: str, path: str) -> None:
    assert not left_out_of(line, path)


def test_words_that_replace_no_line_are_a_comment() -> None:
    refuse_elided((Replacement(search="a: 1", replace="a: 1\n# same as before\nb: 1"),), ("a: 1",), "a.yaml")


def test_dots_are_refused_though_they_are_quoted() -> None:
    change = Replacement(search="    # ...\n    return a\n", replace="    # ...\n    return b\n")
    with pytest.raises(ParameterInvalid, match="placeholder"):
        refuse_elided((change,), ("    # look", "    return a"), "a.py")
    refuse_elided((change,), ("    # ...", "    return a"), "a.py")
