"""search_content: expressions, what it counts, limits, and what it says where nothing was found."""

from __future__ import annotations

import re
import shlex
import string
import threading
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest

from orchestrator.api.parameters import SearchContent
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from orchestrator.core.errors import TextTooCostly
from orchestrator.engine.reads.search import Searcher
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

CODE = """\
def first(a):
    return a.value


def second(b):
    return (
        b.value
    )
Größe = first(second)
"""


@pytest.fixture(autouse=True)
def _files(daemon: RunningDaemon) -> None:
    (daemon.workspace / "code.py").write_text(CODE, encoding="utf-8")
    (daemon.workspace / "dos.txt").write_bytes(b"one\r\ntwo\r\n\r\nthree two\r\n")
    (daemon.workspace / "latin.txt").write_bytes("Größe der Straße\nÄrger mit dem Öl\n".encode("latin-1"))
    (daemon.workspace / "wide.txt").write_bytes("Größe\nnichts\n".encode("utf-16"))


async def lines(daemon: RunningDaemon, pattern: str, **more: Any) -> list[tuple[str, int]]:
    async with daemon.client("alice") as alice:
        found = await alice.search_content(pattern, **more)
    return [(hit.path, hit.line) for hit in found.hits]


async def test_a_log_is_searched_while_it_grows(daemon: RunningDaemon) -> None:
    """A file in memory is searched as it was when it was opened, with the tree or by its name."""
    log, enough = daemon.workspace / "app.log", threading.Event()
    log.write_text("one needle\n" + "a request\n" * 100_000)

    def write() -> None:
        with log.open("a") as file:
            while not enough.is_set():
                print("more", file=file, flush=True)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        async with daemon.client("alice") as alice:
            for path in (".", ".", "app.log"):
                found = await alice.search_content("needle", path=path, globs=["*.log"])
                assert ([hit.line for hit in found.hits], found.files_searched, found.partial) == ([1], 1, False)
    finally:
        enough.set()
        writing.join()


@pytest.mark.parametrize(("pattern", "more", "expected"), [
    pytest.param(r"def \w+\(", {}, [("code.py", 1), ("code.py", 5)], id="an expression"),
    pytest.param(r"^return|value$", {}, [("code.py", 2), ("code.py", 7)], id="anchors are a line's"),
    pytest.param(r"Gr..e\b", {}, [("code.py", 9), ("latin.txt", 1), ("wide.txt", 1)], id="in every encoding"),
    pytest.param(r"GRÖSS|größ", {"case_sensitive": False}, [("code.py", 9), ("latin.txt", 1), ("wide.txt", 1)],
                 id="without case"),
    pytest.param(r"größ", {"smart_case": True}, [("code.py", 9), ("latin.txt", 1), ("wide.txt", 1)], id="smart, small"),
    pytest.param(r"\bGRÖSS", {"smart_case": True}, [], id="smart, with a capital"),
    pytest.param(r"t[wh]\w+", {"word": True}, [("dos.txt", 2), ("dos.txt", 4)], id="whole words"),
    pytest.param(r"two$", {"path": "dos.txt"}, [("dos.txt", 2), ("dos.txt", 4)], id="before a carriage return"),
    pytest.param(r"\(\n.*\n\s+\)", {"multiline": True}, [("code.py", 6)], id="several lines"),
    pytest.param(r"two\n\nthree", {"multiline": True}, [("dos.txt", 2)], id="several lines, any line end"),
    pytest.param(r"o", {"path": "dos.txt", "invert": True}, [("dos.txt", 3)], id="the other lines"),
    pytest.param(r"value|def", {"max_per_file": 1}, [("code.py", 1)], id="so many of a file"),
])  # fmt: skip
async def test_expressions(
    daemon: RunningDaemon, pattern: str, more: dict[str, Any], expected: list[tuple[str, int]]
) -> None:
    assert await lines(daemon, pattern, mode="regex", **more) == expected


async def test_a_match_over_several_lines_is_shown_whole(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        found = await alice.search_content(r"\(\n.*\n\s+\)", mode="regex", multiline=True, context_lines=1)
    (hit,) = found.hits
    assert (hit.line, hit.end_line, hit.match_type) == (6, 8, "regex")
    assert hit.text == "    return (\n        b.value\n    )"
    assert [hit.text[span.start : span.end] for span in hit.submatches] == ["(\n        b.value\n    )"]
    assert (hit.before, hit.after) == (("def second(b):",), ("Größe = first(second)",))


async def test_only_files_with_their_counts_by_pages(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        first = await alice.search_content(r"\w", mode="regex", files_only=True, max_results=3)
        rest = await alice.search_content(r"\w", mode="regex", files_only=True, max_results=3, cursor=first.cursor)
    counts = [(file.path, file.total) for file in (*first.files, *rest.files)]
    assert counts == [("code.py", 6), ("dos.txt", 3), ("latin.txt", 2), ("wide.txt", 2)]
    assert first.total == sum(total for _, total in counts)
    assert (first.hits, first.truncated, rest.cursor) == ((), True, None)


async def test_limits_of_each_file_hold_over_pages(daemon: RunningDaemon) -> None:
    for name in "ab":
        (daemon.workspace / f"{name}.log").write_text("hit\n" * 9)
    seen, cursor = list[tuple[str, int]](), None
    async with daemon.client("alice") as alice:
        while True:
            page = await alice.search_content(
                "hit", globs=("*.log",), max_per_file=5, max_results=3, context_lines=0, cursor=cursor
            )
            assert page.total == 18
            seen += [(hit.path, hit.line) for hit in page.hits]
            cursor = page.cursor
            if cursor is None:
                break
    assert seen == [(f"{name}.log", line) for name in "ab" for line in range(1, 6)]


async def test_a_text_that_looks_like_an_expression_is_told_of(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        nothing = await alice.search_content(r"def .*\(b\)")
        assert nothing.hint is not None
        assert r"search_content(pattern='def .*\\(b\\)', mode='regex')" in nothing.hint
        assert (await alice.search_content(r"def .*\(b\)", mode="regex")).total == 1
        assert (await alice.search_content("nowhere at all")).hint is None
        assert (await alice.search_content("b.value")).hint is None


async def test_a_person_is_told_what_to_type_where_a_pattern_was_taken_as_text(daemon: RunningDaemon) -> None:
    said = cli(daemon, "search", "def .*\\(b\\)", "code.py")[1]
    typed = shlex.split(said.partition("`")[2].partition("`")[0])
    assert typed == ["orchestrator", "search", "def .*\\(b\\)", "code.py", "--mode", "regex"]
    assert "code.py:5:def second(b):" in cli(daemon, *typed[1:])[1]


@pytest.mark.parametrize(("params", "says"), [
    pytest.param({"pattern": "a(b", "mode": "regex"}, r"at character 2: missing \)", id="an open group"),
    pytest.param({"pattern": "ab[c", "mode": "regex"}, r"at character 3: missing \]", id="an open class"),
    pytest.param({"pattern": "a**", "mode": "regex"}, r"at character 2: bad repetition", id="twice repeated"),
    pytest.param({"pattern": "x(?=y)", "mode": "regex"}, r"no look-around", id="looking ahead"),
    pytest.param({"pattern": r"(a)\1", "mode": "regex"}, r"no back-reference", id="a back-reference"),
    pytest.param({"pattern": "a\\nb", "mode": "regex"}, r"multiline=true", id="a line break"),
    pytest.param({"pattern": "(a{1,1000}){1,1000}", "mode": "regex"}, r"invalid repetition", id="a bomb of counts"),
    pytest.param({"pattern": "a", "mode": "regexp"}, r"Send one of: exact, regex, fuzzy", id="a misspelt mode"),
    pytest.param({"pattern": "a", "multiline": True}, r"mode='regex'", id="several lines of plain text"),
])  # fmt: skip
async def test_refusals_say_where_and_what_to_send(daemon: RunningDaemon, params: dict[str, Any], says: str) -> None:
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.search_content(**params)
    assert refused.value.code == "invalid_parameter"
    assert re.search(says, f"{refused.value.message} {refused.value.hint}")


async def test_a_cursor_belongs_to_its_search(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        page = await alice.search_content("e", max_results=1)
        assert page.cursor is not None
        following = await alice.search_content("e", max_results=5, context_lines=0, cursor=page.cursor)
        assert (following.hits[0].path, following.hits[0].line) == ("code.py", 2)
        with pytest.raises(RemoteError) as refused:
            await alice.search_content("f", max_results=1, cursor=page.cursor)
    assert (refused.value.code, "another search" in refused.value.message) == ("invalid_parameter", True)


async def test_a_thousand_searches_at_a_time(daemon: RunningDaemon) -> None:
    """Each is answered, or refused since its connection has too many calls open; nobody gets less than others."""
    outcomes = {name: Counter[str]() for name in ("alice", "bob", "carol", "dave")}

    async def search_it(files: FileAccess, name: str, number: int) -> None:
        try:
            found = await files.search_content(("two", "value", "Größe")[number % 3], context_lines=0)
            outcomes[name]["found" if found.total else "nothing"] += 1
        except RemoteError as refused:
            outcomes[name][refused.code] += 1

    async with AsyncExitStack() as stack:
        agents = {name: await stack.enter_async_context(daemon.client(name)) for name in outcomes}
        async with anyio.create_task_group() as tasks:
            for number in range(250):
                for name, files in agents.items():
                    tasks.start_soon(search_it, files, name, number)
        for files in agents.values():
            assert (await files.search_content("two", context_lines=0)).total == 2
    for found in outcomes.values():
        assert found.keys() <= {"found", "too_many_calls"}
        assert found["found"] >= 64
        assert found.total() == 250


async def test_a_bomb_harms_nobody(daemon: RunningDaemon) -> None:
    """What takes a backtracking matcher for ever takes as long as the text is."""
    (daemon.workspace / "bomb.txt").write_text("a" * 30_000 + "\n")
    assert await lines(daemon, r"(a+)+$", mode="regex", path="bomb.txt") == [("bomb.txt", 1)]
    assert await lines(daemon, r"(a|a)*b", mode="regex") == [
        ("code.py", 5), ("code.py", 7)
    ]  # fmt: skip


async def test_a_long_line_with_many_matches_is_searched_once(daemon: RunningDaemon) -> None:
    """RE2 has room for the states of a count; without it, each character takes a hundred times as long."""
    rest = string.ascii_letters + string.digits
    (daemon.workspace / "line.js").write_text("".join(rest * 500 + "p6-Q" for _ in range(66)) + "\n")
    async with daemon.client("alice") as alice:
        found = await alice.search_content(".{0,900}p6-Q", path="line.js", mode="regex")
    assert (found.total, found.partial, len(found.hits)) == (1, False, 1)


async def test_a_search_that_takes_too_long_says_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    async def matches(*given: object) -> None:
        raise TextTooCostly(10.0)

    searcher, params = Searcher.__new__(Searcher), SearchContent(pattern="a")
    monkeypatch.setattr(searcher, "_matches", matches)
    anything: Any = None
    with pytest.raises(TextTooCostly, match="10 s") as refused:
        await searcher._one(anything, anything, anything, params, anything)
    assert refused.value.hint.startswith("Send a simpler pattern")


async def test_a_text_with_typos_is_found_best_first(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.log").write_text("x\nconection refused by peer\nconnection refusd\n")
    (daemon.workspace / "b.log").write_text("connection refused\n")
    (daemon.workspace / "c.log").write_text("nothing of the kind\n")
    seen, cursor = list[tuple[str, int, str, float]](), None
    async with daemon.client("alice") as alice:
        for _ in range(3):
            page = await alice.search_content("connection refused", mode="fuzzy", max_results=1, cursor=cursor)
            assert (page.total, page.partial) == (3, False)
            seen += [(hit.path, hit.line, hit.match_type, hit.score) for hit in page.hits]
            cursor = page.cursor
        assert cursor is None
        assert seen == [
            ("b.log", 1, "exact", 1.0),
            ("a.log", 2, "fuzzy", 0.944),
            ("a.log", 3, "fuzzy", 0.944),
        ]
        none = await alice.search_content("connection refused", mode="fuzzy", max_edits=0)
        assert [(hit.path, hit.line) for hit in none.hits] == [("b.log", 1)]
        several = await alice.search_content("def second(a):\nretrun (", mode="fuzzy", max_edits=5, path="code.py")
        assert [(hit.line, hit.end_line) for hit in several.hits] == []
        near = await alice.search_content("def secnd(b):\n    retrun (", mode="fuzzy", max_edits=3, path="code.py")
        assert [(hit.line, hit.end_line) for hit in near.hits] == [(5, 6)]


async def test_a_hit_names_the_symbols_around_it(daemon: RunningDaemon) -> None:
    (daemon.workspace / "cart.py").write_text("class Cart:\n    def net(self):\n        return 0\n\nnet = 1\n")
    async with daemon.client("alice") as alice:
        found = await alice.search_content("net|return", mode="regex", path="cart.py", semantic_context=True)
        assert [(hit.line, hit.context) for hit in found.hits] == [
            (2, "class Cart > method net"), (3, "class Cart > method net"), (5, "constant net")
        ]  # fmt: skip
        plain = await alice.search_content("return", path="cart.py")
        assert plain.hits[0].context is None


async def test_files_as_they_were(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        before = (await alice.read_file("code.py")).version_id
        edit = [Replacement(search="first(a)", replace="primary(a)")]
        await alice.read_file("latin.txt")
        after = (await alice.edit_file("code.py", edit)).version_id
        await alice.delete_file("latin.txt")
        assert (await alice.search_content("def first")).total == 0
        was = await alice.search_content("def first", at=before)
        assert [(hit.path, hit.line, was.versions[hit.path]) for hit in was.hits] == [("code.py", 1, before)]
        alone = await alice.search_content("primary", path="code.py", at=after)
        assert (alone.total, alone.versions) == (1, {"code.py": after})
        gone = await alice.search_content("Ärger", at=after)
        assert [hit.path for hit in gone.hits] == ["latin.txt"], gone
        assert (await alice.search_content(r"GR.SSE", mode="regex", case_sensitive=False, at=before)).total == 0
        with pytest.raises(RemoteError) as refused:
            await alice.search_content("x", path="nowhere", at=before)
        assert refused.value.code == "not_found"


async def test_many_files_give_what_a_look_into_each_gives(daemon: RunningDaemon) -> None:
    """As many as ripgrep is asked for; encodings that it can't read, and what is no text, among them."""
    for number in range(60):
        folder = daemon.workspace / "many" / f"part {number % 5}"
        folder.mkdir(parents=True, exist_ok=True)
        codec = ("utf-8", "latin-1", "utf-16", "cp1252")[number % 4]
        end = ("\n", "\r\n", "\r")[number % 3]
        (folder / f"-{number}.txt").write_bytes(end.join((f"Zeile {number}", "Größe", "")).encode(codec))
    (daemon.workspace / "many" / "binary").write_bytes(b"Gr\xf6\xdfe\0")
    async with daemon.client("alice") as alice:
        for params in ({"pattern": "Größe"}, {"pattern": "^Gr.ße$", "mode": "regex"}, {"pattern": "GRÖSSE|größe",
                       "mode": "regex", "case_sensitive": False}, {"pattern": "Grösße", "mode": "fuzzy"}):  # fmt: skip
            found = await alice.search_content(**params, path="many", files_only=True, max_results=100)
            assert (found.total, len(found.files), found.files_searched) == (60, 60, 61), params
        one = await alice.search_content("^Zeile 5[37]$", mode="regex", globs=("*.txt",))
        assert [(hit.path, hit.line) for hit in one.hits] == [
            ("many/part 2/-57.txt", 1), ("many/part 3/-53.txt", 1)
        ]  # fmt: skip


async def test_names_that_no_path_can_hold_are_counted(daemon: RunningDaemon) -> None:
    (daemon.workspace / "sub").mkdir()
    names = ("cafe\u0301.py", "sub/tab\t.py", "sub/\u202egnp.py", "sub/line\n.txt")
    for name in names:
        (daemon.workspace / name).write_text("needle\n")
    async with daemon.client("alice") as alice:
        for asked, count in (({}, "4 names"), ({"path": "sub"}, "3 names"), ({"globs": ("*.txt",)}, "1 name")):
            found = await alice.search_content("needle", **asked)
            assert found.hits == ()
            (warning,) = found.warnings
            assert warning.startswith(f"{count} not searched, against the name rule")
        listed = await alice.find_files("*.py", path="sub")
        assert [entry.type for entry in listed.entries] == ["OtherEntry", "OtherEntry"]
        with pytest.raises(RemoteError) as refused:
            await alice.read_file(names[0])
        assert "a person must rename it" in (refused.value.hint or "")
        (daemon.workspace / names[0]).rename(daemon.workspace / "caf\u00e9.py")
        assert [hit.path for hit in (await alice.search_content("needle", globs=("caf*",))).hits] == ["caf\u00e9.py"]


async def test_of_the_whole_tree_each_is_shown_what_policy_lets_it_see_now(daemon: RunningDaemon) -> None:
    """A search of all asks policy about one file of each kind only, and remembers the kinds."""
    for path in ("a/one.txt", "a/two.key", "b/one.txt"):
        (daemon.workspace / path).parent.mkdir(exist_ok=True)
        (daemon.workspace / path).write_text("needle\n")
    policy = daemon.state_dir / "policy.toml"
    rule = '[[rule]]\nname = "{}"\nagents = ["{}"]\nactions = ["{}"]\npaths = ["{}"]\nverdict = "deny"\n'
    policy.write_text('name = "t"\ndefault = "allow"\n' + rule.format("keys", "alice", "search", "*.key"))

    async def found(agent: str) -> tuple[list[str], int]:
        async with daemon.client(agent) as client:
            searched = await client.search_content("needle", files_only=True)
            return [file.path for file in searched.files], searched.files_left_out

    async with daemon.client() as person:
        await person.policy_reload(approver=await daemon.make_approver())
        for _ in range(2):
            assert await found("alice") == (["a/one.txt", "b/one.txt"], 1)
            assert await found("bob") == (["a/one.txt", "a/two.key", "b/one.txt"], 0)
        policy.write_text('name = "t"\ndefault = "allow"\n' + rule.format("b", "bob", "list", "b/**"))
        await person.policy_reload(approver=await daemon.make_approver())
        assert await found("alice") == (["a/one.txt", "a/two.key", "b/one.txt"], 0)
        assert await found("bob") == (["a/one.txt", "a/two.key"], 0)
        (daemon.workspace / "b" / "three.txt").write_text("needle\n")
        assert await found("alice") == (["a/one.txt", "a/two.key", "b/one.txt", "b/three.txt"], 0)
        assert await found("bob") == (["a/one.txt", "a/two.key"], 0)
