"""Passages that are misquoted: where they land, what is written there, and when they are refused."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestrator.core.errors import ChangesOverlap, SearchAmbiguous, SearchNotFound
from orchestrator.core.text.edits import splice
from orchestrator.core.text.encoding import decode, encode
from orchestrator.core.text.locate import Change, LineReplacement, Replacement, as_lines, locate_changes
from orchestrator.core.text.normalised import key_of
from tests.core.text.strategies import quick

SHOP = """\
class Shop:
    def __init__(self, stock):
        self.stock = stock

    def price(self, item):
        found = self.stock.find(item)
        if found is None:
            raise KeyError(item)
        return found.price

    def order(self, item, count):
        price = self.price(item)
        self.stock.take(item, count)
        return price * count
"""

TABS = "func main() {\n\tfor {\n\t\tstep()\n\t\tif done() {\n\t\t\treturn\n\t\t}\n\t}\n}\n"

TWINS = """\
def load_user(path, strict):
    data = read(path)
    check(data, strict)
    return User(data)


def load_group(path, strict):
    data = read(path)
    check(data, strict)
    return Group(data)
"""


def changed(text: str, *changes: Change) -> str:
    doc = decode(text.encode())
    assert doc is not None
    return encode(splice(doc, locate_changes(doc, changes, lenient=True).edits)).decode()


def edit(search: str, replace: str, count: int = 1) -> Replacement:
    return Replacement(search, replace, count, fuzzy=True)


@pytest.mark.parametrize(("text", "search", "replace", "old", "new"), [
    pytest.param(
        SHOP,
        "def order(self, item, count):\n    price = self.price(item)\n",
        "def order(self, item, count):\n    check(count)\n    price = self.price(item)\n",
        "count):\n        price =", "count):\n        check(count)\n        price =",
        id="indentation left away",
    ),
    pytest.param(
        SHOP,
        "  def order(self, item, count):\n    price = self.price(item)\n",
        "  def order(self, item, count):\n    if count:\n      check(count)\n    price = self.price(item)\n",
        "count):\n        price =", "count):\n        if count:\n            check(count)\n        price =",
        id="two blanks for four",
    ),
    pytest.param(
        TABS,
        "        step()\n        if done() {\n            return\n        }\n",
        "        step()\n        if done() {\n            if late() {\n                log()\n            }\n"
        "            return\n        }\n",
        "\t\tif done() {\n", "\t\tif done() {\n\t\t\tif late() {\n\t\t\t\tlog()\n\t\t\t}\n",
        id="blanks for tabs",
    ),
    pytest.param(
        SHOP,
        "        found = self.stock.find(item);\n        if found is None:\n            raise KeyError(item)\n",
        "        found = self.stock.find(item);\n        if found is None:\n            raise Absent(item)\n",
        "KeyError", "Absent",
        id="a misquoted line that is not changed keeps the file's words",
    ),
    pytest.param(
        SHOP,
        "        found = self.stock.find(item);\n        if found is None:\n            raise KeyError(item)\n",
        "        found = self.stock.search(item);\n        if found is None:\n            raise KeyError(item)\n",
        "stock.find", "stock.search",
        id="a misquoted line that is changed keeps its end",
    ),
    pytest.param(
        SHOP,
        "        price = self.price(item)\n        self.stock.take(item, count)   \n",
        "        price = self.price(item)\n",
        "        self.stock.take(item, count)\n", "",
        id="a removed line with blanks at its end",
    ),
    pytest.param(
        SHOP,
        "price =  self.price(item)\n", "price =  self.cost(item)\n", "price = self.price(", "price = self.cost(",
        id="one line, other blanks",
    ),
    pytest.param(
        "def f():\n    a()\n\n    b()\n    c()\n",
        "a()\n\nb()\nc()\n", "x()\n\ny()\nc()\n", "    a()\n\n    b()\n", "    x()\n\n    y()\n",
        id="a blank line between two that are replaced",
    ),
    pytest.param(
        "class A:\n    def f(self):\n        d = h(p)\n        return d\n",
        "d = h(p)\nreturn d\n", "if ready:\n    d = h(p)\n    return d\n",
        "        d = h(p)\n        return d\n", "        if ready:\n            d = h(p)\n            return d\n",
        id="a wrap that is quoted without indentation",
    ),
    pytest.param(
        "class A:\n    def f(self):\n        return d\n",
        "return d", "if ready:\n    return d", "        return d\n", "        if ready:\n            return d\n",
        id="one line, wrapped, without indentation",
    ),
    pytest.param(
        "def f():\n    return d\n", "return d", "log(d)\n    return d", "    return d\n", "    log(d)\n    return d\n",
        id="new lines as deep as the file has them",
    ),
    pytest.param(
        "def f():\n    return d\n", "return d", "log(d)\nreturn d", "    return d\n", "    log(d)\n    return d\n",
        id="all lines without indentation",
    ),
    pytest.param(
        "def f():\n        a()\n        b()\n", "    a()\n", "    c()\n", "        a()\n", "        c()\n",
        id="half of the indentation",
    ),
    pytest.param(
        "def f():\n    a()\n    b()\n", "a()\n", "", "    a()\n", "",
        id="a whole line that is removed goes with its indentation",
    ),
    pytest.param(
        "f() {\n  a(1);\n  b();\n}\n", "a(1)\n  b();\n", "a(1)\n  b(2);\n", "  b();\n", "  b(2);\n",
        id="the first line alone without its indentation",
    ),
    pytest.param(
        TWINS,
        "def load_group(path, strict):\n    data = read(path);\n    check(data, strict)\n    return Group(data)\n",
        "def load_group(path, strict):\n    data = read(path);\n    check(data, strict)\n    return Team(data)\n",
        "Group(data)", "Team(data)",
        id="the twin that is meant",
    ),
    pytest.param(
        SHOP.replace("\n", "\r\n"),
        "def order(self, item, count):\n    price = self.price(item)\n",
        "def order(self, item, count):\n    check(count)\n    price = self.price(item)\n",
        "count):\r\n        price =", "count):\r\n        check(count)\r\n        price =",
        id="crlf stays",
    ),
])  # fmt: skip
def test_it_applies(text: str, search: str, replace: str, old: str, new: str) -> None:
    assert text.count(old) == 1
    assert changed(text, edit(search, replace)) == text.replace(old, new)


@pytest.mark.parametrize(("text", "search", "replace", "error"), [
    pytest.param(
        TWINS,
        "    data = read(path);\n    check(data, strict)\n", "    data = read(path);\n    check(data)\n",
        SearchAmbiguous, id="twins, and nothing says which",
    ),
    pytest.param(
        TWINS,
        "    data =  read(path)\n    check(data, strict)\n", "    check(data)\n",
        SearchAmbiguous, id="twins, but for blanks",
    ),
    pytest.param(
        TWINS.partition("\n\n\n")[0] + "\n",
        "def load_users(path, strict):\n    data = read(path)\n    check(data, strict)\n",
        "def load_users(path, strict):\n    data = read(path)\n    check(data)\n",
        SearchNotFound, id="another function, one letter away",
    ),
    pytest.param("retries = 5\ntimeout_in_seconds = 30\n", "retries = 5\ntimeout_in_seconds = 31\n", "retries = 5\n",
                 SearchNotFound, id="another number"),
    pytest.param(
        SHOP,
        "        price = self.price(item)\n        self.stock.take(item, count)\n        log(item)\n",
        "        price = self.price(item)\n        self.stock.take(item, count)\n",
        SearchNotFound, id="the line to remove is not there",
    ),
    pytest.param(
        SHOP,
        "        found = self.stock.find(item)\n            raise KeyError(item)\n        return found.price\n",
        "        return self.stock.find(item).price\n",
        SearchNotFound, id="a line stands between those that go",
    ),
    pytest.param(
        SHOP, "        found = self.stok.find(item)\n        if found is None:\n            raise KeyError(item)\n",
        "        found = self.stok.find(item)\n        if found is None:\n            raise Absent(item)\n",
        SearchNotFound, id="another name, in the context",
    ),
    pytest.param(
        SHOP,
        "        self.stok.take(item, count)\n        return price * count\n",
        "        take(item, count)\n        return price * count\n",
        SearchNotFound, id="what is replaced reads otherwise there",
    ),
    pytest.param(
        "configure(the_first_of_all_arguments, with_a_long_name)\ngo()\nfinish(the_last_of_arguments, in_the_end)\n",
        "configure(the_first_of_all_arguments, with_a_long_name)\nfinish(the_last_of_arguments, in_the_end)\n",
        "configure_and_finish()\n",
        SearchNotFound, id="a short line stands between those that go",
    ),
    pytest.param("def f():\n    return d\n", "return d", "return d\n\n\ndef g():\n    return 2", SearchNotFound,
                 id="one line without indentation, and what follows may stand at any depth"),
    pytest.param("def f():\n    a()\n    b()\n", "  a()\n  b()\n", "    c()\n", SearchNotFound,
                 id="quoted with two blanks, replaced with four"),
    pytest.param("def f(x):\n    if x:\n        go()\n", "if x:\n  go()", "if x:\n    stop()", SearchNotFound,
                 id="the first line lost its indentation, the step is the file's in the replacement alone"),
    pytest.param("class A:\n    def f(self):\n        if x:\n            go()\n        return 1\n",
                 "def f(self):\n  if x:\n    go()\n  return 1", "def f(self):\n    if x:\n        go()\n    return 2",
                 SearchNotFound, id="the same of several levels"),
    pytest.param("a:\n    b:\n        c: 1\n", "b:\n  c: 1", "b:\n    c: 2", SearchNotFound, id="the same in YAML"),
    pytest.param("f() {\n    if (x) {\n        go();\n    }\n}\n", "if (x) {\n  go();\n}", "if (x) {\n    stop();\n}",
                 SearchNotFound, id="the same with braces"),
    pytest.param("def f(x):\n    if x:\n        go()\n", "if x:\n\tgo()", "if x:\n\t\tstop()", SearchNotFound,
                 id="quoted with a tab, replaced with two"),
    pytest.param("def f(x):\n    if x:\n        go()\n        stop()\n", "if x:\n        go()", "if y:\n    go(1)",
                 SearchNotFound, id="the first line alone lost its indentation, in the replacement all of them"),
    pytest.param("f() {\n    a();\n}\n", "a();", "if (x) {\nb();\n}", SearchNotFound,
                 id="one line without indentation, and no line of it kept"),
    pytest.param("def f():\n    x = 'a'\n    go()\n", "    x = \"a\"\n    go()\n",
                 "    x = \"a\"\n    y = \"b\"\n    go()\n", SearchNotFound,
                 id="new quotes beside such as were quoted otherwise"),
    pytest.param("[\n  1,\n  2,\n]\n", "  1\n  2\n", "  1\n  2\n  3\n", SearchNotFound,
                 id="a new line beside such as were quoted without a comma"),
    pytest.param('f(\n    q="""\n  a\n"""\n)\n', 'q="""\na\n"""\n', 'q="""\na\nb\n"""\n', SearchNotFound,
                 id="a new line in a string"),
    pytest.param("x = 1\n" * 500, "x  = 1\n" * 30, "", SearchAmbiguous, id="lines all alike"),
    pytest.param("abc\n", "zzz\n", "y\n", SearchNotFound, id="nothing like it"),
])  # fmt: skip
def test_it_is_refused(text: str, search: str, replace: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        changed(text, edit(search, replace))


def test_both_near_places_are_named() -> None:
    with pytest.raises(SearchAmbiguous) as caught:
        changed(TWINS, edit("    data = read(path);\n    check(data, strict)\n", "x\n"))
    assert caught.value.details == {"change": 0, "count": 2, "lines": [2, 8]}


def test_of_a_line_quoted_without_indentation_one_reason_is_reported() -> None:
    with pytest.raises(SearchNotFound) as caught:
        changed("class A:\n    x = 1\n", edit("x = 1", "x = 1\ny = 2"))
    assert "It is there without the line's indentation" in caught.value.message
    assert "but for typography" not in caught.value.message
    assert caught.value.details["nearest"] == [{"line": 2, "end_line": 2, "score": 1.0}]


def test_without_leave_nothing_applies_but_as_quoted() -> None:
    with pytest.raises(SearchNotFound) as caught:
        changed(SHOP, Replacement("price =  self.price(item)", "x"))
    assert caught.value.details["nearest"][0] == {"line": 12, "end_line": 12, "score": 1.0}


def test_what_was_misquoted_overlaps_too() -> None:
    with pytest.raises(ChangesOverlap):
        changed(
            SHOP,
            edit("    self.stock.take(item, count)\n    return price * count\n", "    pass\n"),
            edit("return price * count", "return 0"),
        )


@pytest.mark.parametrize(("search", "reported"), [
    pytest.param(
        "    def price(self, item):\n\tfound = self.stock.find(item)\n",
        "-\tfound = self.stock.find(item)\n+        found = self.stock.find(item)", id="tab",
    ),
    pytest.param(
        "        found = self.stck.find(item)\n",
        "-        found = self.stck.find(item)\n+        found = self.stock.find(item)", id="one word",
    ),
    pytest.param(
        "        found = self.stock.find(item)\n        zz()\n        if found is None:\n",
        "-        zz()", id="a line of the search",
    ),
])  # fmt: skip
def test_a_refusal_shows_a_small_diff(search: str, reported: str) -> None:
    with pytest.raises(SearchNotFound) as caught:
        changed(SHOP, Replacement(search, ""))
    assert reported in caught.value.differences[0]


def test_the_small_diff_stays_small() -> None:
    lines = [f"    first_{n}(with_some_arguments, {n})" for n in range(40)]
    with pytest.raises(SearchNotFound) as caught:
        changed("".join(f"{line}\n" for line in lines), Replacement("".join(f"{line}!\n" for line in lines), ""))
    rows = caught.value.differences[0].splitlines()
    assert len(rows) == 13
    assert rows[-1] == "and 68 rows more"


# --- properties --------------------------------------------------------------------------------

words = st.sampled_from("alpha beta gamma delta load store user group path data value index check raise".split())
line = st.tuples(st.integers(0, 3), st.lists(words, min_size=2, max_size=6)).map(
    lambda made: "    " * made[0] + f"{made[1][0]}({', '.join(made[1][1:])})"
)
texts = st.lists(line, min_size=6, max_size=40)


@quick
@given(texts, st.data())
def test_other_blanks_apply_where_the_passage_is(lines: list[str], draw: st.DataObject) -> None:
    start = draw.draw(st.integers(0, len(lines) - 2))
    stop = draw.draw(st.integers(start + 1, min(len(lines), start + 8)))
    short = list(map(key_of, lines))
    assume(sum(short[at : at + stop - start] == short[start:stop] for at in range(len(lines))) == 1)
    wide = draw.draw(st.sampled_from(["\t", "  ", "", "      "]))  # of one step; none at all
    steps = [len(text) - len(text.lstrip()) for text in lines[start:stop]]
    quoted = [
        wide * (step // 4) + text.strip().replace(", ", draw.draw(st.sampled_from([",  ", ", "])))
        for text, step in zip(lines[start:stop], steps, strict=True)
    ]
    at = draw.draw(st.integers(0, stop - start - 1))
    new = [*quoted[:at], wide * (steps[at] // 4) + "brand_new()", *quoted[at + 1 :]]
    after = changed("\n".join(lines) + "\n", edit("\n".join(quoted) + "\n", "\n".join(new) + "\n")).split("\n")[:-1]
    assert after[: start + at] == lines[: start + at]
    assert after[start + at].strip() == "brand_new()"
    assert after[start + at + 1 :] == lines[start + at + 1 :]


@quick
@given(texts, st.data())
def test_a_letter_more_or_less_applies_nowhere(lines: list[str], draw: st.DataObject) -> None:
    start = draw.draw(st.integers(0, len(lines) - 2))
    quoted = list(lines[start : start + 4])
    at = draw.draw(st.integers(0, len(quoted) - 1))
    where = draw.draw(st.integers(len(quoted[at]) - len(quoted[at].lstrip()), len(quoted[at]) - 1))
    quoted[at] = quoted[at][:where] + draw.draw(st.sampled_from(["", "ee"])) + quoted[at][where + 1 :]
    text, search = "\n".join(lines) + "\n", "\n".join(quoted) + "\n"
    wanted, keys = list(map(key_of, quoted)), list(map(key_of, lines))
    assume(search not in text and all(keys[at : at + len(wanted)] != wanted for at in range(len(keys))))
    with pytest.raises(SearchNotFound):
        changed(text, edit(search, f"{search}brand_new()\n"))


# --- lines by number ---------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "change", "after"), [
    pytest.param("a\nb\nc\n", LineReplacement(2, 2, "b", "B"), "a\nB\nc\n", id="one line"),
    pytest.param("a\nb\nc\n", LineReplacement(2, 3, "b\nc\n", "x\ny\nz\n"), "a\nx\ny\nz\n", id="with newlines"),
    pytest.param("a\nb\nc\n", LineReplacement(1, 2, "a\nb", ""), "c\n", id="removed"),
    pytest.param("a\nb", LineReplacement(2, 2, "b", "B"), "a\nB", id="the unended line stays unended"),
    pytest.param("a\n\nb\n", LineReplacement(2, 2, "", "x"), "a\nx\nb\n", id="a blank line"),
    pytest.param("a\r\nb\r\n", LineReplacement(2, 2, "b\r\n", "B\n"), "a\r\nB\r\n", id="crlf"),
    pytest.param("a\nb\n", LineReplacement(2, 2, "     2\tb", "     2\tB"), "a\nB\n", id="pasted with numbers"),
])  # fmt: skip
def test_lines_by_number(text: str, change: LineReplacement, after: str) -> None:
    assert changed(text, change) == after


def test_whole_lines() -> None:
    assert as_lines("a\n", "") == (["a"], [])
    assert as_lines("a", "") == (["a"], [""])
    assert as_lines("a\n", "b\nc\n") == (["a"], ["b", "c"])
