"""Which contents the scan keeps before anybody asked for them, where there is no room for all."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import tags_of
from orchestrator.core.policy.rules import External

ALWAYS_BYTES = 100 * 1024 * 1024
"""So much is kept of any workspace, whatever part of it that is."""

_LIKELY = {"code", "doc", "config", "test", "entrypoint"}


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """A file whose content may be kept."""

    path: WorkspacePath
    size: int
    mtime_ns: int


def budget(external: External, workspace_bytes: int) -> int:
    """How many bytes of contents may be kept of a workspace of so many."""
    part = workspace_bytes * external.keep_percent // 100
    return min(external.keep_total_bytes, max(part, ALWAYS_BYTES))


def worth_keeping(candidates: Iterable[Candidate], room: int) -> list[Candidate]:
    """As many as there is room for, those first that other programs are likely to change.

    What people write goes before what programs made, what changed lately before what did not.
    """
    chosen: list[Candidate] = []
    for item in sorted(candidates, key=_unlikely):
        if item.size <= room:
            room -= item.size
            chosen.append(item)
    return chosen


def _unlikely(item: Candidate) -> tuple[int, int, WorkspacePath]:
    tags = {*tags_of(item.path)}
    rank = 2 if "generated" in tags else 0 if tags & _LIKELY else 1
    return rank, -item.mtime_ns, item.path
