"""The copy of the tree that scratch trees have in common: kept, brought up to date before each, and never changed
below one that is in use."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from orchestrator.core.content import Signature
from orchestrator.core.errors import DiskFull
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.ports.workspace import Workspace
from orchestrator.workspace import overlay
from orchestrator.workspace.disk import signature_of
from orchestrator.workspace.tree_copy import Copied, TreeCopy, check_room, folders_of

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Contents(NamedTuple):
    """What a scratch tree has at its start; and what of the files that it was to have was gone."""

    files: Mapping[str, Copied]
    links: Mapping[str, str]
    missing: tuple[WorkspacePath, ...]


class BaseManifest(NamedTuple):
    """What was copied, beside it. Of another start of the machine it says nothing: nothing was synced."""

    boot: str
    files: dict[str, Copied]
    links: dict[str, str]


class ScratchBase:
    """One at a time may call it, in a thread of anyio's. `folder`: of the daemon's own; the next daemon finds it, too.

    What the workspace has is known to be what was copied by its signature, as it is to scans. A link is always
    copied again.
    """

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        self._workspace, self._folder = workspace, folder
        self._tree, self._manifest = f"{folder}/{overlay.TREE}", folder / "manifest"
        self._verified = False
        self._in_use: TreeCopy | None = None
        self._users = 0

    def why_no_overlay(self, home: str) -> str:
        """What keeps overlays over it from working, as tried in an empty folder; nothing if they do."""
        os.makedirs(self._tree, 0o700, exist_ok=True)
        overlay.make_layers(home)
        return overlay.why_not(home)

    def hold(self) -> None:
        """A scratch tree is to have it as a layer. Until there is none, it is not written to but for the first."""
        self._users += 1

    def release(self) -> None:
        """One fewer has it."""
        self._users -= 1
        if not self._users:
            self._in_use = None  # it takes memory by the file

    def forget(self, digest: Digest) -> None:
        """What has this content goes, at the latest with the next `sweep` when none has it as a layer."""
        if self._in_use is not None or self._manifest.exists():
            copy = self._in_use or self._opened()
            if any(copied.digest == digest for copied in copy.files.values()):
                self._manifest.unlink(missing_ok=True)
        self.sweep()

    def sweep(self) -> None:
        """Remove what is not known to be whole, or was not to stay, unless it is in use."""
        if self._in_use is None and self._folder.exists() and not self._manifest.exists():
            self._drop()

    def contents(self, files: Sequence[WorkspacePath], home: str) -> Contents:
        """Let the base, with the delta of the layers in `home`, be these files as they are now. It is held.

        Raises DiskFull, FileTooLarge, OSError.
        """
        in_use = self._in_use
        try:
            check_room(home)
        except DiskFull:
            if in_use is None:
                self._drop()  # which makes some
            raise
        copy = in_use or self._opened()
        stale = [*self._stale(copy.files, files)]
        gone = (copy.files.keys() | copy.links.keys()) - {*files}
        if in_use is None:
            if stale or gone or copy.links:
                self._refresh(copy, stale, gone)
            self._in_use = copy
            return Contents(copy.files, copy.links, tuple(copy.missing))
        delta = TreeCopy(self._workspace, f"{home}/{overlay.DELTA}")
        delta.make(stale)
        gone |= (copy.files.keys() & {*stale}) | copy.links.keys()
        whole = {path: copied for path, copied in copy.files.items() if path not in gone} | delta.files
        present = whole.keys() | delta.links.keys()
        overlay.hide(delta.folder, gone - present, present, folders_of(present))
        return Contents(whole, delta.links, tuple(delta.missing))

    def _stale(self, known: Mapping[str, Copied], files: Sequence[WorkspacePath]) -> Iterator[WorkspacePath]:
        """Those whose copy is of something else than what is there, or that have none."""
        try:
            root = os.open(self._workspace.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:  # it was removed
            yield from files
            return
        try:
            for path in files:
                copied = known.get(path)
                if copied is None or copied.source is None or copied.source != _signature(path, root):
                    yield path
        finally:
            os.close(root)

    def _refresh(self, copy: TreeCopy, stale: Sequence[WorkspacePath], gone: Collection[str]) -> None:
        self._manifest.unlink(missing_ok=True)
        try:
            copy.remove({*gone, *(copy.files.keys() & {*stale}), *copy.links})
            copy.make(stale)
            manifest = BaseManifest(BOOT_ID.read_text(), copy.files, copy.links)
            self._manifest.write_bytes(msgspec.msgpack.encode(manifest))
        except BaseException:
            self._drop()
            raise

    def _opened(self) -> TreeCopy:
        """With what is known to be in it: nothing, where that is not sure."""
        copy = TreeCopy(self._workspace, self._tree)
        try:
            kept = msgspec.msgpack.decode(self._manifest.read_bytes(), type=BaseManifest)
        except (FileNotFoundError, msgspec.MsgspecError):
            kept = None
        if kept is None or not (self._verified or self._holds(kept)):
            self._drop()
            os.makedirs(self._tree, 0o700)
        else:
            copy.files, copy.links = kept.files, kept.links
        self._verified = True
        return copy

    def _holds(self, kept: BaseManifest) -> bool:
        """Whether nobody touched the copies since: it may be another daemon that made them."""
        if kept.boot != BOOT_ID.read_text():
            return False
        tree = os.open(self._tree, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return all(_signature(path, tree) == copied.signature for path, copied in kept.files.items())
        finally:
            os.close(tree)

    def _drop(self) -> None:
        self._manifest.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)


def _signature(path: str, folder: int) -> Signature | None:
    try:
        return signature_of(os.stat(path, dir_fd=folder, follow_symlinks=False))
    except OSError:
        return None
