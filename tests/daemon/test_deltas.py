"""A re-read that shows what changed, through the real daemon: what was seen, what was not, who asks again."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from orchestrator.api.results import FileText
from orchestrator.clients.python import RemoteError, Replacement
from orchestrator.core.text.answer_space import estimate_tokens
from orchestrator.servers.blocks import text_block
from tests.daemon.cli import cli_bytes
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

LINES = [f"def function_{n}(): return {n}" for n in range(1, 2001)]
WHOLE = 200_000


def write(daemon: RunningDaemon, lines: list[str], name: str = "a.py") -> None:
    (daemon.workspace / name).write_text("".join(f"{line}\n" for line in lines))


def with_line(number: int, text: str) -> list[str]:
    return [*LINES[: number - 1], text, *LINES[number:]]


def is_whole(text: FileText) -> bool:
    return text.unchanged_since is None and text.changed_since is None and text.text.count("\n") == 2000


async def test_an_unchanged_file_costs_few_tokens(daemon: RunningDaemon) -> None:
    write(daemon, LINES)
    async with daemon.client("alice") as alice:
        first = await alice.read_file("a.py", max_tokens=WHOLE, delta=True)
        assert is_whole(first)
        again = await alice.read_file("a.py", max_tokens=WHOLE, delta=True)
        assert (again.text, again.unchanged_since, again.end) == ("", first.version_id, 2000)
        block = text_block(again)
        assert block is not None
        assert estimate_tokens(block) <= 100
        assert is_whole(await alice.read_file("a.py", max_tokens=WHOLE))


async def test_only_what_changed_is_shown(daemon: RunningDaemon) -> None:
    write(daemon, LINES)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        first = await alice.read_file("a.py", max_tokens=WHOLE)
        await bob.edit_file("a.py", [Replacement(search="return 1000\n", replace="return 0\n    # new\n")])
        await bob.edit_file("a.py", [Replacement(search="def function_7(): return 7\n", replace="")])
        changed = await alice.read_file("a.py", delta=True)
        assert changed.changed_since == first.version_id
        assert changed.text == (
            "@@ -7,1 +6,0 @@\n"
            "@@ -1000,1 +999,2 @@\n   999\tdef function_1000(): return 0\n  1000\t    # new\n"
        )  # fmt: skip
        assert (await alice.read_file("a.py", delta=True)).unchanged_since == changed.version_id
        status = (await alice.session_status()).recent_reads[0]
        assert (status.version_id, status.lines, status.stale) == (changed.version_id, "1-2000", False)
        await alice.write_file("a.py", "x\n", mode="truncate")  # it knows the present version whole


async def test_the_same_content_again_is_unchanged(daemon: RunningDaemon) -> None:
    write(daemon, LINES)
    async with daemon.client("alice") as alice:
        first = await alice.read_file("a.py", max_tokens=WHOLE)
        write(daemon, with_line(5, "other"))
        async with daemon.client("bob") as bob:
            await bob.read_file("a.py")
        write(daemon, LINES)
        again = await alice.read_file("a.py", delta=True)
        assert again.unchanged_since == first.version_id
        assert again.version_id != first.version_id


async def test_who_saw_a_part_is_told_of_that_part_alone(daemon: RunningDaemon) -> None:
    write(daemon, LINES)
    async with daemon.client("alice") as alice:
        await alice.read_file("a.py", end=1990, max_tokens=WHOLE)
        assert (await alice.read_file("a.py", start=5, end=9, delta=True)).unchanged_since is not None
        write(daemon, LINES[1:])
        moved = await alice.read_file("a.py", start=5, end=9, delta=True)
        assert (moved.unchanged_since, moved.text.splitlines()[0]) == (None, "     5\tdef function_6(): return 6")


async def test_of_lines_that_were_seen_in_part_the_others_are_shown(daemon: RunningDaemon) -> None:
    write(daemon, LINES[:100])
    async with daemon.client("alice") as alice:
        first = await alice.read_file("a.py", start=11, end=40)
        more = await alice.read_file("a.py", start=1, end=60, delta=True, line_numbers=False)
        assert (more.changed_since, more.version_id, more.end) == (first.version_id, first.version_id, 60)
        below, above = "\n".join(LINES[:10]), "\n".join(LINES[40:60])
        assert more.text == f"@@ -1,10 +1,10 @@\n{below}\n@@ -41,20 +41,20 @@\n{above}\n"
        block = text_block(more)
        assert block is not None
        assert "; only the lines that you have not seen yet" in block.splitlines()[0]
        assert (await alice.read_file("a.py", start=1, end=60, delta=True)).unchanged_since == first.version_id
        assert (await alice.read_file("a.py", start=61, end=70, delta=True)).changed_since is None  # none was seen


async def test_the_pages_of_a_file_follow_each_other(daemon: RunningDaemon) -> None:
    write(daemon, LINES)
    async with daemon.client("alice") as alice:
        page = await alice.read_file("a.py", max_tokens=4000)
        assert page.end < 1000
        after = await alice.read_file("a.py", max_tokens=4000, delta=True)
        assert after.text.startswith(f"@@ -{page.end + 1},{2000 - page.end} ")
        assert (after.end > page.end + 100, after.next) == (
            True,
            f'read_file(path="a.py", start={after.end + 1}, delta=true)',
        )


async def test_lines_that_were_cut_are_not_known(daemon: RunningDaemon) -> None:
    write(daemon, ["short", "x" * 5000], "long.txt")
    async with daemon.client("alice") as alice:
        first = await alice.read_file("long.txt", delta=True)
        assert (await alice.read_file("long.txt", delta=True)).text == first.text


async def test_a_redacted_line_is_told_once(daemon: RunningDaemon) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    write(daemon, with_line(50, f"token = '{token}'"))
    async with daemon.client("alice") as alice:
        await alice.read_file("a.py", max_tokens=WHOLE)
        assert (await alice.read_file("a.py", delta=True)).unchanged_since is not None
        write(daemon, with_line(50, f"token = '{token}'  # mine"))
        again = await alice.read_file("a.py", delta=True)
        assert again.text.startswith("@@ -50,1 +50,1 @@\n    50\ttoken = '[redacted:")
        assert token not in again.text
        assert (await alice.read_file("a.py", delta=True)).unchanged_since == again.version_id


async def test_lines_removed_at_the_end_are_told_once(daemon: RunningDaemon) -> None:
    write(daemon, LINES[:20])
    async with daemon.client("alice") as alice:
        await alice.read_file("a.py")
        write(daemon, LINES[:17])
        shorter = await alice.read_file("a.py", delta=True)
        assert (shorter.text, shorter.truncated) == ("@@ -18,3 +17,0 @@\n", False)
        assert (await alice.read_file("a.py", delta=True)).unchanged_since == shorter.version_id
        write(daemon, ["other", *LINES[1:14]])
        both = await alice.read_file("a.py", delta=True)
        assert (both.changed_since, both.end, both.truncated) == (shorter.version_id, 14, False)
        assert both.text == "@@ -1,1 +1,1 @@\n     1\tother\n@@ -15,3 +14,0 @@\n"
        write(daemon, [])
        await alice.read_file("a.py", delta=True)
        write(daemon, LINES[:3])
        assert (await alice.read_file("a.py", delta=True)).end == 3


@pytest.mark.parametrize("seed", range(3))
async def test_a_delta_of_any_edit_gives_the_file(daemon: RunningDaemon, seed: int) -> None:
    chance, lines = random.Random(seed), [f"line {n}" for n in range(30)]
    shown = dict[str, list[str]]()  # by version, the whole text as alice has it
    write(daemon, lines)
    async with daemon.client("alice") as alice:
        for step in range(40):
            for _ in range(chance.randrange(3)):
                at = chance.randrange(len(lines) + 1)
                lines[at : at + chance.randrange(4)] = [f"new {step}" for _ in range(chance.randrange(3))]
            lines = lines or ["again"]
            write(daemon, lines)
            if chance.random() < 0.3:
                part = await alice.read_file("a.py", start=1, end=min(5, len(lines)))
                shown.setdefault(part.version_id, lines[:5])
            answer = await alice.read_file("a.py", delta=True, line_numbers=False)
            assert (answer.total_lines, answer.truncated) == (len(lines), False)
            base = answer.changed_since or answer.unchanged_since
            shown[answer.version_id] = applied(shown[base] if base else [], answer.text)
            assert shown[answer.version_id] == lines
            again = await alice.read_file("a.py", delta=True)
            assert again.unchanged_since in {answer.version_id, answer.unchanged_since}


def applied(base: list[str], text: str) -> list[str]:
    """A delta, or a text that no base is named for, put upon the base."""
    if not text.startswith("@@"):
        return text.splitlines() or base
    out, at = list[str](), 0
    for line in text.splitlines():
        if head := re.fullmatch(r"@@ -(\d+),(\d+) \+\d+,\d+ @@", line):
            start, removed = int(head[1]), int(head[2])
            first = start - 1 if removed else start
            out, at = [*out, *base[at:first]], first + removed
        else:
            out.append(line)
    return [*out, *base[at:]]


async def test_other_line_ends_are_no_same_file(daemon: RunningDaemon) -> None:
    write(daemon, LINES)
    async with daemon.client("alice") as alice:
        await alice.read_file("a.py", max_tokens=WHOLE)
        (daemon.workspace / "a.py").write_bytes("".join(f"{line}\r\n" for line in LINES).encode())
        again = await alice.read_file("a.py", max_tokens=WHOLE, delta=True)
        assert is_whole(again)
        assert again.eol == "crlf"


async def test_who_has_not_seen_it_gets_the_whole(daemon: RunningDaemon) -> None:
    write(daemon, LINES)
    async with daemon.client("alice") as alice:
        await alice.read_file("a.py", max_tokens=WHOLE)
        async with daemon.client("alice") as other:
            assert is_whole(await other.read_file("a.py", max_tokens=WHOLE, delta=True))
        async with daemon.client("bob") as bob:
            assert is_whole(await bob.read_file("a.py", max_tokens=WHOLE, delta=True))
        session = (await alice.session_status()).session
    async with daemon.client("alice", session=session) as resumed:
        assert (await resumed.session_status()).session == session
        assert is_whole(await resumed.read_file("a.py", max_tokens=WHOLE, delta=True))
        assert (await resumed.read_file("a.py", delta=True)).unchanged_since is not None


async def test_a_large_delta_goes_on(daemon: RunningDaemon) -> None:
    write(daemon, LINES)
    async with daemon.client("alice") as alice:
        await alice.read_file("a.py", max_tokens=WHOLE)
        write(daemon, [f"{line} # {n}" if 100 < n <= 400 else line for n, line in enumerate(LINES, 1)])
        first = await alice.read_file("a.py", delta=True, max_tokens=1000)
        assert first.truncated
        assert first.next == f'read_file(path="a.py", start={first.end + 1}, delta=true)'
        assert estimate_tokens(first.text) <= 1100
        rest = await alice.read_file("a.py", start=first.end + 1, delta=True, max_tokens=WHOLE)
        assert rest.end == 2000
        shown = (first.text + rest.text).splitlines()
        assert [line.split("\t")[0].strip() for line in shown if "\t" in line] == [str(n) for n in range(101, 401)]
        assert (await alice.read_file("a.py", delta=True)).unchanged_since == first.version_id


async def test_a_profile_asks_for_it(base: Path) -> None:
    (base / "state").mkdir(mode=0o700)
    profile = '[[profile]]\nname = "frugal"\nagents = ["alice"]\ndelta_reads = true\nmax_read_lines = 100\n'
    (base / "state/policy.toml").write_text(f'name = "ours"\nextends = "default"\n{profile}')
    with running(base) as daemon:
        write(daemon, LINES)
        async with daemon.client("alice") as alice:
            first = await alice.read_file("a.py", start=1, end=100)
            assert (await alice.read_file("a.py", start=1, end=100)).unchanged_since == first.version_id
            assert (await alice.read_file("a.py", start=1, end=100, delta=False)).text == first.text
            assert (await alice.read_lines("a.py", start=1, end=100)).text == first.text
            with pytest.raises(RemoteError, match="may read 100 at once"):
                await alice.read_file("a.py", start=1, end=300)
            with pytest.raises(RemoteError, match="may read 100 at once"):
                await alice.read_file("a.py", delta=False)


async def test_on_the_command_line(daemon: RunningDaemon) -> None:
    write(daemon, LINES)
    async with daemon.client() as person:

        def opened(*options: str) -> tuple[str, str]:
            done = cli_bytes(daemon, "open", "a.py", *options, env={"ORCHESTRATOR_SESSION": person.session})
            assert done.returncode == 0
            return done.stdout.decode(), done.stderr.decode()

        assert len(opened()[0].splitlines()) == 2000
        text, said = opened("--delta")
        assert (text, said.split("@")[0]) == ("", "lines 1-2000: unchanged since ")
        write(daemon, with_line(3, "other"))
        assert opened("--delta")[0] == "@@ -3,1 +3,1 @@\n     3\tother\n"
        assert len(opened()[0].splitlines()) == 2000
