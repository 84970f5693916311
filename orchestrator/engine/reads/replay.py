"""The whole journal replayed into files, and those compared with the disk; nothing is changed by it."""

from __future__ import annotations

from functools import partial

import msgspec
from anyio import to_thread

from orchestrator.api import time_travel as t
from orchestrator.core.errors import FileTooLarge, JournalCorrupt, PathError
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.projections.history import DigestLearned, VersionRow, history
from orchestrator.engine.positions import settled, tree
from orchestrator.engine.services import MAX_FILE_BYTES, Services
from orchestrator.ports.journal import EventFilter


class Replay:
    """One run of it."""

    def __init__(self, services: Services) -> None:
        self._s = services
        self._files = _Files()
        self._at = Seq(0)
        self._found: list[t.ReplayDifference] = []
        self._unchecked: list[str] = []

    async def compare(self) -> t.ReplayReport:
        """Read every event, then every content and file; a file that changes meanwhile is taken as it is then."""
        await settled(self._s, self._s.journal.head)
        await self._read_on()
        await self._compare_history()
        expected = self._files.paths()
        for path in expected:
            async with self._s.locks.shared(path):
                await self._read_on()
                await self._compare(path)
        await self._look_for_more()
        return t.ReplayReport(
            ok=not self._found,
            at=show(self._at),
            events=self._at,
            files=len(expected),
            differences=tuple(sorted(self._found, key=lambda item: (item.path, item.kind))),
            unchecked=tuple(self._unchecked),
        )

    async def _read_on(self) -> None:
        """Follow the journal to its end; under a path's lock, what is known of that path is final then."""
        if self._at == self._s.journal.head:
            return
        async for recorded in self._s.journal.events(EventFilter(after=self._at)):
            for item in history(recorded):
                self._files.add(item)
            self._at = recorded.seq

    async def _compare_history(self) -> None:
        """The table of versions against the rows that the events give; where they differ, once more under the lock."""
        stored = await tree(self._s, self._at)
        for path in sorted({*stored, *self._files.paths()}):
            if self._files.get(path) == stored.get(path):
                continue
            async with self._s.locks.shared(path):
                await self._read_on()
                mine, stored = self._files.get(path), await tree(self._s, self._at)
            there = stored.get(path)
            if mine != there:
                self._differs(path, "history", show(mine.seq) if mine else None, show(there.seq) if there else None)

    async def _compare(self, path: WorkspacePath) -> None:
        """Callers hold the path's lock."""
        row = self._files.get(path)
        if row is None:
            return  # removed since; whether it is there again is looked for later
        content = await self._content(row)
        try:
            stat = self._s.workspace.stat(path)
            if stat is None:
                self._differs(path, "missing", show(row.seq), None)
                return
            if stat.kind != "file":
                self._differs(path, "kind", "file", stat.kind)
                return
            if row.mode is not None and row.mode != stat.mode:
                self._differs(path, "mode", f"{row.mode:04o}", f"{stat.mode:04o}")
            if not content or row.digest is None:
                return
            read = await to_thread.run_sync(partial(self._s.workspace.read, path, most=MAX_FILE_BYTES))
        except FileTooLarge as error:
            self._differs(path, "content", row.digest, error.code)
            return
        except PathError as error:
            self._differs(path, "unreadable", row.digest, error.code)
            return
        if read.digest != row.digest:
            self._differs(path, "content", row.digest, read.digest)

    async def _content(self, row: VersionRow) -> bool:
        """Whether the content's hash is known; a content that should be kept and is not, is noted."""
        if row.digest is None:
            self._unchecked.append(row.path)
            return False
        entry = self._s.state.registry.get(row.path)
        try:
            data = await self._s.journal.blob(row.digest)
        except JournalCorrupt as error:
            self._differs(row.path, "lost", row.digest, error.code)
            return True
        if data is None and (entry is None or entry.kept):
            self._differs(row.path, "lost", row.digest, None)
        return True

    async def _look_for_more(self) -> None:
        """Files that stand there although no event says so."""
        scanned = await to_thread.run_sync(self._s.workspace.scan)
        tracked = {item.path for item in scanned.files} | set(self._files.removed())
        for path in sorted(tracked):
            async with self._s.locks.shared(path):
                await self._read_on()
                if self._files.get(path) is not None:
                    continue
                try:
                    stat = self._s.workspace.stat(path)
                except PathError:
                    continue  # a link in its way: nothing of ours stands there
                if stat is not None and stat.kind == "file":
                    self._differs(path, "extra", None, f"{stat.signature.size} bytes")

    def _differs(self, path: WorkspacePath, kind: t.DifferenceKind, journal: str | None, disk: str | None) -> None:
        self._found.append(t.ReplayDifference(path=path, kind=kind, journal=journal, disk=disk))


class _Files:
    """The present tree, folded from history's rows: for each path the version that took effect last."""

    def __init__(self) -> None:
        self._rows: dict[WorkspacePath, VersionRow] = {}

    def add(self, item: VersionRow | DigestLearned) -> None:
        """One more of the rows that `history` gives, in the journal's order."""
        known = self._rows.get(item.path)
        if isinstance(item, VersionRow):
            if known is None or (item.effective, item.seq) >= (known.effective, known.seq):
                self._rows[item.path] = item
        elif known is not None and known.seq == item.version and known.present:
            if known.digest is None:
                known = msgspec.structs.replace(known, digest=item.digest, size=item.size)
            self._rows[item.path] = msgspec.structs.replace(known, mode=item.mode)

    def get(self, path: WorkspacePath) -> VersionRow | None:
        """The version of a file that is there."""
        row = self._rows.get(path)
        return row if row is not None and row.present else None

    def paths(self) -> list[WorkspacePath]:
        """Of the files that are there, in order."""
        return sorted(path for path, row in self._rows.items() if row.present)

    def removed(self) -> list[WorkspacePath]:
        """Of the files that were there once and are not, in order."""
        return sorted(path for path, row in self._rows.items() if not row.present)
