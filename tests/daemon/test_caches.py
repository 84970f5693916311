"""What the daemon remembers of contents: `status` says how much, and `cache clear` forgets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

POLICY = 'name = "ours"\nextends = "default"\n[limits]\nin_memory_bytes = 262144\n'


async def test_what_is_remembered_can_be_forgotten(base: Path) -> None:
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(POLICY)
    with running(base) as daemon:
        (daemon.workspace / "a.py").write_text("# About a.\ndef f():\n    return 1\n")
        (daemon.workspace / "app.log").write_text("".join(f"{number} request\n" for number in range(30_000)))
        async with daemon.client("alice") as alice:
            await alice.begin_task("looking")
            assert held(daemon) == {}
            first = [await alice.get_overview("a.py"), await alice.summarize_file("a.py")]
            lines = await alice.read_lines("app.log", start=29_000, end=29_001)
            before = held(daemon)
            assert {name: entries for name, (entries, _) in before.items()} == {
                "outlines": 1,
                "overviews": 2,  # the answer, and what is known of the content
                "summaries": 1,
                "line indexes": 2,  # in memory and on the disk
            }
            assert all(size > 0 for _, size in before.values())

            _, said = command(daemon, "cache", "clear")
            assert {one["name"]: (one["entries"], one["bytes"]) for one in said["caches"]} == before
            assert held(daemon) == {}
            assert not list((base / "state/cache").iterdir())
            again = [await alice.get_overview("a.py"), await alice.summarize_file("a.py")]
            assert again == first
            assert await alice.read_lines("app.log", start=29_000, end=29_001) == lines


async def test_an_overview_that_is_remembered_is_that_of_the_version(daemon: RunningDaemon) -> None:
    file = daemon.workspace / "a.py"
    file.write_text("def f(): ...\ndef g(): ...\n")
    async with daemon.client("alice") as alice:
        first = await alice.get_overview("a.py")
        assert await alice.get_overview("a.py") == first
        assert [one.name for one in (await alice.get_overview("a.py", skip=1)).outline] == ["g"]
        file.write_text("def f(): ...\ndef h(): ...\n")
        later = await alice.get_overview("a.py")
        assert [one.name for one in later.outline] == ["f", "h"]
        assert later.version_id != first.version_id
        marked = await alice.get_overview("a.py", changed_since=first.version_id)
        assert [one.change for one in marked.outline] == [None, "added"]
        assert await alice.get_overview("a.py") == later


def held(daemon: RunningDaemon) -> dict[str, tuple[int, int]]:
    _, status = command(daemon, "status")
    return {one["name"]: (one["entries"], one["bytes"]) for one in status.get("caches", ())}
