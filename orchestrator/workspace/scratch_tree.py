"""Scratch trees: copies of the tree, or overlays over one, in which a command may do what it likes."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
from anyio import to_thread

from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.paths import ancestors
from orchestrator.logs import logger
from orchestrator.ports.commands import ScratchChanges, ScratchTree
from orchestrator.ports.workspace import Ignore, Workspace
from orchestrator.workspace import overlay
from orchestrator.workspace.command_launcher import remove
from orchestrator.workspace.confine import Confinement
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.scratch_base import Contents, ScratchBase
from orchestrator.workspace.scratch_changes import Comparison, UpperComparison
from orchestrator.workspace.tree_copy import Copied, TreeCopy

MANIFEST = ".json"
"""Behind the name of a kept tree's folder."""


class Manifest(NamedTuple):
    """What was copied into a kept tree, beside it."""

    files: dict[str, Copied]
    links: dict[str, str]
    kept_for: tuple[str, str]


class LocalScratchTrees:
    """See `ports.commands.ScratchTrees`. `folder`: of the daemon's own; what a killed one left in it goes now.

    `layered`: whether who runs commands can mount layers for them. Where overlays work then, only what changed since
    the last tree is copied, into a base that all have in common; it is kept in the daemon's own folder.
    """

    def __init__(
        self, workspace: Workspace, ignore: Ignore, folder: Path, disk: Disk, *, layered: bool = False
    ) -> None:
        self._workspace, self._ignore, self._folder, self._disk = workspace, ignore, folder, disk
        self._kept = folder.with_name("worktrees")
        self._layered: bool | None = None if layered else False
        self._base = ScratchBase(workspace, folder.with_name("scratch_base"))
        self._base_turn = anyio.Lock()
        if folder.exists():
            remove(str(folder))
        self._base.sweep()

    async def make(
        self,
        files: Sequence[WorkspacePath],
        *,
        linked: Sequence[WorkspacePath] = (),
        kept_for: tuple[str, str] = ("", ""),
    ) -> ScratchTree:
        if not linked and not kept_for[0] and await self._overlays_work():
            return await self._make_layered(files)
        place = self._kept if kept_for[0] else self._folder
        folder = await self._new_folder(place)
        copy = TreeCopy(self._workspace, folder)
        try:
            await to_thread.run_sync(partial(copy.make, files, linked))
            if kept_for[0]:
                manifest = msgspec.json.encode(Manifest(copy.files, copy.links, kept_for))
                await to_thread.run_sync(Path(f"{folder}{MANIFEST}").write_bytes, manifest)
        except BaseException:
            await _remove(folder)
            raise
        return LocalScratchTree(copy, self._ignore, self._disk, kept_for)

    async def reopen(self, name: str) -> LocalScratchTree | None:
        folder = f"{self._kept}/{name}"
        try:
            if not name.isidentifier():
                return None
            manifest = await to_thread.run_sync(Path(f"{folder}{MANIFEST}").read_bytes)
        except FileNotFoundError:
            return None
        known = msgspec.json.decode(manifest, type=Manifest)
        copy = TreeCopy(self._workspace, folder)
        copy.files, copy.links = known.files, known.links
        return LocalScratchTree(copy, self._ignore, self._disk, known.kept_for)

    async def forget(self, digest: Digest) -> None:
        async with self._base_turn:
            await to_thread.run_sync(self._base.forget, digest)

    async def _sweep(self) -> None:
        async with self._base_turn:
            await to_thread.run_sync(self._base.sweep)

    async def _new_folder(self, place: Path) -> str:
        await to_thread.run_sync(partial(place.mkdir, mode=0o700, exist_ok=True))
        return await to_thread.run_sync(partial(tempfile.mkdtemp, dir=place))

    async def _overlays_work(self) -> bool:
        """Tried once."""
        if self._layered is None:
            home = await self._new_folder(self._folder)
            try:
                why_not = await to_thread.run_sync(self._base.why_no_overlay, home)
            finally:
                await _remove(home)
            self._layered = not why_not
            if why_not:
                logger("commands").info("scratch trees are copied whole, as overlays do not work", why=why_not)
        return self._layered

    async def _make_layered(self, files: Sequence[WorkspacePath]) -> LayeredScratchTree:
        home = await self._new_folder(self._folder)
        self._base.hold()
        try:
            await to_thread.run_sync(overlay.make_layers, home)
            async with self._base_turn:
                contents = await to_thread.run_sync(self._base.contents, files, home)
        except BaseException:
            self._base.release()
            await _remove(home)
            raise
        upper = Confinement(f"{home}/{overlay.UPPER}", self._disk)
        return LayeredScratchTree(home, contents, upper, self._ignore, release=self._base.release, sweep=self._sweep)


class LocalScratchTree:
    """See `ports.commands.ScratchTree`: a copy."""

    layers = None

    def __init__(self, copy: TreeCopy, ignore: Ignore, disk: Disk, kept_for: tuple[str, str] = ("", "")) -> None:
        self._copy, self._ignore, self._disk = copy, ignore, disk
        self._at = Confinement(copy.folder, disk)  # held: whatever takes the folder's place is not looked at
        self.folder, self.kept_for = copy.folder, kept_for
        self.copied_by = "reflink" if copy.clones and copy.files else "copy"
        self.missing = tuple(copy.missing)

    async def make_directory(self, path: WorkspacePath) -> None:
        await anyio.Path(self.folder, path).mkdir(parents=True, exist_ok=True)

    async def changes(self, *, most_bytes: int) -> ScratchChanges:
        copy = self._copy
        comparison = Comparison(copy.files, copy.links, self._at, self._ignore, most_bytes=most_bytes)
        return await to_thread.run_sync(comparison.changes)

    def release(self) -> None:
        self._at.close()

    async def remove(self) -> None:
        self._at.close()
        await _remove(self.folder)


class LayeredScratchTree:
    """See `ports.commands.ScratchTree`: an overlay. `home`: where its layers are, but for the base.

    `release` lets go of the base, `sweep` of what nothing needs then.
    """

    copied_by = "overlay"
    kept_for = ("", "")

    def __init__(
        self,
        home: str,
        contents: Contents,
        upper: Confinement,
        ignore: Ignore,
        *,
        release: Callable[[], None],
        sweep: Callable[[], Awaitable[None]],
    ) -> None:
        self.layers, self.folder = home, f"{home}/{overlay.TREE}"
        self._contents, self._upper, self._ignore = contents, upper, ignore
        self._release, self._sweep = release, sweep
        self.missing = contents.missing
        self._open = True

    async def make_directory(self, path: WorkspacePath) -> None:
        if not self._contents.files.keys().isdisjoint((path, *ancestors(path))):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        await anyio.Path(self.layers, overlay.DELTA, path).mkdir(parents=True, exist_ok=True)

    async def changes(self, *, most_bytes: int) -> ScratchChanges:
        found = self._contents
        comparison = UpperComparison(found.files, found.links, self._upper, self._ignore, most_bytes=most_bytes)
        return await to_thread.run_sync(comparison.changes)

    def release(self) -> None:
        if self._open:
            self._open = False
            self._upper.close()
            self._release()

    async def remove(self) -> None:
        self.release()
        await _remove(self.layers)
        with anyio.CancelScope(shield=True):
            await self._sweep()


async def _remove(folder: str) -> None:
    """With what was kept of it."""
    with anyio.CancelScope(shield=True):
        await to_thread.run_sync(remove, folder)
        await to_thread.run_sync(partial(Path(f"{folder}{MANIFEST}").unlink, missing_ok=True))
