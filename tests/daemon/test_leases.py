"""Leases through the real daemon: two agents, each policy, releases and restarts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import pytest

from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

OLD = "one\n" + "".join(f"line {n}\n" for n in range(9)) + "two\n"

Change = Callable[[FileAccess], Awaitable[ChangeAnswer]]


def policy(on_overlap: str, *, wait_s: int = 50) -> str:
    return f'name = "p"\ndefault = "allow"\n\n[leases]\non_overlap = "{on_overlap}"\nmax_wait_s = {wait_s}\n'


@pytest.fixture
def text() -> str:
    """The policy; a test says which by its parameters."""
    return policy("warn")


@pytest.fixture
def ground(base: Path, text: str) -> Iterator[RunningDaemon]:
    """A daemon under that policy, with two files in `src`."""
    for folder in ("state", "work", "work/src"):
        (base / folder).mkdir(mode=0o700)
    (base / "state" / "policy.toml").write_text(text)
    for name in ("a.py", "b.py"):
        (base / "work" / "src" / name).write_text(OLD)
    with running(base) as daemon:
        yield daemon


def under(*texts: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("text", texts, ids=[text.split('"')[5] for text in texts])


def edit(search: str, replace: str, path: str = "src/a.py") -> Change:
    return lambda files: files.edit_file(path, [Replacement(search=search, replace=replace)])


CHANGES: dict[str, Change] = {
    "edit": edit("one", "1"),
    "write": lambda files: files.write_file("src/new.py", "x\n", mode="create"),
    "append": lambda files: files.write_file("src/a.py", "x\n", mode="append"),
    "patch": lambda files: files.apply_patch("--- a/src/a.py\n+++ b/src/a.py\n@@ -1,1 +1,1 @@\n-one\n+1\n"),
    "delete": lambda files: files.delete_file("src/a.py"),
    "move away": lambda files: files.move_file("src/a.py", "a.py"),
    "move in": lambda files: files.move_file("c.py", "src/c.py"),
    "make a directory": lambda files: files.create_directory("src/new"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@under(policy("warn"), policy("merge"))
async def test_every_change_goes_across_a_lease(ground: RunningDaemon, text: str, change: Change) -> None:
    (ground.workspace / "c.py").write_text("c\n")
    async with ground.client("alice") as alice, ground.client("bob") as bob, ground.client() as person:
        await bob.read_file("src/a.py")
        lease = (await alice.reserve_paths(["src"])).lease or ""
        answer = await change(bob)
        assert answer.status == "applied"
        reported = [warning for warning in answer.warnings if "reserved by alice" in warning and lease in warning]
        assert len(reported) == ("warn" in text)
        (intended,) = (await person.journal_query(kind="change_intended")).entries
        assert intended.event["leases"] == [int(lease[1:])]


@under(policy("deny"), policy("queue", wait_s=0))
async def test_every_change_is_kept_out_by_a_lease(ground: RunningDaemon, text: str) -> None:
    (ground.workspace / "c.py").write_text("c\n")
    before = sorted(ground.workspace.rglob("*"))
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        await bob.read_file("src/a.py")
        lease = (await alice.reserve_paths(["src"], reason="a rename")).lease
        for name, change in CHANGES.items():
            with pytest.raises(RemoteError) as refused:
                await change(bob)
            assert refused.value.code == "path_reserved", name
            (clash,) = refused.value.details["clashes"]
            assert (clash["lease"], clash["agent"], clash["reason"]) == (lease, "alice", "a rename"), name
            assert "reserved by alice until" in str(refused.value), name
    assert sorted(ground.workspace.rglob("*")) == before
    assert (ground.workspace / "src" / "a.py").read_text() == OLD


@under(policy("deny"))
async def test_a_lease_keeps_out_others_only_and_from_its_paths_only(ground: RunningDaemon, text: str) -> None:
    async with ground.client("alice") as alice, ground.client("bob") as bob, ground.client() as person:
        first = await alice.reserve_paths(["src/a.py"])
        await bob.reserve_paths(["doc"], mode="shared")
        assert (await edit("one", "1")(alice)).status == "applied"
        async with ground.client("alice") as again:  # another session of the same agent
            assert (await edit("two", "2")(again)).status == "applied"
        assert (await edit("one", "1", "src/b.py")(bob)).status == "applied"
        assert (await alice.write_file("doc/x", "x\n", mode="create")).status == "applied"
        by_person = await edit("line 3", "LINE 3")(person)
        assert by_person.status == "applied"
        assert any("reserved by alice until" in warning for warning in by_person.warnings)
        with pytest.raises(RemoteError) as refused:
            await bob.revert(by_person.change or "")
        assert refused.value.code == "path_reserved"
        with pytest.raises(RemoteError) as previewed:
            await bob.edit_file("src/a.py", [Replacement(search="1", replace="one")], preview=True)
        assert previewed.value.code == "path_reserved"
        assert (await alice.release_paths(first.lease or "")).status == "released"
        assert (await bob.revert(by_person.change or "")).status == "applied"


@under(policy("merge"))
async def test_merged_changes_are_rebased_without_a_word(ground: RunningDaemon, text: str) -> None:
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        await bob.read_file("src/a.py")
        await alice.reserve_paths(["src"])
        assert (await edit("one", "1\nand a half")(alice)).status == "applied"
        merged = await edit("two", "2")(bob)
        assert (merged.status, merged.rung, merged.warnings) == ("applied", "shifted", ())
    assert (ground.workspace / "src" / "a.py").read_text() == OLD.replace("one", "1\nand a half").replace("two", "2")


@under(policy("warn"))
async def test_a_conflict_and_a_wait_are_warned_too(ground: RunningDaemon, text: str) -> None:
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        await bob.read_file("src/a.py")
        await alice.reserve_paths(["src"])
        await edit("one", "1")(alice)
        clash = await edit("one", "uno")(bob)
        assert (clash.status, len(clash.warnings)) == ("conflict", 1)
        preview = await bob.edit_file("src/b.py", [Replacement(search="one", replace="1")], preview=True)
        assert (preview.would_be, len(preview.warnings)) == ("applied", 1)


# --- waiting ---------------------------------------------------------------------------------


WOKEN_S = 40.0
"""Well under the 50 s that the policy lets a change wait: who is not woken comes too late."""


async def positions(person: FileAccess, *kinds: str) -> list[int]:
    """Where the newest event of each kind stands in the journal."""
    found = [(await person.journal_query(kind=kind, limit=1)).entries[0].seq for kind in kinds]
    return [int(seq[1:]) for seq in found]


@under(policy("queue"))
@pytest.mark.parametrize("by_person", [False, True], ids=["by its holder", "by a person"])
async def test_a_release_lets_a_queued_change_in(ground: RunningDaemon, text: str, by_person: bool) -> None:
    answers: list[ChangeAnswer] = []
    async with ground.client("alice") as alice, ground.client("bob") as bob, ground.client() as person:
        await bob.read_file("src/a.py")
        lease = (await alice.reserve_paths(["src"])).lease or ""
        arrived = anyio.Event()

        async def queued() -> None:
            answers.append(await edit("two", "2")(bob))

        async def behind() -> None:
            await bob.session_status()  # on the same connection: the change has come in by now
            arrived.set()

        with anyio.fail_after(WOKEN_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(queued)
                tasks.start_soon(behind)
                await arrived.wait()
                assert (await edit("one", "1\nand a half")(alice)).status == "applied"
                assert answers == []
                await (person if by_person else alice).release_paths(lease)
        assert (answers[0].status, answers[0].rung, answers[0].warnings) == ("applied", "shifted", ())
        released, intended = await positions(person, "lease_released", "change_intended")
        assert released < intended
    assert (ground.workspace / "src" / "a.py").read_text() == OLD.replace("one", "1\nand a half").replace("two", "2")


@under(policy("queue"))
async def test_a_expiry_lets_a_queued_change_in(ground: RunningDaemon, text: str) -> None:
    async with ground.client("alice") as alice, ground.client("bob") as bob, ground.client() as person:
        lease = await alice.reserve_paths(["src"], ttl_s=1)
        with anyio.fail_after(WOKEN_S):
            assert (await edit("one", "1")(bob)).status == "applied"
        (intended,) = (await person.journal_query(kind="change_intended")).entries
        assert intended.at >= (lease.expires_at or 0)


@under(policy("queue"))
async def test_a_queued_wish_gets_the_lease_when_it_is_free(ground: RunningDaemon, text: str) -> None:
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        first = await alice.reserve_paths(["src"], ttl_s=1)
        second = await bob.reserve_paths(["src/a.py"])
        assert second.status == "granted"
        assert (second.fencing or 0) > (first.fencing or 0)


@under(policy("queue", wait_s=1))
async def test_a_wait_is_bounded(ground: RunningDaemon, text: str) -> None:
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        await alice.reserve_paths(["src"])
        with pytest.raises(RemoteError) as refused:
            await edit("one", "1")(bob)
        assert refused.value.code == "path_reserved"
        assert (await bob.reserve_paths(["src"])).status == "clash"
        seen = await bob.edit_file("src/a.py", [Replacement(search="one", replace="1")], preview=True)
        assert (seen.would_be, len(seen.warnings)) == ("applied", 1)


# --- reserving -------------------------------------------------------------------------------


@under(policy("warn"), policy("merge"), policy("queue", wait_s=0), policy("deny"))
async def test_who_comes_second_is_notified_who_is_there(ground: RunningDaemon, text: str) -> None:
    async with ground.client("alice") as alice, ground.client("bob") as bob, ground.client() as person:
        first = await alice.reserve_paths(["src/**", "!src/gen"], reason="a rename")
        if "deny" in text:
            with pytest.raises(RemoteError) as refused:
                await bob.reserve_paths(["src/a.py"])
            assert refused.value.code == "path_reserved"
            assert [clash["lease"] for clash in refused.value.details["clashes"]] == [first.lease]
        else:
            answer = await bob.reserve_paths(["src/a.py"])
            assert (answer.status, answer.lease, answer.fencing) == ("clash", None, None)
            (clash,) = answer.clashes
            assert (clash.lease, clash.agent, clash.globs) == (first.lease, "alice", ("src/**", "!src/gen"))
            assert (clash.expires_at, clash.reason) == (first.expires_at, "a rename")
        assert (await bob.reserve_paths(["doc"], mode="shared")).status == "granted"
        assert (await alice.reserve_paths(["doc"], mode="shared")).status == "granted"
        assert [(lease.agent, lease.globs) for lease in (await person.status()).leases] == [
            ("alice", ("src/**", "!src/gen")),
            ("bob", ("doc",)),
            ("alice", ("doc",)),
        ]


async def test_a_session_sees_its_own_leases_and_those_on_what_it_read(ground: RunningDaemon) -> None:
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        task = await alice.begin_task("tidy up")
        mine = await alice.reserve_paths(["src/a.py"], reason="a rename")
        other = await alice.reserve_paths(["doc"])
        assert (await bob.session_status()).leases == ()
        await bob.read_file("src/a.py")
        (seen,) = (await bob.session_status()).leases
        assert (seen.lease, seen.agent, seen.task, seen.reason) == (mine.lease, "alice", task.task, "a rename")
        assert [lease.lease for lease in (await alice.session_status()).leases] == [mine.lease, other.lease]


async def test_the_same_request_is_answered_once(ground: RunningDaemon) -> None:
    async with ground.client("alice") as alice:
        first = await alice.reserve_paths(["src"], request_id="r-1")
        again = await alice.reserve_paths(["src"], request_id="r-1")
        assert (again.status, again.lease, again.expires_at) == ("granted", first.lease, first.expires_at)
        renewed = await alice.reserve_paths(["src"], ttl_s=900)
        assert (renewed.status, renewed.lease) == ("renewed", first.lease)
        done = await alice.release_paths(first.lease or "", request_id="r-2")
        assert await alice.release_paths(first.lease or "", request_id="r-2") == done
        assert (await alice.reserve_paths(["src"], request_id="r-1")).status == "ended"
        with pytest.raises(RemoteError) as refused:
            await alice.release_paths(first.lease or "")
        assert refused.value.code == "version_unknown"


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
async def test_a_restart_keeps_leases(base: Path, killed: bool) -> None:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(policy("deny"))
    (daemon.workspace / "a.txt").write_text(OLD)
    daemon.start()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        lease = await alice.reserve_paths(["a.txt"])
        other = await bob.reserve_paths(["b.txt"])
    daemon.kill() if killed else daemon.stop()
    daemon.start()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        assert [item.lease for item in (await person.status()).leases] == [lease.lease, other.lease]
        with pytest.raises(RemoteError) as refused:
            await edit("one", "1", "a.txt")(bob)
        assert refused.value.code == "path_reserved"
        with pytest.raises(RemoteError) as not_his:
            await bob.release_paths(lease.lease or "")
        assert not_his.value.code == "not_permitted"
        assert (await alice.release_paths(lease.lease or "")).status == "released"
        assert (await edit("one", "1", "a.txt")(bob)).status == "applied"
        rebuilt = await person.journal_rebuild()
        assert (rebuilt.ok, "leases" in rebuilt.projections) == (True, True)
        assert (await person.journal_verify()).ok
    assert daemon.stop() == 0


async def test_what_a_person_approves_goes_through(base: Path) -> None:
    daemon = RunningDaemon(base)
    shipped = (Path(__file__).parents[2] / "policies" / "default.toml").read_text()
    (daemon.state_dir / "policy.toml").write_text(shipped.replace('on_overlap = "warn"', 'on_overlap = "deny"'))
    daemon.start()
    approver = await daemon.make_approver()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        waiting = await bob.write_file("Makefile", "all:\n", mode="create")
        assert waiting.status == "waiting"
        await alice.reserve_paths(["Makefile"])
        with pytest.raises(RemoteError) as refused:
            await bob.write_file("Makefile", "all: x\n", mode="create")
        assert refused.value.code == "path_reserved"
        await person.approvals_show(waiting.approval or "")
        done = await person.approve(waiting.approval or "", approver=approver)
        assert (done.status, sum("reserved by alice" in warning for warning in done.warnings)) == ("applied", 1)
    assert daemon.stop() == 0


@pytest.mark.parametrize("globs", [["!src/a.py"], ["!src/a.py", "!src/b.py"], ["!./src/a.py"]])
async def test_exceptions_alone_reserve_nothing(ground: RunningDaemon, globs: list[str]) -> None:
    async with ground.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.reserve_paths(globs)
        assert refused.value.code == "invalid_parameter"
        assert refused.value.details["parameter"] == "globs"
        assert (await alice.session_status()).leases == ()
        assert (await alice.reserve_paths(["src", "!src/a.py"])).status == "granted"


@under(policy("warn"))
async def test_what_came_from_outside_is_nobodys_whoever_holds_the_lease(ground: RunningDaemon, text: str) -> None:
    """The same word in blame, history, the log, its filters and a rollback; the lease's holder is said beside it."""
    async with ground.client("alice") as alice, ground.client() as person:
        await alice.read_file("src/a.py")
        await alice.reserve_paths(["src"])
        (ground.workspace / "src" / "a.py").write_text(OLD.replace("one", "by a shell"))
        lines = (await person.blame("src/a.py")).ranges[0]
        assert (lines.agent, lines.lease_holder, lines.kind) == ("outside", "alice", "external")
        version = (await person.file_history("src/a.py")).versions[0]
        assert (version.agent, version.lease_holder) == ("outside", "alice")
        (row,) = (await person.changes_since(version=f"@{int(version.version_id[1:]) - 1}")).changes
        assert (row.agent, row.lease_holder) == ("outside", "alice")
        (notice,) = (await alice.read_file("src/b.py")).notices
        assert notice.by == ("outside",)
        logged = (await person.journal_query(agent="outside")).entries
        assert [(entry.seq, entry.agent, entry.kind) for entry in logged] == [
            (version.version_id, "outside", "external_file_changed")
        ]
        assert all(
            entry.kind != "external_file_changed" for entry in (await person.journal_query(agent="alice")).entries
        )
        assert not (await person.journal_query(agent="outside", kind="change_applied")).entries
        with pytest.raises(RemoteError) as refused:
            await person.rollback(agent="alice", preview=True)
        assert refused.value.code == "nothing_to_change"
        assert (await person.rollback(agent="outside")).status == "applied"
        assert (ground.workspace / "src" / "a.py").read_text() == OLD
