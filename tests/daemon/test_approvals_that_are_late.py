"""Requests of several files that are granted after one of the files changed: all of it is applied, or none."""

from __future__ import annotations

import pytest

from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

SEVERAL = """\
*** Begin Patch
*** Update File: Makefile
@@
 all:
+\techo hi
*** Update File: notes.txt
@@
-one
+uno
*** Add File: new.txt
+new
*** End Patch
"""


async def test_a_patch_of_several_files(daemon: RunningDaemon) -> None:
    (daemon.workspace / "Makefile").write_text("all:\n\ttrue\n")
    (daemon.workspace / "notes.txt").write_text("one\n")
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        for path in ("Makefile", "notes.txt"):
            await alice.read_file(path)
        asked = await alice.apply_patch(SEVERAL)
        assert asked.status == "waiting"
        await bob.write_file("notes.txt", "two\n", mode="append")
        late = await person.approve(asked.approval or "", approver=await daemon.make_approver(), unseen=True)
        assert late.status == "dropped"
        assert "notes.txt changed while the request waited; nothing was changed" in late.message
        reported = await alice.await_change(asked.approval or "", timeout_s=0)
        assert (reported.status, "notes.txt changed" in reported.message) == ("dropped", True)
        assert not (await person.list_conflicts()).conflicts
    assert (daemon.workspace / "Makefile").read_text() == "all:\n\ttrue\n"
    assert (daemon.workspace / "notes.txt").read_text() == "one\ntwo\n"
    assert not (daemon.workspace / "new.txt").exists()


async def test_a_move_is_no_deletion(daemon: RunningDaemon) -> None:
    (daemon.workspace / "Makefile").write_text("all:\n")
    async with daemon.client("alice") as alice, daemon.client() as person:
        await alice.read_file("Makefile")
        asked = await alice.move_file("Makefile", "below/Makefile")
        assert asked.status == "waiting"
        (daemon.workspace / "Makefile").write_text("all:\n\ttrue\n")
        late = await person.approve(asked.approval or "", approver=await daemon.make_approver(), unseen=True)
        assert (late.status, "Makefile changed" in late.message) == ("dropped", True)
        assert not (await person.list_conflicts()).conflicts
    assert (daemon.workspace / "Makefile").read_text() == "all:\n\ttrue\n"
    assert not (daemon.workspace / "below").exists()


async def test_a_directory_that_is_to_be_removed(daemon: RunningDaemon) -> None:
    (daemon.workspace / "d").mkdir()
    (daemon.workspace / "e").mkdir()
    async with daemon.client("alice") as alice, daemon.client() as person:
        code = await daemon.make_approver()
        asked = await alice.delete_file("d")
        assert asked.status == "waiting"
        assert (await person.approve(asked.approval or "", approver=code, unseen=True)).status == "applied"
        assert not (daemon.workspace / "d").exists()
        asked = await alice.delete_file("e")
        (daemon.workspace / "e/f.txt").write_text("kept")
        late = await person.approve(asked.approval or "", approver=code, unseen=True)
        assert (late.status, "something is in it" in late.message) == ("dropped", True)
    assert (daemon.workspace / "e/f.txt").read_text() == "kept"
