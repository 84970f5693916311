"""An open conflict stays with its file: shown and settled where that was moved; of a deleted one it says so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio import to_thread

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from orchestrator.core.policy.protected import TEMP_PREFIX
from tests.daemon.cli import run
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.external_changes import seen
from tests.daemon.reviewer_servers import BOTH, OPEN, START, conflict, follow, one, reviewed, route

pytestmark = pytest.mark.anyio

HERS = START.replace("two", "two, alice")
HIS = START.replace("two", "two, bob")


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    """One whose policy lets agents move and delete."""
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(OPEN)
    with running(base) as started:
        yield started


async def by_move(daemon: RunningDaemon, alice: FileAccess) -> None:
    await alice.move_file("d/f.txt", "e/g.txt")


async def by_patch(daemon: RunningDaemon, alice: FileAccess) -> None:
    await alice.apply_patch(
        "diff --git a/d/f.txt b/e/g.txt\nsimilarity index 90%\nrename from d/f.txt\nrename to e/g.txt\n"
        "--- a/d/f.txt\n+++ b/e/g.txt\n@@ -5,2 +5,2 @@\n five\n-six\n+seven\n"
    )


async def by_folder(daemon: RunningDaemon, alice: FileAccess) -> None:
    await alice.move_file("d", "e")
    await alice.move_file("e/f.txt", "e/g.txt")


async def back_and_on(daemon: RunningDaemon, alice: FileAccess) -> None:
    await alice.move_file("d/f.txt", "h.txt")
    await alice.move_file("h.txt", "d/f.txt")
    await alice.move_file("d/f.txt", "e/g.txt")


async def and_made_anew(daemon: RunningDaemon, alice: FileAccess) -> None:
    await alice.move_file("d/f.txt", "e/g.txt")
    await alice.write_file("d/f.txt", "another\n", mode="create")


async def from_outside(daemon: RunningDaemon, alice: FileAccess) -> None:
    async with daemon.client() as person:
        (daemon.workspace / "e").mkdir()
        await seen(person, daemon.workspace)  # alice's own change too: a hint of that might meet the file gone already
        (daemon.workspace / "d/f.txt").rename(daemon.workspace / "e/g.txt")
        await seen(person, daemon.workspace)


@pytest.mark.parametrize("choice", ["proposed", "regions", "content", "current"])
@pytest.mark.parametrize(
    "move", [by_move, by_patch, by_folder, back_and_on, and_made_anew, from_outside], ids=lambda move: move.__name__
)
async def test_it_is_resolved_where_its_file_is(daemon: RunningDaemon, move: object, choice: str) -> None:
    code = await daemon.make_approver()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        number = await conflict(alice, bob, "d/f.txt")
        await move(daemon, alice)  # type: ignore[operator]  # one of the above
        on = (await one(person)).current_version
        more = {"regions": {"regions": ("proposed",), "on": on}, "content": {"content": HIS, "on": on}}.get(choice, {})
        answer = await person.resolve_conflict(number, choice, approver=code, **more)  # type: ignore[arg-type]
        assert not (await person.list_conflicts()).conflicts
        assert (await person.journal_rebuild()).ok
    held = (daemon.workspace / "e/g.txt").read_text()
    assert "two, alice\n" in held if choice == "current" else held.startswith("one\ntwo, bob\n")
    assert [path.path for path in answer.paths] == ([] if choice == "current" else ["e/g.txt"])
    assert ("seven" in held) == (move is by_patch and choice != "content")
    if move is and_made_anew:
        assert (daemon.workspace / "d/f.txt").read_text() == "another\n"
    else:
        assert not (daemon.workspace / "d/f.txt").exists()


async def test_it_says_whence_it_was_moved(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        number = await conflict(alice, bob, "f.txt")
        await alice.move_file("f.txt", "g.txt")
        moved = await alice.move_file("g.txt", "h.txt")
        info = await one(person)
        assert (info.path, info.moved_at, info.state) == ("h.txt", moved.version_id, "found")
        assert info.moved_from in ("f.txt", "g.txt")  # whether the daemon looked in between
        assert [c.current for c in info.regions] == [(2, 2)]
        assert (await bob.await_change(number, timeout_s=0)).paths[0].path == "h.txt"
    assert f"(moved from {info.moved_from})  (at {moved.version_id})" in run(daemon, "list")[1]
    assert f"from {info.moved_from} at {moved.version_id}" in run(daemon, "show", number)[1]


async def test_it_is_superseded_where_its_file_is(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        number = await conflict(alice, bob, "f.txt")
        await alice.move_file("f.txt", "g.txt")
        assert (await one(person)).path == "g.txt"
        await bob.read_file("g.txt")
        again = await bob.edit_file("g.txt", [Replacement(search="two, alice", replace="two, bob")], supersedes=number)
        assert again.status == "applied"
        assert not (await person.list_conflicts()).conflicts


async def test_it_is_there_after_another_start(base: Path) -> None:
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(OPEN)
    with running(base) as first:
        async with first.client("alice") as alice, first.client("bob") as bob, first.client() as person:
            await conflict(alice, bob, "f.txt")
            await alice.move_file("f.txt", "g.txt")
            before = await one(person)
    with running(base) as again:
        async with again.client() as person:
            assert await one(person) == before
            assert (await person.journal_rebuild()).ok


async def test_who_may_not_read_the_old_path_sees_none_of_it(base: Path) -> None:
    deny = '[[rule]]\nname = "no"\nagents = ["carl"]\nactions = ["read"]\npaths = ["secret/**"]\nverdict = "deny"\n'
    with reviewed(base, deny, {}) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client("carl") as carl:
            await conflict(alice, bob, "secret/f.txt")
            await alice.move_file("secret/f.txt", "g.txt")
            hidden, shown = await one(carl), await one(bob)
    assert (shown.path, shown.proposed) == ("g.txt", HIS)
    assert (hidden.path, hidden.base, hidden.proposed, hidden.diff, hidden.marked) == ("g.txt", None, None, None, None)


async def test_a_review_that_was_asked_for_before_the_move_is_taken(base: Path) -> None:
    pipe = base / "go"
    os.mkfifo(pipe)
    with reviewed(base, route("quick", accept="person"), {"quick": [{**BOTH, "after": str(pipe)}]}) as daemon:
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob, "f.txt")
            await follow(person, "review_requested")
            await alice.move_file("f.txt", "g.txt")
            assert (await one(person)).state == "requested"
            await to_thread.run_sync(pipe.write_bytes, b"now")
            await follow(person, "review_answered")
            await alice.move_file("g.txt", "h.txt")
            info = await one(person)
            assert (info.path, info.state, info.reviews[0].reason) == ("h.txt", "answered", "both are needed")
            accepted = await person.resolve_conflict(number, "review", review=info.reviews[-1].review, approver=code)
            assert accepted.status == "applied"
        assert (daemon.workspace / "h.txt").read_text() == START.replace("two", "two, alice and bob")
        names = [path.name for path in daemon.workspace.iterdir()]
        assert [name for name in names if not name.startswith(TEMP_PREFIX)] == ["h.txt"]  # swapped out ones go later


# --- files that are deleted -------------------------------------------------------------------


async def test_of_a_deleted_file_it_says_so_and_reviving_it_warns(daemon: RunningDaemon) -> None:
    code = await daemon.make_approver()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        number = await conflict(alice, bob, "f.txt")
        gone = await alice.delete_file("f.txt")
        info = await one(person)
        assert (info.deleted_at, info.moved_from) == (gone.version_id, None)
        assert f"deleted at {gone.version_id}" in run(daemon, "list")[1]
        assert "brings it back" in run(daemon, "show", number)[1]
        answer = await person.resolve_conflict(number, "proposed", on="@0", approver=code)
        assert answer.status == "applied"
    assert (daemon.workspace / "f.txt").read_text() == HIS


async def test_a_conflict_that_is_closed_is_not_moved(daemon: RunningDaemon) -> None:
    code = await daemon.make_approver()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        number = await conflict(alice, bob, "f.txt")
        await person.resolve_conflict(number, "current", approver=code)
        await alice.move_file("f.txt", "g.txt")
        with pytest.raises(RemoteError) as closed:
            await person.resolve_conflict(number, "proposed", approver=code)
        assert closed.value.code == "conflict_closed"
    assert (daemon.workspace / "g.txt").read_text() == HERS
