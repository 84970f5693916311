"""The past as callers name it: positions, the versions of files and their contents, whole trees."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.api.parameters import Version
from orchestrator.core.content import Content, LargeContent
from orchestrator.core.errors import BinaryFile, Denied, FileNotFound, VersionNotKept, VersionTooLarge, VersionUnknown
from orchestrator.core.ids import START, Digest, Seq, WorkspacePath, show
from orchestrator.core.policy.rules import Deny, NeedApproval
from orchestrator.core.positions import parse_seq
from orchestrator.core.projections.state import State
from orchestrator.core.projections.versions import VersionRow
from orchestrator.core.text.encoding import Document
from orchestrator.engine.access import Asks, ContentAccess
from orchestrator.engine.caller import Caller
from orchestrator.engine.contents import Contents
from orchestrator.engine.locks import PathLocks
from orchestrator.engine.permissions import Permissions
from orchestrator.ports.journal import Journal

HINT = "file_history lists its versions."
UNHASHED = (
    "A large file is hashed only where it is changed here. read_lines shows it as it is now, changes_since says "
    "who changed it."
)

PAGE = 200
"""Versions that the journal gives at once."""

TREE_PAGE = 5000
"""Files of a tree that the journal gives at once."""


class PastVersions:
    """Fetches versions and their contents.

    A caller may be shown an old version only if it may read every name that the file had until then. The present
    version is shown by its path alone, like on the disk.
    """

    def __init__(
        self, journal: Journal, contents: Contents, state: State, permissions: Permissions, locks: PathLocks
    ) -> None:
        self._journal, self._contents, self._state = journal, contents, state
        self._permissions, self._locks = permissions, locks

    async def at(self, path: WorkspacePath, at: Seq) -> VersionRow:
        """The version that a path had at a position. Raises FileNotFound."""
        row = await self._journal.version_at(path, at)
        if row is None:
            raise FileNotFound(path, f"it was not there yet at {show(at)}", hint=HINT)
        if not row.present:
            raise FileNotFound(path, f"it was not there at {show(at)}: {show(row.seq)} removed it", hint=HINT)
        return row

    async def content(self, access: ContentAccess, row: VersionRow) -> tuple[Digest, bytes]:
        """The content of a version. Raises VersionTooLarge, and as `content_of_any_size`."""
        digest, data = await self.content_of_any_size(access, row)
        if isinstance(data, LargeContent):
            raise VersionTooLarge(f"{row.path} had {data.size} bytes at {show(row.seq)}, too many for this")
        return digest, data

    async def content_of_any_size(self, access: ContentAccess, row: VersionRow) -> tuple[Digest, Content]:
        """The same, as far as it is held in memory. Raises VersionNotKept, and as `permit`."""
        await self.permit(access, row)
        what = f"{row.path} at {show(row.seq)}"
        if row.digest is None:
            raise VersionNotKept(f"the content of {what} was never hashed", hint=UNHASHED)
        return row.digest, await self._contents.need(row.digest, what)

    async def text(self, access: ContentAccess, row: VersionRow) -> Document:
        """The same, decoded. Raises BinaryFile besides."""
        document = await self._contents.text(*await self.content(access, row))
        if document is None:
            raise BinaryFile(row.path, f"its content at {show(row.seq)} is not text")
        return document

    async def permit(self, access: ContentAccess, row: VersionRow) -> None:
        """The version may be shown. Cost: O(versions of the file before it).

        Raises Denied, without the other name, and ApprovalRequired: a person is asked for this version.
        """
        asks: Asks = {}
        if not row.present:
            return
        names = {row.path} if self.is_current(row) else set((await self._names(row))[0])
        for name in names - {access.path}:
            verdict = self._permissions.verdict(access.caller, "read", name)
            if isinstance(verdict, Deny):
                raise Denied(
                    f"read {row.path} at {show(row.seq)}: the file had a name then whose content is not shown",
                    hint="Read the file as it is now.",
                    details={"path": row.path, "version_id": show(row.seq)},
                )
            if isinstance(verdict, NeedApproval):
                asks["read"] = verdict
        await access.confirm(row.seq, row.digest, size=row.size, asks=asks)

    def is_current(self, row: VersionRow) -> bool:
        """Whether the version is the present one, as far as the journal knows."""
        entry = self._state.registry.get(row.path)
        return entry is not None and entry.version == row.seq

    async def which_readable(self, caller: Caller, rows: Sequence[VersionRow]) -> list[bool]:
        """Whether versions of one path, newest first, may be shown without asking, at the cost of the newest."""
        found: list[bool] = []
        names_readable, since = True, int(rows[0].seq) + 1 if rows else 0
        for row in rows:
            current = self.is_current(row)
            if row.present and not current and row.seq < since:
                names, since = await self._names(row)
                names_readable = all(self._permissions.readable(caller, name) for name in names)
            found.append(names_readable or current or not row.present)
        return found

    async def _names(self, row: VersionRow) -> tuple[list[WorkspacePath], int]:
        """All names of a file until a version, that one's first; and since which version they are these."""
        path, since = await self._came_from(row.path, int(row.seq) + 1)
        names, before = [row.path], since
        while path is not None:
            names.append(path)
            path, before = await self._came_from(path, before)
        return names, since

    async def _came_from(self, path: WorkspacePath, before: int) -> tuple[WorkspacePath | None, int]:
        """From where the file at a path was moved there, None if it was made there; and with which version."""
        newer: VersionRow | None = None
        while rows := await self._journal.versions(path, limit=PAGE, before=before):
            for row in rows:
                if row.moved_from is not None:
                    return row.moved_from, int(row.seq)
                if not row.present and newer is not None and not newer.undoes:  # an undo brings the same file back
                    return None, int(newer.seq)
                newer = row
            before = int(rows[-1].seq)
        return None, 0

    # --- positions and whole trees --------------------------------------------------------

    def position(self, raw: Version, *, parameter: str, least: int = 0) -> Seq:
        """Read a position that the journal has reached; `least` 0 lets `@0` through, which is before everything.

        Raises ParameterInvalid, VersionUnknown (it names the journal's end).
        """
        head = self._journal.head
        at = parse_seq(raw, parameter=parameter, start=self._state.registry.start)
        details = {"head": show(head)}
        if at > head:
            raise VersionUnknown(
                f"{show(at)} is ahead of the journal, which ends at {show(head)}",
                hint=f"Go on from {show(head)}.",
                details=details,
            )
        if at < least:
            raise VersionUnknown(
                f"{show(at)} is before the journal's first event, @1; its end is {show(head)}", details=details
            )
        return at

    def within_first_scan(self, *positions: Seq) -> tuple[str, ...]:
        """A warning where a tree at one of these positions lacks files that the first scan had not met by then."""
        start = self._state.registry.start
        return tuple(
            f"{show(at)} is within the first scan: files that it met later, until {show(start)}, are not there yet; "
            f"{START} is the first state with all"
            for at in dict.fromkeys(positions)
            if start is not None and 0 < at < start
        )

    async def wait_for_changes(self, at: Seq) -> None:
        """Wait until every change that began at or before `at` is over, so that its tree is final.

        Whoever carries a change out holds the locks of its paths until the outcome is known.
        """
        for seq, intent in self._state.pending.open_intents():
            for item in intent.paths if seq <= at else ():
                async with self._locks.shared(item.path):
                    pass

    async def tree(self, at: Seq) -> dict[WorkspacePath, VersionRow]:
        """Every file that was there at a position."""
        rows: dict[WorkspacePath, VersionRow] = {}
        after = ""
        while page := await self._journal.tree_at(at, after=after, limit=TREE_PAGE):
            rows |= {row.path: row for row in page}
            after = page[-1].path
        return rows
