"""Tagged files that another program moved, recognised before the journal knows of it."""

from __future__ import annotations

from contextlib import suppress

from orchestrator.core.content import Signature
from orchestrator.core.errors import PathError
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.projections.file_rows import FileEntry
from orchestrator.core.projections.state import State
from orchestrator.ports.workspace import FileStat, Workspace


class MovedTags:
    """Finds the tagged path whose file now stands at another path. Where no tags are set it looks at nothing."""

    def __init__(self, state: State, workspace: Workspace) -> None:
        self._state, self._workspace = state, workspace
        self._left: dict[WorkspacePath, FileEntry] = {}

    def left(self, entry: FileEntry) -> None:
        """Remember the file that a tagged path held until now: its new path may be met later."""
        if self._state.tags.of(entry.path):
            self._left[entry.path] = entry

    def source(self, path: WorkspacePath, *, digest: Digest | None = None, most: int) -> WorkspacePath | None:
        """The tagged path from which what is here was moved; None where the journal knows this file here.

        The file is the same by its inode, or by its content: a file as large as a tagged one that is gone is hashed,
        unless `digest` is given or it has more than `most` bytes. Blocking.
        """
        if not self._state.tags:
            return None
        known, stat = self._state.registry.get(path), self._stat(path)
        if stat is None or (known is not None and _inode(known) == stat.signature.inode):
            return None
        alike: WorkspacePath | None = None
        for tagged, _ in self._state.tags:
            for entry in (self._state.registry.get(tagged), self._left.get(tagged)):
                was = entry.signature if entry is not None else None
                if tagged == path or entry is None or was is None:
                    continue
                if was.inode == stat.signature.inode:
                    now = self._stat(tagged)
                    if now is None or (now.signature.inode != was.inode and _same(was, stat.signature)):
                        return tagged
                elif alike is None and entry.digest and was.size == stat.signature.size and not self._stat(tagged):
                    if digest is None and was.size <= most:
                        with suppress(PathError):
                            digest = self._workspace.hash(path, most=most)[0]
                    alike = tagged if was.size and entry.digest == digest else None
        return alike

    def _stat(self, path: WorkspacePath) -> FileStat | None:
        """Of a regular file."""
        try:
            stat = self._workspace.stat(path)
        except PathError:
            return None
        return stat if stat is not None and stat.kind == "file" else None


def _inode(entry: FileEntry) -> int | None:
    return entry.signature.inode if entry.signature is not None else None


def _same(one: Signature, other: Signature) -> bool:
    return (one.size, one.mtime_ns) == (other.size, other.mtime_ns)
