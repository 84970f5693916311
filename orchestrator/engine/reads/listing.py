"""list_files and find_files: one sorted, paged list of entries; directory_stats: the same in numbers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from heapq import nlargest

import msgspec
from anyio import to_thread

from orchestrator.api import directory_stats as d
from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.errors import FileNotFound, NotADirectory, PathError, escaped
from orchestrator.core.events.files import DirectoryListed
from orchestrator.core.globs import Globs
from orchestrator.core.ids import WorkspacePath, show
from orchestrator.core.name_index import AFTER, LAST
from orchestrator.core.paths import ROOT
from orchestrator.core.text.answer_space import size
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.names import Name, Names
from orchestrator.engine.paths import below, quoted
from orchestrator.engine.reads.file_facts import TYPES, FactReader
from orchestrator.engine.reads.search_query import query_of, read_cursor
from orchestrator.engine.services import Services
from orchestrator.ports.workspace import FileStat

ENTRY_BYTES, KIND_BYTES = 5, 30
"""Of an entry beside its path and its notes; and for what is no file: its kind."""

COUNTED = 1000
"""So many names that fit are counted, whatever of them is shown; the answer says if there may be more."""

TREE = "2"
"""Begins the places in a whole tree. Those in one directory begin with 0 or 1: directories come first."""


MOST_SUFFIXES, MOST_FILES = 20, 10
"""Of the numbers of a directory: suffixes, and files in each of the two lists."""


class Chosen(msgspec.Struct):
    """What of a directory fits, as far as it was looked at."""

    names: list[Name]  # one more than a page has, if there are more
    page: list[tuple[Name, FileStat]] = []
    total: int = 0
    unlisted: WorkspacePath | None = None  # the first of those that take a person's yes
    unlisted_total: int = 0
    at_least: bool = False


class Lister:
    """Shows names, and notes that they were shown."""

    def __init__(self, services: Services, facts: FactReader, names: Names) -> None:
        self._s, self._facts, self._names = services, facts, names

    async def list_files(self, caller: Caller, call: Call, params: p.ListFiles) -> r.Listing:
        return await self._listed(caller, call, params, query_of(params, free=("limit",)), files_only=False)

    async def find_files(self, caller: Caller, call: Call, params: p.FindFiles) -> r.Listing:
        wanted = p.ListFiles(
            path=params.path,
            globs=(params.glob,),
            recursive=params.recursive,
            include_hidden=True,
            limit=params.limit,
            cursor=params.cursor,
        )
        query = query_of(params, free=("limit",))
        return await self._listed(caller, call, wanted, query, files_only=True, tag=params.tag)

    async def _listed(
        self,
        caller: Caller,
        call: Call,
        params: p.ListFiles,
        query: str,
        *,
        files_only: bool,
        tag: str | None = None,
    ) -> r.Listing:
        depth = params.max_depth if params.recursive else 1
        flat = depth == 1
        path = await directory_named(self._s, caller, call, params.path)
        if params.cursor is not None:
            params = msgspec.structs.replace(params, cursor=read_cursor(params.cursor, query, 0)[1])
        chosen = await to_thread.run_sync(
            self._choose, caller, path, params, depth, files_only, tag, limiter=self._names.threads
        )
        if chosen.unlisted is not None and not chosen.total and not params.globs and path != ROOT:
            await self._s.access.names_in(caller, call, path, chosen.unlisted)
        page = [(item, self._entry(caller, item, stat)) for item, stat in chosen.page]
        room = call.room.framed(path, path)
        widest = max((size(repr(entry.path)) + size(entry.path) for _, entry in page), default=0)
        room = room.less(widest + 2 * len(query))  # the cursor
        page = page[: room.first((room.cost(_cost(entry), entry), 1) for _, entry in page)]
        event = DirectoryListed(operation=call.operation.name, path=path, globs=params.globs, entries=len(page))
        await self._s.notes.note_shown(caller, call, event)
        cut = len(page) < len(chosen.page)
        truncated = cut or len(chosen.names) > params.limit
        last = page[-1][0] if cut else chosen.names[: params.limit][-1] if chosen.names else None
        return r.Listing(
            path=path,
            entries=tuple(entry for _, entry in page),
            total=chosen.total,
            at_least=chosen.at_least,
            hint=self._left_out(caller, path, params.globs) if not chosen.total else None,
            unlisted=chosen.unlisted_total,
            truncated=truncated,
            cursor=f"{query}:{_place(last, flat=flat)}" if truncated and last is not None else None,
        )

    def _left_out(self, caller: Caller, start: WorkspacePath, globs: tuple[str, ...]) -> str | None:
        """That globs name what is in an ignored folder, and how that is listed; None where they do not."""
        wanted = self._s.paths.globs(globs, start)
        above = (_above(start) + wanted.prefix if wanted else "").rpartition("/")[0]
        if not above or above == start:
            return None
        try:
            folder = self._s.paths.either(above)
            stat = self._s.workspace.stat(folder)
        except PathError:
            return None
        is_folder = stat is not None and stat.kind == "directory" and self._s.access.lists(caller, folder)
        if not is_folder or not self._names.ignored(folder):
            return None
        return f"ignored files are left out: send path={quoted(folder)}, which is ignored, and globs as seen from there"

    def _choose(
        self,
        caller: Caller,
        start: WorkspacePath,
        params: p.ListFiles,
        depth: int | None,
        files_only: bool,
        tag: str | None,
    ) -> Chosen:
        """Blocking. The names that are shown, in order, as far as a page goes and they are counted."""
        chosen, access, cursor, flat = Chosen([]), self._s.access, params.cursor, depth == 1
        wanted = self._s.paths.globs(params.globs, start)
        for item in self._walked(chosen, start, params, depth, wanted):
            if (files_only and item.kind == "directory") or (wanted and not wanted.match(below(start, item.path))):
                continue
            if tag is not None and (item.kind != "file" or tag not in self._facts.tags(item.path)):
                continue
            passed = cursor is not None and _place(item, flat=flat) <= cursor
            if passed and chosen.total >= COUNTED:
                chosen.at_least = True
                continue
            if access.lists(caller, item.path):
                if len(chosen.names) <= params.limit and not passed:
                    chosen.names.append(item)
                chosen.total += 1
            elif access.asks_to_list(caller, item.path):
                chosen.unlisted = chosen.unlisted or item.path
                chosen.unlisted_total += 1
            if len(chosen.names) > params.limit and chosen.total >= COUNTED:
                chosen.at_least = True
                break
        shown = chosen.names[: params.limit]
        found = zip(shown, self._names.stats(shown), strict=True)
        chosen.page = [(item, stat) for item, stat in found if stat and not (files_only and stat.kind == "directory")]
        chosen.total -= len(shown) - len(chosen.page)  # another program was faster
        return chosen

    def _walked(
        self, chosen: Chosen, start: WorkspacePath, params: p.ListFiles, depth: int | None, wanted: Globs | None
    ) -> Iterator[Name]:
        """The names that a glob may name; those before the cursor are passed over once enough are counted."""
        first = _above(start) + (wanted.prefix if wanted else "")
        last, pieces = first + LAST, wanted.pieces if wanted else ()
        if depth == 1:
            yield from self._names.children(start, hidden=params.include_hidden)
            return
        resumed = "" if params.cursor is None else params.cursor.removeprefix(TREE) + AFTER
        walk = partial(self._names.walk, start, depth=depth, hidden=params.include_hidden, last=last, holding=pieces)
        for item in walk(first=first):
            if item.path < resumed and chosen.total >= COUNTED:
                break
            yield item
        else:
            return
        chosen.at_least = True
        yield from walk(first=max(first, resumed))

    def _entry(self, caller: Caller, item: Name, stat: FileStat) -> r.Entry:
        valid = item.kind != "invalid"
        known = self._s.state.registry.get(item.path) if valid else None
        is_file = stat.kind == "file" and valid
        current = known is not None and known.signature == stat.signature
        return r.Entry(
            type=TYPES[stat.kind if valid else "other"],  # type: ignore[arg-type]  # a table of the literals
            name=item.name,
            path=item.path,
            size=stat.signature.size if not is_file or self._s.permissions.readable(caller, item.path) else None,
            last_modified=stat.signature.mtime_ns // 1_000_000,
            target=stat.target,
            version_id=show(known.version) if known and current else None,
            tags=self._facts.tags(item.path) if is_file else (),
            sensitivity=self._facts.sensitivity(caller, item.path) if is_file else None,
        )


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
        wanted, access = self._s.paths.globs(globs, start), self._s.access
        counted, files = Counted(Counter(), defaultdict(lambda: [0, 0])), list[Name]()
        first = _above(start) + (wanted.prefix if wanted else "")
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


async def directory_named(services: Services, caller: Caller, call: Call, raw: str) -> WorkspacePath:
    """The directory that a caller names, and may list. Raises Denied, ApprovalRequired, the PathError family."""
    path = services.paths.either(raw)
    await services.access.names(caller, call, path, directory=True)
    stat = services.workspace.stat(path)
    if stat is None:
        raise FileNotFound(path, "there is no such directory")
    if stat.kind == "symlink":
        hint = f"It points to {quoted(stat.target or '?')}; where that is in the workspace, name it itself."
        raise NotADirectory(path, "it is a symbolic link, and links are not followed", hint=hint)
    if stat.kind != "directory":
        raise NotADirectory(path, "it is not a directory", hint="Use read_file.")
    return path


def _cost(entry: r.Entry) -> int:
    """The bytes of an entry as text."""
    kept_back = entry.sensitivity if entry.sensitivity in ("secret", "guarded") else None
    notes = (f"{entry.size} bytes", *entry.tags, entry.version_id, kept_back)
    kind = 0 if entry.type == "FileEntry" else KIND_BYTES + size(escaped(entry.target or ""))
    return size(escaped(entry.path)) + kind + ENTRY_BYTES + sum(len(note) + 2 for note in notes if note)


def _place(item: Name, *, flat: bool) -> str:
    """Where a cursor goes on: directories first in one directory; by path in a tree."""
    return f"{0 if item.kind == 'directory' else 1}{item.name}" if flat else TREE + item.path


def _above(directory: WorkspacePath) -> str:
    """What every path in a directory begins with."""
    return "" if directory == ROOT else f"{directory}/"


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
