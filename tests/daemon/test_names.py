"""Listings of a large tree through the daemon: what a shell made a moment ago is there, page by page, and counted."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from orchestrator.api.results import Listing
from orchestrator.clients.python import FileAccess
from orchestrator.clients.running_daemon import RemoteError
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.uname().sysname != "Linux", reason="needs inotify")]

FOLDERS, FILES = 30, 50


@pytest.fixture
def work(base: Path) -> Path:
    """1,500 files in 30 folders, two empty folders, a link, and what is ignored."""
    folder = base / "work"
    for number in range(FOLDERS):
        below = folder / f"f{number:02d}" / "in"
        below.mkdir(parents=True)
        for file in range(FILES):
            (below / f"{file:02d}.{'py' if file % 5 else 'md'}").write_text("x\n")
    (folder / "empty" / "too").mkdir(parents=True)
    (folder / "link").symlink_to("f00")
    (folder / "out").mkdir()
    (folder / "out" / "ignored.py").write_text("x\n")
    (folder / ".gitignore").write_text("out/\n")
    return folder


def walked(work: Path) -> list[str]:
    """The paths that a listing shows, by a walk."""
    found: list[str] = []
    for folder, folders, names in os.walk(work):
        folders[:] = [name for name in folders if Path(folder, name) != work / "out"]
        found += [str(Path(folder, name).relative_to(work)) for name in (*folders, *names)]
    return sorted(found)


async def pages(files: FileAccess, limit: int, **wanted: object) -> list[Listing]:
    found: list[Listing] = []
    cursor = None
    while True:
        found.append(await files.list_files(recursive=True, include_hidden=True, limit=limit, cursor=cursor, **wanted))  # type: ignore[arg-type]
        cursor = found[-1].cursor
        if cursor is None:
            return found


async def test_what_a_shell_did_is_in_the_next_answer(base: Path, work: Path) -> None:
    scripts = (
        "echo x > f03/in/new.zig",
        "mkdir -p deep/er/still && echo x > deep/er/still/one.zig",
        "mv f03/in/new.zig renamed.zig && mv deep moved",
        "rm -r f29 && rmdir empty/too",
        "mv f28 f29 && ln -s renamed.zig also.zig",
        "rm renamed.zig && mkdir renamed.zig && echo x > renamed.zig/x.zig",
    )
    with running(base) as daemon:
        async with daemon.client("alice") as alice:
            for script in scripts:
                await anyio.run_process(["sh", "-c", script], cwd=work)
                found = await alice.find_files("*.zig", limit=1000)
                assert [entry.path for entry in found.entries] == [
                    path
                    for path in walked(work)
                    if ".zig" in path and ((work / path).is_symlink() or not (work / path).is_dir())
                ], script
                listed = [entry.path for page in await pages(alice, 700) for entry in page.entries]
                assert listed == walked(work), script


async def test_more_changed_names_than_are_looked_at_one_by_one(base: Path, work: Path) -> None:
    moved = work / "moved"
    moved.mkdir()
    (moved / "0").touch()
    with running(base) as daemon:
        async with daemon.client("alice") as alice:
            await alice.list_files("moved")
            for first, end in ((0, 25_000), (25_000, 25_001), (25_001, 25_002)):
                for number in range(first, end):
                    (moved / str(number)).rename(moved / str(number + 1))
                assert [entry.name for entry in (await alice.list_files("moved")).entries] == [str(end)]


async def test_a_large_tree_is_counted_as_far_as_it_is_looked_at(base: Path, work: Path) -> None:
    with running(base) as daemon:
        async with daemon.client("alice") as alice:
            every = await pages(alice, 200)
            assert [entry.path for page in every for entry in page.entries] == walked(work)
            assert every[0].at_least
            assert 1000 <= every[0].total < len(walked(work))
            assert not (last := every[-1]).truncated
            assert last.at_least, "what is before its cursor was not counted"
            (some,) = await pages(alice, 200, globs=["f07/**/*.md"])
            assert (some.total, some.at_least, some.truncated) == (FILES // 5, False, False)
            assert (await alice.find_files("*.none")).total == 0
            flat = await alice.list_files("f00/in", limit=10)
            assert (flat.total, flat.at_least, flat.truncated) == (FILES, False, True)
        code, shown = cli(daemon, "files", "--recursive", "--limit", "3")
        assert (code, shown.splitlines()[-1][:22]) == (0, "… 3 of at least 1000; ")


async def test_numbers_of_a_directory(base: Path, work: Path) -> None:
    with running(base) as daemon:
        async with daemon.client("alice") as alice:
            (work / "f00" / "in" / "largest.PY").write_text("x" * 5000)
            (work / "f01" / "in" / "00.md").write_text("longer than it was\n")
            (work / "Makefile").write_text("")
            every = await alice.directory_stats()
            sizes = {path: (work / path).lstat().st_size for path in walked(work) if (work / path).is_file()}
            assert (every.files, every.size, every.unsized) == (len(sizes), sum(sizes.values()), 0)
            assert (every.directories, every.others) == (2 * FOLDERS + 2, 1)
            by_suffix = {item.suffix: (item.files, item.size) for item in every.by_suffix}
            python = [size for path, size in sizes.items() if path.lower().endswith(".py")]
            assert by_suffix[".py"] == (len(python), sum(python))
            assert by_suffix[""] == (2, sizes[".gitignore"])
            assert [(item.path, item.size) for item in every.largest][:1] == [("f00/in/largest.PY", 5000)]
            assert {"f00/in/largest.PY", "f01/in/00.md", "Makefile"} <= {item.path for item in every.newest}
            some = await alice.directory_stats("f01", globs=["in/*.md"])
            assert (some.files, some.directories) == (FILES // 5, 0)
            assert some.size == 2 * (FILES // 5 - 1) + len("longer than it was\n")
            with pytest.raises(RemoteError, match="not a directory"):
                await alice.directory_stats("Makefile")
        code, shown = cli(daemon, "stats", "files")
        assert code == 0
        assert ".py" in shown
        assert "4.88 KiB" in shown


async def test_numbers_are_of_what_may_be_shown(base: Path, work: Path) -> None:
    for name in (".env", "secret/one.txt"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text("quokka" * 1000)
    (base / "state").mkdir(mode=0o700)
    (base / "state" / "policy.toml").write_text(
        'name = "p"\ndefault = "allow"\n'
        '[[rule]]\nname = "hidden"\nagents = ["*"]\nactions = ["list"]\npaths = ["secret/**"]\nverdict = "deny"\n'
        '[[rule]]\nname = "unread"\nagents = ["*"]\nactions = ["read", "search"]\npaths = [".env"]\nverdict = "deny"\n'
    )
    with running(base) as daemon:
        async with daemon.client("alice") as alice:
            numbers = await alice.directory_stats(globs=[".env", "secret/**"])
            assert (numbers.files, numbers.size, numbers.unsized) == (1, 0, 1)
            assert [(item.path, item.size) for item in numbers.newest] == [(".env", None)]
            assert numbers.largest == ()


async def test_names_are_shown_from_the_disk_without_a_watcher(daemon: RunningDaemon) -> None:
    daemon.stop()
    daemon.start("--no-watch")
    async with daemon.client("alice") as alice:
        for name in ("a/b", "a-b", "c"):
            (daemon.workspace / name).parent.mkdir(exist_ok=True)
            (daemon.workspace / name).write_text("x")
            assert name in [entry.path for entry in (await alice.find_files("*")).entries]
