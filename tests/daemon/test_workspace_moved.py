"""The workspace's folder is deleted, moved or replaced while a daemon serves it: nothing is acknowledged any more."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.clients.python import RemoteError
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio


def deleted(work: Path) -> None:
    shutil.rmtree(work)


def moved(work: Path) -> None:
    work.rename(work.with_name("elsewhere"))


def replaced(work: Path) -> None:
    moved(work)
    work.mkdir()
    (work / "a.txt").write_text("of another folder\n")


@pytest.mark.parametrize("how", [deleted, moved, replaced])
async def test_calls_are_refused_and_the_way_out_is_named(daemon: RunningDaemon, how: Callable[[Path], None]) -> None:
    (daemon.workspace / "a.txt").write_text("one\n")
    async with daemon.client("alice") as alice, daemon.client() as person:
        await alice.read_file("a.txt")
        how(daemon.workspace)
        for call in (
            lambda: alice.write_file("a.txt", "two\n", mode="append"),
            lambda: alice.write_file("new.txt", "new\n", mode="create"),
            lambda: alice.read_file("a.txt"),
            lambda: alice.list_files("."),
        ):
            with pytest.raises(RemoteError) as refused:
                await call()
            assert refused.value.code == "workspace_moved"
            assert "orchestrator stop" in refused.value.hint
        health = (await person.status()).health
        assert health.state == "workspace_moved"
        assert "orchestrator up" in health.amiss[-1]
    for folder in (daemon.workspace, daemon.base / "elsewhere"):
        assert not (folder / "new.txt").exists()


async def test_a_folder_that_is_back_is_served_again(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.txt").write_text("one\n")
    async with daemon.client("alice") as alice:
        await alice.read_file("a.txt")
        moved(daemon.workspace)
        with pytest.raises(RemoteError):
            await alice.read_file("a.txt")
        (daemon.base / "elsewhere").rename(daemon.workspace)
        assert (await alice.write_file("a.txt", "two\n", mode="append")).status == "applied"
    assert (daemon.workspace / "a.txt").read_text() == "one\ntwo\n"


async def test_what_a_person_approves_then_is_not_applied(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.txt").write_text("one\n")
    approver = await daemon.make_approver()
    async with daemon.client("alice") as alice, daemon.client() as person:
        await alice.read_file("a.txt")
        waiting = await alice.delete_file("a.txt")
        moved(daemon.workspace)
        with pytest.raises(RemoteError) as refused:
            await person.approve(waiting.approval or "", approver=approver, unseen=True)
        assert refused.value.code == "workspace_moved"
    assert (daemon.base / "elsewhere/a.txt").read_text() == "one\n"
