"""What is left out of an answer is counted only where the caller may know of it: a glob would find out a name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.clients.python import FileAccess, RemoteError
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

POLICY = """name = "t"
default = "allow"
[[rule]]
name = "unlisted"
agents = ["alice"]
actions = ["list", "read", "search"]
paths = ["hidden/"]
verdict = "deny"
[[rule]]
name = "unread"
agents = ["alice"]
actions = ["read", "search"]
paths = ["*.key"]
verdict = "deny"
"""


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(POLICY)
    with running(base) as started:
        (started.workspace / "hidden").mkdir()
        (started.workspace / "hidden/vault.py").write_text("import shown\nx = 1\n")
        (started.workspace / "shown.py").write_text("def x():\n    return 1\n")
        (started.workspace / "own.key").write_text("x\n")
        yield started


@pytest.fixture
async def alice(daemon: RunningDaemon) -> AsyncIterator[FileAccess]:
    async with daemon.client("alice") as files:
        yield files


async def answers(alice: FileAccess, glob: str, at: str) -> list[dict[str, Any]]:
    """Each answer that a glob goes into, without what the glob itself is named in."""
    found = [
        await alice.search_content("x", globs=[glob]),
        await alice.search_content("x", globs=[glob], at=at),
        await alice.find_references("x", globs=[glob]),
        await alice.list_files(globs=[glob], recursive=True),
        await alice.find_files(glob),
        await alice.directory_stats(globs=[glob]),
        await alice.changes_since(1, globs=[glob]),
    ]
    versions = ("head", "next")
    return [{n: getattr(a, n) for n in a.__struct_fields__ if n not in versions} for a in found]


async def test_a_glob_finds_out_no_name(daemon: RunningDaemon, alice: FileAccess) -> None:
    async with daemon.client("bob") as bob:
        at = (await bob.write_file("hidden/vaults.py", "x = 2\n", mode="create")).version_id or ""
    for glob in ("hidden/vau*", "**/vault.py", "hidden/v?ult*.py"):
        assert await answers(alice, glob, at) == await answers(alice, glob.replace("v", "z"), at)
    assert "hidden" not in repr(await alice.related_files("shown.py"))


CALLS: dict[str, Callable[[FileAccess, str], Awaitable[object]]] = {
    "a search": lambda alice, path: alice.search_content("x", path=path),
    "a search of the past": lambda alice, path: alice.search_content("x", path=path, at="@start"),
    "a move, not made": lambda alice, path: alice.move_file(path, "moved.py", preview=True),
    "a move": lambda alice, path: alice.move_file(path, "moved.py"),
    "a deletion, not made": lambda alice, path: alice.delete_file(path, preview=True),
    "a deletion": lambda alice, path: alice.delete_file(path),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_path_finds_out_no_name(daemon: RunningDaemon, alice: FileAccess, call: str) -> None:
    (daemon.workspace / "hidden/folder").mkdir()
    refusals = list[str]()
    for name in ("vault.py", "folder", "nothing", "folder/nothing"):
        with pytest.raises(RemoteError) as refused:
            await CALLS[call](alice, f"hidden/{name}")
        refusals.append(f"{refused.value.code} {refused.value} {refused.value.details}".replace(name, "NAME"))
    assert len(set(refusals)) == 1
    assert refusals[0].startswith("denied ")
    assert (daemon.workspace / "hidden/vault.py").exists()


async def test_how_many_files_a_folder_holds_is_not_told(daemon: RunningDaemon, alice: FileAccess) -> None:
    (daemon.workspace / "both").mkdir()
    (daemon.workspace / "both/one.py").write_text("1\n")
    (daemon.workspace / "both/hidden").mkdir()
    (daemon.workspace / "both/hidden/other.py").write_text("1\n")
    with pytest.raises(RemoteError) as refused:
        await alice.delete_file("both")
    assert (refused.value.code, str(refused.value)) == ("denied", "both holds files whose names are not shown")


async def test_what_may_be_listed_is_counted(daemon: RunningDaemon, alice: FileAccess) -> None:
    found = await alice.search_content("x")
    assert (found.total, found.files_left_out) == (1, 1)
    assert (await alice.find_references("x", globs=["*.key"])).files_left_out == 1
