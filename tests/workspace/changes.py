"""Changes to carry out, and what a folder holds after them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from orchestrator.core.content import digest_of
from orchestrator.core.ids import WorkspacePath
from orchestrator.ports.workspace import DiskChange
from orchestrator.workspace.local import LocalWorkspace

TEMP = ".orchestrator-1.tmp"
Make = Callable[..., LocalWorkspace]
"""Makes a workspace on the test's folder; what it is given goes to LocalWorkspace."""


def as_path(text: str) -> WorkspacePath:
    return WorkspacePath(text)


def replacing(path: str, before: bytes, after: bytes, mode: int | None = None) -> DiskChange:
    return DiskChange(
        path=as_path(path), before=digest_of(before), after=digest_of(after), data=after, temp=TEMP, mode=mode
    )


def creating(path: str, after: bytes, mode: int | None = None, parents: tuple[str, ...] = ()) -> DiskChange:
    above = tuple(as_path(parent) for parent in parents)
    return DiskChange(
        path=as_path(path), before=None, after=digest_of(after), data=after, temp=TEMP, mode=mode, parents=above
    )


def deleting(path: str, before: bytes) -> DiskChange:
    return DiskChange(path=as_path(path), before=digest_of(before), after=None, temp=TEMP)


def moving(source: str, path: str, data: bytes, parents: tuple[str, ...] = ()) -> DiskChange:
    above = tuple(as_path(parent) for parent in parents)
    return DiskChange(path=as_path(path), before=None, after=digest_of(data), moved_from=as_path(source), parents=above)


def carry_out(workspace: LocalWorkspace, change: DiskChange) -> tuple[str, ...]:
    """Stage, commit, finish; the warnings."""
    writing = workspace.atomic_write(change)
    writing.stage()
    writing.commit()
    assert writing.finish() == ()
    return writing.warnings


def tree(root: Path) -> dict[str, bytes | None]:
    """Every name below a directory; content of files, None for the rest."""
    found: dict[str, bytes | None] = {}
    for path in sorted(root.rglob("*")):
        regular = path.is_file() and not path.is_symlink()
        found[str(path.relative_to(root))] = path.read_bytes() if regular else None
    return found
