"""Where a search finds its files: on the disk as it is, or in the journal as they were."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

import msgspec
from anyio import to_thread

from orchestrator.core.content import Signature
from orchestrator.core.errors import (
    ApprovalRequired,
    Denied,
    FileNotFound,
    FileTooLarge,
    JournalCorrupt,
    PathError,
    VersionNotKept,
)
from orchestrator.core.globs import Globs
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.name_index import LAST
from orchestrator.core.paths import ROOT
from orchestrator.core.projections.registry import NOTHING, Known
from orchestrator.core.projections.versions import VersionRow
from orchestrator.core.text.search import Matcher
from orchestrator.engine.access import ContentAccess, Showing
from orchestrator.engine.caller import Caller
from orchestrator.engine.external.observer import Observer, required, warnings
from orchestrator.engine.names import Names
from orchestrator.engine.paths import below
from orchestrator.engine.services import Services

SHOWN: tuple[Showing, ...] = ("search", "read")
"""What a search of one file shows; one of many files shows their names too."""

SHOWN_OF_MANY: tuple[Showing, ...] = (*SHOWN, "list")

FEW = 40
"""Of fewer files each is read at once: no program starts as quickly."""


class Text(NamedTuple):
    """A content that is searched; `data` None: it can't be read, or, where it is `large`, not at once."""

    path: WorkspacePath
    data: bytes | None
    known: Known = NOTHING
    large: bool = False


class Files(NamedTuple):
    """Files that are searched; how many more policy keeps out; how many names can't be used, which are no paths."""

    paths: list[WorkspacePath]
    left_out: int = 0
    unusable: int = 0


class Shown(msgspec.Struct, frozen=True):
    """The version of a file of which lines are shown."""

    version: Seq
    digest: Digest | None = None
    data: bytes | None = None  # None: of a large file, which `signature` identifies
    warnings: tuple[str, ...] = ()
    signature: Signature | None = None


class Source(Protocol):
    """Files that can be searched."""

    async def is_one(self, start: WorkspacePath) -> bool:
        """Whether a path is that of a file, not of a directory. Raises FileNotFound."""

    async def files(self, caller: Caller, start: WorkspacePath, globs: tuple[str, ...]) -> Files:
        """The files below a directory that the caller may search. None is counted whose name is kept from it."""

    async def fitting(self, matcher: Matcher, paths: list[WorkspacePath]) -> list[WorkspacePath]:
        """Those that may match."""

    async def texts(self, caller: Caller, paths: Sequence[WorkspacePath], most_bytes: int) -> list[Text]:
        """The contents of the first of these, at least one, as far as about so many bytes go."""

    async def shown(self, access: ContentAccess) -> Shown:
        """A content that is shown. Raises the PathError family."""


class Present:
    """The files on the disk."""

    def __init__(self, services: Services, observer: Observer, names: Names) -> None:
        self._s, self._observer, self._names = services, observer, names

    async def is_one(self, start: WorkspacePath) -> bool:
        stat = self._s.workspace.stat(start)
        if stat is None:
            raise FileNotFound(start, "there is nothing to search")
        return stat.kind != "directory"

    async def files(self, caller: Caller, start: WorkspacePath, globs: tuple[str, ...]) -> Files:
        wanted = Globs(globs) if globs else None
        first = ("" if start == ROOT else f"{start}/") + (wanted.prefix if wanted else "")
        pieces = wanted.pieces if wanted else ()

        def below_it() -> Files:
            names = self._names.walk(start, first=first, last=first + LAST, holding=pieces)
            named = [name for name in names if name.kind in ("file", "invalid")]
            found = _allowed(self._s, caller, start, wanted, [name.path for name in named if name.kind == "file"])
            unusable = (name.path for name in named if name.kind == "invalid")
            fitting = (path for path in unusable if wanted is None or wanted.match(below(start, path)))
            return found._replace(unusable=sum(self._s.access.lists(caller, path) for path in fitting))

        return await to_thread.run_sync(below_it)

    async def fitting(self, matcher: Matcher, paths: list[WorkspacePath]) -> list[WorkspacePath]:
        expressions = matcher.sweep
        if self._s.sweep is None or expressions is None or len(paths) < FEW:
            return paths
        return await self._s.sweep.containing(expressions, paths, multiline=matcher.multiline)

    async def texts(self, caller: Caller, paths: Sequence[WorkspacePath], most_bytes: int) -> list[Text]:
        def read() -> list[Text]:
            texts, taken = list[Text](), 0
            for path in paths:
                data, large = None, False
                try:
                    data = self._s.workspace.read(path, most=self._s.permissions.policy.limits.in_memory_bytes).data
                except PathError as error:
                    large = isinstance(error, FileTooLarge)
                texts.append(Text(path, data, self._known(path), large))
                taken += len(data or b"")
                if taken >= most_bytes:
                    break
            return texts

        return await to_thread.run_sync(read)

    def _known(self, path: WorkspacePath) -> Known:
        entry = self._s.state.registry.get(path)
        return self._s.state.encodings.of(entry.digest if entry is not None else None)

    async def shown(self, access: ContentAccess) -> Shown:
        async with self._s.locks.shared(access.path):
            present = await self._observer.refresh_for_display(access)
        if present.large and present.entry is not None:
            entry = present.entry
            return Shown(entry.version, warnings=warnings(present), signature=entry.signature)
        entry, digest, data = required(present)
        return Shown(entry.version, digest, data, warnings(present))


class Past:
    """The tracked files at a position; contents that were not kept can't be searched."""

    def __init__(self, services: Services, at: Seq) -> None:
        self._s, self._at = services, at
        self._rows: dict[WorkspacePath, VersionRow] = {}

    async def is_one(self, start: WorkspacePath) -> bool:
        await self._s.past.wait_for_changes(self._at)
        self._rows = await self._s.past.tree(self._at)
        if start in self._rows:
            return True
        if start == ROOT or any(path.startswith(f"{start}/") for path in self._rows):
            return False
        raise FileNotFound(start, f"there was nothing to search at @{self._at}")

    async def files(self, caller: Caller, start: WorkspacePath, globs: tuple[str, ...]) -> Files:
        paths = [path for path in self._rows if start == ROOT or path.startswith(f"{start}/")]
        return await to_thread.run_sync(_allowed, self._s, caller, start, Globs(globs) if globs else None, paths)

    async def fitting(self, matcher: Matcher, paths: list[WorkspacePath]) -> list[WorkspacePath]:
        return paths

    async def texts(self, caller: Caller, paths: Sequence[WorkspacePath], most_bytes: int) -> list[Text]:
        texts, taken = list[Text](), 0
        for path in paths:
            access, data = self._s.access.content_of_many(caller, path, SHOWN_OF_MANY), None
            with suppress(VersionNotKept, JournalCorrupt, Denied, ApprovalRequired):
                if access is not None:
                    _, data = await self._s.past.content(access, self._rows[path])
            texts.append(Text(path, data, self._s.state.encodings.of(self._rows[path].digest)))
            taken += len(data or b"")
            if taken >= most_bytes:
                break
        return texts

    async def shown(self, access: ContentAccess) -> Shown:
        row = self._rows[access.path]
        return Shown(row.seq, *await self._s.past.content(access, row))


def _allowed(
    services: Services, caller: Caller, start: WorkspacePath, wanted: Globs | None, paths: list[WorkspacePath]
) -> Files:
    """Those of the paths that fit and that the caller may search, and how many more it may know of."""
    if wanted is not None:
        paths = [path for path in paths if wanted.match(below(start, path))]
    allowed = services.access.contents_of(caller, paths, SHOWN_OF_MANY)
    left_out = set(paths).difference(allowed) if len(allowed) < len(paths) else ()
    return Files(allowed, sum(services.access.may_be_counted(caller, path) for path in left_out))
