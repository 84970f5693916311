"""search_content in files that are not held in memory: as in those that are, whatever their lines."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestrator.api.parameters import SearchContent
from orchestrator.clients.python import FileAccess, Replacement
from orchestrator.core.text.search import search
from orchestrator.engine.reads.search import matcher_of
from orchestrator.servers.blocks import text_block
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

LINES = 8_000
WORDS = ("request", "response", "größe", "connection", "refused", "ERROR")


@pytest.fixture
async def alice(large: RunningDaemon) -> AsyncIterator[FileAccess]:
    async with large.client("alice") as files:
        yield files


def line(number: int) -> str:
    words = " ".join(WORDS[(number * step) % len(WORDS)] for step in (1, 5, 7))
    return f"{number} {words} {'x' * (number % 60)}"


def written(path: Path, *, end: str = "\n", codec: str = "utf-8", lines: int = LINES) -> None:
    path.write_bytes("".join(line(number) + end for number in range(1, lines + 1)).encode(codec))


@pytest.mark.parametrize("params", [
    pytest.param({"pattern": "2345 "}, id="one line"),
    pytest.param({"pattern": "GRÖSSE|größe$", "mode": "regex", "case_sensitive": False}, id="an expression"),
    pytest.param({"pattern": "conection refusd", "mode": "fuzzy", "max_edits": 3}, id="typos"),
    pytest.param({"pattern": "^$|request", "mode": "regex", "invert": True, "max_results": 9}, id="the other lines"),
    pytest.param({"pattern": "nowhere"}, id="nothing"),
    pytest.param({"pattern": "^1 |^7", "mode": "regex"}, id="beginnings of lines"),
    pytest.param({"pattern": r"ERROR.*\n23.* re", "mode": "regex", "multiline": True}, id="several lines"),
    pytest.param({"pattern": "refused", "count_only": True}, id="how many"),
])  # fmt: skip
async def test_it_is_as_of_a_file_in_memory(large: RunningDaemon, alice: FileAccess, params: dict[str, Any]) -> None:
    """In whatever encoding, and with whatever line ends: what our matcher finds in all of the lines."""
    lines = [line(number) for number in range(1, LINES + 1)]
    expected = search(lines, matcher_of(SearchContent(**params)), invert="invert" in params)
    forms = (("\n", "utf-8"), ("\r\n", "cp1252"), ("\r", "utf-8"), ("\n", "utf-16"), ("\n", "utf-8-sig"))
    for end, codec in forms:
        written(large.workspace / "app.log", end=end, codec=codec)
        found = await alice.search_content(path="app.log", **params)
        assert (found.total, found.partial) == (expected.total, False), (end, codec)
        hits = expected.hits[: 0 if "count_only" in params else params.get("max_results", 20)]
        wanted = [(hit.line, hit.text, hit.before, hit.after) for hit in hits]
        assert [(hit.line, hit.text, hit.before, hit.after) for hit in found.hits] == wanted, (end, codec)
        spans = [[(span.start, span.end) for span in hit.submatches] for hit in found.hits]
        assert spans == [list(hit.submatches) for hit in hits]


async def test_a_text_like_most_lines_is_found_behind_all_of_them(large: RunningDaemon, alice: FileAccess) -> None:
    lines = [f"alpha {number}" for number in range(30_000)]
    lines[20_500] = lines[29_999] = "alpha betta gamma"
    (large.workspace / "app.log").write_text("\n".join([*lines, ""]))
    found = await alice.search_content("alpha beta gamma", path="app.log", mode="fuzzy", context_lines=0)
    assert ([hit.line for hit in found.hits], found.partial) == ([20_501, 30_000], False)


async def test_lines_that_end_in_several_ways(large: RunningDaemon, alice: FileAccess) -> None:
    ends = ("\n", "\r", "\r\n", "\n", "\r\n")
    text = "".join(line(number) + ends[number % 5] for number in range(1, LINES + 1))
    (large.workspace / "app.log").write_bytes(text.encode())
    lines = [line(number) for number in range(1, LINES + 1)]
    for params in ({"pattern": "refused"}, {"pattern": r"refused \w*\n\d*5 ", "mode": "regex", "multiline": True}):
        expected = search(lines, matcher_of(SearchContent(**params)))
        found = await alice.search_content(path="app.log", max_results=500, **params)
        assert (found.total, found.partial) == (expected.total, False)
        assert expected.total > 1


async def test_a_line_of_megabytes_is_shown_around_the_match(large: RunningDaemon, alice: FileAccess) -> None:
    text = "{" + ",".join(f'"key{number}":{number}' for number in range(200_000)) + "}"
    (large.workspace / "one.json").write_text(f"first\n{text}\nlast needle\n")
    for mode in ("exact", "regex", "fuzzy"):
        found = await alice.search_content(
            '"key150000":', path="one.json", mode=mode, max_edits=0 if mode == "fuzzy" else None
        )
        (hit,) = found.hits
        assert (found.total, hit.line, len(hit.text) <= 1_000) == (1, 2, True)
        assert [hit.text[span.start : span.end] for span in hit.submatches] == ['"key150000":']
    last = await alice.search_content("needle", path="one.json", context_lines=1)
    assert [(hit.line, hit.text) for hit in last.hits] == [(3, "last needle")]
    assert len(last.hits[0].before[0]) <= 1_000


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
async def test_a_match_over_many_lines_is_found_or_told_of(
    large: RunningDaemon, alice: FileAccess, encoding: str
) -> None:
    """However many lines ripgrep's match has: one of 100 KB is found, one of 5 MB is not, which is said."""
    log, rest = large.workspace / "app.log", "".join(f"{line(number)}\n" for number in range(1, LINES + 1))
    asked: dict[str, Any] = {"pattern": "^BEGIN(?s:.*?)END", "path": "app.log", "mode": "regex", "multiline": True}
    log.write_text(f"{rest}BEGIN\n{rest[:100_000]}\nEND\nBEGIN END\n{rest}", encoding=encoding)
    found = await alice.search_content(**asked)
    assert ([hit.line for hit in found.hits], found.partial) == ([LINES + 1, found.hits[1].line], False)
    assert found.hits[1].text == "BEGIN END"
    filling = f"{'filling' * 10}\n" * 70_000
    log.write_text(f"{rest}BEGIN\n{filling}END\nBEGIN END\n{rest}", encoding=encoding)
    found = await alice.search_content(**asked)
    assert ([hit.text for hit in found.hits], found.partial) == (["BEGIN END"], True)
    assert any("over more than 2 MiB" in warning for warning in found.warnings)
    found = await alice.search_content(word=True, **asked)
    assert ([hit.text for hit in found.hits], found.partial) == (["BEGIN END"], True)


async def test_the_last_of_many_lines_is_told(large: RunningDaemon, alice: FileAccess) -> None:
    """Also where the expression fits in fewer lines."""
    rest = [line(number) for number in range(1, LINES + 1)]
    rows = [*rest, "BEGIN", "END", *rest[:2000], "END", *rest]
    (large.workspace / "app.log").write_text("\n".join(rows))
    found = await alice.search_content("^BEGIN(?s:.*)END", path="app.log", mode="regex", multiline=True)
    assert [(hit.line, hit.end_line) for hit in found.hits] == [(LINES + 1, LINES + 2003)]
    assert not found.partial


@pytest.mark.parametrize(("end", "codec"), [("\r", "utf-8"), ("\n", "utf-16")], ids=["by returns", "wide"])
async def test_a_match_over_many_lines_without_ripgrep(
    large: RunningDaemon, alice: FileAccess, end: str, codec: str
) -> None:
    """Where it does not see our lines, a match of 100 KB is found; where one may be too long, that is said."""
    log, rest = large.workspace / "app.log", [line(number) for number in range(1, LINES + 1)]
    rows = [*rest, "BEGIN", *rest[:1500], "END", "BEGIN", "x" * 200_000, "END", *rest]
    log.write_bytes(end.join(rows).encode(codec))
    asked: dict[str, Any] = {"path": "app.log", "mode": "regex", "multiline": True, "context_lines": 0}
    found = await alice.search_content("^BEGIN(?s:.*?)END", **asked)
    assert ([hit.line for hit in found.hits], found.partial) == ([LINES + 1, LINES + 1503], False)
    rows = [*rows, "BEGIN", *["filling" * 10] * 50_000, "END", "BEGIN", "", "END"]
    log.write_bytes(end.join(rows).encode(codec))
    found = await alice.search_content("^BEGIN(?s:.*?)END", **asked)
    lines = [LINES + 1, LINES + 1503, len(rows) - 2]
    assert ([hit.line for hit in found.hits], found.partial) == (lines, True)
    assert "over more than 2 MiB" in found.warnings[0]
    found = await alice.search_content(r"^BEGIN\n.*\nEND", **asked)
    assert ([hit.line for hit in found.hits], found.partial, found.warnings) == (lines[1:], False, ())


@pytest.mark.parametrize("unit", [1 << 34, 1 << 40], ids=["16 GiB", "1 TiB"])
async def test_a_file_of_nothing(large: RunningDaemon, alice: FileAccess, unit: int) -> None:
    path = large.workspace / "sparse.log"
    with path.open("wb") as file:
        file.write(b"first needle\n" + b"x\n" * 40_000)
        try:
            file.truncate(unit)
        except OSError:
            pytest.skip("the file system has no files of this size")
        file.seek(unit)
        file.write(b"\nlast needle\n")
    assert os.stat(path).st_blocks < 10_000
    found = await alice.search_content("needle", path="sparse.log", context_lines=0)
    assert [hit.line for hit in found.hits] == [1, 40_003]


async def test_large_files_of_a_tree_are_searched_too(large: RunningDaemon, alice: FileAccess) -> None:
    written(large.workspace / "app.log")
    (large.workspace / "small.log").write_text("2345 too\n")
    found = await alice.search_content("2345 ", context_lines=0)
    assert [(hit.path, hit.line) for hit in found.hits] == [("app.log", 2345), ("small.log", 1)]
    assert (found.total, found.files_searched, found.partial) == (2, 2, False)
    assert found.versions["app.log"].startswith("@")


async def test_large_files_without_text_are_searched_as_small_ones_are(large: RunningDaemon, alice: FileAccess) -> None:
    (large.workspace / "disk.img").write_bytes(bytes(400_000))
    (large.workspace / "small.img").write_bytes(bytes(400))
    found = await alice.search_content("needle")
    assert (found.total, found.files_searched, found.partial) == (0, 2, False)


async def test_a_file_full_of_holes_holds_no_search_of_a_tree_up(large: RunningDaemon, alice: FileAccess) -> None:
    """Ripgrep would read all of the zeros: it is searched apart, as by its name, and named where it is no text."""
    for number in range(50):  # so many that ripgrep chooses among them
        (large.workspace / f"{number}.txt").write_text("needle\n" if number == 7 else "nothing\n")
    (large.workspace / "holes.bin").write_bytes(b"nothing\n")
    assert (await alice.search_content("needle", files_only=True)).total == 1
    os.truncate(large.workspace / "holes.bin", 1 << 40)
    told = (
        "holes.bin: it is no text, or holds a hole, so nothing of it was searched: globs=['!holes.bin'] leaves it out",
    )
    with anyio.fail_after(30):
        found = [await alice.search_content("needle"), await alice.search_content("neeedle", mode="fuzzy", max_edits=1)]
        uses = await alice.find_references("needle")
        without = await alice.search_content("needle", globs=["!holes.bin"])
    assert [[hit.path for hit in one.hits] for one in found] == [["7.txt"], ["7.txt"]]
    assert [*(one.warnings for one in found), uses.warnings, without.warnings] == [told, told, told, ()]


@pytest.mark.parametrize("lines", [9_000, 60_000], ids=["in memory", "by pieces"])
async def test_why_not_all_was_compared_is_told(large: RunningDaemon, alice: FileAccess, lines: int) -> None:
    (large.workspace / "app.log").write_text("ab ab ab ab ab ab\n" * lines)
    for path in ("app.log", "."):
        found = await alice.search_content("abcdabcd", path=path, mode="fuzzy", max_edits=3)
        assert found.partial, path
        assert found.warnings, path
        assert found.warnings[0].startswith("app.log: "), path


async def test_a_tree_of_the_past_is_searched_without_its_large_files(large: RunningDaemon, alice: FileAccess) -> None:
    written(large.workspace / "app.log")
    written(large.workspace / "only-read.log")
    await alice.read_file("only-read.log")
    await alice.write_file("small.log", "needle\n", mode="create")
    edited = await alice.edit_file("app.log", [Replacement(search="2345 ", replace="needle ")])
    found = await alice.search_content("needle", at=edited.version_id)
    assert [(hit.path, hit.line) for hit in found.hits] == [("small.log", 1)]
    told = ("app.log: it was too large then to be searched", "only-read.log: its content then is not kept")
    assert (found.partial, found.warnings) == (True, told)


async def test_a_log_that_grows_is_searched(large: RunningDaemon, alice: FileAccess) -> None:
    path = large.workspace / "app.log"
    written(path)
    assert (await alice.search_content("ERROR", path="app.log", count_only=True)).total > 0
    with path.open("a") as file:
        file.write("brand new\n")
    (hit,) = (await alice.search_content("brand new", path="app.log")).hits
    assert hit.line == LINES + 1
    path.write_text("brand new\n" * 90_000)
    assert (await alice.search_content("brand new", path="app.log")).total == 90_000


async def test_what_was_shown_of_it_is_seen_and_secrets_are_not(large: RunningDaemon, alice: FileAccess) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    path = large.workspace / "app.log"
    written(path)
    with path.open("a") as file:
        file.write(f"needle token={token}\n")
    found = await alice.search_content("needle", path="app.log")
    assert token not in found.hits[0].text
    assert "needle" in found.hits[0].text


TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.mark.parametrize(("first", "codec"), [("head\n", "utf-8"), ("head\r", "utf-8"), ("head\n", "utf-16")])
@pytest.mark.parametrize("cut", [1 << 20, 1 << 22], ids=["1 MiB", "4 MiB"])
async def test_no_secret_shows_where_a_long_line_is_cut(
    large: RunningDaemon, alice: FileAccess, first: str, codec: str, cut: int
) -> None:
    """Whether ripgrep is asked where the expression may match, or all of the file is matched."""
    before = (first + "z " * cut)[: (cut - 30) // (2 if codec == "utf-16" else 1)] + " "
    text = before + TOKEN + " tail " + "y " * (3 * cut) + "\n" + "pad\n" * 60_000
    (large.workspace / "app.log").write_bytes(text.encode(codec))
    for pattern in (r"\Qghp_\E[A-Za-z0-9]+", "[--z]hp_[A-Za-z0-9]+", "hp_[A-Za-z0-9]+"):
        found = await alice.search_content(pattern, path="app.log", mode="regex")
        (hit,) = found.hits
        assert (hit.line, "█" * 8 in hit.text) == (2, True), pattern
        shown = "\n".join((hit.text, *hit.before, *hit.after))
        assert not any(TOKEN[at : at + 8] in shown for at in range(len(TOKEN) - 8)), pattern


PAD = "pad line\n" * 40_000


@pytest.mark.parametrize("pattern", ["beta.*needle", "^betaq+needle end$", "^[^x]*end$"])
@pytest.mark.parametrize("length", [140_000, 3_000_000])
async def test_a_long_line_is_matched_whole(large: RunningDaemon, alice: FileAccess, pattern: str, length: int) -> None:
    line = f"beta{'q' * length}needle end"
    (large.workspace / "app.log").write_text(f"head\n{line}\n{PAD}")
    found = await alice.search_content(pattern, path="app.log", mode="regex")
    assert ([hit.line for hit in found.hits], found.total, found.partial) == ([2], 1, False)
    (hit,) = (await alice.search_content("needle", path="app.log")).hits
    assert hit.column is not None
    assert line[hit.column - 1 :].startswith(hit.text)


FORMS = pytest.mark.parametrize(
    ("codec", "ends"), [("utf-8", "\n"), ("utf-8", "\r"), ("utf-16", "\n")], ids=["by newlines", "by returns", "wide"]
)


@FORMS
@pytest.mark.parametrize("length", [300_000, 2_200_000], ids=["whole", "in parts"])
async def test_a_long_line_is_one_line(
    large: RunningDaemon, alice: FileAccess, length: int, codec: str, ends: str
) -> None:
    line = "q" * length + "needle" + "q" * length + " end"
    rows = ("head", line, line.upper(), *["pad line"] * 40_000)
    (large.workspace / "app.log").write_bytes(ends.join(rows).encode(codec))
    in_parts = len(line) > 4 << 20
    for pattern, invert, lines in (
        ("needle", False, [2]),
        ("needle", True, [1, 3, 4]),
        ("q", False, [2]),
        ("Q", True, [1, 2, 4]),
    ):
        params: dict[str, Any] = {"path": "app.log", "invert": invert, "max_results": 3}
        found = await alice.search_content(pattern, **params)
        assert ([hit.line for hit in found.hits][: len(lines)], found.partial) == (lines, False), pattern
        assert found.total == (40_002 if invert else 1)
        found = await alice.search_content(pattern, mode="regex", **params)
        assert ([hit.line for hit in found.hits][: len(lines)], found.partial) == (lines, in_parts), pattern
        assert found.total == (40_002 if invert else 1)
        assert any("a line of over 4 MiB" in warning for warning in found.warnings) == in_parts
    for pattern in ("^q", "qneedleq", " end$", "q+", "needle.*"):
        found = await alice.search_content(pattern, path="app.log", mode="regex")
        assert ([hit.line for hit in found.hits], found.total) == ([2], 1), pattern
    (fuzzy,) = (await alice.search_content("qqneedelqq", path="app.log", mode="fuzzy", max_edits=2)).hits
    assert fuzzy.line == 2
    tree = await alice.search_content("qneedleq", mode="regex", globs=["*.log"])
    assert (tree.total, tree.partial, bool(tree.warnings)) == (1, in_parts, in_parts)


@pytest.mark.parametrize("size", [90_000, 1_500_000], ids=["in memory", "by pieces"])
async def test_matches_behind_a_window_are_told_of(large: RunningDaemon, alice: FileAccess, size: int) -> None:
    line = "a" * size + "NEEDLE" + "b" * size + "NEEDLE" + "c" * 900 + "NEEDLE"
    (large.workspace / "long.txt").write_text(f"{line}\nNEEDLE NEEDLE\n")
    found = await alice.search_content("NEEDLE", path="long.txt", context_lines=0)
    rest = await alice.read_file("long.txt", start=1, column=found.hits[0].next_column)
    assert [(hit.more_matches, hit.next_column, len(hit.submatches)) for hit in found.hits] == [
        (2, 2 * size + 7, 1),
        (0, None, 2),
    ]
    assert rest.text.startswith("     1\tNEEDLEccc")
    assert f"[more matches in this line: 2, the next: column={2 * size + 7}]\n" in (text_block(found) or "")


async def test_a_match_that_is_too_far_apart_in_a_long_line(large: RunningDaemon, alice: FileAccess) -> None:
    (large.workspace / "app.log").write_text(f"head\nNEEDLE{'q' * 6_000_000}mid{'q' * 6_000_000}\n{PAD}")
    found = await alice.search_content("NEEDLE.*mid", path="app.log", mode="regex")
    assert (found.total, found.partial) == (0, True)
    assert "parts of 1 MiB" in found.warnings[0]


@pytest.mark.parametrize("lines", [5, 60], ids=["in memory", "by pieces"])
async def test_a_part_of_a_line_says_where_it_begins(large: RunningDaemon, alice: FileAccess, lines: int) -> None:
    rows = [" ".join(f"é{number}-{at}" for at in range(1_000)) for number in range(lines)]
    (large.workspace / "wide.txt").write_text("\n".join(rows) + "\n")
    (hit,) = (await alice.search_content("é3-700 ", path="wide.txt", context_lines=0)).hits
    assert hit.column is not None
    assert rows[3][hit.column - 1 :].startswith(hit.text)
    part = await alice.read_file("wide.txt", start=4, column=hit.column, line_numbers=False)
    assert part.text.startswith(hit.text[:200])
    (first,) = (await alice.search_content("é3-0 ", path="wide.txt", context_lines=0)).hits
    assert first.column is None
    assert rows[3].startswith(first.text)
