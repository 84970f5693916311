"""search_content in files that are not held in memory: as in those that are, whatever their lines."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.api.parameters import SearchContent
from orchestrator.clients.python import FileAccess
from orchestrator.core.text.search import search
from orchestrator.engine.reads.search import matcher_of
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
