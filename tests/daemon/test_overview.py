"""get_overview through the real daemon: outlines in as many levels as fit, imports, what changed, secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from orchestrator.api.structure import OutlineEntry, Overview
from orchestrator.clients.python import RemoteError, Replacement
from orchestrator.servers.blocks import text_block
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

SOURCE = """\
import os
from .parts import Part, other


class Shop:
    # opens
    def open(self):
        def inner():
            return 1  # TODO
        return inner

    def close(self):
        return 2


def main():
    return Shop()
"""


def rows(entries: tuple[OutlineEntry, ...], prefix: str = "") -> Iterator[str]:
    for entry in entries:
        name = f"{prefix}{entry.name}"
        notes = [*filter(None, [entry.change, f"+{entry.left_out}" if entry.left_out else ""])]
        yield " ".join([entry.type, name, f"{entry.line}-{entry.end_line}", *notes])
        yield from rows(entry.children, f"{name}.")


def block(answer: Overview) -> str:
    text = text_block(answer)
    assert text is not None
    return re.sub(r"\b[0-9a-f]{12}\b", "TOKEN", text)


async def test_an_outline_with_imports_and_hints(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SOURCE)
    async with daemon.client("alice") as alice:
        answer = await alice.get_overview("shop.py")
        entries = (await alice.journal_query(path="shop.py", kind="answer_shown")).entries
    assert list(rows(answer.outline)) == [
        "class Shop 5-13",
        "method Shop.open 6-10",
        "function Shop.open.inner 8-9",
        "method Shop.close 12-13",
        "function main 16-17",
    ]
    assert block(answer) == (
        f"shop.py {answer.version_id}: python, 17 lines, {len(SOURCE)} bytes, (utf-8, lf)\n"
        "<content TOKEN>\n"
        "imports: 1 os; 2 .parts: Part, other\n"
        "5-13 class Shop\n"
        "  6-10 method open\n"
        "    8-9 function inner\n"
        "  12-13 method close\n"
        "16-17 function main\n"
        "holds: TODO ×1, def ×4, class ×1\n"
        "</content TOKEN>"
    )
    assert (answer.symbols, answer.left_out, answer.next) == (5, 0, None)
    (noted,) = entries
    assert noted.operation == "get_overview"
    assert "seen" not in noted.event
    assert noted.event["tokens"] > 10


async def test_levels_are_cut_and_the_next_call_shows_what_was_left_out(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SOURCE)
    async with daemon.client("alice") as alice:
        flat = await alice.get_overview("shop.py", depth=1)
        assert list(rows(flat.outline)) == ["class Shop 5-13 +3", "function main 16-17"]
        assert (flat.left_out, flat.next) == (3, 'get_overview(path="shop.py", symbol="Shop")')
        inside = await alice.get_overview("shop.py", symbol="Shop")
        assert list(rows(inside.outline)) == ["method open 6-10", "function open.inner 8-9", "method close 12-13"]
        assert (inside.symbol, inside.imports, inside.symbols) == ("Shop", (), 3)

        many = "".join(f"def f{n}():\n    def g():\n        pass\n" for n in range(300))
        (daemon.workspace / "many.py").write_text(many)
        seen: list[str] = []
        skip, pages = 0, 0
        while True:
            page = await alice.get_overview("many.py", skip=skip, max_tokens=600)
            assert len(block(page)) < 600 * 4 + 400
            seen += [entry.name for entry in page.outline]
            pages += 1
            more = re.fullmatch(r'get_overview\(path="many.py", skip=(\d+)\)', page.next or "")
            if more is None:
                break
            skip = int(more[1])
        assert seen == [f"f{n}" for n in range(300)]
        assert pages > 2


async def test_what_changed_since_a_version(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        made = await alice.write_file("shop.py", SOURCE, "create")
        changes = [
            Replacement(search="return 2", replace="return 3"),
            Replacement(search="def main():\n    return Shop()\n", replace="def run():\n    return Shop()\n"),
            Replacement(search="import os\n", replace="import sys\n"),
        ]
        assert (await alice.edit_file("shop.py", changes)).status == "applied"
        answer = await alice.get_overview("shop.py", changed_since=made.version_id)
        assert [(one.change, one.name, one.line) for one in answer.changed_symbols] == [
            ("modified", "Shop.close", 12),
            ("added", "run", 16),
            ("removed", "main", 16),
        ]
        assert answer.changed_outside
        assert "method Shop.close 12-13 modified" in rows(answer.outline)
        assert "class Shop 5-13" in rows(answer.outline), "its own lines are the same"
        assert "  removed function main, line 16\n  lines outside of symbols\n" in block(answer)

        same = await alice.get_overview("shop.py", changed_since=answer.version_id)
        assert (same.changed_symbols, same.changed_outside) == ((), False)
        fresh = await alice.get_overview("shop.py", changed_since="@1")
        assert {one.change for one in fresh.changed_symbols} == {"added"}
        assert "not there yet" in fresh.warnings[0]
        with pytest.raises(RemoteError, match="ahead of the journal"):
            await alice.get_overview("shop.py", changed_since="@999999")


async def test_without_a_grammar_by_headings_and_it_says_so(daemon: RunningDaemon) -> None:
    (daemon.workspace / "notes.txt").write_text("# One\ntext\n## Two\nmore\n" + "x" * 3000 + "\n")
    (daemon.workspace / "pic.bin").write_bytes(b"\0\1\2")
    async with daemon.client("alice") as alice:
        answer = await alice.get_overview("notes.txt")
        assert list(rows(answer.outline)) == ["heading One 1-5", "heading One.Two 3-5"]
        assert "no grammar, or too long a parse: by headings and indentation, 5 lines" in block(answer)
        assert "1 long line (to 3000 characters): 5" in block(answer)
        with pytest.raises(RemoteError) as binary:
            await alice.get_overview("pic.bin")
        assert binary.value.code == "binary_file"


async def test_no_name_tells_a_secret(daemon: RunningDaemon) -> None:
    token = "ghp_" + "a1B2" * 9
    (daemon.workspace / "keys.txt").write_text(f"token {token}\n    under it\nplain\n    under that\n")
    async with daemon.client("alice") as alice:
        answer = await alice.get_overview("keys.txt")
    assert token not in repr(answer)
    assert [entry.line for entry in answer.outline] == [1, 3]


async def test_an_overview_is_no_read(daemon: RunningDaemon) -> None:
    """So it is no base for replacing the file."""
    (daemon.workspace / "shop.py").write_text(SOURCE)
    async with daemon.client("alice") as alice:
        await alice.get_overview("shop.py")
        with pytest.raises(RemoteError) as refused:
            await alice.write_file("shop.py", "x\n", "truncate")
    assert refused.value.code == "base_required"


def test_on_the_command_line(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SOURCE)
    code, shown = cli(daemon, "overview", "shop.py", "--depth", "1")
    assert code == 0
    assert "5-13 class Shop (3 inside)\n16-17 function main\n" in shown
    assert "3 of 5 symbols left out" in shown
