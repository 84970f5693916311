"""related_files: what a file imports, and who imports it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import msgspec
from anyio import to_thread

from orchestrator.api import relations as s
from orchestrator.core.errors import OrchestratorError, PathError, escaped
from orchestrator.core.ids import WorkspacePath, show
from orchestrator.core.name_index import NameKind
from orchestrator.core.paths import ROOT
from orchestrator.core.text.answer_space import AnswerSpace, size
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.import_paths import FAMILIES, mentions, resolved
from orchestrator.core.text.search import Pattern
from orchestrator.core.text.symbols import Import, Outline, language_of, suffixes_of
from orchestrator.engine.access import Showing
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.names import Names
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.outlined_files import note_told, outlined_file
from orchestrator.engine.reads.search import Searcher
from orchestrator.engine.services import Services

MOST_FILES = 1_000
"""Found at most, whatever the depth."""

LOOKED_US = 8_000_000
"""How long files that may import it are looked at."""

SHOWING: tuple[Showing, ...] = ("search", "read", "list")

ROW_BYTES = 40
"""Of a row beside its paths and its source."""


class Relations:
    """Answers from the imports in outlines, which the parser remembers by content."""

    def __init__(self, services: Services, observer: Observer, searcher: Searcher, names: Names) -> None:
        self._s, self._observer, self._searcher, self._names = services, observer, searcher, names

    async def related_files(self, caller: Caller, call: Call, params: s.RelatedFiles) -> s.Related:
        path = self._s.paths.file(params.path)
        access = self._s.access.content(caller, call, path)
        async with self._s.locks.shared(path):
            found = await outlined_file(self._s, self._observer, access)
        search = _Search(self._s, self._searcher, self._names, caller)
        imports, unresolved = list[s.RelatedFile](), tuple[str, ...]()
        if params.direction != "imported_by":
            told = [msgspec.structs.replace(one, source=found.told(one.source)) for one in found.outline.imports]
            imports, unresolved = await search.imports(path, told, params.depth)
        importers = await search.importers(path, params.depth) if params.direction != "imports" else []
        room, others = call.room.framed(escaped(path), escaped(path)), () if params.skip else unresolved
        quarter = AnswerSpace(room.bytes // 4)
        named = others[: quarter.first(((size(escaped(one)) + 4, 0) for one in others), least=0)]
        answer = _answer(params, path, imports, importers, room.less(sum(size(escaped(one)) + 4 for one in named), 1))
        answer = msgspec.structs.replace(
            answer,
            version_id=show(found.shown.version),
            unresolved=named,
            unresolved_left_out=len(others) - len(named),
            files_searched=search.searched,
            partial=search.partial,
            warnings=found.shown.warnings,
        )
        await note_told(
            self._s, access, call, found.shown.version, found.document.line_count, "\n".join(s.related_rows(answer))
        )
        return answer


class _Search:
    """One search for related files, on behalf of one caller."""

    def __init__(self, services: Services, searcher: Searcher, names: Names, caller: Caller) -> None:
        self._s, self._searcher, self._caller = services, searcher, caller
        self._tree = _Tree(services, names, caller)
        self._until = services.clock.ticks_us() + LOOKED_US
        self.searched, self.partial = 0, False

    async def imports(
        self, path: WorkspacePath, imported: Sequence[Import], depth: int
    ) -> tuple[list[s.RelatedFile], tuple[str, ...]]:
        """The files that a file imports, nearest first, and what it imports of others."""
        unresolved: dict[str, None] = {}
        known, found = {path}, list[s.RelatedFile]()
        level: list[tuple[WorkspacePath, Sequence[Import]]] = [(path, imported)]
        for number in range(1, depth + 1):
            following = list[WorkspacePath]()
            for at, its in level:
                meant = await to_thread.run_sync(partial(self._resolved, at, its))
                for one, targets in zip(its, meant, strict=True):
                    if not targets and number == 1:
                        unresolved[one.source] = None
                    following += (target for target in targets if _note(found, known, target, one, at, number))
            if number < depth:
                level = [(at, await self._imports_in(at)) for at in following]
        return found, tuple(unresolved)

    async def importers(self, path: WorkspacePath, depth: int) -> list[s.RelatedFile]:
        """The files that import a file, nearest first."""
        known, found, level = {path}, list[s.RelatedFile](), [path]
        for number in range(1, depth + 1):
            following = list[WorkspacePath]()
            for target in level:
                importing = await self._importing(target)
                following += (at for at, one in importing if _note(found, known, at, one, target, number))
            level = following
        return found

    async def _importing(self, target: WorkspacePath) -> list[tuple[WorkspacePath, Import]]:
        """The files with an import that means this one: they mention it, so few have to be parsed."""
        language = language_of(target)
        family = next((one for one in FAMILIES if language in one), None)
        if language is None or family is None or self._late():
            return []
        word = mentions(language, target)
        pattern = Pattern(word, word=word.isidentifier())
        globs = tuple(f"*{suffix}" for one in family for suffix in suffixes_of(one))
        sweep = await self._searcher.sweep(self._caller, ROOT, globs, pattern)
        self.searched += sweep.searched
        self.partial |= sweep.partial
        found = []
        for at in [file.path for file in sweep.files]:
            if at == target:
                continue
            if self._late():
                break
            imported = await self._imports_in(at)
            meant = await to_thread.run_sync(partial(self._resolved, at, imported))
            found += [(at, one) for one, targets in zip(imported, meant, strict=True) if target in targets][:1]
        return found

    def _late(self) -> bool:
        late = self._s.clock.ticks_us() > self._until
        self.partial |= late
        return late

    async def _imports_in(self, path: WorkspacePath) -> Sequence[Import]:
        """What a file imports that the caller may be shown; nothing, where it may not."""
        if self._s.access.content_of_many(self._caller, path, SHOWING) is None:
            return ()
        try:
            most = self._s.permissions.policy.limits.in_memory_bytes
            read = await to_thread.run_sync(partial(self._s.workspace.read, path, most=most))
        except PathError:
            return ()
        outline: Outline | None = await self._s.parser.outline(path, read.digest, read.data)
        return outline.imports if outline is not None else ()

    def _resolved(self, path: WorkspacePath, imported: Iterable[Import]) -> list[tuple[WorkspacePath, ...]]:
        language = language_of(path) or ""
        return [tuple(map(WorkspacePath, resolved(language, path, one, self._tree))) for one in imported]


class _Tree:
    """The files that a caller may know of. Blocking: for worker threads."""

    def __init__(self, services: Services, names: Names, caller: Caller) -> None:
        self._s, self._names, self._caller = services, names, caller
        self._held: dict[str, bool] = {}
        self._ending: dict[tuple[str, NameKind], list[str]] = {}

    def holds(self, path: str) -> bool:
        held = self._held.get(path)
        if held is None:
            held = self._held[path] = self._holds(path)
        return held

    def _holds(self, raw: str) -> bool:
        try:
            path = self._s.paths.file(raw)
            stat = self._s.workspace.stat(path)
        except OrchestratorError:
            return False
        return stat is not None and stat.kind == "file" and self._s.access.lists(self._caller, path)

    def ending(self, name: str) -> Sequence[str]:
        return [path for path in self._named(name, "file") if self.holds(path)]

    def inside(self, folder: str) -> Sequence[str]:
        try:
            listed = self._s.workspace.names(self._s.paths.either(folder or "."))
        except OrchestratorError:
            return ()
        paths = sorted(f"{folder}/{one.name}" if folder else one.name for one in listed if one.valid)
        return [path for path in paths if self.holds(path)]

    def folders(self, ending: str) -> Sequence[str]:
        return self._named(ending, "directory")

    def _named(self, ending: str, kind: NameKind) -> list[str]:
        """Names of a kind that end so; looked for once."""
        found = self._ending.get((ending, kind))
        if found is None:
            listed = self._names.walk(ROOT, holding=(ending,))
            found = self._ending[ending, kind] = [
                one.path for one in listed if one.kind == kind and f"/{one.path}".endswith(f"/{ending}")
            ]
        return found

    def text(self, raw: str) -> str | None:
        path = WorkspacePath(raw)
        if self._s.access.content_of_many(self._caller, path) is None:
            return None
        try:
            document = decode(self._s.workspace.read(path, most=self._s.permissions.policy.limits.in_memory_bytes).data)
        except PathError:
            return None
        return document.text if document is not None else None


def _note(
    found: list[s.RelatedFile],
    known: set[WorkspacePath],
    path: WorkspacePath,
    one: Import,
    via: WorkspacePath,
    depth: int,
) -> bool:
    """Whether a file was not met before; then it is found, by way of another one."""
    if path in known or len(found) >= MOST_FILES:
        return False
    known.add(path)
    way = via if depth > 1 else None
    found.append(s.RelatedFile(path=path, line=one.line, source=one.source, via=way, depth=depth))
    return True


def _answer(
    params: s.RelatedFiles,
    path: WorkspacePath,
    imports: list[s.RelatedFile],
    importers: list[s.RelatedFile],
    room: AnswerSpace,
) -> s.Related:
    """As many of both as there is room for, in this order; `skip` counts through both."""
    files = [*imports, *importers][params.skip :]
    kept = room.first((room.cost(size(escaped(s.related_text(one))) + ROW_BYTES, one), 1) for one in files)
    cut = max(0, len(imports) - params.skip)
    more = len(files) - kept
    depth = f", depth={params.depth}" if params.depth > 1 else ""
    side = f', direction="{params.direction}"' if params.direction != "both" else ""
    follow = f"related_files(path={quoted(path)}{side}{depth}, skip={params.skip + kept})" if more else None
    return s.Related(
        path=path,
        version_id="",
        imports=tuple(files[: min(cut, kept)]),
        imported_by=tuple(files[cut:kept]),
        left_out=more,
        next=follow,
    )
