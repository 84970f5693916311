"""What a command must not read, or not write: what policy keeps from its caller, also what is not tracked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Literal, NamedTuple

from orchestrator.core.errors import PathError
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import ROOT, ancestors, join
from orchestrator.core.policy.rules import Allow
from orchestrator.engine.caller import Caller
from orchestrator.engine.services import Services

MOST_LISTED = 500
"""Directories whose names are looked at, those nearest to the root first; of tracked files all are."""

MOST_READ_ONLY = 1_000
"""Each is a mount, or more. Where there are more of them, the whole workspace is read-only."""


class ClosedPaths(NamedTuple):
    """Files, and directories with all in them."""

    hidden: tuple[WorkspacePath, ...]
    read_only: tuple[WorkspacePath, ...]  # of the others: what its caller may not write unasked


def closed_to(services: Services, caller: Caller) -> ClosedPaths:
    """Blocking. A yes to one version of a file shows a command nothing."""
    verdict, tracked = services.permissions.verdict, services.state.registry.paths()
    paths = {*tracked, *_untracked(services, tracked)}

    both = services.permissions.allowing(caller, ("read", "write"))
    doubtful = [path for path in paths if not both(path)]

    def refused(action: Literal["read", "write"]) -> set[WorkspacePath]:
        return {path for path in doubtful if not isinstance(verdict(caller, action, path), Allow)}

    hidden = refused("read")
    return ClosedPaths(tuple(sorted(hidden)), _without_nested(refused("write") - hidden))


def _without_nested(paths: set[WorkspacePath]) -> tuple[WorkspacePath, ...]:
    found = tuple(sorted(path for path in paths if paths.isdisjoint(ancestors(path))))
    return found if len(found) <= MOST_READ_ONLY else (ROOT,)


def _untracked(services: Services, tracked: list[WorkspacePath]) -> Iterator[WorkspacePath]:
    """The names beside tracked files: what holds secrets is ignored by version control more often than not."""
    folders = {ROOT, *(folder for path in tracked for folder in ancestors(path))}
    for folder in sorted(folders, key=lambda folder: folder.count("/"))[:MOST_LISTED]:
        with suppress(PathError):  # gone, or closed to us
            yield from (join(folder, item.name) for item in services.workspace.names(folder) if item.valid)
