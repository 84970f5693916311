"""Symbols through the real daemon: replaced, flagged, and held to parse after a merge."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import pytest

from orchestrator.clients.python import RemoteError, Replacement
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

SOURCE = """\
class Shop:
    # opens
    def open(self):
        return 1

    def close(self):
        first = [1]
        second = 2
        third = 3
        fourth = [4]
        return first


def main():
    return Shop()
"""


async def test_a_symbol_is_replaced(daemon: RunningDaemon) -> None:
    file = daemon.workspace / "shop.py"
    file.write_text(SOURCE)
    async with daemon.client("alice") as alice:
        answer = await alice.edit_file(
            "shop.py", [Replacement(symbol="Shop.open", content="def open(self):\n    return 9\n")]
        )
        assert answer.status == "applied"
        expected = SOURCE.replace("    # opens\n", "").replace("return 1", "return 9")
        assert file.read_text() == expected

        with pytest.raises(RemoteError) as missing:
            await alice.edit_file("shop.py", [Replacement(symbol="Shop.opne", content="x")])
        assert missing.value.code == "symbol_not_found"
        assert "Shop.open" in missing.value.message

        with pytest.raises(RemoteError) as unformed:
            await alice.edit_file("shop.py", [Replacement(symbol="Shop.open", search="x", replace="y")])
        assert unformed.value.code == "invalid_parameter"
        assert file.read_text() == expected


async def test_a_name_that_occurs_twice_is_refused_with_its_lines(daemon: RunningDaemon) -> None:
    (daemon.workspace / "two.py").write_text("def f():\n    return 1\n\n\ndef f():\n    return 2\n")
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.edit_file("two.py", [Replacement(symbol="f", content="def f(): ...\n")])
    assert refused.value.code == "symbol_ambiguous"
    assert refused.value.details["lines"] == [1, 5]


async def test_a_merge_is_held_to_parse(daemon: RunningDaemon) -> None:
    """Each side puts a pair of brackets; alone they close, together they cross."""
    file = daemon.workspace / "numbers.py"
    file.write_text("x = [\n" + "".join(f"    {n},\n" for n in range(1, 16)) + "]\n")
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        seen = await bob.read_file("numbers.py")
        round_ones = [Replacement(search=" 1,", replace=" (1,"), Replacement(search=" 7,", replace=" 7),")]
        assert (await alice.edit_file("numbers.py", round_ones)).status == "applied"
        square = [Replacement(search=" 4,", replace=" [4,"), Replacement(search=" 10,", replace=" 10],")]
        met = await bob.edit_file("numbers.py", square, base=seen.version_id)
        assert met.status == "conflict", met
        assert "not parse as python" in met.message
        assert met.regions[0].base == (2, 11)
        assert "[4," not in file.read_text()
        (waiting,) = (await bob.list_conflicts()).conflicts
        assert waiting.conflict == met.conflict

        apart = [Replacement(search=" 13,", replace=" [13],")]
        fits = await bob.edit_file("numbers.py", apart, base=seen.version_id)
        assert (fits.status, fits.rung) == ("applied", "shifted")


async def test_without_a_grammar_nothing_is_held_to_parse(daemon: RunningDaemon) -> None:
    (daemon.workspace / "numbers.txt").write_text("".join(f"{n},\n" for n in range(1, 16)))
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        seen = await bob.read_file("numbers.txt")
        await alice.edit_file("numbers.txt", [Replacement(search="\n3,", replace="\n(3,")])
        fits = await bob.edit_file("numbers.txt", [Replacement(search="\n7,", replace="\n7]")], base=seen.version_id)
        assert (fits.status, fits.rung) == ("applied", "shifted")
        assert parse_workers(daemon) == []


async def test_a_function_that_both_changed_is_flagged(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SOURCE)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        seen = await bob.read_file("shop.py")
        await alice.edit_file("shop.py", [Replacement(search="first = [1]", replace="first = [0]")])
        both = await bob.edit_file(
            "shop.py", [Replacement(search="fourth = [4]", replace="fourth = [5]")], base=seen.version_id
        )
        assert both.status == "applied"
        assert both.same_symbol == ("Shop.close",)
        assert any("Shop.close" in warning for warning in both.warnings)
        reported = await bob.await_change(both.change or "")
        assert reported.same_symbol == ("Shop.close",)

        elsewhere = await bob.edit_file(
            "shop.py", [Replacement(search="return Shop()", replace="return None")], base=seen.version_id
        )
        assert elsewhere.same_symbol == ()


async def test_what_one_changed_oneself_is_not_flagged(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SOURCE)
    async with daemon.client("alice") as alice:
        seen = await alice.read_file("shop.py")
        for search in ("first = [1]", "fourth = [4]"):
            change = Replacement(search=search, replace=search.replace("[", "[0, "))
            answer = await alice.edit_file("shop.py", [change], base=seen.version_id)
        assert (answer.rung, answer.same_symbol) == ("shifted", ())


ALPHA = "def alpha():\n    one = 1\n    two = 2\n    return one + two\n"
REST = "\n\ndef zeta():\n    return 0\n"
LATER = "\n\ndef alpha():\n    return 3\n"


@pytest.mark.parametrize(
    "now",
    [
        pytest.param("def alpha():\n    return 3\n\n\n" + ALPHA.replace("alpha", "zeta"), id="another"),
        pytest.param(ALPHA.replace("alpha", "old_alpha") + LATER + REST, id="kept under a name"),
        pytest.param(f'TEXT = """\n{ALPHA}"""\n{LATER}{REST}', id="kept in a string"),
        pytest.param(REST, id="gone"),
    ],
)
async def test_a_symbol_that_is_elsewhere_now_is_not_another(daemon: RunningDaemon, now: str) -> None:
    file = daemon.workspace / "s.py"
    file.write_text(ALPHA + REST)
    changed = ALPHA.replace("two = 2", "two = 3")
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        seen = await bob.read_file("s.py")
        await alice.read_file("s.py")
        await alice.write_file("s.py", now, mode="truncate")
        answer = await bob.edit_file("s.py", [Replacement(symbol="alpha", content=changed)], base=seen.version_id)
    assert answer.status == "conflict", answer
    assert file.read_text() == now


async def test_a_symbol_that_others_moved_is_still_changed(daemon: RunningDaemon) -> None:
    file = daemon.workspace / "s.py"
    file.write_text(ALPHA + REST)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        seen = await bob.read_file("s.py")
        await alice.read_file("s.py")
        await alice.write_file("s.py", REST.lstrip() + "\n\n" + ALPHA, mode="truncate")
        content = ALPHA.replace("two = 2", "two = 3")
        answer = await bob.edit_file("s.py", [Replacement(symbol="alpha", content=content)], base=seen.version_id)
    assert answer.status == "applied", answer
    assert file.read_text() == REST.lstrip() + "\n\n" + content


SECTIONS = {
    "a.toml": ("[a]\nx = 1\n", "\n# about b\n[b]\ny = 2\n"),
    "a.yaml": ("a:\n  x: 1\n", "\n# about b\nb:\n  y: 2\n"),
    "a.md": ("# a\n\nx: 1\n", "\n<!-- about b -->\n# b\n\ny\n"),
}


@pytest.mark.parametrize("name", SECTIONS)
async def test_what_is_above_the_next_section_is_the_nexts(daemon: RunningDaemon, name: str) -> None:
    section, rest = SECTIONS[name]
    (daemon.workspace / name).write_text(section + rest)
    content = section.replace("1", "9")
    async with daemon.client("alice") as alice:
        answer = await alice.edit_file(name, [Replacement(symbol="a", content=content)])
    assert answer.status == "applied", answer
    assert (daemon.workspace / name).read_text() == content + rest


async def test_undoing_is_held_to_parse_too(daemon: RunningDaemon) -> None:
    """Taking one's own quotes back would leave what others put between them, which is no code."""
    file = daemon.workspace / "numbers.py"
    file.write_text("x = [\n" + "".join(f"    {n},\n" for n in range(1, 16)) + "]\n")
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await alice.read_file("numbers.py")
        quotes = [Replacement(search=" 1,", replace=' 1, """'), Replacement(search=" 7,", replace=' """, 7,')]
        quoted = await alice.edit_file("numbers.py", quotes)
        await bob.read_file("numbers.py")
        between = await bob.edit_file("numbers.py", [Replacement(search=" 4,", replace=" 4)(,")])
        later = await bob.edit_file("numbers.py", [Replacement(search=" 12,", replace=" 12, 12,")])
        assert {quoted.status, between.status, later.status} == {"applied"}
        stuck = await alice.revert(quoted.change or "")
        assert stuck.status == "conflict"
        assert "not parse as python" in stuck.message
        assert '"""' in file.read_text()
        assert (await bob.revert(between.change or "")).status == "applied"
        undone = await alice.revert(quoted.change or "")
        assert undone.status == "applied", undone
        assert '"""' not in file.read_text()
        assert "12, 12," in file.read_text()


def parse_workers(daemon: RunningDaemon) -> list[int]:
    """The processes that the daemon has parse for it."""
    assert daemon.process is not None
    children = Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text().split()
    return [
        int(pid)
        for pid in children
        if b"orchestrator.workspace.worker_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


async def test_a_text_that_crashes_its_grammar_does_not_harm_the_daemon(daemon: RunningDaemon) -> None:
    (daemon.workspace / "bad.yaml").write_text("- " * 128_000 + "\n")
    (daemon.workspace / "shop.py").write_text(SOURCE)
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.edit_file("bad.yaml", [Replacement(symbol="a", content="a: 1\n")])
        assert refused.value.code == "symbol_not_found"
        await alice.edit_file("shop.py", [Replacement(symbol="main", content="def main(): ...\n")])
        (worker,) = parse_workers(daemon)
        os.kill(worker, signal.SIGKILL)
        with anyio.fail_after(60):
            while Path(f"/proc/{worker}").exists():  # until the daemon knows that it ended
                await alice.session_status()
        answer = await alice.edit_file("shop.py", [Replacement(symbol="main", content="def main():\n    return 7\n")])
        assert answer.status == "applied"
        (again,) = parse_workers(daemon)
        assert again != worker
