"""Where a search finds its files: on the disk as it is, or in the journal as they were."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec
from anyio import to_thread

from orchestrator.core.content import Signature
from orchestrator.core.errors import (
    ApprovalRequired,
    ChangedWhileRead,
    Denied,
    FileNotFound,
    FileTooLarge,
    JournalCorrupt,
    PathError,
    VersionNotKept,
    VersionTooLarge,
)
from orchestrator.core.globs import Globs
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.name_index import LAST, MARKS, files_in
from orchestrator.core.paths import ROOT
from orchestrator.core.policy.evaluate import evaluation_of
from orchestrator.core.policy.rules import Policy
from orchestrator.core.projections.registry import NOTHING, Known
from orchestrator.core.projections.versions import VersionRow
from orchestrator.core.text.search import Matcher
from orchestrator.engine.access import ContentAccess, Showing
from orchestrator.engine.caller import Caller
from orchestrator.engine.external.observer import Observer, required, warnings
from orchestrator.engine.names import Name, Names
from orchestrator.engine.paths import below
from orchestrator.engine.services import Services

SHOWN: tuple[Showing, ...] = ("search", "read")
"""What a search of one file shows; one of many files shows their names too."""

SHOWN_OF_MANY: tuple[Showing, ...] = (*SHOWN, "list")

CHANGED = "another program changed it while it was searched: search it again"
"""Why it was not searched."""

MOST_SWEPT = 1 << 32
"""Bytes; a larger file is most likely full of holes, which ripgrep would read, and we pass over."""

FEW = 40
"""Of fewer files each is read at once: no program starts as quickly."""


class Text(NamedTuple):
    """A content that is searched; `data` None: it can't be read, or, where it is `large`, not at once."""

    path: WorkspacePath
    data: bytes | None
    known: Known = NOTHING
    large: bool = False
    reason: str | None = None  # why it can't be read, where that is told


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
        self._kinds: tuple[Policy | None, dict[str, tuple[WorkspacePath, ...]]] = (None, {})
        """What policy was asked last, and of each piece of the names one file of each kind."""

    async def is_one(self, start: WorkspacePath) -> bool:
        stat = self._s.workspace.stat(start)
        if stat is None:
            raise FileNotFound(start, "there is nothing to search")
        return stat.kind != "directory"

    async def files(self, caller: Caller, start: WorkspacePath, globs: tuple[str, ...]) -> Files:
        wanted = self._s.paths.globs(globs, start)
        first = ("" if start == ROOT else f"{start}/") + (wanted.prefix if wanted else "")
        pieces = wanted.pieces if wanted else ()

        def below_it() -> Files:
            index = self._names.pieces() if start == ROOT and wanted is None else None
            if index is not None and not any(MARKS["invalid"] in piece for piece in index):
                return self._all(caller, index)
            names = self._names.walk(start, first=first, last=first + LAST, holding=pieces)
            named = [name for name in names if name.kind in ("file", "invalid")]
            found = _allowed(self._s, caller, start, wanted, [name.path for name in named if name.kind == "file"])
            unusable = (name.path for name in named if name.kind == "invalid")
            fitting = (path for path in unusable if wanted is None or wanted.match(below(start, path)))
            return found._replace(unusable=sum(self._s.access.lists(caller, path) for path in fitting))

        return await to_thread.run_sync(below_it)

    def _all(self, caller: Caller, index: Iterable[str]) -> Files:
        """Blocking. Where one file of each kind in a piece may be searched, all in it may, and are not judged again."""
        policy, paths, left_out = self._s.permissions.policy, list[WorkspacePath](), 0
        allows = self._s.permissions.allowing(caller, SHOWN_OF_MANY)
        if self._s.permissions.policy is not policy:  # whose kinds are others
            return self._all(caller, index)
        known = self._kinds[1] if self._kinds[0] is policy else {}
        kinds = {piece: known.get(piece) or evaluation_of(policy).one_of_each(files_in(piece)) for piece in index}
        self._kinds = policy, kinds
        for piece, files in kinds.items():
            if all(map(allows, files)):
                paths += files_in(piece)
            else:
                found = _allowed(self._s, caller, ROOT, None, files_in(piece))
                paths += found.paths
                left_out += found.left_out
        return Files(paths, left_out)

    async def fitting(self, matcher: Matcher, paths: list[WorkspacePath]) -> list[WorkspacePath]:
        expressions = matcher.sweep
        if self._s.sweep is None or expressions is None or len(paths) < FEW:
            return paths
        huge = await to_thread.run_sync(self._huge, paths)
        swept = [path for path in paths if path not in huge] if huge else paths
        fitting = await self._s.sweep.containing(expressions, swept, multiline=matcher.multiline)
        return [*fitting, *sorted(huge)]

    def _huge(self, paths: list[WorkspacePath]) -> set[WorkspacePath]:
        """Those of more bytes than ripgrep is to read."""
        signatures = self._names.signatures([Name(path, "file") for path in paths])
        return {path for path, now in zip(paths, signatures, strict=True) if now and now.size >= MOST_SWEPT}

    async def texts(self, caller: Caller, paths: Sequence[WorkspacePath], most_bytes: int) -> list[Text]:
        def read() -> list[Text]:
            texts, taken, most = list[Text](), 0, self._s.permissions.policy.limits.in_memory_bytes
            for path in paths:
                data, large, reason = None, False, None
                try:
                    data = self._s.workspace.read(path, most=most, growing=True).data
                except PathError as error:
                    large = isinstance(error, FileTooLarge)
                    reason = CHANGED if isinstance(error, ChangedWhileRead) else f"it can't be read: {error.code}"
                texts.append(Text(path, data, self._known(path), large, reason))
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
        return await to_thread.run_sync(_allowed, self._s, caller, start, self._s.paths.globs(globs, start), paths)

    async def fitting(self, matcher: Matcher, paths: list[WorkspacePath]) -> list[WorkspacePath]:
        return paths

    async def texts(self, caller: Caller, paths: Sequence[WorkspacePath], most_bytes: int) -> list[Text]:
        texts, taken = list[Text](), 0
        for path in paths:
            access, data, reason = self._s.access.content_of_many(caller, path, SHOWN_OF_MANY), None, None
            try:
                if access is not None:
                    _, data = await self._s.past.content(access, self._rows[path])
            except VersionTooLarge:
                reason = "it was too large then to be searched"
            except VersionNotKept:
                reason = "its content then is not kept"
            except (JournalCorrupt, Denied, ApprovalRequired):
                pass
            texts.append(Text(path, data, self._s.state.encodings.of(self._rows[path].digest), reason=reason))
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
