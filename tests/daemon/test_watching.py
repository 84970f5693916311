"""Outside changes, live, through the real daemon."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import anyio
import pytest

from orchestrator.clients.python import Replacement
from tests.crash.scenarios import POLICY
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.external_changes import CLOSED, KINDS, OPENED, entries, git, outside, resolved, seen

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.uname().sysname != "Linux", reason="needs inotify")]


@pytest.fixture
def work(base: Path) -> Path:
    """The folder that will be the workspace, before a daemon knows it."""
    folder = base / "work"
    folder.mkdir(mode=0o700)
    return folder


async def test_saves_appends_and_deletes_are_seen_as_they_happen(base: Path, work: Path) -> None:
    for name in ("saved.py", "appended.log", "deleted.txt", "moded.sh"):
        (work / name).write_text("old\n")
    with running(base) as daemon:
        async with daemon.client() as person:
            assert (await person.status()).health.watching == "live"
            (work / ".saved.py.swp").write_text("new\n")
            (work / ".saved.py.swp").rename(work / "saved.py")
            await seen(person, work)
            await anyio.run_process(["sh", "-c", f"echo more >> {work}/appended.log"])
            await seen(person, work)
            (work / "deleted.txt").unlink()
            await seen(person, work)
            (work / "moded.sh").chmod(0o755)
            await seen(person, work)
            assert await outside(person) == [
                ("changed", "saved.py"),
                ("changed", "appended.log"),
                ("removed", "deleted.txt"),
            ]
            history = await person.file_history("appended.log")
            assert [version.agent for version in history.versions][:1] == ["outside"]
            assert not history.versions[0].not_kept
            info = await person.file_info("moded.sh")
            assert info.mode == "0755" if isinstance(info.mode, str) else info.mode == 0o755


async def test_names_that_no_path_may_hold_are_reported_by_status(base: Path, work: Path) -> None:
    (work / "old\nname").write_text("x")
    with running(base) as daemon:
        async with daemon.client() as person:

            async def unnamed() -> list[str]:
                return [note for note in (await person.status()).health.notes if "name rule" in note]

            (at_start,) = await unnamed()
            assert "left out of the start scan: names that break the name rule (1)" in at_start
            (work / "new\nline").write_text("x")
            (work / os.fsdecode(b"no utf-8 \xff")).write_text("x")
            (work / "new\nline").rename(work / "named")
            await seen(person, work)
            assert ("created", "named") in await outside(person)


async def test_own_changes_never_echo(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice, daemon.client() as person:
        await alice.write_file("src/a.txt", "n 0\n", mode="create")
        for turn in range(200):
            await alice.edit_file("src/a.txt", [Replacement(search=f"n {turn}\n", replace=f"n {turn + 1}\n")])
        for turn in range(20):
            await alice.write_file(f"src/made{turn}.txt", "x\n", mode="create")
        await seen(person, daemon.workspace)
        assert await outside(person) == []
        assert await entries(person, OPENED) == []


async def test_a_branch_switch_is_one_group(base: Path, work: Path) -> None:
    git(work, "init", "-q", "-b", "main")
    for n in range(300):
        (work / f"d{n % 7}").mkdir(exist_ok=True)
        (work / f"d{n % 7}" / f"f{n}.txt").write_text(f"main {n}\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "main")
    git(work, "checkout", "-qb", "other")
    for n in range(250):
        (work / f"d{n % 7}" / f"f{n}.txt").write_text(f"other {n} indeed\n")
    shutil.rmtree(work / "d6")
    (work / "new").mkdir()
    (work / "new" / "n.txt").write_text("only here\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "other")
    git(work, "checkout", "-q", "main")
    with running(base) as daemon:
        async with daemon.client() as person:
            git(work, "checkout", "-q", "other")
            await resolved(person, 1)
            await seen(person, work)
            # a file may have been met while git was still writing it: then it has two events
            reported = await outside(person)
            written = {f"d{n % 7}/f{n}.txt" for n in range(250) if n % 7 != 6}
            gone = {f"d6/f{n}.txt" for n in range(300) if n % 7 == 6}
            assert {path for _, path in reported} == written | gone | {"new/n.txt"}
            assert {path for kind, path in reported if kind == "removed"} >= gone
            # on a machine that pauses it for long, git's work may fall into two acts; nothing of it stands alone
            opened, closed = await entries(person, OPENED), await entries(person, CLOSED)
            assert [entry.event["group"] for entry in closed] == [int(entry.seq[1:]) for entry in opened]
            lone = [e for kind in KINDS for e in await entries(person, kind) if e.cause is None]
            lone = [e for e in lone if not e.event["path"].startswith("~mark")]
            also = {seq for entry in closed for seq in entry.event.get("also", ())}
            first = int(opened[0].seq[1:])
            assert all(int(e.seq[1:]) < first for e in lone if int(e.seq[1:]) not in also), "met before the burst"
            assert sum(entry.event["changes"] for entry in closed) + len(lone) - len(also) >= len(reported)


async def test_renames_are_recognised(base: Path, work: Path) -> None:
    (work / "pkg" / "inner").mkdir(parents=True)
    for name in ("pkg/a.py", "pkg/inner/b.py", "one.txt"):
        (work / name).write_text(f"content of {name}\n")
    (work / "twin1").write_text("the same\n")
    (work / "twin2").write_text("the same\n")
    with running(base) as daemon:
        async with daemon.client() as person:
            while (await person.status()).health.baseline != "done":
                pass
            (work / "one.txt").rename(work / "two.txt")
            await seen(person, work)
            (work / "pkg").rename(work / "lib")
            await seen(person, work)
            (work / "twin1").rename(work / "twin3")
            (work / "twin2").rename(work / "twin4")
            await seen(person, work)
            created = {
                e.event["path"]: e.event.get("moved_from") for e in await entries(person, "external_file_created")
            }
            removed = {e.event["path"]: e.event.get("moved_to") for e in await entries(person, "external_file_removed")}
            assert created["two.txt"] == "one.txt"
            assert removed["one.txt"] == "two.txt"
            assert created["lib/inner/b.py"] == "pkg/inner/b.py"
            assert removed["pkg/a.py"] == "lib/a.py"
            assert created["twin3"] is None
            history = await person.file_history("two.txt")
            assert history.versions[0].moved_from == "one.txt"
            # the moved folder is watched under its new name
            (work / "lib" / "inner" / "b.py").write_text("again\n")
            await seen(person, work)
            assert (await outside(person))[-1] == ("changed", "lib/inner/b.py")


async def test_a_rename_over_a_file_is_one_and_its_undo_brings_both_back(base: Path, work: Path) -> None:
    (work / "one.txt").write_text("one\n")
    (work / "two.txt").write_text("two\n")
    (work / "twin1").write_text("the same\n")
    (work / "twin2").write_text("the same\n")
    (RunningDaemon(base).state_dir / "policy.toml").write_text(POLICY)
    with running(base) as daemon:
        async with daemon.client("bob") as bob, daemon.client() as person:
            while (await person.status()).health.baseline != "done":
                pass
            await seen(person, work)
            head = (await person.status()).head
            first = (await person.file_info("one.txt")).version_id
            await bob.read_file("one.txt")
            (work / "one.txt").rename(work / "two.txt")
            (work / "twin1").unlink()
            (work / "twin2").chmod(0o755)  # it held the same before
            await seen(person, work)
            (changed,) = await entries(person, "external_file_changed")
            removed = {e.event["path"]: e.event.get("moved_to") for e in await entries(person, "external_file_removed")}
            assert (changed.event["moved_from"], changed.paths[0].moved_from) == ("one.txt", "one.txt")
            assert removed == {"one.txt": "two.txt", "twin1": None}
            reported = (await person.changes_since(head, globs=["one.txt", "two.txt"])).changes
            assert [(row.path, row.kind, row.moved_from) for row in reported] == [
                ("one.txt", "deleted", None),
                ("two.txt", "moved", "one.txt"),
            ]
            assert [lines.version for lines in (await person.blame("two.txt")).ranges] == [first]
            notices = (await bob.read_file("twin2")).notices
            assert [(notice.kind, notice.path, notice.moved_from) for notice in notices] == [
                ("moved", "two.txt", "one.txt")
            ]
            await person.revert(changed.seq)
            assert ((work / "one.txt").read_text(), (work / "two.txt").read_text()) == ("one\n", "two\n")
            assert (await person.journal_rebuild()).ok


async def test_a_folder_moved_into_a_new_one_is_a_rename_and_its_undo_brings_it_back(base: Path, work: Path) -> None:
    (work / "d2" / "deep").mkdir(parents=True)
    for name in ("f5", "deep/f6"):
        (work / "d2" / name).write_text(f"content of {name}\n")
    (RunningDaemon(base).state_dir / "policy.toml").write_text(POLICY)
    with running(base) as daemon:
        async with daemon.client() as person:
            while (await person.status()).health.baseline != "done":
                pass
            await seen(person, work)
            head = (await person.status()).head
            await anyio.run_process(["sh", "-c", f"cd {work} && mkdir d4 && mv d2 d4/x"])
            await seen(person, work)
            assert sorted(await outside(person)) == [
                ("created", "d4/x/deep/f6"),
                ("created", "d4/x/f5"),
                ("removed", "d2/deep/f6"),
                ("removed", "d2/f5"),
            ]
            removed = {e.event["path"]: e.event.get("moved_to") for e in await entries(person, "external_file_removed")}
            assert removed["d2/f5"] == "d4/x/f5"
            undone = await person.rollback(agent="outside", globs=["d2/**", "d4/**"], since=head)
            assert undone.status == "applied"
            assert (work / "d2" / "f5").read_text() == "content of f5\n"
            assert (work / "d2" / "deep" / "f6").read_text() == "content of deep/f6\n"
            assert not (work / "d4").exists(), "the folders that it had made go with it"


async def test_subtrees_come_and_go(daemon: RunningDaemon) -> None:
    work = daemon.workspace
    async with daemon.client() as person:
        (work / "x" / "y" / "z").mkdir(parents=True)
        (work / "x" / "y" / "z" / "deep.txt").write_text("1\n")
        (work / "x" / "top.txt").write_text("2\n")
        await seen(person, work)
        assert sorted(await outside(person)) == [("created", "x/top.txt"), ("created", "x/y/z/deep.txt")]
        (work / "x" / "y" / "z" / "later.txt").write_text("3\n")
        await seen(person, work)
        shutil.rmtree(work / "x")
        await seen(person, work)
        assert sorted((await outside(person))[2:]) == [
            ("created", "x/y/z/later.txt"),
            ("removed", "x/top.txt"),
            ("removed", "x/y/z/deep.txt"),
            ("removed", "x/y/z/later.txt"),
        ]
        # moved out of the workspace: no event tells of what is in it
        (work / "gone").mkdir()
        (work / "gone" / "a.txt").write_text("1\n")
        await seen(person, work)
        (work / "gone").rename(daemon.base / "elsewhere")
        await seen(person, work)
        assert (await outside(person))[-1] == ("removed", "gone/a.txt")


async def test_ignored_files_are_silent_but_tracked_ones_are_not(base: Path, work: Path) -> None:
    (work / ".gitignore").write_text("*.log\nbuild/\n")
    (work / "build" / "sub").mkdir(parents=True)
    (work / "build" / "sub" / "read.txt").write_text("1\n")
    (work / "tracked.txt").write_text("1\n")
    (work / "link").symlink_to(base)
    with running(base) as daemon:
        async with daemon.client("alice") as alice, daemon.client() as person:
            (work / "noise.log").write_text("1\n")
            (work / "build" / "noise.o").write_text("1\n")
            (base / "beyond-the-link.txt").write_text("1\n")
            (work / ".git").mkdir()
            (work / ".git" / "index").write_text("1\n")
            (work / os.fsdecode(b"\xff")).write_text("1\n")
            await seen(person, work)
            assert await outside(person) == []
            await alice.read_file("build/sub/read.txt")
            (work / ".gitignore").write_text("*.log\nbuild/\ntracked.txt\n")
            await seen(person, work)
            (work / "tracked.txt").write_text("2\n")
            await seen(person, work)
            (work / "build" / "sub" / "read.txt").write_text("2\n")
            (work / "build" / "sub" / "unread.txt").write_text("2\n")
            await alice.read_file("build/sub/read.txt")  # in an ignored folder it is met when somebody looks
            await seen(person, work)
            assert await outside(person) == [
                ("changed", ".gitignore"),
                ("changed", "tracked.txt"),
                ("changed", "build/sub/read.txt"),
            ]
            # what is no longer ignored is found
            (work / ".gitignore").write_text("build/\n")
            await seen(person, work)
            assert ("created", "noise.log") in await outside(person)


async def test_what_finds_no_room_is_said_not_kept(base: Path, work: Path) -> None:
    (base / "state").mkdir(mode=0o700)
    (base / "state" / "policy.toml").write_text(
        'name = "p"\ndefault = "allow"\n[external]\nkeep_total_bytes = 10\n', encoding="utf-8"
    )
    for name in ("likely.py", "unlikely.raw"):
        (work / name).write_text("8 bytes\n")
    with running(base) as daemon:
        async with daemon.client() as person:
            while (health := (await person.status()).health).baseline != "done":
                pass
            (note,) = [note for note in health.notes if "not kept: 1 file" in note]
            assert "without room (1; [external] keep_total_bytes and keep_percent)" in note
            for name in ("likely.py", "unlikely.raw"):
                (work / name).write_text("another\n")
            await seen(person, work)
            for name, kept in (("likely.py", True), ("unlikely.raw", False)):
                (*_, first) = (await person.file_history(name)).versions
                assert first.not_kept is not kept, name


async def test_what_is_too_large_is_said_not_kept(base: Path, work: Path) -> None:
    (base / "state").mkdir(mode=0o700)
    (base / "state" / "policy.toml").write_text(
        'name = "p"\ndefault = "allow"\n[external]\nkeep_max_bytes = 10\n', encoding="utf-8"
    )
    (work / "big.txt").write_text("longer than ten\n")
    (work / "small.txt").write_text("short\n")
    with running(base) as daemon:
        async with daemon.client() as person:
            while (await person.status()).health.baseline != "done":
                pass
            assert any("not kept: 1 file" in note for note in (await person.status()).health.notes)
            (work / "big.txt").write_text("another one that is long\n")
            (work / "small.txt").write_text("other\n")
            await seen(person, work)
            events = [entry.event for entry in await entries(person, "external_file_changed")]
            changed = {event["path"]: event.get("kept", False) for event in events}
            assert changed == {"big.txt": False, "small.txt": True}
            versions = (await person.file_history("big.txt")).versions
            assert versions[0].not_kept
            assert not (await person.file_history("small.txt")).versions[0].not_kept


async def test_changes_while_it_was_away_are_one_group(base: Path, work: Path) -> None:
    for n in range(30):
        (work / f"f{n}").write_text("1\n")
    with running(base):
        pass
    for n in range(29):
        (work / f"f{n}").write_text("other\n")
    (work / "f29").rename(work / "g29")
    with running(base) as daemon:
        async with daemon.client() as person:
            (opened,) = await entries(person, OPENED)
            (closed,) = await entries(person, CLOSED)
            assert opened.event["trigger"] == "scan"
            assert closed.event == {"group": int(opened.seq[1:]), "changes": 31}


@pytest.mark.soak
async def test_ten_thousand_changes_stall_nobody(base: Path, work: Path) -> None:
    for n in range(10_000):
        if n % 100 == 0:
            (work / f"d{n // 100}").mkdir()
        (work / f"d{n // 100}" / f"f{n}.txt").write_text(f"before {n}\n")
    (work / "read.txt").write_text("hello\n")
    with running(base) as daemon:
        async with daemon.client("alice") as alice, daemon.client() as person:
            with anyio.fail_after(120):
                while (await person.status()).health.baseline != "done":
                    pass
            calls = 0
            slowest = 0.0
            done = False

            async def read() -> None:
                nonlocal calls, slowest
                while not done:
                    start = anyio.current_time()
                    await alice.read_file("read.txt")
                    slowest = max(slowest, anyio.current_time() - start)
                    calls += 1

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                write = f"for f in {work}/d*/f*.txt; do echo after >> $f; done"
                await anyio.run_process(["bash", "-c", write])
                with anyio.fail_after(120):
                    closed = await resolved(person, 5_000)
                done = True
            print(f"{calls} reads, the slowest {slowest * 1e3:.0f} ms; group {closed.event}")
            groups = await entries(person, CLOSED)
            assert [entry.event["changes"] for entry in groups] == [10_000]
            assert calls > 20
