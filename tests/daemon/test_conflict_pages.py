"""list_conflicts is bounded, says why reviews failed, and an answer that is too long is a refusal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.clients.python import RemoteError, Replacement
from tests.daemon.cli import run
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.reviewer_servers import START, conflict, follow, one, reviewed, route

pytestmark = pytest.mark.anyio


async def many(daemon: RunningDaemon, text: str, count: int) -> list[str]:
    """Conflicts of one line of one file, which alice changed before."""
    (daemon.workspace / "big.txt").write_text(text)
    first = text.split("\n", 1)[0]
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        base = (await alice.file_info("big.txt")).version_id
        changed = await alice.edit_file("big.txt", [Replacement(search=first + "\n", replace="alice's\n")], base=base)
        assert changed.status == "applied"
        found = []
        for number in range(count):
            change = Replacement(search=first + "\n", replace=f"bob's {number}\n")
            answer = await bob.edit_file("big.txt", [change], base=base)
            assert answer.status == "conflict"
            found.append(answer.conflict or "")
        return found


async def test_pages_hold_all_conflicts_in_order(daemon: RunningDaemon) -> None:
    waiting = await many(daemon, START, 7)
    async with daemon.client() as person:
        shown, cursor, sizes = [], None, []
        while True:
            page = await person.list_conflicts(limit=3, cursor=cursor)
            shown += [info.conflict for info in page.conflicts]
            sizes.append(len(page.conflicts))
            cursor = page.cursor
            if cursor is None:
                break
        assert (shown, sizes) == (waiting, [3, 3, 1])
        (alone,) = (await person.list_conflicts(conflict=waiting[4])).conflicts
        assert (alone.conflict, alone.current) == (waiting[4], START.replace("one", "alice's"))
        with pytest.raises(RemoteError) as unknown:
            await person.list_conflicts(conflict="@1")
        assert unknown.value.code == "version_unknown"
        few = await person.list_conflicts(max_tokens=500)
        assert 0 < len(few.conflicts) < 7
        assert few.cursor == few.conflicts[-1].conflict
    assert len(json.loads(run(daemon, "list", "--json")[1])["conflicts"]) == 7


async def test_a_long_file_is_given_whole_or_not_at_all(daemon: RunningDaemon) -> None:
    text = "".join(f"line {number} of some text here\n" for number in range(20_000))
    number, other = await many(daemon, text, 2)
    async with daemon.client() as person:
        page = await person.list_conflicts()
        assert [info.conflict for info in page.conflicts] == [number, other]
        for info in page.conflicts:
            assert (info.base, info.current, info.proposed, info.marked, info.texts_left_out) == (*[None] * 4, True)
            assert "+bob's" in (info.diff or "")
        (whole,) = (await person.list_conflicts(conflict=number, max_tokens=10_000_000)).conflicts
        assert not whole.texts_left_out
        assert whole.base == text
        assert "<<<<<<< current" in (whole.marked or "")


async def test_a_diff_is_cut_to_the_budget(daemon: RunningDaemon) -> None:
    text = "".join(f"row {number} {'x' * 9000}\n" for number in range(40))
    await many(daemon, text, 1)
    async with daemon.client() as person:
        info = await one(person)
        assert info.diff_truncated
        assert len(info.diff or "") < 20_000
        (less,) = (await person.list_conflicts(max_tokens=500)).conflicts
        assert less.diff_truncated
        assert len(less.diff or "") < 4_000


async def test_a_conflict_that_is_too_large_for_one_answer_is_shown_in_pages(daemon: RunningDaemon) -> None:
    quotes = '"' * 300_000  # each takes two bytes in JSON
    (number,) = await many(daemon, "first\n" + "".join(f"{row}{quotes}\n" for row in range(15)), 1)
    row = "".join(f" {row}{quotes}\n" for row in range(3))
    diff = f"--- a/big.txt\n+++ b/big.txt\n@@ -1,4 +1,4 @@\n-alice's\n+bob's 0\n{row}"
    async with daemon.client() as person:
        pages: list[str] = []
        cursor = None
        while not pages or cursor is not None:
            page = await person.list_conflicts(conflict=number, max_tokens=100_000, cursor=cursor)
            (info,) = page.conflicts
            assert info.texts_left_out
            assert len(info.diff or "") < 400_000
            pages.append(info.diff or "")
            cursor = page.cursor
            assert info.diff_truncated == (cursor is not None)
        assert len(pages) > 2
        assert "".join(pages) == diff
        (whole,) = (await person.list_conflicts(conflict=number, max_tokens=10_000_000)).conflicts
        assert (whole.diff, whole.texts_left_out) == (diff, True)
        with pytest.raises(RemoteError) as other:
            await person.list_conflicts(conflict=number, cursor="@1:20")
        assert other.value.code == "invalid_parameter"
    assert json.loads(run(daemon, "show", number, "--json")[1])["diff"] == diff


async def test_an_agent_sees_the_parts_that_differ_of_long_lines_and_all_pages(daemon: RunningDaemon) -> None:
    text = "".join(f"row {number} {'x' * 3000}\n" for number in range(300))
    (daemon.workspace / "big.txt").write_text(text)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        base = (await alice.file_info("big.txt")).version_id
        await alice.write_file("big.txt", text.replace("xx\n", "xa\n"), mode="truncate", base=base)
        answer = await bob.write_file("big.txt", text.replace("xx\n", "xb\n"), mode="truncate", base=base)
        assert answer.status == "conflict"
        pages: list[str] = []
        cursor = None
        while not pages or cursor is not None:
            page = await bob.list_conflicts(conflict=answer.conflict, max_tokens=20_000, cursor=cursor)
            (info,) = page.conflicts
            pages.append(info.diff or "")
            cursor = page.cursor
            assert len(info.diff or "") < 80_000
        rows = "".join(pages).split("\n")
        assert sum(row.startswith("-") and row.endswith("xa") for row in rows) == 300
        assert sum(row.startswith("+") and row.endswith("xb") for row in rows) == 300


@pytest.mark.parametrize(
    ("act", "code", "words"),
    [
        pytest.param({"fails": "the model is busy"}, "review_failed", "the model is busy", id="fails"),
        pytest.param(
            {"verdict": "content", "lines": {"2": ["x"]}},
            "review_reply_invalid",
            "the conflict has no region",
            id="no region",
        ),
        pytest.param({"verdict": "content", "lines": {"1": ["<<<<<<< x"]}}, "markers_left", "line 2 is", id="a marker"),
    ],
)
async def test_why_a_review_failed_is_reported_in_words(
    base: Path, act: dict[str, object], code: str, words: str
) -> None:
    deny = '[[rule]]\nname = "no"\nagents = ["carl"]\nactions = ["read"]\npaths = ["a.txt"]\nverdict = "deny"\n'
    with reviewed(base, deny + route("quick"), {"quick": [act]}) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            await follow(person, "review_failed")
            (line,) = (await one(person)).reviews
            assert line.code == code
            assert words in line.message
            async with daemon.client("carl") as carl:
                assert [item.message for item in (await one(carl)).reviews] == [""]
            assert words in run(daemon, "show", number)[1]
