"""Patches that add a file over one that is there: its whole content is replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.clients.python import RemoteError
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

TEN = "".join(f"line {n}\n" for n in range(10))
RULE = '[[rule]]\nname = "{name}"\nagents = ["*"]\nactions = ["{action}"]\npaths = ["{path}"]\nverdict = "deny"\n'
POLICY = f"""
name = "open"
default = "allow"
{RULE.format(name="no new ones", action="create", path="kept/**")}
{RULE.format(name="none goes", action="delete", path="kept/**")}
{RULE.format(name="new ones only", action="write", path="done/**")}
"""


def added(path: str, text: str) -> str:
    rows = "".join(f"+{line}\n" for line in text.splitlines())
    return f"*** Begin Patch\n*** Add File: {path}\n{rows}*** End Patch\n"


def deleted_and_added(path: str, text: str) -> str:
    return added(path, text).replace("*** Add", f"*** Delete File: {path}\n*** Add")


def unified(path: str, text: str) -> str:
    rows = "".join(f"+{line}\n" for line in text.splitlines())
    old = "".join(f"-{line}\n" for line in TEN.splitlines())
    return (
        f"--- a/{path}\n+++ /dev/null\n@@ -1,10 +0,0 @@\n{old}"
        f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{text.count(chr(10))} @@\n{rows}"
    )


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    running = RunningDaemon(base)
    (running.state_dir / "policy.toml").write_text(POLICY)
    for path in ("a.txt", "kept/a.txt", "done/a.txt"):
        file = running.workspace / path
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(TEN.replace("\n", "\r\n").encode())
        file.chmod(0o750)
    running.start()
    yield running
    assert running.stop() == 0


async def test_it_replaces_a_file_that_was_read_whole(daemon: RunningDaemon) -> None:
    """Policy is asked to write, not to create or delete; the file keeps its mode and its line ends."""
    async with daemon.client("alice") as alice:
        read = await alice.read_file("kept/a.txt")
        preview = await alice.apply_patch(added("kept/a.txt", "new\nlines\n"), preview=True)
        assert (preview.status, preview.would_be) == ("preview", "applied")
        answer = await alice.apply_patch(added("kept/a.txt", "new\nlines\n"))
        assert (answer.status, answer.rung, answer.base) == ("applied", "current", read.version_id)
        assert [path.path for path in answer.paths] == ["kept/a.txt"]
        again = await alice.apply_patch(added("kept/a.txt", "newer\n"))
        assert again.status == "applied"
        with pytest.raises(RemoteError) as denied:
            await alice.apply_patch(added("done/a.txt", "new\n"))
        assert denied.value.code == "denied"
        with pytest.raises(RemoteError) as created:
            await alice.apply_patch(added("kept/b.txt", "new\n"))
        assert created.value.code == "denied"
        assert (await alice.apply_patch(added("done/b.txt", "new\n"))).status == "applied"
    file = daemon.workspace / "kept/a.txt"
    assert file.read_bytes() == b"newer\r\n"
    assert file.stat().st_mode & 0o777 == 0o750


async def test_it_needs_a_version_that_was_seen_whole(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        for _ in range(2):
            with pytest.raises(RemoteError) as refused:
                await alice.apply_patch(added("a.txt", "new\n"))
            assert refused.value.code == "base_required"
            read = await alice.read_file("a.txt", end=9)
        assert (await alice.apply_patch(added("a.txt", "new\n"), base=read.version_id)).status == "applied"
    assert (daemon.workspace / "a.txt").read_bytes() == b"new\r\n"


async def test_a_stale_one_is_merged_or_waits(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        read = await alice.read_file("a.txt")
        await bob.write_file("a.txt", "line 10\n", mode="append")
        await alice.read_file("a.txt", start=11)  # a part of the newer version: the base stays the one seen whole
        merged = await alice.apply_patch(added("a.txt", TEN.replace("line 0", "zero")))
        assert (merged.status, merged.rung, merged.base) == ("applied", "merged", read.version_id)
        now = TEN.replace("line 0", "zero") + "line 10\n"
        assert (daemon.workspace / "a.txt").read_bytes().decode() == now.replace("\n", "\r\n")
        conflict = await alice.apply_patch(added("a.txt", "all new\n"))
        assert (conflict.status, [path.path for path in conflict.paths]) == ("conflict", ["a.txt"])
    assert (daemon.workspace / "a.txt").read_bytes().decode() == now.replace("\n", "\r\n")


async def test_a_stale_one_among_several_changes_none(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await alice.read_file("a.txt")
        await bob.write_file("a.txt", "line 10\n", mode="append")
        both = added("a.txt", "all new\n").replace("*** End", "*** Add File: n.txt\n+n\n*** End")
        with pytest.raises(RemoteError) as refused:
            await alice.apply_patch(both)
        assert (refused.value.code, refused.value.details["path"]) == ("changes_conflict", "a.txt")
        await alice.read_file("a.txt")
        base = (await alice.file_info("a.txt")).version_id
        assert (await alice.apply_patch(both, base=base)).status == "applied"
    assert (daemon.workspace / "a.txt").read_bytes() == b"all new\r\n"
    assert (daemon.workspace / "n.txt").read_text() == "n\n"


async def test_a_deletion_that_quotes_and_a_new_file_of_one_path_are_refused(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        await alice.read_file("a.txt")
        with pytest.raises(RemoteError) as refused:
            await alice.apply_patch(unified("a.txt", "new\n"))
        assert (refused.value.code, refused.value.message) == ("patch_invalid", "a.txt is patched twice")
    assert (daemon.workspace / "a.txt").read_bytes() == TEN.replace("\n", "\r\n").encode()


@pytest.mark.parametrize("rows", [added, deleted_and_added])
async def test_a_deletion_before_it_changes_nothing(daemon: RunningDaemon, rows: Callable[[str, str], str]) -> None:
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        with pytest.raises(RemoteError) as refused:
            await bob.apply_patch(rows("a.txt", "new\n"))
        assert refused.value.code == "base_required"
        await alice.read_file("kept/a.txt")
        answer = await alice.apply_patch(rows("kept/a.txt", "new\n"))
        assert (answer.status, [path.path for path in answer.paths]) == ("applied", ["kept/a.txt"])
    assert (daemon.workspace / "kept/a.txt").read_bytes() == b"new\r\n"


async def test_one_that_is_gone_is_made_anew_by_who_removed_it(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await alice.read_file("a.txt")
        await alice.delete_file("a.txt")
        assert (await alice.apply_patch(added("a.txt", "new\n"))).status == "applied"
        await bob.move_file("a.txt", "b.txt")
        with pytest.raises(RemoteError) as moved:
            await alice.apply_patch(added("a.txt", "newer\n"))
        assert (moved.value.code, moved.value.details["moved_to"]) == ("not_found", "b.txt")
    assert not (daemon.workspace / "a.txt").exists()


async def test_path_and_patch_must_agree(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        await alice.read_file("a.txt")
        with pytest.raises(RemoteError) as refused:
            await alice.apply_patch(added("a.txt", "new\n"), path="b.txt")
        assert refused.value.code == "invalid_parameter"
        assert (await alice.apply_patch(added("a.txt", "new\n"), path="a.txt")).status == "applied"
