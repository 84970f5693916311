"""blame through the real daemon: by construction, through merges, moves, reverts and other programs."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from anyio import to_thread

from orchestrator.api.history import BlameAnswer, BlamedLines
from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from orchestrator.servers.blocks import text_block
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.external_changes import save

pytestmark = pytest.mark.anyio

ALLOW_ALL = 'name = "open"\ndefault = "allow"\n'


def code(refused: pytest.ExceptionInfo[RemoteError]) -> str:
    return refused.value.code


async def edited(files: FileAccess, path: str, old: str, new: str) -> ChangeAnswer:
    answer = await files.edit_file(path, [Replacement(search=old, replace=new)])
    assert answer.status == "applied", answer
    return answer


def by_line(blamed: BlameAnswer) -> list[str]:
    """Whose each line is: the agent, else the kind."""
    assert [part.start for part in blamed.ranges[1:]] == [part.end + 1 for part in blamed.ranges[:-1]]
    return [part.agent or part.kind for part in blamed.ranges for _ in range(part.start, part.end + 1)]


def line(blamed: BlameAnswer, number: int) -> BlamedLines:
    return next(part for part in blamed.ranges if part.start <= number <= part.end)


async def test_lines_belong_to_whoever_brought_them_in(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.py").write_text("one\ntwo\nthree\nfour\n")
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        task = await bob.begin_task("rename")
        first = await edited(alice, "a.py", "one\ntwo\nthree\n", "one\nTWO\nthree\n")
        await edited(bob, "a.py", "four\n", "four\nfive\n")
        blamed = await alice.blame("a.py")
        assert by_line(blamed) == ["outside", "alice", "outside", "outside", "bob"]
        (mine, theirs) = line(blamed, 2), line(blamed, 5)
        assert (mine.change, mine.version, mine.session, mine.kind) == (
            first.change,
            first.version_id,
            alice.session,
            "change",
        )
        assert (theirs.task, theirs.operation) == (task.task, "edit_file")
        assert blamed.total_lines == 5

        part = await bob.blame("a.py", start=2, end=4)
        assert [(r.start, r.end, r.agent) for r in part.ranges] == [(2, 2, "alice"), (3, 4, "outside")]

        then = await bob.blame("a.py", at=first.version_id)
        assert by_line(then) == ["outside", "alice", "outside", "outside"]
        assert by_line(await bob.blame("a.py", at=first.change)) == by_line(then)  # between intent and outcome


async def test_context_inside_of_a_search_keeps_its_owner(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.py").write_text("one\ntwo\nthree\nfour\n")
    async with daemon.client("alice") as alice:
        await edited(alice, "a.py", "one\ntwo\nthree\nfour\n", "ONE\ntwo\nthree\nFOUR\n")
        assert by_line(await alice.blame("a.py")) == ["alice", "outside", "outside", "alice"]


async def test_merged_and_shifted_changes_own_only_what_they_changed(daemon: RunningDaemon) -> None:
    text = "".join(f"line {n}\n" for n in range(20))
    (daemon.workspace / "a.py").write_text(text)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        base = (await alice.read_file("a.py")).version_id
        await edited(bob, "a.py", "line 3\n", "line 3\nbob's\n")
        shifted = await alice.edit_file("a.py", [Replacement(search="line 10\n", replace="alice's\n")], base=base)
        assert (shifted.status, shifted.rung) == ("applied", "shifted")
        whole = text.replace("line 15\n", "carol's\n")
        async with daemon.client("carol") as carol:
            merged = await carol.write_file("a.py", whole, mode="truncate", base=base)
        assert (merged.status, merged.rung) == ("applied", "merged")
        expected = ["outside"] * 21
        expected[4], expected[11], expected[16] = "bob", "alice", "carol"
        assert by_line(await alice.blame("a.py")) == expected


async def test_other_programs_own_what_they_wrote(base: Path) -> None:
    (base / "work").mkdir(mode=0o700)
    file = base / "work" / "a.py"
    file.write_text("one\ntwo\n")
    with running(base) as daemon:
        async with daemon.client("alice") as alice:
            await edited(alice, "a.py", "two\n", "TWO\n")
            file.write_text("zero\none\nTWO\n")
            blamed = await alice.blame("a.py")
            assert by_line(blamed) == ["outside", "found", "alice"]
            assert [(r.kind, r.change is None) for r in blamed.ranges] == [
                ("external", True),
                ("found", True),
                ("change", False),
            ]


async def test_lines_of_contents_that_were_not_kept_are_unknown(base: Path) -> None:
    """Over what the background scan keeps: the first content is known by its hash alone, if at all."""
    (base / "work").mkdir(mode=0o700)
    file = base / "work" / "a.txt"
    lines = [f"line {n:06} {'x' * 90}\n" for n in range(15_000)]
    file.write_text("".join(lines))
    with running(base) as daemon:
        async with daemon.client("alice") as alice:
            first = (await alice.file_history("a.txt")).versions[0]
            assert first.not_kept
            lines[7] = "outside\n"
            file.write_text("".join(lines))
            await edited(alice, "a.txt", lines[9], "alice's\n")
            blamed = await alice.blame("a.txt")
            assert [(r.start, r.end, r.kind, r.version) for r in blamed.ranges if r.kind == "unknown"] == [
                (1, 9, "unknown", first.version_id),
                (11, 15_000, "unknown", first.version_id),
            ]
            assert line(blamed, 10).agent == "alice"
            with pytest.raises(RemoteError) as refused:
                await alice.blame("a.txt", at=first.version_id)
            assert code(refused) == "version_not_kept"


async def test_a_move_takes_the_history_along(daemon: RunningDaemon) -> None:
    (daemon.state_dir / "policy.toml").write_text(ALLOW_ALL)
    (daemon.workspace / "a.py").write_text("one\ntwo\n")
    async with daemon.client() as person:
        await person.file_info("a.py")
    daemon.stop()
    daemon.start()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await edited(alice, "a.py", "two\n", "TWO\n")
        assert (await bob.move_file("a.py", "b.py")).status == "applied"
        await edited(bob, "b.py", "one\n", "one\nmore\n")
        await alice.write_file("a.py", "another\n", mode="create")
        blamed = await alice.blame("b.py")
        assert by_line(blamed) == ["outside", "bob", "alice"]
        assert line(blamed, 3).path == "a.py"
        assert line(blamed, 2).path is None
        assert by_line(await alice.blame("a.py")) == ["alice"]
        assert (await bob.move_file("b.py", "c.py")).status == "applied"
        assert by_line(await alice.blame("c.py")) == ["outside", "bob", "alice"]


async def test_a_revert_gives_lines_back_to_their_first_author(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.py").write_text("one\n-\n-\ntwo\nthree\n")
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await edited(alice, "a.py", "two\n", "TWO\n2\n")
        wrong = await edited(bob, "a.py", "TWO\n2\n", "wrong\n")
        later = await edited(alice, "a.py", "one\n", "one\nlater\n")
        assert wrong.change is not None
        back = await bob.revert(wrong.change)
        assert back.status == "applied"
        blamed = await alice.blame("a.py")
        assert by_line(blamed) == ["outside", "alice", "outside", "outside", "alice", "alice", "outside"]
        assert line(blamed, 2).version == later.version_id
        assert by_line(await alice.blame("a.py", at=wrong.version_id)) == [*["outside"] * 3, "bob", "outside"]
        assert back.change is not None
        again = await bob.revert(back.change)  # undo the undoing
        assert again.status == "applied"
        assert by_line(await alice.blame("a.py")) == ["outside", "alice", "outside", "outside", "bob", "outside"]


async def test_a_revert_of_another_programs_change(daemon: RunningDaemon) -> None:
    file = daemon.workspace / "a.py"
    file.write_text("one\ntwo\nthree\n")
    async with daemon.client() as person:
        await edited(person, "a.py", "two\n", "TWO\n")
        save(file, "one\nbroken\n", by_way_of=daemon.base / "saved")
        outside = (await person.file_history("a.py")).versions[0]
        assert outside.kind == "external"
        answer = await person.revert(outside.version_id)
        if answer.status == "waiting":
            assert answer.approval is not None
            await person.approve(answer.approval, approver=await daemon.make_approver(), unseen=True)
        assert file.read_text() == "one\nTWO\nthree\n"
        owners = by_line(await person.blame("a.py"))
        assert owners[0] == owners[2] == "outside"
        assert owners[1].startswith("person:")


async def test_who_approved_is_reported(daemon: RunningDaemon) -> None:
    approver = await daemon.make_approver()
    async with daemon.client("alice") as alice, daemon.client() as person:
        waiting = await alice.write_file("conftest.py", "one\n", mode="create")
        assert waiting.status == "waiting", waiting
        assert waiting.approval is not None
        await person.approve(waiting.approval, approver=approver, unseen=True)
        blamed = await alice.blame("conftest.py")
        assert by_line(blamed) == ["alice"]
        assert (blamed.ranges[0].approver or "").startswith("person:")


async def test_a_deleted_file_is_blamed_as_it_was(daemon: RunningDaemon) -> None:
    file = daemon.workspace / "a.py"
    file.write_text("one\ntwo\n")
    async with daemon.client("alice") as alice:
        change = await edited(alice, "a.py", "two\n", "TWO\n")
        file.unlink()
        with pytest.raises(RemoteError) as refused:
            await alice.blame("a.py")
        assert code(refused) == "not_found"
        assert change.version_id is not None
        assert by_line(await alice.blame("a.py", at=change.version_id)) == ["outside", "alice"]
        gone = (await alice.file_history("a.py")).versions[0]
        assert gone.removed
        with pytest.raises(RemoteError) as refused:
            await alice.blame("a.py", at=gone.version_id)
        assert code(refused) == "not_found"
        assert gone.version_id in str(refused.value)


async def test_what_blame_refuses(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.py").write_text("one\n")
    (daemon.workspace / ".env").write_text("KEY=1\n")
    (daemon.workspace / "b.bin").write_bytes(b"\0\1\2")
    async with daemon.client("alice") as alice:
        refusals = {
            "denied": alice.blame(".env"),
            "binary_file": alice.blame("b.bin"),
            "not_found": alice.blame("none.py"),
            "version_unknown": alice.blame("a.py", at="@99999"),
            "invalid_parameter": alice.blame("a.py", start=5),
        }
        for expected, call in refusals.items():
            with pytest.raises(RemoteError) as refused:
                await call
            assert code(refused) == expected, refused.value
        with pytest.raises(RemoteError, match="which ends at @"):
            await alice.blame("a.py", at="@99999")


async def test_an_empty_file_has_no_lines_to_blame(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.py").write_text("")
    async with daemon.client("alice") as alice:
        blamed = await alice.blame("a.py")
        assert (blamed.total_lines, blamed.ranges) == (0, ())


async def test_the_same_after_a_restart(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.py").write_text("".join(f"line {n}\n" for n in range(30)))
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        for n in range(0, 30, 3):
            await edited(alice if n % 2 else bob, "a.py", f"line {n}\n", f"line {n}\nmore {n}\n")
            if n % 4 == 0:
                await alice.blame("a.py")
        before = await alice.blame("a.py")
    daemon.stop()
    daemon.start()
    async with daemon.client("alice") as alice:
        assert (await alice.blame("a.py")).ranges == before.ranges


# --- as people and models see it ------------------------------------------------------------------


def said(daemon: RunningDaemon, *arguments: str) -> str:
    code, text = cli(daemon, *arguments)
    assert code == 0, text
    return text


async def test_the_command_line_shows_each_line_with_its_author(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.py").write_text("one\ntwo\n")
    async with daemon.client("alice") as alice:
        change = await edited(alice, "a.py", "two\n", "TWO\nthree\n")
        shown = await to_thread.run_sync(said, daemon, "blame", "a.py")
        first, second, third = shown.splitlines()
        assert re.fullmatch(r"@\d+ +outside +\S+ \S+ +1\) one", first)
        assert re.fullmatch(rf"{change.version_id} +alice +\S+ \S+ +2\) TWO", second)
        assert third.endswith("3) three")
        part = await to_thread.run_sync(said, daemon, "blame", "a.py", "--start", "3", "--json")
        assert msgspec.json.decode(part, type=BlameAnswer).ranges[0].agent == "alice"
        since = await to_thread.run_sync(said, daemon, "since", "@1")
        assert [row.split()[-1] for row in since.splitlines()] == ["a.py", "a.py"]
        assert "+2  -1" in since.splitlines()[1]


async def test_a_model_gets_a_row_for_each_range(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.py").write_text("one\ntwo\n")
    async with daemon.client("alice") as alice:
        change = await edited(alice, "a.py", "two\n", "TWO\nthree\n")
        blamed = await alice.blame("a.py")
    block = text_block(blamed)
    assert block is not None
    head, first, second = block.splitlines()
    assert head == f"a.py {change.version_id}, lines 1-3 of 3: who brought them in"
    assert first.startswith("1-1 @")
    assert " outside external" in first
    assert second.startswith(f"2-3 {change.version_id} ")
    assert f" alice edit_file change {change.change} session {alice.session}" in second


async def test_an_end_before_the_start_is_refused(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.py").write_text("one\ntwo\nthree\n")
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.blame("a.py", start=3, end=2)
    assert code(refused) == "invalid_parameter"
    assert refused.value.details["parameter"] == "end"
    assert "2 comes before start, which is 3" in refused.value.message


async def test_a_proposal_that_a_person_chose_is_its_authors(daemon: RunningDaemon) -> None:
    approver = await daemon.make_approver()
    (daemon.workspace / "a.py").write_text("one\ntwo\nthree\n")
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        base = (await bob.read_file("a.py")).version_id
        await edited(alice, "a.py", "two\n", "alice's\n")
        answer = await bob.edit_file("a.py", [Replacement(search="two\n", replace="bob's\n")], base=base)
        assert answer.conflict is not None, answer
        done = await person.resolve_conflict(answer.conflict, "proposed", approver=approver)
        assert done.status == "applied", done
        chosen = line(await alice.blame("a.py"), 2)
        assert (chosen.agent, chosen.session, chosen.change) == ("bob", bob.session, done.change)
        assert (chosen.approver or "").startswith("person:")
