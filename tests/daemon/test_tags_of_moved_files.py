"""A deny by tag holds from the first call on that meets a file which another program moved, with no watcher at work."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.clients.python import FileAccess, RemoteError
from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.test_tags import POLICY, tagged

pytestmark = pytest.mark.anyio

TEXT = "quokka of the tagged file\n"
OLD, NEW = "f1/t2.txt", "f1/t2b.txt"


@pytest.fixture
def guarded(base: Path) -> Iterator[RunningDaemon]:
    """Two tagged files that agents may not read, and a daemon that does not watch."""
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(POLICY)
    with running(base, "--no-watch") as daemon:
        yield daemon


async def tag(daemon: RunningDaemon, *paths: str) -> None:
    code = await daemon.make_approver()
    async with daemon.client() as person:
        for path in paths:
            (daemon.workspace / path).parent.mkdir(exist_ok=True)
            (daemon.workspace / path).write_text(TEXT)
            await person.read_file(path)
            assert command(daemon, "tag", path, "sensitive", approver=code)[0] == 0


async def denied(call: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(RemoteError) as met:
        await call()
    assert met.value.code == "denied"


async def joined(daemon: RunningDaemon, person: FileAccess, path: str) -> None:
    """The tags are on the new path for good, once who may read it has met it."""
    assert TEXT in (await person.read_file(path)).text
    assert tagged(daemon)[path] == ["sensitive"]


@pytest.mark.parametrize("old_first", [False, True], ids=["the new path alone", "the old path first"])
async def test_a_renamed_file(guarded: RunningDaemon, old_first: bool) -> None:
    await tag(guarded, OLD)
    async with guarded.client("eve") as eve, guarded.client() as person:
        os.rename(guarded.workspace / OLD, guarded.workspace / NEW)
        if old_first:
            await denied(lambda: eve.read_file(OLD))
            with pytest.raises(RemoteError) as gone:
                await person.read_file(OLD)
            assert gone.value.code == "not_found"
        await denied(lambda: eve.read_file(NEW))
        await joined(guarded, person, NEW)
        await denied(lambda: eve.read_file(NEW))


async def test_a_file_that_no_call_had_met_before_it_was_tagged(guarded: RunningDaemon) -> None:
    (guarded.workspace / ".gitignore").write_text("f1/\n")
    (guarded.workspace / OLD).parent.mkdir()
    (guarded.workspace / OLD).write_text(TEXT)
    assert command(guarded, "tag", OLD, "sensitive", approver=await guarded.make_approver())[0] == 0
    async with guarded.client("eve") as eve, guarded.client() as person:
        os.rename(guarded.workspace / OLD, guarded.workspace / "new.txt")
        await denied(lambda: eve.read_file("new.txt"))
        await joined(guarded, person, "new.txt")


async def test_a_search_in_a_renamed_file(guarded: RunningDaemon) -> None:
    await tag(guarded, OLD)
    async with guarded.client("eve") as eve:
        os.rename(guarded.workspace / OLD, guarded.workspace / NEW)
        await denied(lambda: eve.search_content("quokka", path=NEW))
        assert (await eve.search_content("quokka")).hits == ()


async def test_a_file_of_a_renamed_folder(guarded: RunningDaemon) -> None:
    await tag(guarded, "f2/t5.txt")
    async with guarded.client("eve") as eve, guarded.client() as person:
        os.rename(guarded.workspace / "f2", guarded.workspace / "g2")
        await denied(lambda: eve.read_file("g2/t5.txt"))
        await joined(guarded, person, "g2/t5.txt")


@pytest.mark.parametrize("met", [False, True], ids=["at the end alone", "between too"])
async def test_a_chain_of_renames(guarded: RunningDaemon, met: bool) -> None:
    await tag(guarded, OLD)
    async with guarded.client("eve") as eve, guarded.client() as person:
        os.rename(guarded.workspace / OLD, guarded.workspace / NEW)
        if met:
            await joined(guarded, person, NEW)
        os.rename(guarded.workspace / NEW, guarded.workspace / "last.txt")
        await denied(lambda: eve.read_file("last.txt"))
        await joined(guarded, person, "last.txt")


async def test_a_file_that_was_moved_and_changed(guarded: RunningDaemon) -> None:
    await tag(guarded, OLD)
    async with guarded.client("eve") as eve, guarded.client() as person:
        os.rename(guarded.workspace / OLD, guarded.workspace / NEW)
        with (guarded.workspace / NEW).open("a") as file:
            file.write("more\n")
        await denied(lambda: eve.read_file(NEW))
        assert (await person.read_file(NEW)).text
        assert tagged(guarded)[NEW] == ["sensitive"]


async def test_a_file_that_was_moved_by_copying_it(guarded: RunningDaemon) -> None:
    await tag(guarded, OLD)
    async with guarded.client("eve") as eve:
        (guarded.workspace / NEW).write_text(TEXT)
        (guarded.workspace / OLD).unlink()
        await denied(lambda: eve.read_file(NEW))


async def test_a_copy_is_a_new_file(guarded: RunningDaemon) -> None:
    await tag(guarded, OLD)
    async with guarded.client("eve") as eve:
        (guarded.workspace / NEW).write_text(TEXT)
        assert TEXT in (await eve.read_file(NEW)).text
    assert NEW not in tagged(guarded)
