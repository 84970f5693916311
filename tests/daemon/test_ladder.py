"""The ladder through a real daemon: by which rung an edit fits, where it lands, and what a refusal tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.api.results import ChangeAnswer, Lines
from orchestrator.clients.python import RemoteError, Replacement
from tests.core.text.misquotations import LANDS, ONLY_ALIKE, OTHER_THINGS
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

SHOP = """\
class Shop:
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

ORDER = Replacement(
    search="def order(self, item, count):\n  price = self.price(item)\n",
    replace="def order(self, item, count):\n  check(count)\n  price = self.price(item)\n",
)

POLICY = 'name = "ours"\ndefault = "allow"\n\n[edits]\n'


def applied(answer: ChangeAnswer) -> tuple[Lines, ...]:
    return answer.paths[0].written


async def test_an_edit_that_fits_as_it_is_says_where(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SHOP)
    async with daemon.client("alice") as alice:
        change = Replacement(search="        return price * count\n", replace="        return 0\n        # free\n")
        preview = await alice.edit_file("shop.py", [change], preview=True)
        answer = await alice.edit_file("shop.py", [change])
        gone = await alice.edit_file("shop.py", [Replacement(search="        # free\n", replace="")])
    assert (answer.rung, answer.score) == ("current", None)
    assert applied(preview) == applied(answer) == (Lines(start=11, end=12),)
    assert applied(gone) == (Lines(start=12, end=11),), "an empty range: the lines are gone from there"


async def test_a_misquoted_edit_applies_and_says_so(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SHOP)
    async with daemon.client("alice") as alice:
        answer = await alice.edit_file("shop.py", [ORDER])
        await alice.read_file("shop.py")
    assert (answer.status, answer.rung) == ("applied", "fuzzy")
    assert answer.score is not None
    assert 0.9 <= answer.score < 1
    assert applied(answer) == (Lines(start=9, end=9),)
    assert "other typography or indentation" in answer.message
    assert answer.diff is not None
    assert "\n+        check(count)\n" in answer.diff
    written = (daemon.workspace / "shop.py").read_text()
    assert written == SHOP.replace("count):\n        price", "count):\n        check(count)\n        price")


async def test_the_call_may_forbid_misquotations(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SHOP)
    strict = Replacement(search=ORDER.search, replace=ORDER.replace, fuzzy=False)
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.edit_file("shop.py", [strict])
    assert refused.value.code == "search_not_found"
    assert refused.value.details["nearest"][0]["line"] == 8
    assert "     9\t        price = self.price(item)\n" in (refused.value.shown or "")
    assert "differ from the search (-):\n-def order(self, item, count):\n" in (refused.value.shown or "")
    assert (daemon.workspace / "shop.py").read_text() == SHOP


async def test_nothing_applies_on_another_thing(daemon: RunningDaemon) -> None:
    reported: dict[str, tuple[str, bool, bool]] = {}
    async with daemon.client("alice") as alice:
        for at, case in enumerate((*OTHER_THINGS, *ONLY_ALIKE)):
            file = daemon.workspace / f"other{at}.txt"
            file.write_text(case.text)
            try:
                answer = await alice.edit_file(file.name, [Replacement(search=case.search, replace=case.replace)])
            except RemoteError as refused:
                reported[case.name] = (
                    refused.code,
                    bool(refused.details.get("nearest")),
                    file.read_text() == case.text,
                )
            else:
                reported[case.name] = (answer.status, False, False)
    expected = {case.name: ("search_not_found", True, True) for case in (*OTHER_THINGS, *ONLY_ALIKE)}
    expected["a comment with dots for context"] = ("invalid_parameter", False, True)  # its dots would be written
    assert reported == expected


async def test_what_may_be_misquoted_applies(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        for at, case in enumerate(LANDS):
            file = daemon.workspace / f"misquoted{at}.txt"
            file.write_text(case.text)
            answer = await alice.edit_file(file.name, [Replacement(search=case.search, replace=case.replace)])
            assert (answer.status, answer.rung) == ("applied", "fuzzy"), case.name
            assert (answer.score or 1.0) >= 0.9, case.name
            assert file.read_text() == case.after, case.name


GO = "package m\n\nfunc f() int {\n\tif g() {\n\t\treturn 1\n\t}\n\treturn 0\n}\n\nfunc g() bool { return true }\n"
TS = "class A {\n\tf() {\n\t\treturn 1;\n\t}\n\n\tg() {\n\t\treturn 2;\n\t}\n}\n"


@pytest.mark.parametrize(("path", "text", "symbol", "content", "old", "new"), [
    pytest.param(
        "a.go", GO, "f", "func f() int {\n    if g() {\n        return 7\n    }\n    return 0\n}\n", "1", "7", id="Go"
    ),
    pytest.param(
        "a.ts", TS, "A.f", "f() {\n  return `\n  a\n`;\n}", "return 1;", "return `\n  a\n`;", id="a template string"
    ),
])  # fmt: skip
async def test_a_symbols_content_takes_the_files_tabs(
    daemon: RunningDaemon, path: str, text: str, symbol: str, content: str, old: str, new: str
) -> None:
    (daemon.workspace / path).write_text(text)
    async with daemon.client("alice") as alice:
        await alice.edit_file(path, [Replacement(symbol=symbol, content=content)])
    assert (daemon.workspace / path).read_text() == text.replace(old, new)


HUNK = """\
@@ -8,3 +8,4 @@
   def order(self, item, count):
     price =  self.price(item)
+    check(count)
     self.stock.take(item, count)
"""
TWO_FILES = f"--- a/shop.py\n+++ b/shop.py\n{HUNK}--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-b\n+B\n"


@pytest.mark.parametrize("patch", [f"--- a/shop.py\n+++ b/shop.py\n{HUNK}", TWO_FILES], ids=["one file", "two"])
async def test_a_misquoted_hunk_applies_and_says_so(daemon: RunningDaemon, patch: str) -> None:
    (daemon.workspace / "shop.py").write_text(SHOP)
    (daemon.workspace / "b.txt").write_text("b\n")
    async with daemon.client("alice") as alice:
        await alice.read_file("shop.py")
        await alice.read_file("b.txt")
        answer = await alice.apply_patch(patch)
    assert (answer.status, answer.rung) == ("applied", "fuzzy")
    assert answer.score is not None
    assert 0.9 <= answer.score < 1
    assert applied(answer) == (Lines(start=10, end=10),)
    written = (daemon.workspace / "shop.py").read_text()
    assert written == SHOP.replace("(item)\n        self", "(item)\n        check(count)\n        self")


async def test_the_policy_may_forbid_misquoted_hunks(base: Path) -> None:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(POLICY + "fuzzy = false\n")
    (daemon.workspace / "shop.py").write_text(SHOP)
    daemon.start()
    try:
        async with daemon.client("alice") as alice:
            await alice.read_file("shop.py")
            with pytest.raises(RemoteError) as refused:
                await alice.apply_patch(HUNK, path="shop.py")
    finally:
        daemon.stop()
    assert refused.value.code == "search_not_found"
    assert "differ from the search (-):" in (refused.value.shown or "")
    assert (daemon.workspace / "shop.py").read_text() == SHOP


@pytest.mark.parametrize("asked", [None, True], ids=["policy says no", "the call says yes"])
async def test_the_policy_may_forbid_misquotations(base: Path, asked: bool | None) -> None:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(POLICY + "fuzzy = false\n")
    (daemon.workspace / "shop.py").write_text(SHOP)
    daemon.start()
    change = Replacement(search=ORDER.search, replace=ORDER.replace, fuzzy=asked)
    try:
        async with daemon.client("alice") as alice:
            if asked:
                assert (await alice.edit_file("shop.py", [change])).rung == "fuzzy"
                return
            with pytest.raises(RemoteError) as refused:
                await alice.edit_file("shop.py", [change])
            assert refused.value.code == "search_not_found"
    finally:
        daemon.stop()


async def test_what_a_refusal_shows_is_enough_for_the_next_try(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SHOP)
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.edit_file(
                "shop.py",
                [
                    Replacement(
                        search="        self.stok.take(item)\n        return price * count\n",
                        replace="        take(item)\n        return price * count\n",
                    )
                ],
            )
        shown = refused.value.shown or ""
        assert "-        self.stok.take(item)\n+        self.stock.take(item, count)\n" in shown, shown
        place = refused.value.details["nearest"][0]
        rows = [row.partition("\t") for row in shown.splitlines() if "\t" in row]
        quoted = [text for number, _, text in rows if place["line"] <= int(number) <= place["end_line"]]
        again = Replacement(search="\n".join(quoted), replace="        pass")
        answer = await alice.edit_file("shop.py", [again])
    assert (answer.status, answer.rung) == ("applied", "current")


async def test_near_twins_are_both_named(daemon: RunningDaemon) -> None:
    body = "    data = read(path)\n    check(data)\n"
    twins = f"def one(path):\n{body}\n\ndef two(path):\n{body}"
    (daemon.workspace / "twins.py").write_text(twins)
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.edit_file(
                "twins.py", [Replacement(search="    data =  read(path)\n", replace="    data = 1\n")]
            )
    assert (refused.value.code, refused.value.details["lines"]) == ("search_ambiguous", [2, 7])
    assert "     2\t" in (refused.value.shown or "")
    assert "     7\t" in (refused.value.shown or "")
    assert (daemon.workspace / "twins.py").read_text() == twins


async def test_a_passage_that_was_indented_since_is_found_again(daemon: RunningDaemon) -> None:
    """Before and after lie a stretch of lines that nobody touched, as in a file that a formatter went over."""
    (daemon.workspace / "shop.py").write_text(SHOP)
    async with daemon.client("alice") as alice:
        seen = await alice.read_file("shop.py")
        deeper = "".join(f"    {line}\n" if line else "\n" for line in SHOP.splitlines())
        (daemon.workspace / "shop.py").write_text("if True:\n" + deeper)
        answer = await alice.edit_file(
            "shop.py",
            [Replacement(search="        return price * count\n", replace="        return 0\n")],
            base=seen.version_id,
        )
    assert (answer.status, answer.rung) == ("applied", "anchored")
    assert applied(answer) == (Lines(start=12, end=12),)
    assert (daemon.workspace / "shop.py").read_text() == "if True:\n" + deeper.replace(
        "return price * count", "return 0"
    )


async def test_a_rung_below_the_lowest_waits_for_a_person(base: Path) -> None:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(POLICY + 'lowest_rung = "anchored"\n')
    (daemon.workspace / "shop.py").write_text(SHOP)
    daemon.start()
    try:
        async with daemon.client("alice") as alice:
            would = await alice.edit_file("shop.py", [ORDER], preview=True)
            answer = await alice.edit_file("shop.py", [ORDER])
            assert (would.would_be, answer.status) == ("waiting", "waiting")
            assert "it fits as fuzzy" in answer.message
            assert (daemon.workspace / "shop.py").read_text() == SHOP
            exact = await alice.edit_file("shop.py", [Replacement(search="KeyError", replace="LookupError")])
            assert exact.status == "applied"
    finally:
        daemon.stop()


@pytest.mark.parametrize(("change", "code"), [
    pytest.param({"start": 3, "end": 3, "expect": "found = None", "replace": "x"}, "expect_mismatch", id="other lines"),
    pytest.param({"start": 4, "end": 3, "expect": "x", "replace": "y"}, "invalid_parameter", id="start after end"),
    pytest.param({"start": 11, "end": 12, "expect": "x", "replace": "y"}, "invalid_parameter", id="beyond the end"),
    pytest.param({"start": 3, "end": 3, "replace": "y"}, "invalid_parameter", id="nothing expected"),
    pytest.param(
        {"start": 1, "end": 1, "expect": "class Shop:", "replace": "class Shop:"}, "nothing_to_change", id="same"
    ),
    pytest.param({"search": "KeyError", "start": 3, "replace": "y"}, "invalid_parameter", id="two forms"),
    pytest.param({"replace": "y"}, "invalid_parameter", id="no form"),
    pytest.param({"search": "KeyError"}, "invalid_parameter", id="no replace"),
    pytest.param({"search": "", "replace": "y"}, "invalid_parameter", id="empty search"),
    pytest.param({"search": " \n\t\n", "replace": "y"}, "invalid_parameter", id="blank search"),
    pytest.param({"search": "KeyError", "replace": "KeyError"}, "nothing_to_change", id="search is replace"),
])  # fmt: skip
async def test_bad_changes(daemon: RunningDaemon, change: dict[str, object], code: str) -> None:
    (daemon.workspace / "shop.py").write_text(SHOP)
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.edit_file("shop.py", [Replacement(**change)])  # type: ignore[arg-type]
    assert refused.value.code == code
    if code == "expect_mismatch":
        assert "change 1: line 3 differs from `expect`" in str(refused.value)
        assert "     3\t        found = self.stock.find(item)\n" in (refused.value.shown or "")
    assert (daemon.workspace / "shop.py").read_text() == SHOP


async def test_lines_by_number_are_those_of_the_base(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SHOP)
    async with daemon.client("alice") as alice:
        seen = await alice.read_file("shop.py")
        (daemon.workspace / "shop.py").write_text("import os\n\n\n" + SHOP)
        change = Replacement(start=11, end=11, expect="        return price * count\n", replace="        return 0\n")
        answer = await alice.edit_file("shop.py", [change], base=seen.version_id)
    assert (answer.status, answer.rung) == ("applied", "shifted")
    assert applied(answer) == (Lines(start=14, end=14),)


STAND_INS = (
    *(
        "# ...",
        "// ...",
        "/* ... */",
        "<!-- ... -->",
        "# same as before",
        "(rest of methods ...)",
        "# rest of the code",
    ),
    *("// rest of file unchanged", "# existing code", "// existing code here", "# unchanged", "# (unchanged)"),
    *("// ... unchanged ...", "// other methods", "[... rest of file ...]", "# omitted for brevity"),
    *("# ... existing code ...", "... rest of the file"),
    *("# lines 2-3 unchanged", "# ... 10 lines ...", "\u22ee", "\u2026", "return 20  # ... rest unchanged"),
)


async def test_a_line_that_stands_for_others_is_refused(daemon: RunningDaemon) -> None:
    file = daemon.workspace / "shop.py"
    file.write_text(SHOP)
    reported: dict[str, str] = {}
    async with daemon.client("alice") as alice:
        for line in STAND_INS:
            change = Replacement(search="        return found.price\n", replace=f"        {line}\n")
            try:
                reported[line] = (await alice.edit_file("shop.py", [change])).status
            except RemoteError as refused:
                reported[line] = refused.code
    assert reported == dict.fromkeys(STAND_INS, "invalid_parameter")
    assert file.read_text() == SHOP


async def test_a_whole_content_with_a_line_that_stands_for_others_is_refused(daemon: RunningDaemon) -> None:
    file = daemon.workspace / "shop.py"
    file.write_text(SHOP)
    notes = daemon.workspace / "notes.md"
    notes.write_text("# Notes\n\nold\n")
    async with daemon.client("alice") as alice:
        await alice.read_file("shop.py")
        await alice.read_file("notes.md")
        for line in STAND_INS:
            with pytest.raises(RemoteError) as refused:
                await alice.write_file("shop.py", f"class Shop:\n    {line}\n", mode="truncate")
            assert refused.value.code == "invalid_parameter", line
            assert "edit_file" in (refused.value.hint or "")
        patch = "*** Begin Patch\n*** Add File: shop.py\n+class Shop:\n+    # rest unchanged\n*** End Patch\n"
        with pytest.raises(RemoteError) as refused:
            await alice.apply_patch(patch)
        assert refused.value.code == "invalid_parameter"
        assert (await alice.write_file("notes.md", "# Same\n\nnew\n", mode="truncate")).status == "applied"
    assert file.read_text() == SHOP


async def test_an_empty_file_is_filled_by_an_empty_search(daemon: RunningDaemon) -> None:
    (daemon.workspace / "empty.txt").write_text("")
    async with daemon.client("alice") as alice:
        answer = await alice.edit_file("empty.txt", [Replacement(search="", replace="one\ntwo\n")])
    assert answer.status == "applied"
    assert (daemon.workspace / "empty.txt").read_text() == "one\ntwo\n"


async def test_more_than_fifty_changes_go_together(daemon: RunningDaemon) -> None:
    (daemon.workspace / "many.txt").write_text("".join(f"<{n}>\n" for n in range(200)))
    changes = [Replacement(search=f"<{n}>", replace=f"[{n}]") for n in range(200)]
    async with daemon.client("alice") as alice:
        assert (await alice.edit_file("many.txt", changes)).status == "applied"
    assert (daemon.workspace / "many.txt").read_text() == "".join(f"[{n}]\n" for n in range(200))


async def test_a_patch_needs_no_read_where_each_hunk_occurs_once(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SHOP)
    once = "--- a/shop.py\n+++ b/shop.py\n@@ -4 +4 @@\n-        if found is None:\n+        if not found:\n"
    async with daemon.client("alice") as alice:
        assert (await alice.apply_patch(once)).status == "applied"
    async with daemon.client("bob") as bob:
        with pytest.raises(RemoteError) as refused:
            await bob.apply_patch(once.replace("is None", "was None"))
        assert refused.value.code == "base_required"
    assert (daemon.workspace / "shop.py").read_text() == SHOP.replace("if found is None", "if not found")


@pytest.mark.parametrize(("search", "replace", "reported"), [
    pytest.param("  if x == 'a':\n    go()\n", "  if x == 'a':\n    go(\n", "not parse as python",
                 id="a bracket that stays open"),
    pytest.param('    if x == "a":\n        go()', '    if x == "a":\n    go()', "not parse as python",
                 id="a block without a line"),
    pytest.param("if x == 'a':\n        go()", "if y:\n    go(1)", "the indentation of its new lines is uncertain",
                 id="a block without a line, quoted without indentation"),
    pytest.param("go()\nstop()", "go()\n    stop()", "not parse as python", id="a line that is too deep"),
])  # fmt: skip
async def test_a_misquoted_change_that_would_not_parse_is_refused(
    daemon: RunningDaemon, search: str, replace: str, reported: str
) -> None:
    text = "def f(x):\n    if x == 'a':\n        go()\n        stop()\n    return x\n"
    (daemon.workspace / "a.py").write_text(text)
    change = Replacement(search=search, replace=replace)
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.edit_file("a.py", [change])
    assert refused.value.code == "search_not_found"
    assert reported in refused.value.message
    assert (daemon.workspace / "a.py").read_text() == text
