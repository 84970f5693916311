"""Which lines are equal but for typography, what becomes of their own, and whole passages that are misquoted."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestrator.core.errors import SearchAmbiguous, SearchNotFound
from orchestrator.core.text.edits import splice
from orchestrator.core.text.encoding import decode, encode
from orchestrator.core.text.indent import Uncertain
from orchestrator.core.text.locate import Replacement, locate_changes
from orchestrator.core.text.normalised import key_of, rewritten
from tests.core.text.misquotations import (
    CSS,
    DOC,
    GO,
    HTML,
    JS,
    LANDS,
    ONLY_ALIKE,
    OTHER_THINGS,
    PRICE,
    RUST,
    SHELL,
    SQL,
    Misquoted,
)
from tests.core.text.strategies import quick


def changed(text: str, search: str, replace: str) -> str:
    doc = decode(text.encode())
    assert doc is not None
    change = Replacement(search, replace, fuzzy=True)
    return encode(splice(doc, locate_changes(doc, [change], lenient=True).edits)).decode()


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in (*OTHER_THINGS, *ONLY_ALIKE)])
def test_another_thing_is_never_taken(case: Misquoted) -> None:
    with pytest.raises(SearchNotFound) as caught:
        changed(case.text, case.search, case.replace)
    assert caught.value.details["nearest"], "it is shown what stands there"


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in LANDS])
def test_a_misquotation_applies(case: Misquoted) -> None:
    assert changed(case.text, case.search, case.replace) == case.after


@pytest.mark.parametrize(("quoted", "present", "equal"), [
    pytest.param("f(a,  b)", "\tf(a, b) ", True, id="runs of blanks, indentation, blanks at the end"),
    pytest.param("f(a,\u00a0b)", "f(a, b)", True, id="a blank that does not break"),
    pytest.param("f(a,b)", "f( a, b )", False, id="blanks or none"),
    pytest.param("returnx", "return x", False, id="blanks that part words"),
    pytest.param("x = 'a b'", "x = 'ab'", False, id="blanks in a string"),
    pytest.param("x = b'a'", 'x = b"a"', True, id="quotes with a prefix"),
    pytest.param("x = `a`", "x = 'a'", False, id="a template string is no string"),
    pytest.param("say \u201cit\u2019s\u201d", 'say "it\'s"', True, id="typographic quotes"),
    pytest.param("a \u2013 b \u2014 c \u2212 d", "a - b - c - d", True, id="dashes"),
    pytest.param("a -- b", "a \u2014 b", False, id="two dashes for one"),
    pytest.param("and so on\u2026", "and so on...", True, id="an ellipsis"),
    pytest.param("};", "}", True, id="a semicolon"),
    pytest.param('"a": 1', '"a": 1,', True, id="a comma"),
    pytest.param("f();;", "f()", False, id="two semicolons"),
    pytest.param("It ends", "It ends.", False, id="a full stop"),
    pytest.param(";", "", False, id="a line that is but a semicolon"),
    pytest.param("# check the counts", "# check the count", False, id="a word of a comment"),
    pytest.param("caf\u00e9", "cafe", False, id="an accent"),
    pytest.param("A", "a", False, id="a capital"),
])  # fmt: skip
def test_lines(quoted: str, present: str, equal: bool) -> None:
    assert (key_of(quoted) == key_of(present)) is equal


@pytest.mark.parametrize(("quoted", "present", "new", "made"), [
    pytest.param("a = f('x', 1)", 'a = f("x", 1)', "a = f('x', 2)", 'a = f("x", 2)', id="the kind of quotes stays"),
    pytest.param("wait - 5 s", "wait \u2013 5 s", "wait - 6 s", "wait \u2013 6 s", id="a dash stays"),
    pytest.param("a  = 1", "a =  1", "a  = 2", "a =  2", id="runs of blanks stay"),
    pytest.param('"a": 1', '"a": 1,', '"a": 2', '"a": 2,', id="a comma stays"),
    pytest.param("go(1)  ", "go(1) ", "go(2)  ", "go(2) ", id="blanks at the end stay"),
    pytest.param("a\u2026", "a...", "b\u2026", "b...", id="an ellipsis stays"),
    pytest.param("go(1)", "go(1);", "go(1);", "go(1);", id="the semicolon is what is added"),
    pytest.param("f('x')", 'f("x")', "f('it\\'s')", None, id="a quote more"),
    pytest.param("f('x')", 'f("x")', "f()", None, id="quotes less"),
    pytest.param("say \u201chi\u201d", 'say "hi"', "say \u201chi\u201d to \u201cyou\u201d", None, id="more of them"),
    pytest.param("a - b", "a \u2013 b", "a - b - c", None, id="a dash more"),
    pytest.param('"a": 1;', '"a": 1,', '"a": 1', None, id="another sign at the end"),
    pytest.param("f( 'x' )", "f( 'x' )", 'f( "it\'s" )', 'f( "it\'s" )', id="as quoted, all may change"),
])  # fmt: skip
def test_what_a_change_does_not_touch_keeps_the_files_typography(
    quoted: str, present: str, new: str, made: str | None
) -> None:
    if made is None:
        with pytest.raises(Uncertain):
            rewritten(quoted, present, new)
    else:
        assert rewritten(quoted, present, new) == made


NAMES = re.compile(r"\b[A-Za-z_]\w{2,}\b")
TEXTS = {"py": PRICE, "doc": DOC, "go": GO, "js": JS, "sql": SQL, "css": CSS, "rs": RUST, "html": HTML, "sh": SHELL}
EXPLAINED = ("#", "//", "/*", "*", "--", "<!--", '"""')


@quick
@given(st.sampled_from(sorted(TEXTS)), st.data())
def test_another_name_never_applies(name: str, draw: st.DataObject) -> None:
    """One identifier of one line is another; however like the rest is, the passage stands nowhere."""
    text = TEXTS[name]
    lines = text.splitlines()
    start = draw.draw(st.integers(0, len(lines) - 1))
    stop = draw.draw(st.integers(start + 1, len(lines)))
    named = [at for at in range(start, stop) if NAMES.search(lines[at]) and not lines[at].strip().startswith(EXPLAINED)]
    named = [at for at in named if not lines[at].strip().startswith("The ")]
    assume(named)
    at = draw.draw(st.sampled_from(named))
    found = draw.draw(st.sampled_from(list(NAMES.finditer(lines[at]))))
    old = found.group()
    new = draw.draw(st.one_of(
        st.sampled_from([old + "s", old + "_b", old[:-1], old[1:], old.swapcase(), f"{old[0]}{old}"]),
        st.from_regex(r"\A[a-z_][a-z0-9_]{1,12}\Z"),
    ))  # fmt: skip
    assume(new != old)
    quoted = list(lines[start:stop])
    quoted[at - start] = lines[at][: found.start()] + new + lines[at][found.end() :]
    search = "\n".join(quoted) + "\n"
    assume("".join(search.split()) not in "".join(text.split()))
    with pytest.raises((SearchNotFound, SearchAmbiguous)):
        changed(text, search, search + "added()\n")
