"""directory_stats: what is below a directory, in numbers."""

from __future__ import annotations

from collections import Counter, defaultdict
from heapq import nlargest

import msgspec
from anyio import to_thread

from orchestrator.api import directory_stats as d
from orchestrator.core.events.files import DirectoryListed
from orchestrator.core.globs import Globs
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.name_index import LAST
from orchestrator.core.paths import ROOT
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.names import Name, Names
from orchestrator.engine.paths import below
from orchestrator.engine.reads.listing import directory_named
from orchestrator.engine.services import Services

MOST_SUFFIXES, MOST_FILES = 20, 10
"""In one answer: suffixes, and files in each of its two lists."""


class Counted(msgspec.Struct):
    """What of a directory was met."""

    kinds: Counter[str]
    suffixes: defaultdict[str, list[int]]  # suffix → files, bytes
    files: list[tuple[int, int, WorkspacePath]] = []  # size (-1: not to be told), time of change in ms, path
    unlisted: WorkspacePath | None = None  # the first of those that take a person's yes
    unlisted_total: int = 0


class DirectoryCounter:
    """Counts what a listing would show."""

    def __init__(self, services: Services, names: Names) -> None:
        self._s, self._names = services, names

    async def directory_stats(self, caller: Caller, call: Call, params: d.DirectoryStats) -> d.DirectoryNumbers:
        path = await directory_named(self._s, caller, call, params.path)
        counted = await to_thread.run_sync(self._counted, caller, path, params.globs, limiter=self._names.threads)
        if counted.unlisted is not None and not counted.kinds and not params.globs and path != ROOT:
            await self._s.access.names_in(caller, call, path, counted.unlisted)
        event = DirectoryListed(
            operation=call.operation.name, path=path, globs=params.globs, entries=counted.kinds.total()
        )
        await self._s.notes.note_shown(caller, call, event)
        return _numbers(path, counted)

    def _counted(self, caller: Caller, start: WorkspacePath, globs: tuple[str, ...]) -> Counted:
        """Blocking."""
        wanted, access = Globs(globs) if globs else None, self._s.access
        counted, files = Counted(Counter(), defaultdict(lambda: [0, 0])), list[Name]()
        first = ("" if start == ROOT else f"{start}/") + (wanted.prefix if wanted else "")
        for item in self._names.walk(start, first=first, last=first + LAST, holding=wanted.pieces if wanted else ()):
            if wanted and not wanted.match(below(start, item.path)):
                continue
            if access.lists(caller, item.path):
                if item.kind == "file":
                    files.append(item)
                counted.kinds[item.kind] += 1
            elif access.asks_to_list(caller, item.path):
                counted.unlisted = counted.unlisted or item.path
                counted.unlisted_total += 1
        for item, signature in zip(files, self._names.signatures(files), strict=True):
            if signature is None:
                counted.kinds[item.kind] -= 1  # another program was faster
                continue
            shown = self._s.permissions.readable(caller, item.path)
            stem, dot, suffix = item.name.rpartition(".")
            number = counted.suffixes[f".{suffix.lower()}" if dot and stem else ""]
            number[0] += 1
            number[1] += signature.size if shown else 0
            counted.files.append((signature.size if shown else -1, signature.mtime_ns // 1_000_000, item.path))
        return counted


def _numbers(path: WorkspacePath, counted: Counted) -> d.DirectoryNumbers:
    suffixes = sorted(counted.suffixes.items(), key=lambda item: (-item[1][1], -item[1][0], item[0]))
    rows = [d.SuffixCount(suffix=suffix, files=files, size=size) for suffix, (files, size) in suffixes[:MOST_SUFFIXES]]
    return d.DirectoryNumbers(
        path=path,
        files=counted.kinds["file"],
        directories=counted.kinds["directory"],
        others=counted.kinds["other"] + counted.kinds["invalid"],
        size=sum(size for _, size in counted.suffixes.values()),
        unsized=sum(size < 0 for size, _, _ in counted.files),
        by_suffix=tuple(rows),
        more_suffixes=len(suffixes) - len(rows),
        largest=_sized(nlargest(MOST_FILES, (item for item in counted.files if item[0] >= 0))),
        newest=_sized(nlargest(MOST_FILES, counted.files, key=lambda item: (item[1], item[2]))),
        unlisted=counted.unlisted_total,
    )


def _sized(files: list[tuple[int, int, WorkspacePath]]) -> tuple[d.SizedFile, ...]:
    return tuple(d.SizedFile(path=path, size=size if size >= 0 else None, last_modified=at) for size, at, path in files)
