"""The watchers over a real folder: the kernel's, and watchfiles, which serves other systems."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from orchestrator.core.ids import WorkspacePath
from orchestrator.ports.workspace import Hints, Watcher
from orchestrator.workspace.confine import Confinement
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.ignore import IgnoreRules
from orchestrator.workspace.notifier import FilesWatcher
from orchestrator.workspace.watcher import Inotify, InotifyWatcher

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.uname().sysname != "Linux", reason="needs inotify")]


@pytest.fixture(params=["inotify", "watchfiles"])
async def watcher(request: pytest.FixtureRequest, root: Path) -> AsyncIterator[Watcher]:
    (root / ".gitignore").write_text("out/\n")
    for folder in ("src", "out/deep", ".git"):
        (root / folder).mkdir(parents=True)
    at = Confinement(str(root), Disk())
    rules = IgnoreRules(at)
    made: Watcher = InotifyWatcher(at, rules) if request.param == "inotify" else FilesWatcher(str(root))
    made.start()
    yield made
    made.close()
    at.close()


async def until(watcher: Watcher, last: str) -> Hints:
    """Everything that is told until a path is among it."""
    paths: frozenset[WorkspacePath] = frozenset()
    folders: frozenset[WorkspacePath] = frozenset()
    rescan = None
    with anyio.fail_after(60):
        async with aclosing(watcher.hints()) as reported:  # type: ignore[type-var]
            async for hints in reported:
                paths, folders, rescan = paths | hints.paths, folders | hints.folders, rescan or hints.rescan
                if last in paths:
                    return Hints(paths, folders, rescan)
    raise AssertionError("it ended")


async def test_both_report_where_and_leave_out_what_is_ours(watcher: Watcher, root: Path) -> None:
    assert watcher.health == "live"
    (root / "src" / "a").write_text("1")
    (root / "src" / "new").mkdir()
    (root / ".git" / "index").write_text("1")
    (root / "src" / ".orchestrator-12.tmp").write_text("1")
    (root / "last").write_text("1")
    hints = await until(watcher, "last")
    assert {"src/a", "last"} <= hints.paths
    assert hints.folders == {"src/new"}
    assert hints.rescan is None
    assert not [path for path in hints.paths if ".git/" in path or ".tmp" in path]


def test_a_folder_that_is_renamed_without_end_is_entered_once_a_look(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "one").mkdir()
    at, entered = Confinement(str(root), Disk()), list[int]()
    watcher, add = InotifyWatcher(at, IgnoreRules(at)), Inotify.add

    def counted(kernel: Inotify, directory: int, mask: int) -> int:
        entered.append(directory)
        return add(kernel, directory, mask)

    watcher.start()
    monkeypatch.setattr(Inotify, "add", counted)
    for _ in range(500):
        (root / "one").rename(root / "two")
        (root / "two").rename(root / "one")
    assert watcher.drain().folders == {"one", "two"}
    assert len(entered) == 1
    (root / "one" / "below").touch()
    assert watcher.drain().paths == {"one/below"}
    watcher.close()
    at.close()


async def test_names_that_no_path_may_hold_are_left_out(watcher: Watcher, root: Path) -> None:
    (root / "src" / "new\nline").write_text("1")
    (root / "last").write_text("1")
    assert not [path for path in (await until(watcher, "last")).paths if path.startswith("src/")]


def into_a_new_folder(root: Path) -> None:
    (root / "new").mkdir()
    (root / "src").rename(root / "new" / "x")


def into_new_folders_deep(root: Path) -> None:
    (root / "new" / "a" / "b").mkdir(parents=True)
    (root / "src").rename(root / "new" / "a" / "b" / "x")


def the_inner_one_first(root: Path) -> None:
    (root / "new").mkdir()
    (root / "src" / "deep").rename(root / "new" / "deep")
    (root / "src").rename(root / "new" / "src")


def with_another_in_its_place(root: Path) -> None:
    (root / "new").mkdir()
    (root / "src").rename(root / "new" / "x")
    (root / "other").rename(root / "src")


@pytest.mark.parametrize(
    ("move", "left"),
    [
        pytest.param(into_a_new_folder, {"src"}, id="into a new folder"),
        pytest.param(into_new_folders_deep, {"src"}, id="into new folders, deep"),
        pytest.param(the_inner_one_first, {"src", "src/deep"}, id="the inner one first"),
        pytest.param(with_another_in_its_place, {"src", "other"}, id="with another in its place"),
    ],
)
async def test_a_folder_that_went_into_a_new_one_is_reported_at_both_places(
    kernel: InotifyWatcher, root: Path, move: Callable[[Path], None], left: set[str]
) -> None:
    (root / "src" / "deep").mkdir(parents=True)
    (root / "other").mkdir()
    kernel.start()
    (root / "last").write_text("1")
    await until(kernel, "last")
    move(root)
    (root / "last2").write_text("1")
    hints = await until(kernel, "last2")
    assert left | {"new"} <= hints.folders
    assert hints.rescan is None
    found = next(root.joinpath("new").rglob("deep"))
    (found / "later").write_text("1")
    (root / "src").mkdir(exist_ok=True)
    (root / "last3").write_text("1")
    assert str((found / "later").relative_to(root)) in (await until(kernel, "last3")).paths


async def test_rule_files_lead_to_a_look_everywhere(watcher: Watcher, root: Path) -> None:
    (root / ".gitignore").write_text("other/\n")
    (root / "last").write_text("1")
    assert (await until(watcher, "last")).rescan == "watch"


@pytest.fixture
def kernel(root: Path) -> InotifyWatcher:
    (root / ".gitignore").write_text("out/\n")
    (root / "out" / "deep").mkdir(parents=True)
    at = Confinement(str(root), Disk())
    return InotifyWatcher(at, IgnoreRules(at), rescan_s=0.05)


async def test_a_real_overflow_is_reported(kernel: InotifyWatcher, root: Path) -> None:
    kernel.start()
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for n in range(most // 2 + 1):  # two events each: equal neighbours are told once
        os.close(os.open(root / f"f{n % 500}", os.O_CREAT | os.O_WRONLY))
        os.chmod(root / f"f{n % 500}", 0o600)
    async with aclosing(kernel.hints()) as reported:  # type: ignore[type-var]
        with anyio.fail_after(60):
            assert (await anext(reported)).rescan == "overflow"
    kernel.close()


async def test_ignored_folders_and_links_are_not_watched(kernel: InotifyWatcher, root: Path) -> None:
    (root / "link").symlink_to(root.parent)
    kernel.start()
    (root / "out" / "deep" / "unseen").write_text("1")
    (root.parent / "unseen").write_text("1")
    (root / "mark").write_text("1")
    assert (await until(kernel, "mark")).paths == {"mark"}
    kernel.close()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE], ids=["watches", "notifiers"])
async def test_a_limit_is_said_and_leads_to_looks(
    kernel: InotifyWatcher, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Inotify, "add" if number == errno.ENOSPC else "__init__", full)
    kernel.start()
    assert kernel.health.startswith("degraded: the limit of")
    assert "raise fs.inotify.max_user_" in kernel.health
    async with aclosing(kernel.hints()) as reported:  # type: ignore[type-var]
        with anyio.fail_after(60):
            assert (await anext(reported)).rescan == "scan"
    kernel.close()


async def test_a_root_that_moved_is_said(kernel: InotifyWatcher, root: Path) -> None:
    kernel.start()
    root.rename(root.parent / "elsewhere")
    async with aclosing(kernel.hints()) as reported:  # type: ignore[type-var]
        with anyio.fail_after(60):
            await anext(reported)
    assert "moved or removed" in kernel.health
    kernel.close()
