"""Files beyond the size that is held in memory, through the daemon: sparse, growing, cut, replaced, with long lines."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from orchestrator.clients.python import FileAccess, RemoteError
from orchestrator.journal.cache_files import SUM_BYTES
from tests.daemon.cli import cli, command
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

LINES = 20_000


@pytest.fixture
async def alice(large: RunningDaemon) -> AsyncIterator[FileAccess]:
    async with large.client("alice") as files:
        yield files


def line(number: int) -> str:
    return f"{number} request {'x' * (number % 70)}"


def written(path: Path, first: int = 1, last: int = LINES) -> list[str]:
    lines = [line(number) for number in range(first, last + 1)]
    with path.open("a") as file:
        file.write("".join(f"{one}\n" for one in lines))
    return lines


async def test_any_range_is_that_of_the_file(large: RunningDaemon, alice: FileAccess) -> None:
    lines = written(large.workspace / "app.log")
    for start, end in ((1, 3), (9_990, 10_010), (LINES - 2, LINES), (15, 15), (LINES - 1, LINES + 50)):
        text = await alice.read_lines("app.log", start=start, end=end, line_numbers=False)
        assert text.text == "".join(f"{one}\n" for one in lines[start - 1 : end])
        assert (text.start, text.end) == (start, min(end, LINES))
    assert (text.total_lines, text.content_hash) == (LINES, None)
    shown = await alice.read_file("app.log", start=100, end=101)
    assert shown.text == f"   100\t{line(100)}\n   101\t{line(101)}\n"
    assert shown.version_id.startswith("@")


@pytest.mark.parametrize("leave_out", ["end", "start", "middle"])
async def test_an_excerpt_has_as_many_lines_as_it_may(large: RunningDaemon, alice: FileAccess, leave_out: Any) -> None:
    written(large.workspace / "app.log")
    found = await alice.get_excerpt("app.log", leave_out=leave_out, max_lines=20)
    assert sum(part.end - part.start + 1 for part in found.parts) == 20


async def test_the_end_is_read_without_the_rest(large: RunningDaemon, alice: FileAccess) -> None:
    lines = written(large.workspace / "app.log")
    met = await alice.read_file("app.log", start=-3, line_numbers=False)
    assert met.text == "".join(f"{one}\n" for one in lines[-3:])
    assert (met.start, met.end, met.total_lines) == (-3, -1, None)
    whole = await alice.read_file("app.log", start=-LINES - 5, end=-LINES + 1)
    assert (whole.start, whole.end, whole.total_lines) == (1, 2, LINES)
    again = await alice.read_file("app.log", start=-3, end=-2)
    assert (again.start, again.end, again.total_lines) == (LINES - 2, LINES - 1, LINES)
    small = large.workspace / "small.txt"
    small.write_text("a\nb\nc\n")
    assert (await alice.read_file("small.txt", start=-2, line_numbers=False)).text == "b\nc\n"


async def test_what_the_end_showed_is_in_the_journal(large: RunningDaemon, alice: FileAccess) -> None:
    written(large.workspace / "app.log")
    met = await alice.read_file("app.log", start=-3)
    (read,) = (await alice.journal_query(kind="file_read")).entries
    assert read.event["from_end"] == [-3, -1]
    assert f"@{read.event['seen']['version']}" == met.version_id


async def test_a_growing_log(large: RunningDaemon, alice: FileAccess) -> None:
    log = large.workspace / "app.log"
    written(log)
    first = await alice.read_lines("app.log", start=LINES, end=LINES)
    assert first.total_lines == LINES
    written(log, LINES + 1, LINES + 500)
    with log.open("a") as file:
        file.write("not ended")
    more = await alice.read_lines("app.log", start=LINES + 499, end=LINES + 900, line_numbers=False)
    assert more.text == f"{line(LINES + 499)}\n{line(LINES + 500)}\nnot ended"
    assert more.total_lines == LINES + 501
    assert more.version_id != first.version_id


@pytest.mark.parametrize("restarts", [False, True], ids=["running", "started again"])
async def test_a_file_that_grew_and_was_written_to_before_its_end(
    large: RunningDaemon, alice: FileAccess, *, restarts: bool
) -> None:
    log = large.workspace / "app.log"
    written(log)
    assert (await alice.read_lines("app.log", start=LINES, end=LINES)).total_lines == LINES
    at = log.stat().st_size // 2
    with log.open("r+b") as file:
        file.seek(at)
        file.write(b"\n" * 50)
        file.seek(0, os.SEEK_END)
        file.write(b"new end\n")
    lines = log.read_text().split("\n")
    if restarts:
        assert large.stop() == 0
        large.start()
    async with large.client("bob") as bob:
        text = await bob.read_lines("app.log", start=15_000, end=15_000, line_numbers=False)
        assert text.text == f"{lines[14_999]}\n"
        (hit,) = (await bob.search_content("new end", path="app.log")).hits
    assert hit.line == len(lines) - 1


async def test_a_log_that_was_cut(large: RunningDaemon, alice: FileAccess) -> None:
    log = large.workspace / "app.log"
    written(log)
    assert (await alice.read_lines("app.log", start=LINES, end=LINES)).total_lines == LINES
    log.write_text("")  # the same file, as logrotate's copytruncate leaves it
    lines = written(log, 5, 9_000)
    cut = await alice.read_lines("app.log", start=8_000, end=8_010, line_numbers=False)
    assert cut.text == "".join(f"{one}\n" for one in lines[7_999:8_010])
    with pytest.raises(RemoteError) as refused:
        await alice.read_lines("app.log", start=LINES)
    assert refused.value.code == "invalid_parameter"
    assert "after the last line, 8996" in str(refused.value)


async def test_a_file_that_was_replaced(large: RunningDaemon, alice: FileAccess) -> None:
    log = large.workspace / "app.log"
    written(log)
    await alice.read_lines("app.log", start=LINES, end=LINES)
    other = large.workspace / "other"
    lines = written(other, 100_000, 130_000)
    os.replace(other, log)
    now = await alice.read_lines("app.log", start=25_000, end=25_000, line_numbers=False)
    assert now.text == f"{lines[24_999]}\n"


async def test_while_it_is_written_to(large: RunningDaemon, alice: FileAccess) -> None:
    """Whatever is answered was there: a version's lines, never a mixture."""
    log = large.workspace / "app.log"
    written(log)
    for turn in range(20):
        written(log, LINES + turn + 1, LINES + turn + 1)
        text = await alice.read_lines("app.log", start=LINES, end=LINES + turn + 1, line_numbers=False)
        assert text.text == "".join(f"{line(number)}\n" for number in range(LINES, LINES + turn + 2))


async def test_it_is_searched_while_it_is_written_to(large: RunningDaemon, alice: FileAccess) -> None:
    """What was there when a search began is found, whatever comes behind it meanwhile."""
    log, enough = large.workspace / "app.log", threading.Event()
    written(log)

    def write() -> None:
        number = LINES
        while not enough.is_set():
            written(log, number + 1, number + 50)
            number += 50

    writing = threading.Thread(target=write)
    writing.start()
    try:
        for _ in range(20):
            found = await alice.search_content("777 request", path="app.log", max_results=5)
            assert [hit.line for hit in found.hits][:2] == [777, 1777]
    finally:
        enough.set()
        writing.join()


@pytest.mark.parametrize("unit", [1 << 20, 1 << 40], ids=["1 MiB", "1 TiB"])
async def test_a_sparse_file(large: RunningDaemon, alice: FileAccess, unit: int) -> None:
    sparse = large.workspace / "sparse.log"
    with sparse.open("wb") as file:
        file.write(b"first\n" * 2_000)
        try:
            file.truncate(unit)
        except OSError:
            pytest.skip("the file system has no files of this size")
        file.seek(unit)
        file.write(b"\nlast but one\nlast\n")
    first = await alice.read_file("sparse.log", end=2, line_numbers=False)
    assert first.text == "first\nfirst\n"
    last = await alice.read_file("sparse.log", start=-2, line_numbers=False)
    assert last.text == "last but one\nlast\n"
    by_number = await alice.read_lines("sparse.log", start=2_002, line_numbers=False)
    assert (by_number.text, by_number.total_lines) == ("last but one\nlast\n", 2_003)
    hole = await alice.read_lines("sparse.log", start=2_001, end=2_001)
    assert "characters left out]" in hole.text
    assert len(hole.text) < 2_000


async def test_a_hole_alone_is_no_text(large: RunningDaemon, alice: FileAccess) -> None:
    with (large.workspace / "hole").open("wb") as file:
        file.truncate(1 << 32)
    with pytest.raises(RemoteError) as refused:
        await alice.read_file("hole")
    assert refused.value.code == "binary_file"


@pytest.mark.parametrize("size", [50_000, 4_000_000], ids=["in memory", "by pieces"])
async def test_a_long_line_is_read_piece_by_piece(large: RunningDaemon, alice: FileAccess, size: int) -> None:
    long = "".join(f"{number}é," for number in range(size // 7))
    (large.workspace / "min.js").write_text(f"head\n{long}\ntail\n", encoding="utf-8")
    met = await alice.read_file("min.js", line_numbers=False)
    assert met.next_in_line == 'read_file(path="min.js", start=2, column=1001)'
    assert met.end == 3
    read, column = "", 1
    for _ in range(3):
        part = await alice.read_file("min.js", start=2, column=column, line_numbers=False, max_tokens=2000)
        assert (part.column, part.total_lines) == (column, 3)
        piece = part.text.removesuffix("\n")
        read, column = read + piece, column + len(piece)
        assert part.next == f'read_file(path="min.js", start=2, column={column})'
    assert read == long[: len(read)]
    assert len(read) > 10_000
    last = await alice.read_file("min.js", start=2, column=len(long) - 2, line_numbers=False)
    assert last.text == f"{long[-3:]}\n"
    assert last.next == 'read_file(path="min.js", start=3)'
    with pytest.raises(RemoteError) as refused:
        await alice.read_file("min.js", start=2, column=len(long) + 1)
    assert "column" in str(refused.value)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        pytest.param({"start": 0}, "lines count from 1", id="line 0"),
        pytest.param({"start": 5, "end": 0}, "lines count from 1", id="up to line 0"),
        pytest.param({"start": 9, "end": 8}, "8 is before start, 9", id="reversed"),
        pytest.param({"start": -8, "end": -9}, "-9 is before start, -8", id="reversed from the end"),
        pytest.param({"start": LINES, "end": -2}, "-2 is before start", id="the end before the beginning"),
        pytest.param({"start": LINES + 1}, f"after the last line, {LINES}", id="beyond the end"),
    ],
)
@pytest.mark.parametrize("name", ["app.log", "small.txt"])
async def test_ranges_that_are_none(
    large: RunningDaemon, alice: FileAccess, name: str, asked: dict[str, Any], said: str
) -> None:
    written(large.workspace / "app.log")
    (large.workspace / "small.txt").write_text("\n" * LINES)
    with pytest.raises(RemoteError) as refused:
        await alice.read_file(name, **asked)
    assert refused.value.code == "invalid_parameter"
    assert said in str(refused.value)


async def test_a_secret_is_hidden_wherever_the_window_begins(large: RunningDaemon, alice: FileAccess) -> None:
    body = [f"{'Ab0+' * 16}" for _ in range(30)]
    key = ["-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----"]
    lines = [line(number) for number in range(1, 5_001)] + key + [line(number) for number in range(6_000, 9_000)]
    (large.workspace / "app.log").write_text("".join(f"{one}\n" for one in lines))
    for start in (5_001, 5_010, 5_031):
        text = await alice.read_lines("app.log", start=start, end=start + 1)
        assert "Ab0+" not in text.text
        assert text.redactions
    async with large.client() as person:
        assert "Ab0+" in (await person.read_lines("app.log", start=5_010, end=5_010)).text


async def test_a_key_on_one_line_is_hidden_wherever_the_part_begins(large: RunningDaemon, alice: FileAccess) -> None:
    key = f"-----BEGIN PRIVATE KEY-----{'Ab0+' * 800}-----END PRIVATE KEY-----"
    (large.workspace / "app.log").write_text(f"{'x, ' * 20_000}{key}\n" + f"{line(70)}\n" * 30_000)
    for column in (60_001, 61_500, 63_000):
        part = await alice.read_file("app.log", start=1, column=column, line_numbers=False)
        assert part.column == column
        assert "Ab0+" not in part.text
    async with large.client() as person:
        assert "Ab0+" in (await person.read_file("app.log", start=1, column=63_000)).text


async def test_an_index_outlives_the_daemon(large: RunningDaemon, alice: FileAccess) -> None:
    written(large.workspace / "app.log")
    assert (await alice.read_lines("app.log", start=LINES, end=LINES)).total_lines == LINES
    assert list((large.state_dir / "cache").iterdir())
    assert large.stop() == 0
    large.start()
    async with large.client("bob") as bob:
        assert (await bob.read_file("app.log", start=-1)).start == LINES


async def test_a_damaged_index_and_one_of_another_file_are_not_used(large: RunningDaemon) -> None:
    for name, first in (("a.log", 1), ("b.log", 2)):
        written(large.workspace / name, first, LINES)
        async with large.client() as person:
            await person.read_lines(name, start=LINES - 1, end=LINES - 1)
    one, other = sorted((large.state_dir / "cache").iterdir())
    sum_, stored = one.read_bytes()[:SUM_BYTES], msgspec.msgpack.decode(one.read_bytes()[SUM_BYTES:])
    stored[1]["index"]["ended"] -= 7
    altered = {one: sum_ + msgspec.msgpack.encode(stored), other: b"nothing"}
    for tampered in (altered, {one: other.read_bytes(), other: one.read_bytes()}):
        assert large.stop() == 0
        for path, content in tampered.items():
            path.write_bytes(content)
        large.start()
        async with large.client() as person:
            for name, first in (("a.log", 1), ("b.log", 2)):
                read = await person.read_lines(name, start=LINES - 1, end=LINES - 1, line_numbers=False)
                assert (read.text, read.total_lines) == (f"{line(LINES - 2 + first)}\n", LINES + 1 - first)


async def test_what_is_known_of_it(large: RunningDaemon, alice: FileAccess) -> None:
    written(large.workspace / "app.log")
    (large.workspace / "raw.bin").write_bytes(bytes(1_000_000))
    fresh = await alice.file_info("app.log")
    assert (fresh.encoding, fresh.eol, fresh.line_count, fresh.is_binary) == ("utf-8", "lf", None, False)
    await alice.read_lines("app.log", start=LINES, end=LINES)
    assert (await alice.file_info("app.log")).line_count == LINES
    assert (await alice.file_info("raw.bin")).is_binary


async def test_on_the_command_line(large: RunningDaemon) -> None:
    lines = written(large.workspace / "app.log")
    ended, text = command(large, "open", "app.log", "--start", "-2")
    assert (ended, text["text"]) == (0, "".join(f"{one}\n" for one in lines[-2:]))
    ended, refused = command(large, "open", "app.log", "--start", "9", "--end", "3")
    assert (ended, refused["code"]) == (1, "invalid_parameter"), json.dumps(refused)
    assert cli(large, "overview", "app.log")[1].count("no outline") == 1
    (large.workspace / "one.js").write_text("x" * 5_000)
    assert "go on with `orchestrator open one.js --start 1 --column 1001`" in cli(large, "open", "one.js")[1]


async def test_an_excerpt_is_around_a_line_or_a_text(large: RunningDaemon, alice: FileAccess) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    lines = written(large.workspace / "app.log")
    with (large.workspace / "app.log").open("a") as file:
        file.write(f"needle {token}\n{'y' * 90_000}\n")
    around = await alice.get_excerpt("app.log", line=10_000, max_lines=3)
    assert [part.text for part in around.parts] == [
        "".join(f"{n:>6}\t{lines[n - 1]}\n" for n in (9_999, 10_000, 10_001))
    ]
    assert around.total_lines == LINES + 2
    found = await alice.get_excerpt("app.log", pattern="needle", max_lines=2)
    assert (found.matches, found.total_matches) == ((LINES + 1,), 1)
    [part] = found.parts
    assert "needle [redacted:" in part.text
    assert token not in part.text
    [end] = (await alice.get_excerpt("app.log", line=LINES + 2, max_lines=1)).parts
    assert "[89001 characters left out]" in end.text
    ends = await alice.get_excerpt("app.log", max_lines=2, leave_out="middle")
    assert [(part.start, part.end) for part in ends.parts] == [(1, 1), (LINES + 2, LINES + 2)]
    assert ends.left_out[0].next == f'read_file(path="app.log", start=2, end={LINES + 1})'
    with pytest.raises(RemoteError, match="the text occurs in no line"):
        await alice.get_excerpt("app.log", pattern="absent")
    with pytest.raises(RemoteError, match="held in memory"):
        await alice.get_excerpt("app.log", symbol="main")


async def test_it_has_an_overview_and_a_summary(large: RunningDaemon, alice: FileAccess) -> None:
    lines = written(large.workspace / "app.log")
    with (large.workspace / "app.log").open("r+") as file:
        file.write("ERROR")
    overview = await alice.get_overview("app.log")
    assert (overview.line_count, overview.language, overview.outline) == (LINES, "text", ())
    assert overview.size == (large.workspace / "app.log").stat().st_size
    assert [(hint.pattern, hint.count) for hint in overview.search_hints] == [("ERROR", 1)]
    assert "no outline" in overview.warnings[0]
    summary = await alice.summarize_file("app.log")
    assert summary.total_lines == LINES
    assert f"{LINES - 1}\t{lines[-2]}\n{LINES:>6}\t{lines[-1]}\n" in summary.text
    assert f"     2\t{lines[1]}\n" in summary.text


async def test_what_takes_an_outline_says_what_to_send_instead(large: RunningDaemon, alice: FileAccess) -> None:
    written(large.workspace / "app.log")
    for call, asked, instead in (
        ("read_enclosing", {"line": 100}, 'read_lines(path="app.log", start=90, end=110)'),
        ("read_symbol", {"symbol": "main"}, 'search_content(path="app.log"'),
        ("blame", {}, 'file_history(path="app.log")'),
    ):
        with pytest.raises(RemoteError) as refused:
            await getattr(alice, call)("app.log", **asked)
        assert refused.value.code == "too_large"
        assert instead in (refused.value.hint or "")


@pytest.mark.parametrize("more", [0, 300_000], ids=["in memory", "by pieces"])
async def test_a_column_counts_the_line_of_the_file_whatever_is_hidden(
    large: RunningDaemon, alice: FileAccess, more: int
) -> None:
    token = "ghp_" + "Ab0z" * 9
    text = f"{'first, ' * 100}token = {token}; {'x, ' * 500}last"
    (large.workspace / "app.log").write_text(f"{text}\n{'y' * 60}\n" + f"{'z' * 59}\n" * (more // 60))
    begin = text.index(token)
    for column in (1, 650, begin + 1, begin + 11, begin + len(token) + 1, len(text) - 3):
        part = (await alice.read_file("app.log", start=1, column=column, line_numbers=False)).text.rstrip("\n")
        whole = text.replace(token, "\N{FULL BLOCK}" * len(token))
        assert part == whole[column - 1 :]
    met = await alice.read_file("app.log", end=1)
    assert met.next_in_line == f'read_file(path="app.log", start=1, column={begin + 1})'


@pytest.mark.parametrize("more", [0, 300_000], ids=["in memory", "by pieces"])
async def test_an_excerpt_shows_a_long_line_around_the_text(large: RunningDaemon, alice: FileAccess, more: int) -> None:
    token = "ghp_" + "Ab0z" * 9
    text = f"{'first, ' * 2_000}token = {token}; needle {'x, ' * 5_000}last"
    (large.workspace / "app.log").write_text(f"one\n{text}\n{'y' * 60}\n" + f"{'z' * 59}\n" * (more // 60))
    found = await alice.get_excerpt("app.log", pattern="needle", max_lines=3)
    [part] = found.parts
    first, around, last = part.text.splitlines()
    assert (first, last) == ("     1\tone", f"     3\t{'y' * 60}")
    assert "; needle x, x, " in around
    assert len(around) <= 1_100
    assert "left out] …" in around or "[from character 1" in around
    assert around.endswith(("left out]", " …"))
    assert token not in around
    assert (found.truncated, found.redactions) == (True, ("line 2: github-token",))
    [end] = (await alice.get_excerpt("app.log", pattern="x, last", max_lines=1)).parts
    assert end.text.endswith("x, last\n")
