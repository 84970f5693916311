"""What may be misquoted and what not, line by line and in whole passages."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestrator.core.errors import SearchAmbiguous, SearchNotFound
from orchestrator.core.text.encoding import decode, encode, splice
from orchestrator.core.text.locate import Replacement, locate_changes
from orchestrator.core.text.passages import Likeness
from orchestrator.core.text.sameness import explains, same
from tests.core.text.misquotations import (
    CSS,
    DOC,
    GO,
    HTML,
    JS,
    LANDS,
    OTHER_THINGS,
    PRICE,
    RUST,
    SHELL,
    SQL,
    Misquoted,
)
from tests.core.text.strategies import quick


def changed(text: str, search: str, replace: str, likeness: Likeness | None = None) -> str:
    doc = decode(text.encode())
    assert doc is not None
    change = Replacement(search, replace, 1, likeness or Likeness())
    return encode(splice(doc, locate_changes(doc, [change], lenient=True).edits)).decode()


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in OTHER_THINGS])
@pytest.mark.parametrize("likeness", [Likeness(), Likeness(min_score=0.5)], ids=["as usual", "however unlike"])
def test_another_thing_is_never_taken(case: Misquoted, likeness: Likeness) -> None:
    with pytest.raises(SearchNotFound) as caught:
        changed(case.text, case.search, case.replace, likeness)
    assert caught.value.details["nearest"], "it is shown what stands there"


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in LANDS])
def test_a_misquotation_lands(case: Misquoted) -> None:
    assert changed(case.text, case.search, case.replace) == case.after


@pytest.mark.parametrize(("quoted", "present", "equal"), [
    pytest.param("f(a,b)", "f( a, b )", True, id="blanks"),
    pytest.param("returnx", "return x", False, id="blanks that part words"),
    pytest.param("x = 'a b'", "x = 'ab'", False, id="blanks in a string"),
    pytest.param("x = 'a  b'", "x = 'a b'", True, id="more blanks in a string"),
    pytest.param("x = b'a'", 'x = b"a"', True, id="quotes with a prefix"),
    pytest.param("x = `a`", "x = 'a'", False, id="a template string is no string"),
    pytest.param("x = f('it''s')", 'x = f("it\'s")', False, id="an apostrophe in a string"),
    pytest.param("go()  # the first", "go()  # the last", False, id="first for last, in a comment"),
    pytest.param("go('#a b')", "go('#a c')", False, id="no comment in a string"),
    pytest.param("a = b // c", "a = b // d", False, id="a division"),
    pytest.param("go -- one", "go -- two", False, id="the end of options"),
    pytest.param("get http://one/a", "get http://two/a", False, id="an address"),
    pytest.param("#red { }", "#rad { }", False, id="a selector"),
    pytest.param("* p = q", "* p = r", False, id="a pointer"),
    pytest.param("//go:build linux", "//go:build amigo", False, id="a directive"),
    pytest.param("# define A of the lot one", "# define B of the lot one", False, id="a macro with a blank"),
    pytest.param("* @param one the first of the two", "* @param ones the first of the two", False, id="a parameter"),
    pytest.param("for x in items if x is ready and this is it", "for y in items if y is ready and this is it", False,
                 id="code in words, one letter"),
    pytest.param("# check the counts", "# check the count", True, id="an ending"),
    pytest.param("# check a count", "# check the count", True, id="an article"),
    pytest.param("# check the sum", "# check the count", False, id="one of few words"),
    pytest.param("# uses read_file of the shop in here", "# uses read_line of the shop in here", False,
                 id="a name in a comment"),
    pytest.param("})", "}", False, id="a bracket"),
    pytest.param("};", "}", True, id="a semicolon"),
])  # fmt: skip
def test_lines(quoted: str, present: str, equal: bool) -> None:
    assert same(quoted, present) is equal
    assert same(present, quoted) is equal


@pytest.mark.parametrize(("line", "comment"), [
    pytest.param("  # one", True, id="hash"),
    pytest.param("// one", True, id="slashes"),
    pytest.param(" * one of them", True, id="star"),
    pytest.param("-- one", True, id="dashes"),
    pytest.param("<!-- one -->", True, id="page"),
    pytest.param("# x = old(1)", True, id="code that is commented out"),
    pytest.param("#include <one>", False, id="include"),
    pytest.param("# include <one>", False, id="include with a blank"),
    pytest.param("/* one */ go()", False, id="code behind it"),
    pytest.param('"""One."""', False, id="docstring"),
    pytest.param("go()  # one", False, id="code before it"),
    pytest.param("* x = y;", False, id="pointer"),
])  # fmt: skip
def test_whole_line_comments(line: str, comment: bool) -> None:
    assert explains(line) is comment


NAMES = re.compile(r"\b[A-Za-z_]\w{2,}\b")
TEXTS = {"py": PRICE, "doc": DOC, "go": GO, "js": JS, "sql": SQL, "css": CSS, "rs": RUST, "html": HTML, "sh": SHELL}
EXPLAINED = ("#", "//", "/*", "*", "--", "<!--", '"""')


@quick
@given(st.sampled_from(sorted(TEXTS)), st.data())
def test_another_name_never_lands(name: str, draw: st.DataObject) -> None:
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
        changed(text, search, search + "added()\n", Likeness(min_score=draw.draw(st.sampled_from([0.5, 0.9]))))
