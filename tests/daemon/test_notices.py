"""Read sets through the real daemon: who is told what, and that nobody is told what is no news."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
import pytest

from orchestrator.api.results import ChangeAnswer, Notice, UnseenText
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from orchestrator.engine.reads.stale_read_notices import MOST_NOTICES
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.raw_socket import Talk

pytestmark = pytest.mark.anyio

NAME = "code.py"
TEXT = "".join(f"line {n}\n" for n in range(1, 41))

Act = Callable[[RunningDaemon, FileAccess, FileAccess], Awaitable[None]]


async def replace(files: FileAccess, *changes: tuple[str, str], path: str = NAME) -> None:
    await files.read_file(path)
    edits = [Replacement(search=f"{old}\n", replace=new) for old, new in changes]
    answer = await files.edit_file(path, edits)
    assert answer.status == "applied", answer


async def granted(daemon: RunningDaemon, answer: ChangeAnswer) -> None:
    """A person says yes to what waits."""
    assert answer.approval is not None, answer
    async with daemon.client() as person:
        done = await person.approve(answer.approval, approver=await daemon.make_approver(), unseen=True)
        assert done.status == "applied", done


def spans(notice: Notice) -> list[tuple[int, int, int | None, int | None]]:
    return [(lines.start, lines.end, lines.now_start, lines.now_end) for lines in notice.lines]


async def reads_the_start(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await alice.read_file(NAME, start=1, end=10)


async def and_bob_changes_5(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await reads_the_start(daemon, alice, bob)
    await replace(bob, ("line 5", "LINE 5\n"))


async def and_bob_changes_20(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await reads_the_start(daemon, alice, bob)
    await replace(bob, ("line 20", "LINE 20\n"))


async def and_bob_adds_above(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await alice.read_file(NAME, start=10, end=20)
    await replace(bob, ("line 1", "line 0\nline 1\n"))


async def and_bob_adds_above_and_changes(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await and_bob_adds_above(daemon, alice, bob)
    await replace(bob, ("line 12", "LINE 12\nand more\n"))


async def and_bob_takes_lines_away(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await reads_the_start(daemon, alice, bob)
    await replace(bob, ("line 4\nline 5", ""))


async def and_bob_adds_inside(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await reads_the_start(daemon, alice, bob)
    await replace(bob, ("line 5", "line 5\nand\nmore\n"))


async def and_bob_adds_inside_in_steps(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await and_bob_adds_inside(daemon, alice, bob)
    await alice.read_file(NAME, start=30, end=31)
    alice.take_notices()
    await replace(bob, ("line 5", "line 5\nbut\n"))


async def and_bob_adds_below(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await reads_the_start(daemon, alice, bob)
    await replace(bob, ("line 10", "line 10\nmore\n"))


async def and_bob_adds_between_two_reads(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await reads_the_start(daemon, alice, bob)
    await alice.read_file(NAME, start=20, end=30)
    await replace(bob, ("line 15", "line 15\nmore\n"))


async def and_she_adds_inside_herself(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await reads_the_start(daemon, alice, bob)
    await replace(bob, ("line 30", "thirty\n"))
    edit = Replacement(search="line 5\n", replace="line 5\nmine\n")
    assert (await alice.edit_file(NAME, [edit])).status == "applied"


async def and_what_bob_added_goes(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await and_bob_adds_inside(daemon, alice, bob)
    await replace(bob, ("line 5\nand\nmore", "line 5\n"))


async def and_bob_changes_it_back(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await and_bob_changes_5(daemon, alice, bob)
    await replace(bob, ("LINE 5", "line 5\n"))


async def and_she_changes_it_herself(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await alice.read_file(NAME)
    await replace(alice, ("line 5", "LINE 5\n"))


async def both_change(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await alice.read_file(NAME)
    await replace(bob, ("line 5", "five\n"))
    edit = Replacement(search="line 30\n", replace="thirty\nmore\n")
    answer = await alice.edit_file(NAME, [edit])
    assert [spans(notice) for notice in answer.notices] == [[(5, 5, 5, 5)]]
    await replace(bob, ("line 35", "line 35!\n"))


async def and_she_looks_again(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await and_bob_changes_5(daemon, alice, bob)
    await alice.read_file(NAME, start=3, end=7)


async def and_an_editor_saves(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await reads_the_start(daemon, alice, bob)
    (daemon.workspace / NAME).write_text(TEXT.replace("line 7\n", "seven\n"))
    await bob.file_info(NAME)


async def and_an_editor_touches_it(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await reads_the_start(daemon, alice, bob)
    (daemon.workspace / NAME).write_text(TEXT)
    await bob.read_file(NAME)


async def and_bob_deletes_it(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await reads_the_start(daemon, alice, bob)
    await bob.read_file(NAME)
    await granted(daemon, await bob.delete_file(NAME))


async def and_bob_moves_it(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await reads_the_start(daemon, alice, bob)
    await granted(daemon, await bob.move_file(NAME, "moved.py"))


async def searches(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    await alice.search_content("line 25", context_lines=1)
    await replace(bob, ("line 26", "LINE 26\n"), ("line 28", "LINE 28\n"))


async def reads_the_past(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> None:
    first = (await bob.read_file(NAME)).version_id
    await replace(bob, ("line 5", "LINE 5\n"))
    await alice.read_file(NAME, at=first)
    await replace(bob, ("line 20", "LINE 20\n"))


@pytest.mark.parametrize(
    ("act", "kind", "lines"),
    [
        pytest.param(and_bob_changes_5, "changed", [(5, 5, 5, 5)], id="a seen line is changed"),
        pytest.param(and_bob_changes_20, None, [], id="another line of the file is changed"),
        pytest.param(and_bob_adds_above, None, [], id="seen lines only moved down"),
        pytest.param(
            and_bob_adds_above_and_changes, "changed", [(12, 12, 13, 14)], id="moved down, then one is changed"
        ),
        pytest.param(and_bob_takes_lines_away, "changed", [(4, 5, 4, 3)], id="seen lines are taken away"),
        pytest.param(and_bob_adds_inside, "changed", [(5, 6, 6, 7)], id="lines came between seen ones"),
        pytest.param(and_bob_adds_inside_in_steps, "changed", [(5, 6, 6, 8)], id="told, and one more came beside them"),
        pytest.param(and_bob_adds_below, None, [], id="lines came below seen ones"),
        pytest.param(and_bob_adds_between_two_reads, None, [], id="lines came between two places that were read"),
        pytest.param(and_she_adds_inside_herself, None, [], id="her own lines between seen ones"),
        pytest.param(and_what_bob_added_goes, None, [], id="lines came between seen ones, and went"),
        pytest.param(and_bob_changes_it_back, None, [], id="changed, and changed back"),
        pytest.param(and_she_changes_it_herself, None, [], id="her own change"),
        pytest.param(both_change, "changed", [(36, 36, 36, 36)], id="others' change after one of her own"),
        pytest.param(and_she_looks_again, None, [], id="changed, and looked at again"),
        pytest.param(and_an_editor_saves, "changed", [(7, 7, 7, 7)], id="changed outside"),
        pytest.param(and_an_editor_touches_it, None, [], id="saved outside with the same content"),
        pytest.param(and_bob_deletes_it, "deleted", [], id="deleted"),
        pytest.param(and_bob_moves_it, "moved", [], id="moved"),
        pytest.param(searches, "changed", [(26, 26, 26, 26)], id="shown by a search, with its context"),
        pytest.param(reads_the_past, None, [], id="an earlier state was asked for"),
    ],
)
async def test_who_is_notified(
    daemon: RunningDaemon, act: Act, kind: str | None, lines: list[tuple[int, int, int, int]]
) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await act(daemon, alice, bob)
        alice.take_notices()
        await alice.list_files()
        notices = alice.take_notices()
        assert [(n.kind, spans(n)) for n in notices] == ([] if kind is None else [(kind, lines)])
        outside = act is and_an_editor_saves
        assert all(n.by == (("outside",) if outside else ("bob",)) for n in notices)
        await alice.list_files()
        assert alice.take_notices() == (), "told once"
        assert bob.take_notices() == (), "whoever made the changes is not told of them"


async def test_a_notice_says_who_since_when_and_what(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client("carol") as carol:
        seen = await alice.read_file(NAME, start=1, end=10)
        await replace(carol, ("line 30", "thirty\n"))
        await replace(bob, ("line 5", "five\n"))
        read = await alice.read_file(NAME, start=20, end=21)
        (notice,) = read.notices
        assert alice.take_notices() == read.notices
        assert (notice.by, notice.version_id) == (("bob",), read.version_id)
        assert notice.since == read.version_id, "carol's change touched nothing that was seen"
        assert notice.lines[0].seen_in == seen.version_id
        assert notice.diff == "@@ -5,1 +5,1 @@\n-line 5\n+five\n"
        status = await alice.session_status()
        assert [(n.path, spans(n)) for n in status.stale] == [(NAME, [(5, 5, 5, 5)])], "told, and stale still"


async def test_lines_that_came_between_are_shown_with_their_neighbours(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text("def f(a):\n    check(a)\n    return run(a)\n")
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        await bob.read_file(NAME)
        await alice.read_file(NAME)
        await alice.edit_file(NAME, [Replacement(search="    check(a)\n", replace="    check(a)\n    a = a * 100\n")])
        await bob.list_files()
        (notice,) = bob.take_notices()
        assert (notice.lines[0].added, notice.by, spans(notice)) == (True, ("alice",), [(2, 3, 3, 3)])
        assert notice.diff == "@@ -2,2 +2,3 @@\n     check(a)\n+    a = a * 100\n     return run(a)\n"
        (reader,) = (await person.stale_readers(NAME)).readers
        assert [(x.start, x.end, x.now_start, x.now_end, x.added) for x in reader.lines] == [(2, 3, 3, 3, True)]
        (recent,) = (await bob.session_status()).recent_reads
        assert recent.stale


@pytest.mark.parametrize(
    ("old", "new", "stale"),
    [
        pytest.param("line 5", "five\n", True, id="a seen line"),
        pytest.param("line 5", "line 5\nmore\n", True, id="between seen lines"),
        pytest.param("line 10", "line 10\nmore\n", False, id="below seen lines"),
        pytest.param("line 20", "twenty\n", False, id="elsewhere in the file"),
    ],
)
async def test_the_status_calls_stale_what_there_is_news_of(
    daemon: RunningDaemon, old: str, new: str, stale: bool
) -> None:
    for name in (NAME, "gone.py"):
        (daemon.workspace / name).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await alice.read_file("gone.py")
        await alice.read_file(NAME, start=1, end=10)
        await replace(bob, (old, new))
        (daemon.workspace / "gone.py").unlink()
        await bob.file_info("gone.py")
        status = await alice.session_status()
        assert {read.path: read.stale for read in status.recent_reads} == {NAME: stale, "gone.py": True}
        assert {notice.path for notice in status.stale} == {"gone.py", *([NAME] if stale else [])}


async def test_it_is_reported_again_only_when_it_changes_again(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await and_bob_changes_5(daemon, alice, bob)
        assert len((await alice.read_file(NAME, start=30, end=30)).notices) == 1
        await replace(bob, ("line 20", "twenty\n"), ("line 8", "eight\n"))
        (second,) = (await alice.read_file(NAME, start=30, end=30)).notices
        assert spans(second) == [(8, 8, 8, 8)], "line 5 is told already"
        await replace(bob, ("LINE 5", "five\n"))
        (third,) = (await alice.read_file(NAME, start=30, end=30)).notices
        assert spans(third) == [(5, 5, 5, 5)]


async def test_two_sessions_of_one_agent_report_each_other(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    async with daemon.client("alice") as one, daemon.client("alice") as two:
        await and_bob_changes_5(daemon, one, two)
        assert [n.by for n in (await one.read_file(NAME, start=30, end=30)).notices] == [("alice",)]


async def test_what_was_reported_before_a_crash_is_not_repeated_and_the_rest_is_reported(
    daemon: RunningDaemon,
) -> None:
    for name in (NAME, "other.py"):
        (daemon.workspace / name).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        session = alice.session
        await alice.read_file("other.py")
        await and_bob_changes_5(daemon, alice, bob)
        await alice.list_files()
        assert [n.path for n in alice.take_notices()] == [NAME]
        await replace(bob, ("line 9", "nine\n"), path="other.py")
    daemon.kill()
    daemon.start()
    async with daemon.client("alice", session=session) as alice:
        await alice.list_files()
        assert [n.path for n in alice.take_notices()] == ["other.py"]
        await alice.list_files()
        assert alice.take_notices() == ()


async def test_a_refusal_reports_too(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await and_bob_changes_5(daemon, alice, bob)
        with pytest.raises(RemoteError) as refused:
            await alice.read_file("nowhere.py")
        assert [spans(notice) for notice in refused.value.notices] == [[(5, 5, 5, 5)]]


async def test_many_changes_are_one_notice(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await alice.read_file(NAME)
        await bob.read_file(NAME)
        for n in range(60):
            answer = await bob.edit_file(
                NAME, [Replacement(search=f"line 5{'!' * n}\n", replace=f"line 5{'!' * (n + 1)}\n")]
            )
            assert answer.status == "applied", answer
        await alice.list_files()
        (notice,) = alice.take_notices()
        assert (notice.by, spans(notice)) == (("bob",), [(5, 5, 5, 5)])


async def test_who_may_not_read_it_now_is_not_notified_of_it(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        await and_bob_changes_5(daemon, alice, bob)
        rules = msgspec.json.encode(NAME).decode()
        (daemon.state_dir / "policy.toml").write_text(
            'name = "closed"\ndefault = "allow"\n[[rule]]\nname = "closed"\nagents = ["alice"]\n'
            f'actions = ["read"]\npaths = [{rules}]\nverdict = "deny"\n'
        )
        await person.policy_reload(approver=await daemon.make_approver())
        await alice.list_files()
        assert alice.take_notices() == ()
        status = await alice.session_status()
        assert (status.stale, [read.stale for read in status.recent_reads]) == ((), [False])
        with pytest.raises(RemoteError) as refused:
            await alice.stale_readers(NAME)
        assert refused.value.code == "denied"
        assert [reader.agent for reader in (await person.stale_readers(NAME)).readers] == ["alice"]


async def test_a_conflict_over_what_may_not_be_read_shows_no_lines_and_no_reason(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        seen = await alice.read_file(NAME)
        await replace(bob, ("line 5", "five\n"))
        edit = Replacement(search="line 5\n", replace="FIVE\n")
        lost = await alice.edit_file(NAME, [edit], base=seen.version_id, reason="because of five")
        assert lost.status == "conflict", lost
        (before,) = (await alice.list_conflicts()).conflicts
        assert (before.reason, [x.current[0] for x in before.regions]) == ("because of five", [5])
        (daemon.state_dir / "policy.toml").write_text(
            'name = "closed"\ndefault = "allow"\n[[rule]]\nname = "closed"\nagents = ["alice"]\n'
            f'actions = ["read"]\npaths = ["{NAME}"]\nverdict = "deny"\n'
        )
        await person.policy_reload(approver=await daemon.make_approver())
        (after,) = (await alice.list_conflicts()).conflicts
        assert (after.path, after.reason, after.regions, after.proposer) == (NAME, "", (), None)
        (theirs,) = (await bob.list_conflicts()).conflicts
        assert theirs.reason == "because of five"


async def test_an_answer_reports_of_a_few_files_and_counts_the_others(daemon: RunningDaemon) -> None:
    names = [f"hot_{number}.py" for number in range(4 * MOST_NOTICES)]
    for name in names:
        (daemon.workspace / name).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        for name in names:
            await alice.read_file(name)
            await bob.read_file(name)
        reported: list[str] = []
        for line in range(5, 9):
            for name in names:  # all of them change again before each answer
                edit = Replacement(search=f"line {line}\n", replace=f"LINE {line}\n")
                assert (await bob.edit_file(name, [edit])).status == "applied"
            await alice.list_files()
            notices = alice.take_notices()
            assert [notice.more_files for notice in notices] == [0] * (MOST_NOTICES - 1) + [len(names) - MOST_NOTICES]
            reported += [notice.path for notice in notices]
        assert sorted(reported) == sorted(names), "each has its turn, however often the others change"
        assert [(x.start, x.end) for x in await unseen(alice, reported[0])] == [(6, 8)], "what was left out is not seen"
        assert await unseen(alice, reported[-1]) == (), "it was told last, of all four lines"
        assert await unseen(alice, reported[0]) == (), "its next turn came with an answer since"


async def unseen(files: FileAccess, name: str) -> tuple[UnseenText, ...]:
    """What the caller would change without having seen what others did."""
    edit = Replacement(search="line 40\n", replace="LINE 40\n")
    return (await files.edit_file(name, [edit], preview=True)).unseen


@pytest.mark.parametrize("operation", ["read_file", "file_info"])
async def test_a_notice_is_sent_once(daemon: RunningDaemon, operation: str) -> None:
    """Beside the result of any call; the Python client puts it into results that have a place for it."""
    (daemon.workspace / NAME).write_text(TEXT)
    (daemon.workspace / "other.py").write_text(TEXT)
    talk = Talk(daemon, "alice")
    talk.call("read_file", path=NAME)
    talk.answer()
    async with daemon.client("bob") as bob:
        await replace(bob, ("line 5", "LINE 5\n"))
    talk.call(operation, path="other.py")
    reported = talk.answer()
    talk.socket.close()
    assert [notice["path"] for notice in reported["notices"]] == [NAME]
    assert "LINE 5" not in str(reported["result"])
