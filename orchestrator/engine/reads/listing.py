"""list_files and find_files: one sorted, paged list of entries."""

from __future__ import annotations

from anyio import to_thread

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.errors import FileNotFound, NotADirectory, ParameterInvalid, escaped
from orchestrator.core.events.files import DirectoryListed
from orchestrator.core.globs import Globs
from orchestrator.core.ids import WorkspacePath, show
from orchestrator.core.paths import ROOT, tags_of
from orchestrator.core.text.answer_space import size
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.paths import Walked, Walker, below
from orchestrator.engine.reads.file_reads import TYPES, Reader
from orchestrator.engine.services import Services

ENTRY_BYTES, KIND_BYTES = 5, 30
"""Of an entry beside its path and its notes; and for what is no file: its kind."""


class Lister:
    """Shows names, and notes that they were shown."""

    def __init__(self, services: Services, reader: Reader) -> None:
        self._s, self._reader = services, reader
        self._walker = Walker(services.workspace, services.ignore)

    async def list_files(self, caller: Caller, call: Call, params: p.ListFiles) -> r.Listing:
        return await self._listed(caller, call, params, files_only=False)

    async def find_files(self, caller: Caller, call: Call, params: p.FindFiles) -> r.Listing:
        wanted = p.ListFiles(
            path=params.path,
            globs=(params.glob,),
            recursive=params.recursive,
            include_hidden=True,
            limit=params.limit,
            cursor=params.cursor,
        )
        return await self._listed(caller, call, wanted, files_only=True)

    async def _listed(self, caller: Caller, call: Call, params: p.ListFiles, *, files_only: bool) -> r.Listing:
        path, cursor, limit = self._s.paths.either(params.path), params.cursor, params.limit
        depth = params.max_depth if params.recursive else 1
        if cursor is not None and depth == 1 and cursor[:1] not in ("0", "1"):
            raise ParameterInvalid("cursor", "is not one of ours; send the cursor of the last answer")
        await self._s.access.names(caller, call, path, directory=True)
        stat, flat = self._s.workspace.stat(path), depth == 1
        if stat is None:
            raise FileNotFound(path, "there is no such directory")
        if stat.kind != "directory":
            raise NotADirectory(path, "it is not a directory", hint="Use read_file.")

        def choose() -> tuple[list[Walked], list[WorkspacePath]]:
            """The names that are shown, in order, and those that take a person's yes."""
            wanted = Globs(params.globs) if params.globs else None
            listed, asks, access = list[Walked](), list[WorkspacePath](), self._s.access
            for item in self._walker.walk(path, depth=depth, hidden=params.include_hidden):
                if files_only and item.stat.kind == "directory":
                    continue
                if wanted is not None and not wanted.match(below(path, item.path)):
                    continue
                if access.lists(caller, item.path):
                    listed.append(item)
                elif access.asks_to_list(caller, item.path):
                    asks.append(item.path)
            return sorted(listed, key=lambda item: _cursor(item, flat=flat)), asks

        chosen, unlisted = await to_thread.run_sync(choose)
        if unlisted and not chosen and not params.globs and path != ROOT:
            await self._s.access.names_in(caller, call, path, unlisted[0])
        rest = [item for item in chosen if cursor is None or _cursor(item, flat=flat) > cursor]
        page = [(item, self._entry(caller, item)) for item in rest[:limit]]
        room = call.room.framed(path, path)
        room = room.less(max((size(repr(entry.path)) + size(entry.path) for _, entry in page), default=0))  # the cursor
        page = page[: room.first((room.cost(_cost(entry), entry), 1) for _, entry in page)]
        event = DirectoryListed(operation=call.operation.name, path=path, globs=params.globs, entries=len(page))
        await self._s.notes.note_shown(caller, call, event)
        truncated = len(rest) > len(page)
        return r.Listing(
            path=path,
            entries=tuple(entry for _, entry in page),
            total=len(chosen),
            unlisted=len(unlisted),
            truncated=truncated,
            cursor=_cursor(page[-1][0], flat=flat) if truncated else None,
        )

    def _entry(self, caller: Caller, item: Walked) -> r.Entry:
        stat = item.stat
        known = self._s.state.registry.get(item.path) if item.valid else None
        is_file = stat.kind == "file" and item.valid
        current = known is not None and known.signature == stat.signature
        return r.Entry(
            type=TYPES[stat.kind if item.valid else "other"],  # type: ignore[arg-type]  # a table of the literals
            name=item.name,
            path=item.path,
            size=stat.signature.size if not is_file or self._s.permissions.readable(caller, item.path) else None,
            last_modified=stat.signature.mtime_ns // 1_000_000,
            target=stat.target,
            version_id=show(known.version) if known and current else None,
            tags=tags_of(item.path) if is_file else (),
            sensitivity=self._reader.sensitivity(caller, item.path) if is_file else None,
        )


def _cost(entry: r.Entry) -> int:
    """The bytes of an entry as text."""
    kept_back = entry.sensitivity if entry.sensitivity in ("secret", "guarded") else None
    notes = (f"{entry.size} bytes", *entry.tags, entry.version_id, kept_back)
    kind = 0 if entry.type == "FileEntry" else KIND_BYTES + size(escaped(entry.target or ""))
    return size(escaped(entry.path)) + kind + ENTRY_BYTES + sum(len(note) + 2 for note in notes if note)


def _cursor(item: Walked, *, flat: bool) -> str:
    """Directories first in one directory; by path in a tree."""
    if not flat:
        return item.path
    return f"{0 if item.stat.kind == 'directory' else 1}{item.name}"
