"""read_content through the real daemon: each mode, by a line or a text; large files; secrets."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.clients.python import RemoteError
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

BODY = "".join(f"            step_{number}()\n" for number in range(150))
HEAD = "LIMIT = 3\n\n\nclass Shop:\n    def open(self):\n        def inner():\n"
SOURCE = f"{HEAD}{BODY}        return inner\n\nLAST = 9\n"
LINES = SOURCE.splitlines()
TOKEN = "ghp_" + "a1B2" * 9


def lines(first: int, last: int) -> str:
    return "".join(f"{line}\n" for line in LINES[first - 1 : last])


@pytest.mark.parametrize(
    ("parameters", "symbol", "first", "last"),
    [
        pytest.param({}, None, 1, 100, id="neither"),
        pytest.param({"line": 4, "limit": 2}, None, 4, 5, id="lines"),
        pytest.param({"line": 150, "limit": 100}, None, 150, 159, id="lines to the end"),
        pytest.param({"pattern": "step_1(", "limit": 1}, None, 8, 8, id="lines from the first of several"),
        pytest.param({"mode": "head", "limit": 3}, None, 1, 3, id="head"),
        pytest.param({"mode": "tail", "limit": 3}, None, 157, 159, id="tail"),
        pytest.param({"mode": "tail", "limit": 5000}, None, 1, 159, id="tail of more than there is"),
        pytest.param({"mode": "semantic", "line": 9}, "Shop.open.inner", 6, 156, id="semantic, past the limit"),
        pytest.param({"mode": "semantic", "pattern": "step_7()"}, "Shop.open.inner", 6, 156, id="semantic by text"),
        pytest.param({"mode": "enclosing", "line": 9}, "Shop.open.inner", 6, 156, id="enclosing"),
        pytest.param({"mode": "enclosing", "pattern": "step_9()", "depth": 3}, "Shop", 4, 157, id="by depth"),
    ],
)
async def test_each_mode(
    daemon: RunningDaemon, parameters: dict[str, Any], symbol: str | None, first: int, last: int
) -> None:
    (daemon.workspace / "shop.py").write_text(SOURCE)
    async with daemon.client("alice") as alice:
        read = await alice.read_content("shop.py", line_numbers=False, **parameters)
        noted = (await alice.journal_query(path="shop.py")).entries
    assert (read.symbol, read.start, read.end, read.text) == (symbol, first, last, lines(first, last))
    shown = [entry.event for entry in noted if entry.kind in ("file_read", "content_searched")]
    assert [(event["operation"], event["seen"]["ranges"]) for event in shown] == [("read_content", [[first, last]])]


@pytest.mark.parametrize(
    ("parameters", "code", "said"),
    [
        pytest.param({"line": 1, "pattern": "x"}, "invalid_parameter", "send one of line and pattern", id="both"),
        pytest.param({"mode": "semantic"}, "invalid_parameter", "needs a place", id="semantic of nothing"),
        pytest.param({"mode": "enclosing"}, "invalid_parameter", "needs a place", id="enclosing of nothing"),
        pytest.param({"mode": "tail", "line": 3}, "invalid_parameter", "does not go with mode='tail'", id="tail"),
        pytest.param({"mode": "head", "pattern": "x"}, "invalid_parameter", "does not go with mode='head'", id="head"),
        pytest.param({"line": 2, "depth": 2}, "invalid_parameter", "goes with mode='enclosing'", id="depth"),
        pytest.param({"line": 160}, "invalid_parameter", r"line: 160 is after the last line, \d+, of", id="beyond"),
        pytest.param({"mode": "semantic", "line": 160}, "invalid_parameter", "line: 160 is after", id="beyond, around"),
        pytest.param({"pattern": "STEP_1("}, "search_not_found", "occurs in no line of shop.py", id="not there"),
    ],
)
async def test_what_does_not_fit_is_refused(
    daemon: RunningDaemon, parameters: dict[str, Any], code: str, said: str
) -> None:
    (daemon.workspace / "shop.py").write_text(SOURCE)
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError, match=said.replace("(", r"\(")) as refused:
            await alice.read_content("shop.py", **parameters)
    assert refused.value.code == code
    assert code != "search_not_found" or "search_content(path=\"shop.py\", mode='fuzzy')" in refused.value.hint


async def test_a_text_is_not_found_in_a_secret(daemon: RunningDaemon) -> None:
    (daemon.workspace / "notes.txt").write_text(f"token {TOKEN}\nnext\na1B2 is no secret\n")
    async with daemon.client("alice") as alice:
        found = await alice.read_content("notes.txt", pattern="a1B2", limit=1, line_numbers=False)
        assert found.text == "a1B2 is no secret\n"
        with pytest.raises(RemoteError) as refused:
            await alice.read_content("notes.txt", pattern=TOKEN[:20])
        assert refused.value.code == "search_not_found"
        whole = await alice.read_content("notes.txt", mode="enclosing", pattern="next")
    assert TOKEN not in repr(whole)
    assert whole.redactions


async def test_a_large_file(large: RunningDaemon) -> None:
    texts = [f"{number} request {'x' * (number % 70)}" for number in range(1, 20_001)]
    texts[11] = f"token {TOKEN}"
    (large.workspace / "app.log").write_text("".join(f"{text}\n" for text in texts))

    def told(first: int, last: int) -> str:
        return "".join(f"{text}\n" for text in texts[first - 1 : last])

    async with large.client("alice") as alice:
        tail = await alice.read_content("app.log", mode="tail", limit=3, line_numbers=False)
        assert (tail.text, tail.start, tail.total_lines) == (told(19_998, 20_000), -3, None)  # nothing was counted
        found = await alice.read_content("app.log", pattern="9000 request", limit=2, line_numbers=False)
        assert (found.text, found.start) == (told(9_000, 9_001), 9_000)
        around = await alice.read_content("app.log", mode="semantic", line=9_000, limit=10, line_numbers=False)
        assert (around.text, around.symbol) == (told(8_995, 9_004), None)
        assert "the lines around line 9000 are shown" in around.warnings[-1]
        with pytest.raises(RemoteError) as refused:
            await alice.read_content("app.log", pattern=TOKEN)
        assert refused.value.code == "search_not_found"
        near = await alice.read_content("app.log", mode="enclosing", line=12, limit=4)
        with pytest.raises(RemoteError, match="line: 30000 is after the last line"):
            await alice.read_content("app.log", line=30_000)
    assert TOKEN not in repr(near)


def test_on_the_command_line(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SOURCE)
    assert cli(daemon, "read", "shop.py", "--mode", "tail", "--limit", "2") == (0, lines(158, 159))
    assert cli(daemon, "read", "shop.py", "--pattern", "class Shop", "--limit", "1") == (0, lines(4, 4))
    assert cli(daemon, "read", "shop.py", "--line", "9", "--mode", "semantic") == (0, lines(6, 156))


@pytest.mark.parametrize("operation", ["read_lines", "read_file"])
@pytest.mark.parametrize("line", [{"start": 0}, {"start": 3, "end": 0}], ids=["start", "end"])
async def test_no_line_is_0(daemon: RunningDaemon, operation: str, line: dict[str, int]) -> None:
    (daemon.workspace / "a.txt").write_text("one\ntwo\nthree\nfour\n")
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await getattr(alice, operation)("a.txt", **line)
    assert f"{[*line][-1]}: lines count from 1" in refused.value.message
