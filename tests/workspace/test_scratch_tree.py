"""Scratch trees: what is copied, what came out otherwise, and that nothing leads out of them or stays."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import stat
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest

from orchestrator.core.content import digest_of
from orchestrator.core.errors import DiskFull, FileTooLarge
from orchestrator.core.ids import WorkspacePath
from orchestrator.ports.commands import ScratchChange, ScratchChanges, ScratchTree
from orchestrator.workspace import tree_copy
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from orchestrator.workspace.scratch_tree import LocalScratchTrees
from orchestrator.workspace.tree_copy import stays_inside

pytestmark = pytest.mark.anyio

MOST = 1_000_000
P = WorkspacePath


@pytest.fixture
def trees(base: Path, workspace: LocalWorkspace, root: Path) -> LocalScratchTrees:
    (root / "src").mkdir()
    (root / "src" / "a.py").write_text("a = 1\n")
    (root / "src" / "b.py").write_text("b = 2\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o775)
    (root / ".gitignore").write_text("build/\n*.log\n")
    return LocalScratchTrees(workspace, workspace.ignore, base / "scratch", Disk())


@pytest.fixture
async def tree(trees: LocalScratchTrees, workspace: LocalWorkspace) -> AsyncIterator[ScratchTree]:
    made = await trees.make([file.path for file in workspace.scan().files])
    yield made
    await made.remove()


async def changes(tree: ScratchTree, most_bytes: int = MOST) -> ScratchChanges:
    return await tree.changes(most_bytes=most_bytes)


# --- copying ------------------------------------------------------------------------------


async def test_a_copy_is_the_files_with_their_modes_and_times(root: Path, tree: ScratchTree) -> None:
    (root / "src" / "a.py").stat()
    for name in ("src/a.py", "src/b.py", "run.sh", ".gitignore"):
        copy, file = Path(tree.folder, name), root / name
        assert copy.read_bytes() == file.read_bytes()
        assert (copy.stat().st_mode, copy.stat().st_mtime_ns) == (file.stat().st_mode, file.stat().st_mtime_ns)
        assert copy.stat().st_ino != file.stat().st_ino
    assert stat.S_IMODE(Path(tree.folder).stat().st_mode) == 0o700
    assert tree.copied_by in ("reflink", "copy")
    assert await changes(tree) == ScratchChanges(())


async def test_nothing_that_is_done_to_it_reaches_the_workspace(root: Path, tree: ScratchTree) -> None:
    Path(tree.folder, "src/a.py").write_text("changed")
    Path(tree.folder, "src/b.py").unlink()
    assert (root / "src/a.py").read_text() == "a = 1\n"
    assert (root / "src/b.py").exists()


@pytest.mark.parametrize("clones", [True, False])
async def test_by_what_it_was_copied(
    trees: LocalScratchTrees, monkeypatch: pytest.MonkeyPatch, *, clones: bool
) -> None:
    """As on file systems that can clone, and on those that can't."""
    asked = 0

    def ioctl(copy: int, request: int, source: int) -> None:
        nonlocal asked
        asked += 1
        assert request == 0x40049409
        if not clones:
            raise OSError(errno.EOPNOTSUPP, "not here")
        os.pwrite(copy, os.pread(source, 1000, 0), 0)

    monkeypatch.setattr(tree_copy.fcntl, "ioctl", ioctl)  # type: ignore[attr-defined]
    tree = await trees.make([P("src/a.py"), P("src/b.py")])
    assert (tree.copied_by, asked) == (("reflink", 2) if clones else ("copy", 1))
    assert Path(tree.folder, "src/a.py").read_text() == "a = 1\n"
    assert Path(tree.folder, "src/b.py").read_text() == "b = 2\n"
    await tree.remove()


async def test_what_is_gone_or_no_file_is_named(trees: LocalScratchTrees, root: Path) -> None:
    os.mkfifo(root / "pipe")
    tree = await trees.make([P("src/a.py"), P("gone"), P("src"), P("pipe"), P("src/a.py/x")])
    assert tree.missing == ("gone", "src", "pipe", "src/a.py/x")
    assert os.listdir(tree.folder) == ["src"]
    await tree.remove()


async def test_links_that_lead_out_are_not_copied(trees: LocalScratchTrees, root: Path, base: Path) -> None:
    (root / "src" / "in").symlink_to("../run.sh")
    (root / "src" / "out").symlink_to("../../run.sh")
    (root / "away").symlink_to(base)
    (root / "folder").symlink_to("src")
    tree = await trees.make([P("src/in"), P("src/out"), P("away"), P("folder"), P("folder/a.py"), P("run.sh")])
    assert tree.missing == ("src/out", "away", "folder/a.py")
    assert Path(tree.folder, "src/in").read_text() == "#!/bin/sh\n"
    assert os.readlink(Path(tree.folder, "folder")) == "src"
    assert await changes(tree) == ScratchChanges(())
    await tree.remove()


@pytest.mark.parametrize(
    ("path", "target", "inside"),
    [
        pytest.param("a", "b/c", True, id="down"),
        pytest.param("a/b", "../c", True, id="up to the root"),
        pytest.param("a/b", "../../c", False, id="above it"),
        pytest.param("a", "..", False, id="its parent"),
        pytest.param("a", "/etc", False, id="absolute"),
        pytest.param("a", "b/../../c", False, id="up again"),
        pytest.param("a", "b/../c", False, id="up from another link, perhaps"),
    ],
)
def test_where_a_link_leads(path: str, target: str, inside: bool) -> None:
    assert stays_inside(P(path), target) is inside


async def test_linked_folders_are_the_workspaces_own(trees: LocalScratchTrees, root: Path) -> None:
    (root / "build").mkdir()
    (root / "build" / "made").write_text("made")
    tree = await trees.make([P("run.sh")], linked=[P("build")])
    assert Path(tree.folder, "build/made").read_text() == "made"
    assert await changes(tree) == ScratchChanges(())
    await tree.remove()
    assert (root / "build/made").exists()


async def test_a_file_that_is_written_to_meanwhile(
    trees: LocalScratchTrees, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each copy is of one moment; of a file that never rests there is none."""
    copied = tree_copy.TreeCopy._copied
    left = 1

    def meanwhile(self: object, path: WorkspacePath, *others: object) -> object:
        nonlocal left
        found = copied(self, path, *others)  # type: ignore[arg-type]
        if path == "src/b.py" or left > 0:
            left -= 1
            with (root / path).open("a") as file:
                file.write("more\n")
        return found

    monkeypatch.setattr(tree_copy.TreeCopy, "_copied", meanwhile)
    tree = await trees.make([P("src/a.py"), P("src/b.py")])
    assert Path(tree.folder, "src/a.py").read_text() == "a = 1\nmore\n"
    assert tree.missing == ("src/b.py",)
    assert not Path(tree.folder, "src/b.py").exists()
    await tree.remove()


async def test_a_tree_that_is_too_large(trees: LocalScratchTrees, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_copy, "MOST_TREE_BYTES", 10)
    with pytest.raises(FileTooLarge):
        await trees.make([P("src/a.py"), P("src/b.py")])
    assert os.listdir(base / "scratch") == []


async def test_a_disk_that_has_no_room(trees: LocalScratchTrees, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_copy, "LEFT_FREE_BYTES", 1 << 62)
    with pytest.raises(DiskFull):
        await trees.make([P("src/a.py")])
    assert os.listdir(base / "scratch") == []


async def test_who_is_cancelled_leaves_nothing(
    trees: LocalScratchTrees, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_copy, "LOOK_EVERY", 0)
    began, cancelled, copy = anyio.Event(), threading.Event(), tree_copy.TreeCopy._copy

    def slow(self: object, path: WorkspacePath) -> None:
        copy(self, path)  # type: ignore[arg-type]
        anyio.from_thread.run_sync(began.set)
        cancelled.wait()

    monkeypatch.setattr(tree_copy.TreeCopy, "_copy", slow)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(trees.make, [P("src/a.py"), P("src/b.py")])
        await began.wait()
        tasks.cancel_scope.cancel()
        cancelled.set()
    assert os.listdir(base / "scratch") == []


async def test_what_a_killed_daemon_left_goes(
    trees: LocalScratchTrees, workspace: LocalWorkspace, base: Path, root: Path
) -> None:
    tree = await trees.make([P("run.sh")], linked=[P("src")])
    LocalScratchTrees(workspace, workspace.ignore, base / "scratch", Disk())
    assert not Path(tree.folder).exists()
    assert (root / "src/a.py").exists()
    again = await trees.make([P("run.sh")])
    await again.remove()
    await tree.remove()


# --- comparing ----------------------------------------------------------------------------


async def test_what_was_made_changed_and_removed(tree: ScratchTree) -> None:
    folder = Path(tree.folder)
    (folder / "new").mkdir()
    (folder / "new" / "c.py").write_text("c = 3\n")
    (folder / "src" / "a.py").write_text("a = 2\n")
    (folder / "src" / "b.py").unlink()
    (folder / "run.sh").chmod(0o600)
    (folder / ".gitignore").touch()
    found = await changes(tree)
    assert found.left_out == ()
    assert found.files == (
        ScratchChange(path=P("new/c.py"), before=None, content=b"c = 3\n", mode=0o644),
        ScratchChange(path=P("run.sh"), before=digest_of(b"#!/bin/sh\n"), content=b"#!/bin/sh\n", mode=0o600),
        ScratchChange(path=P("src/a.py"), before=digest_of(b"a = 1\n"), content=b"a = 2\n", mode=0o644),
        ScratchChange(path=P("src/b.py"), before=digest_of(b"b = 2\n"), content=None, mode=None),
    )


async def test_a_change_of_the_same_size_and_time(tree: ScratchTree) -> None:
    file = Path(tree.folder, "src/a.py")
    before = file.stat()
    file.write_text("a = 7\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [change.content for change in (await changes(tree)).files] == [b"a = 7\n"]


async def test_what_is_ignored_does_not_come_back(tree: ScratchTree) -> None:
    folder = Path(tree.folder)
    (folder / "build").mkdir()
    (folder / "build" / "out").touch()
    (folder / "src" / "run.log").touch()
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").touch()
    assert await changes(tree) == ScratchChanges(())


async def test_a_file_that_was_copied_comes_back_though_it_is_ignored(trees: LocalScratchTrees, root: Path) -> None:
    (root / "build").mkdir()
    (root / "build" / "kept").write_text("old")
    tree = await trees.make([P("build/kept")])
    Path(tree.folder, "build/kept").write_text("new")
    Path(tree.folder, "build/other").write_text("new")
    assert [(change.path, change.content) for change in (await changes(tree)).files] == [("build/kept", b"new")]
    await tree.remove()


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize(
    ("trick", "left_out"),
    [
        pytest.param(lambda folder: folder.joinpath("l").symlink_to("run.sh"), ("l", "a symbolic link"), id="link"),
        pytest.param(lambda folder: os.mkfifo(folder / "p"), ("p", "a device, socket or pipe"), id="pipe"),
        pytest.param(
            lambda folder: bind(folder / "s"),
            ("s", "a device, socket or pipe"),
            id="socket",
        ),
        pytest.param(
            lambda folder: folder.joinpath("a\nb").touch(), ("a\\nb", "its name breaks the name rule"), id="name"
        ),
        pytest.param(
            lambda folder: folder.joinpath("large").write_bytes(b"x" * (MOST + 1)),
            ("large", f"its {MOST + 1} bytes are more than what may come back"),
            id="size",
        ),
    ],
)
async def test_what_is_left_out(tree: ScratchTree, trick: Callable[[Path], object], left_out: tuple[str, str]) -> None:
    trick(Path(tree.folder))
    assert await changes(tree) == ScratchChanges((), (left_out,))


async def test_no_link_is_followed(tree: ScratchTree, root: Path, base: Path) -> None:
    """A file and a folder of the copy that became links, to what is like them and to what is not."""
    folder, secret = Path(tree.folder), base / "secret"
    secret.write_text("secret")
    (folder / "run.sh").unlink()
    (folder / "run.sh").symlink_to(secret)
    (folder / "src").rename(folder / "moved")
    (folder / "src").symlink_to(root / "src")
    found = await changes(tree)
    assert found.left_out == (("run.sh", "a symbolic link"), ("src", "a symbolic link"))
    assert [(change.path, change.content) for change in found.files] == [
        ("moved/a.py", b"a = 1\n"),
        ("moved/b.py", b"b = 2\n"),
        ("src/a.py", None),
        ("src/b.py", None),
    ]


async def test_a_tree_that_was_replaced_whole(tree: ScratchTree, root: Path) -> None:
    """What lies at its path then is not looked at."""
    folder = Path(tree.folder)
    folder.rename(f"{folder}-away")
    folder.symlink_to(root)
    assert await changes(tree) == ScratchChanges(())
    folder.unlink()
    Path(f"{folder}-away").rename(folder)


async def test_a_tree_that_was_emptied(tree: ScratchTree) -> None:
    shutil.rmtree(tree.folder)
    found = await changes(tree)
    assert [(change.path, change.content) for change in found.files] == [
        (".gitignore", None),
        ("run.sh", None),
        ("src/a.py", None),
        ("src/b.py", None),
    ]


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
@pytest.mark.parametrize("folder", ["src", "."])
async def test_a_folder_that_it_closed(trees: LocalScratchTrees, folder: str) -> None:
    """Nothing in it is taken for deleted; and it is removed all the same."""
    tree = await trees.make([P("src/a.py"), P("run.sh")])
    Path(tree.folder, folder).chmod(0)
    found = await changes(tree)
    assert not found.files
    assert [path for path, _ in found.left_out] == [folder]
    await tree.remove()
    assert not Path(tree.folder).exists()
