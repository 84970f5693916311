"""read_symbol and read_enclosing through the real daemon: lines by name, and around a line; what they count as."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.clients.python import RemoteError, Replacement
from orchestrator.servers.blocks import text_block
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

SOURCE = """\
LIMIT = 3


class Shop:
    # opens
    @once
    def open(self):
        def inner():
            return 1
        return inner

    def close(self):
        return 2


def twice():
    return 1


def twice():
    return 2
"""
LINES = SOURCE.splitlines()


def lines(first: int, last: int) -> str:
    return "".join(f"{line}\n" for line in LINES[first - 1 : last])


@pytest.mark.parametrize(
    ("symbol", "name", "first", "last"),
    [
        pytest.param("Shop.open", "Shop.open", 5, 10, id="in full, with decorator and comment"),
        pytest.param("close", "Shop.close", 12, 13, id="by its last part"),
        pytest.param("Shop", "Shop", 4, 13, id="a class"),
        pytest.param("LIMIT", "LIMIT", 1, 1, id="a constant"),
    ],
)
async def test_a_symbol_by_its_name(daemon: RunningDaemon, symbol: str, name: str, first: int, last: int) -> None:
    (daemon.workspace / "shop.py").write_text(SOURCE)
    async with daemon.client("alice") as alice:
        read = await alice.read_symbol("shop.py", symbol, line_numbers=False)
        assert (read.symbol, read.start, read.end, read.text) == (name, first, last, lines(first, last))
        around = await alice.read_symbol("shop.py", symbol, line_numbers=False, context_lines=2)
        assert (around.start, around.end) == (max(1, first - 2), last + 2)
        head = (text_block(read) or "").split("\n")[0]
        assert head == f"shop.py {read.version_id}, lines {first}-{last} of 21 (utf-8, lf), {name}"


@pytest.mark.parametrize(
    ("line", "depth", "name", "first", "last"),
    [
        pytest.param(9, 1, "Shop.open.inner", 8, 9, id="the innermost"),
        pytest.param(9, 2, "Shop.open", 5, 10, id="what is around it"),
        pytest.param(9, 3, "Shop", 4, 13, id="the class"),
        pytest.param(9, 9, "Shop", 4, 13, id="deeper than there is"),
        pytest.param(11, 1, "Shop", 4, 13, id="between two methods"),
        pytest.param(1, 1, "LIMIT", 1, 1, id="a constant"),
        pytest.param(3, 1, None, 1, 13, id="in no symbol"),
    ],
)
async def test_what_is_around_a_line(
    daemon: RunningDaemon, line: int, depth: int, name: str | None, first: int, last: int
) -> None:
    (daemon.workspace / "shop.py").write_text(SOURCE)
    async with daemon.client("alice") as alice:
        read = await alice.read_enclosing("shop.py", line, depth=depth, line_numbers=False)
    assert (read.symbol, read.start, read.end, read.text) == (name, first, last, lines(first, last))
    assert len(read.warnings) == (name is None or depth == 9)


async def test_not_found_and_found_twice_say_what_to_send(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SOURCE)
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as missing:
            await alice.read_symbol("shop.py", "Shop.opne")
        assert missing.value.code == "symbol_not_found"
        assert missing.value.details["nearest"][0]["name"] == "Shop.open"
        assert "one of the nearest names" in (missing.value.hint or "")
        with pytest.raises(RemoteError) as unlike:
            await alice.read_symbol("shop.py", "qqqqqq")
        assert not unlike.value.details.get("nearest")
        for send in ('get_overview(path="shop.py")', 'search_content(path="shop.py", pattern=…)'):
            assert send in (unlike.value.hint or "")
        assert "nearest" not in (unlike.value.hint or "")
        with pytest.raises(RemoteError) as twice:
            await alice.read_symbol("shop.py", "twice")
        assert twice.value.code == "symbol_ambiguous"
        assert [place["call"] for place in twice.value.details["places"]] == [
            'read_file(path="shop.py", start=16, end=17)',
            'read_file(path="shop.py", start=20, end=21)',
        ]
        ended, said = cli(daemon, "symbol", "shop.py", "twice")
        assert ended != 0
        assert "Send the call of the one that you mean:" in said
        assert "  twice, line 16: `orchestrator open shop.py --start 16 --end 17`" in said
        with pytest.raises(RemoteError, match="after the last line, 21"):
            await alice.read_enclosing("shop.py", 22)


async def test_what_is_too_long_goes_on_to_the_symbols_end(daemon: RunningDaemon) -> None:
    body = "".join(f"    x = {n}\n" for n in range(400))
    (daemon.workspace / "long.py").write_text(f"def f():\n{body}\n\ndef g():\n    pass\n")
    async with daemon.client("alice") as alice:
        read = await alice.read_symbol("long.py", "f", max_tokens=300)
        assert read.truncated
        assert read.next == f'read_file(path="long.py", start={read.end + 1}, end=401)'
        rest = await alice.read_file("long.py", start=read.end + 1, end=401)
    assert rest.text.endswith("x = 399\n")


async def test_its_lines_count_as_read_and_no_others(daemon: RunningDaemon) -> None:
    """So an edit is made against them, and their change is told."""
    (daemon.workspace / "shop.py").write_text(SOURCE)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await alice.read_symbol("shop.py", "Shop.close")
        (noted,) = (await alice.journal_query(path="shop.py", kind="file_read")).entries
        assert noted.event["seen"]["ranges"] == [[12, 13]]
        await bob.edit_file("shop.py", [Replacement(search="LIMIT = 3", replace="LIMIT = 4")])
        assert (await alice.read_enclosing("shop.py", 16)).notices == ()
        await bob.edit_file(
            "shop.py", [Replacement(search="    def close(self):\n        return 2", replace="    x = 1")]
        )
        told = await alice.read_symbol("shop.py", "Shop.open")
    assert [notice.by for notice in told.notices] == [("bob",)]


async def test_no_grammar_and_secrets(daemon: RunningDaemon) -> None:
    token = "ghp_" + "a1B2" * 9
    (daemon.workspace / "notes.txt").write_text(f"# One\ntext {token}\n# Two\nmore\n")
    async with daemon.client("alice") as alice:
        read = await alice.read_symbol("notes.txt", "One")
    assert (read.start, read.end) == (1, 2)
    assert token not in repr(read)
    assert read.redactions
    assert "no grammar" in read.warnings[0]


async def test_a_profile_limits_it_as_any_read(base: Path) -> None:
    daemon = RunningDaemon(base)
    profile = '[[profile]]\nname = "small"\nagents = ["alice"]\nmax_read_lines = 4\n'
    (daemon.state_dir / "policy.toml").write_text(f'name = "p"\ndefault = "allow"\n{profile}')
    (daemon.workspace / "shop.py").write_text(SOURCE)
    with running(base):
        async with daemon.client("alice") as alice:
            assert (await alice.read_symbol("shop.py", "close")).end == 13
            with pytest.raises(RemoteError) as refused:
                await alice.read_symbol("shop.py", "Shop")
    assert refused.value.code == "over_limit"
    assert re.search(r"read_file\(path=\"shop.py\", start=4, end=7\)", refused.value.hint)


def test_on_the_command_line(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SOURCE)
    assert cli(daemon, "symbol", "shop.py", "close") == (0, lines(12, 13))
    assert cli(daemon, "around", "shop.py", "13", "--depth", "2") == (0, lines(4, 13))
