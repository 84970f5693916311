"""Facts about one file: what it is, how large, how it may be read; no lines of it."""

from __future__ import annotations

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.ids import WorkspacePath, show
from orchestrator.core.paths import tags_of
from orchestrator.core.policy.rules import NeedApproval
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import NO_VERSION, Observer
from orchestrator.engine.reads.large_texts import LargeTexts
from orchestrator.engine.services import Services

TYPES = {
    "file": "FileEntry",
    "directory": "DirectoryEntry",
    "symlink": "SymbolicLinkEntry",
    "other": "OtherEntry",
}


class FactReader:
    """Shows facts, and notes that they were shown."""

    def __init__(self, services: Services, observer: Observer, large: LargeTexts) -> None:
        self._s, self._observer, self._large = services, observer, large

    async def file_info(self, caller: Caller, call: Call, params: p.FileInfo) -> r.FileFacts:
        path = self._s.paths.either(params.path)
        names, content = await self._s.access.names(caller, call, path), self._s.access.content_of_many(caller, path)
        readable = content is not None
        async with self._s.locks.shared(path):
            present = await self._observer.refresh_for_display(content if content is not None else names)
            stat, entry = present.stat, present.entry
            data = present.data if readable and isinstance(present.data, bytes) else None
            digest = entry.digest if entry is not None else None
            document = None
            if data is not None and digest is not None:
                document = await self._s.contents.text(digest, data)
            known = None
            if readable and present.large and entry is not None and entry.signature is not None:
                known = await self._large.known(path, entry.signature)
            await self._s.notes.note_metadata(caller, call, path)
        if stat is None:
            return r.FileFacts(path=path, exists=False)
        return r.FileFacts(
            path=path,
            exists=True,
            type=TYPES[stat.kind],
            name=path.rpartition("/")[2],
            size=stat.signature.size if readable or stat.kind != "file" else None,
            last_modified=stat.signature.mtime_ns // 1_000_000,
            target=stat.target,
            mode=f"{stat.mode:04o}",
            encoding=document.encoding if document else known.index.encoding if known else None,
            eol=document.eol if document else known.eol if known else None,
            line_count=document.line_count if document else known.total if known else None,
            is_binary=(data is not None and document is None) or (readable and present.large and known is None),
            content_hash=digest if readable else None,
            tags=self.tags(path) if stat.kind == "file" else (),
            sensitivity=self.sensitivity(caller, path),
            version_id=show(entry.version) if entry and entry.version != NO_VERSION else None,
            last_change=show(entry.change) if entry and entry.change else None,
            reads=entry.reads if entry else 0,
        )

    def tags(self, path: WorkspacePath) -> tuple[str, ...]:
        """Of a file: those that its name gives, then those that were set."""
        return (*tags_of(path), *self._s.state.tags.of(path))

    def sensitivity(self, caller: Caller, path: WorkspacePath) -> str:
        """`secret`: its content is not shown. `guarded`: changing it needs a person. Else `normal`."""
        if not self._s.permissions.readable(caller, path):
            return "secret"
        return "guarded" if isinstance(self._s.permissions.verdict(caller, "write", path), NeedApproval) else "normal"

    def size_at(self, raw_path: str) -> int | None:
        """The size of a file, in bytes, as far as it is known; None where there is none, or the path is refused."""
        try:
            path = self._s.paths.either(raw_path)
            known = self._s.state.registry.get(path)
            if known is not None and known.signature is not None:
                return known.signature.size
            stat = self._s.workspace.stat(path)
        except (OrchestratorError, OSError):
            return None
        return stat.signature.size if stat is not None and stat.kind == "file" else None
