"""Scratch trees that are overlays: a command sees what a copy would show it, and what it did is found as in one."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.core.content import digest_of
from orchestrator.core.errors import DiskFull
from orchestrator.core.ids import WorkspacePath
from orchestrator.ports.commands import CommandSpec, ScratchChange, ScratchChanges, ScratchTree
from orchestrator.workspace import command_launcher, overlay, scratch_base, tree_copy
from orchestrator.workspace.command_confinement import find_confinement
from orchestrator.workspace.confined_command import ConfinedCommands
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from orchestrator.workspace.scratch_base import ScratchBase
from orchestrator.workspace.scratch_tree import LocalScratchTrees
from tests.workspace import tree_operations
from tests.workspace.tree_operations import Operation, listed, perform

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has overlays"),
]

MOST = 1_000_000
PERFORM = Path(tree_operations.__file__).read_text()
P = WorkspacePath


class Ground:
    """A workspace, scratch trees of it, and who runs commands in them."""

    def __init__(self, base: Path) -> None:
        self.base, self.root, self.state = base, base / "work", base / "state"
        for folder in (self.root, self.state):
            folder.mkdir()
        self.write("a/b/one", "1")
        self.write("a/two", "2")
        self.write("three", "3")
        self.write(".gitignore", "ignored/\n")
        self.workspace = LocalWorkspace(str(self.root), disk=Disk())
        confinement = find_confinement()
        own = [str(self.state)]
        self.runner = ConfinedCommands(confinement, workspace=str(self.root), own=own, name=base.name)
        self.trees = self.made()

    def made(self, *, layered: bool = True) -> LocalScratchTrees:
        folder = self.state / ("scratch" if layered else "copies")
        return LocalScratchTrees(self.workspace, self.workspace.ignore, folder, Disk(), layered=layered)

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def files(self) -> list[WorkspacePath]:
        return [file.path for file in self.workspace.scan().files]

    async def make(self) -> ScratchTree:
        return await self.trees.make(self.files())

    async def run(self, tree: ScratchTree, *argv: str) -> str:
        spec = CommandSpec(
            argv=argv,
            cwd=tree.folder,
            environment={"PATH": os.defpath},
            writable=(tree.folder,),
            layers=tree.layers,
        )
        command = await self.runner.start(spec)
        try:
            said = b"".join([piece async for piece in command.output()]).decode()
            assert await command.wait() == 0, said
        finally:
            await command.end()
        return said

    async def shell(self, tree: ScratchTree, script: str) -> str:
        return await self.run(tree, "/bin/sh", "-c", script)

    async def operated(self, tree: ScratchTree, operations: list[Operation]) -> dict[str, str]:
        """What is in it; then they are performed."""
        program = os.path.realpath(sys.executable)
        said = await self.run(tree, program, "-I", "-S", "-c", PERFORM, json.dumps(operations))
        return json.loads(said)  # type: ignore[no-any-return]


@pytest.fixture
def ground(base: Path) -> Iterator[Ground]:
    if (found := find_confinement()).by != "namespaces":
        pytest.skip(f"nothing mounts layers: {found.lacking}")
    made = Ground(base)
    (base / "probe").mkdir()
    home = tempfile.mkdtemp(dir=base / "probe")
    why_not = ScratchBase(made.workspace, base / "scratch_base").why_no_overlay(home)
    command_launcher.remove(home)
    if why_not:
        pytest.skip(f"overlays do not work here: {why_not}")
    yield made
    made.workspace.close()


async def changes(tree: ScratchTree) -> ScratchChanges:
    return await tree.changes(most_bytes=MOST)


def copies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is copied from now on. All that is there counts as old enough to be told by its signature."""
    monkeypatch.setattr(tree_copy, "SETTLED_NS", -(1 << 62))
    copied, copy = list[str](), tree_copy.TreeCopy._copy

    def noted(self: tree_copy.TreeCopy, path: WorkspacePath) -> None:
        copied.append(path)
        copy(self, path)

    monkeypatch.setattr(tree_copy.TreeCopy, "_copy", noted)
    return copied


# --- what a command sees --------------------------------------------------------------------


async def test_only_what_changed_since_the_last_one_is_copied(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = copies(monkeypatch)
    first = await ground.make()
    assert first.copied_by == "overlay"
    assert sorted(copied) == sorted(ground.files())
    assert await ground.shell(first, "cat three a/two; echo more >> three") == "32"
    await first.remove()
    copied.clear()
    ground.write("a/two", "two")
    ground.write("new/four", "4")
    (ground.root / "a/b/one").unlink()
    for trees in (ground.trees, ground.made()):  # and the next daemon's
        ground.trees = trees
        tree = await ground.make()
        assert await ground.shell(tree, "find . -type f | sort | xargs cat; ls a") == "ignored/\ntwo43two\n"
        assert await changes(tree) == ScratchChanges(())
        await tree.remove()
    assert sorted(copied) == ["a/two", "new/four"]
    assert os.listdir(ground.state / "scratch") == []


async def test_what_changed_a_moment_ago_is_copied_again(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have changed since with no other time."""
    copied = copies(monkeypatch)
    monkeypatch.setattr(tree_copy, "SETTLED_NS", 1 << 62)
    for _ in range(2):
        await (await ground.make()).remove()
    assert sorted(copied) == sorted([*ground.files(), *ground.files()])


async def test_what_is_in_use_stays_as_it_is(ground: Ground) -> None:
    listing = "find . -type f | sort; cat three"
    now = "./.gitignore\n./a/b/one\n./three\nthree"
    first = await ground.make()
    ground.write("three", "three")
    (ground.root / "a/two").unlink()
    second, third = await ground.make(), await ground.make()
    assert await ground.shell(second, f"{listing}; echo 2 > a/two") == now
    assert [item.path for item in (await changes(second)).files] == ["a/two"]
    await second.remove()
    assert await ground.shell(first, listing) == "./.gitignore\n./a/b/one\n./a/two\n./three\n3"
    await first.remove()
    fourth = await ground.make()  # the third has the base still
    for tree in (third, fourth):
        assert await ground.shell(tree, listing) == now
        await tree.remove()


async def test_what_its_caller_may_not_read_is_not_there(ground: Ground) -> None:
    """Whether the base has it or not, and nowhere else either."""
    everything = await ground.make()
    for _ in range(2):
        tree = await ground.trees.make([P("three")])
        assert await ground.shell(tree, f"find . ; find {ground.state}/* ..") == "".join(
            f"{path}\n"
            for path in (
                *(".", "./three", f"{ground.state}/scratch", tree.layers, tree.folder, f"{tree.folder}/three"),
                *("..", "../tree", "../tree/three"),
            )
        )
        await tree.remove()
        await everything.remove()


async def test_a_directory_to_begin_in(ground: Ground) -> None:
    tree = await ground.make()
    await tree.make_directory(P("a/b"))
    await tree.make_directory(P("not/copied"))
    with pytest.raises(NotADirectoryError):
        await tree.make_directory(P("three/below"))
    assert await ground.shell(tree, "cat a/b/one; ls -d not/copied") == "1not/copied\n"
    assert await changes(tree) == ScratchChanges(())
    await tree.remove()


async def test_a_workspace_that_is_gone(ground: Ground) -> None:
    await (await ground.make()).remove()
    files = ground.files()
    ground.root.rename(ground.base / "moved")
    tree = await ground.trees.make(files)
    await tree.remove()
    shutil.rmtree(ground.base / "moved")
    tree = await ground.trees.make(files)
    assert sorted(tree.missing) == sorted(files)
    await tree.remove()


# --- what comes back ------------------------------------------------------------------------


async def test_what_was_made_changed_and_removed(ground: Ground) -> None:
    tree = await ground.make()
    await ground.shell(
        tree, "rm -r a; mkdir a; echo new > a/b; chmod 755 three; rm .gitignore; mkdir .gitignore; echo > .gitignore/x"
    )
    assert (await changes(tree)).files == (
        ScratchChange(path=P(".gitignore"), before=digest_of(b"ignored/\n"), content=None, mode=None),
        ScratchChange(path=P(".gitignore/x"), before=None, content=b"\n", mode=0o644),
        ScratchChange(path=P("a/b"), before=None, content=b"new\n", mode=0o644),
        ScratchChange(path=P("a/b/one"), before=digest_of(b"1"), content=None, mode=None),
        ScratchChange(path=P("a/two"), before=digest_of(b"2"), content=None, mode=None),
        ScratchChange(path=P("three"), before=digest_of(b"3"), content=b"3", mode=0o755),
    )
    assert sorted(listed(str(ground.root))) == [".gitignore", "a", "a/b", "a/b/one", "a/two", "three"]
    await tree.remove()


async def test_all_of_it_removed(ground: Ground) -> None:
    tree = await ground.make()
    await ground.shell(tree, 'rm -rf "$PWD" 2>&1; :')
    assert [item.path for item in (await changes(tree)).files] == [".gitignore", "a/b/one", "a/two", "three"]
    await tree.remove()


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
@pytest.mark.parametrize("folder", ["a", "."])
async def test_a_folder_that_it_closed(ground: Ground, folder: str) -> None:
    """Nothing in it is taken for deleted; and it is removed all the same."""
    tree = await ground.make()
    await ground.shell(tree, f"rm -r a; mkdir a; echo > a/x; chmod 0 {folder}")
    found = await changes(tree)
    assert not found.files
    assert [path for path, _ in found.left_out] == [folder]
    await tree.remove()
    assert os.listdir(ground.state / "scratch") == []


NAMES = ("a", "a/b", "a/b/one", "a/two", "three", "c", "c/d", "c/two", "ignored", "ignored/x")
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(("write", "append", "replace", "link")),
            st.sampled_from(NAMES),
            st.sampled_from(("1", "2", "three")),
        ),
        st.tuples(st.sampled_from(("move", "hard")), st.sampled_from(NAMES), st.sampled_from(NAMES)),
        st.tuples(st.sampled_from(("remove", "make", "chmod", "touch")), st.sampled_from(NAMES), st.just("")),
    ),
    max_size=25,
)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=OPERATIONS, meanwhile=OPERATIONS, done=OPERATIONS)
def test_an_overlay_is_as_a_copy(
    ground: Ground, before: list[Operation], meanwhile: list[Operation], done: list[Operation]
) -> None:
    """Over a base as it was before, and over one that is in use and has been overtaken."""

    async def check() -> None:
        perform(str(ground.root), before)
        first = await ground.make()
        perform(str(ground.root), meanwhile)
        second, copy = await ground.make(), await copying.make(ground.files())
        there = listed(copy.folder)
        assert await ground.operated(second, done) == there
        perform(copy.folder, done)
        found = await changes(copy)
        assert await changes(second) == found
        for tree in (first, second):
            await tree.remove()
        third = await ground.make()
        assert await ground.operated(third, done) == there
        assert await changes(third) == found
        await third.remove()
        await copy.remove()

    copying = ground.made(layered=False)
    anyio.run(check)


# --- what is kept -----------------------------------------------------------------------------


async def test_a_content_that_is_to_be_forgotten_is_kept_no_more(ground: Ground) -> None:
    """Not for commands to come; a command that sees it sees it to its end."""
    kept = ground.state / "scratch_base"
    await ground.trees.forget(digest_of(b"3"))  # there is none
    tree = await ground.make()
    await ground.trees.forget(digest_of(b"no such content"))
    await tree.remove()
    assert kept.exists()
    await ground.trees.forget(digest_of(b"3"))
    assert not kept.exists()
    tree, other = await ground.make(), await ground.make()
    await ground.trees.forget(digest_of(b"3"))
    await other.remove()
    assert await ground.shell(tree, "cat three") == "3"
    await tree.remove()
    assert not kept.exists()
    tree = await ground.make()
    await ground.trees.forget(digest_of(b"3"))  # and the daemon is killed
    ground.made()
    assert not kept.exists()
    await tree.remove()


# --- where it can't be ----------------------------------------------------------------------


async def test_where_overlays_do_not_work_trees_are_copied(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay, "why_not", lambda home: "no such device")
    tree = await ground.make()
    assert (tree.layers, tree.copied_by == "overlay") == (None, False)
    assert await ground.shell(tree, "cat three") == "3"
    await tree.remove()


async def test_a_base_that_was_not_finished_is_made_anew(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    await (await ground.make()).remove()
    ground.write("three", "changed")
    with monkeypatch.context() as full:
        full.setattr(tree_copy, "LEFT_FREE_BYTES", 1 << 62)
        with pytest.raises(DiskFull):
            await ground.make()
    assert os.listdir(ground.state / "scratch") == []
    assert not (ground.state / "scratch_base").exists()
    tree = await ground.make()
    assert await ground.shell(tree, "cat three a/two") == "changed2"
    await tree.remove()


@pytest.mark.parametrize("trouble", ["changed", "gone", "unreadable", "no manifest", "another start"])
async def test_a_kept_base_that_is_not_as_it_was(ground: Ground, monkeypatch: pytest.MonkeyPatch, trouble: str) -> None:
    copied = copies(monkeypatch)
    await (await ground.make()).remove()
    copied.clear()
    kept = ground.state / "scratch_base"
    match trouble:
        case "changed":
            (kept / "tree/three").write_text("tampered")
        case "gone":
            (kept / "tree/three").unlink()
        case "unreadable":
            (kept / "manifest").write_bytes(b"{")
        case "no manifest":
            (kept / "manifest").unlink()
        case _:
            (ground.base / "boot_id").write_text("another")
            monkeypatch.setattr(scratch_base, "BOOT_ID", ground.base / "boot_id")
    ground.trees = ground.made()
    tree = await ground.make()
    assert sorted(copied) == sorted(ground.files())
    assert await ground.shell(tree, "cat three a/two") == "32"
    await tree.remove()
