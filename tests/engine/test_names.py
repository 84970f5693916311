"""What another program does to names is in the very next answer, whatever it is, and no scan is made for it."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.projections.registry import Registry
from orchestrator.engine.names import Names
from orchestrator.engine.paths import Walker
from orchestrator.ports.workspace import Hints
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.uname().sysname != "Linux", reason="needs inotify")]

ROOT = WorkspacePath(".")
NAMES = ("a", "b", "a-b", "a.b", ".hidden", "out", "bad\nname", "ü")


class Place:
    """A watched folder, and its names."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = LocalWorkspace(str(root), disk=Disk())
        self.watcher = self.workspace.watcher()
        self.names = Names(self.workspace, self.workspace.ignore, Registry(), self.watcher)
        self.forwarded = Hints()
        self.names.forward = self._forward
        self.watcher.start()
        self.scan()

    def scan(self) -> None:
        self.names.begin()
        self.names.take(self.workspace.scan())

    def _forward(self, hints: Hints) -> None:
        self.forwarded = hints

    async def listed(self, start: WorkspacePath = ROOT) -> list[tuple[str, str]]:
        return await to_thread.run_sync(lambda: [(item.path, item.kind) for item in self.names.walk(start)])

    def walked(self, start: WorkspacePath = ROOT) -> list[tuple[str, str]]:
        kinds = {"symlink": "other"}
        walk = Walker(self.workspace, self.workspace.ignore).walk(start)
        return [(item.path, kinds.get(item.stat.kind, item.stat.kind) if item.valid else "invalid") for item in walk]


@pytest.fixture
async def place(base: Path) -> AsyncIterator[Place]:
    root = base / "w"
    for folder in ("a/b", "b", "out/deep", "empty"):
        (root / folder).mkdir(parents=True)
    for name in ("a/b/c", "a/x.py", "out/deep/ignored", "top"):
        (root / name).write_text("x")
    (root / ".gitignore").write_text("out/\n")
    made = Place(root)
    yield made
    made.watcher.close()
    made.workspace.close()


def anywhere(root: Path, dice: random.Random) -> Path:
    """A path that may be there or not, in a folder that is."""
    folders = [Path(folder) for folder, *_ in os.walk(root)]
    return dice.choice(folders) / dice.choice(NAMES)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def act(root: Path, dice: random.Random) -> str:
    """Something that a program may do."""
    path, other = anywhere(root, dice), anywhere(root, dice)
    acts: dict[str, Callable[[], object]] = {
        "write": lambda: path.write_text("x"),
        "make a folder": lambda: (path / "in" / "it").mkdir(parents=True),
        "remove": lambda: remove(path),
        "move": lambda: path.rename(other),
        "link": lambda: path.symlink_to("a"),
        "hard link": lambda: path.hardlink_to(root / "top"),
        "pipe": lambda: os.mkfifo(path),
        "close": lambda: path.chmod(0o000) if path.is_dir() else None,
        "open": lambda: path.chmod(0o755) if path.is_dir() else None,
        "remove an empty folder": path.rmdir,
    }
    what = dice.choice(list(acts))
    try:
        acts[what]()
    except (OSError, shutil.Error) as error:
        what += f" (not: {error})"
    return f"{what} {path} {other}"


@pytest.mark.parametrize("seed", range(8))
async def test_each_answer_is_what_a_walk_finds(place: Place, seed: int) -> None:
    dice, done = random.Random(seed), list[str]()
    for _ in range(60):
        done += [act(place.root, dice) for _ in range(dice.choice((1, 1, 3)))]
        assert await to_thread.run_sync(place.names.current), done
        assert await place.listed() == place.walked(), done
    for folder in ("a", "b", "out"):
        if (place.root / folder).is_dir():
            assert await place.listed(WorkspacePath(folder)) == place.walked(WorkspacePath(folder)), done


@pytest.mark.parametrize("seed", range(2))
async def test_children_are_those_of_one_directory(place: Place, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(40):
        act(place.root, dice)
        for start in (ROOT, WorkspacePath("a")):
            if (place.root / start).is_dir() and not (place.root / start).is_symlink():
                above = "" if start == ROOT else "a/"
                below = [(path, kind) for path, kind in place.walked(start) if "/" not in path.removeprefix(above)]
                below.sort(key=lambda item: (item[1] != "directory", item[0]))
                children = await to_thread.run_sync(lambda: [*place.names.children(start, hidden=True)])  # noqa: B023
                assert [(item.path, item.kind) for item in children] == below


async def test_what_a_shell_did_is_there_at_once(place: Place) -> None:
    script = "mkdir -p n/e/w && echo x > n/e/w/file && mv a moved && rm -r b && ln -s top link"
    await anyio.run_process(["sh", "-c", script], cwd=place.root)
    assert await place.listed() == place.walked()
    paths = [path for path, _ in await place.listed()]
    assert {"n/e/w/file", "moved/b/c", "link"} <= set(paths)
    assert not {"a", "a/b/c", "b"} & set(paths)
    assert await to_thread.run_sync(place.names.current)


async def test_what_was_heard_goes_on_to_be_imported(place: Place) -> None:
    (place.root / "new").write_text("x")
    await place.listed()
    assert "new" in place.forwarded.paths
    place.forwarded = Hints()
    await place.listed()
    assert not place.forwarded


@pytest.mark.parametrize("where", [".gitignore", ".git/info/exclude"])
async def test_other_rules_send_everybody_to_the_disk_until_a_scan(place: Place, where: str) -> None:
    (place.root / ".git" / "info").mkdir(parents=True)
    place.scan()
    assert await to_thread.run_sync(place.names.current)
    (place.root / where).write_text("b\n*.py\n")
    assert await place.listed() == place.walked()
    assert not await to_thread.run_sync(place.names.current)
    assert place.forwarded.rescan == "watch"
    place.scan()
    assert await place.listed() == place.walked()
    assert await to_thread.run_sync(place.names.current)


async def test_what_happens_during_a_scan_is_met_after_it(place: Place) -> None:
    place.names.begin()
    result = place.workspace.scan()
    (place.root / "meanwhile").write_text("x")
    assert await place.listed() == place.walked()
    place.names.take(result)
    assert await to_thread.run_sync(place.names.current)
    assert await place.listed() == place.walked()


async def test_hundreds_of_threads_agree(place: Place) -> None:
    """Readers while others change names: each answer holds what was there before it and is not gone."""
    (place.root / "many").mkdir()

    async def make(number: int) -> None:
        for turn in range(10):
            (place.root / "many" / f"{number}-{turn}").write_text("x")
            assert (f"many/{number}-{turn}", "file") in await place.listed(WorkspacePath("many"))

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(make, number)
    assert await place.listed() == place.walked()
