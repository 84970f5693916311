"""get_diff without a path: one patch over all files that differ between two states of the tree."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.content import SeenLines
from orchestrator.core.errors import (
    ApprovalRequired,
    Denied,
    DiskFull,
    ParameterInvalid,
    PathError,
    TextTooCostly,
    VersionNotKept,
    VersionTooLarge,
    WritesStopped,
)
from orchestrator.core.events.files import DiffShown
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.paths import ROOT
from orchestrator.core.projections.versions import Difference, Tree, VersionRow, differences
from orchestrator.core.shown_text import NOTHING_HIDDEN, Hidden
from orchestrator.core.text.answer_space import AnswerSpace, estimate_tokens, size
from orchestrator.core.text.file_patch import FilePatch, FileState, file_patch
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.batch_import import BatchImporter
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.paths import quoted
from orchestrator.engine.services import OFF_LOOP_BYTES, Services
from orchestrator.ports.journal import EventFilter

PAGE_TOKENS = 20_000
NAMED_BYTES = 250
"""Of a file that is only named, beside its path."""

ESCAPED_BYTES = 24
"""Of a token, four characters of a control code."""

PAGE_FILES = 1000
"""Files on one page, those that are only named too."""

MOST_FOLLOWED, MOST_MOVES = 500, 50
"""Removed files whose moves are looked up, and moves of one; of more, only equal contents are found again."""

DEFAULT_MODE = 0o644
"""For versions whose mode the journal did not learn."""

_CURSOR = re.compile(r"@(\d{1,18})\.\.@(\d{1,18}):(.*)\Z", re.DOTALL)


class Span(NamedTuple):
    """Between which positions, and after which path a page begins; also what a cursor says."""

    left: Seq
    right: Seq
    after: str = ""

    def __str__(self) -> str:
        return f"{show(self.left)}..{show(self.right)}:{self.after}"


class TreeDiffs:
    """Compares trees as the journal knows them; only `working` looks at the disk first.

    Of files that are as they are now, contents that are not kept are read.
    """

    def __init__(self, services: Services, observer: Observer, importer: BatchImporter) -> None:
        self._s, self._observer, self._importer = services, observer, importer

    async def diff(self, caller: Caller, call: Call, params: p.GetDiff) -> r.Diff:
        """One page. `current` and `working` are positions from the first page on."""
        warned: tuple[str, ...] = ()
        if params.cursor is None and "working" in (params.from_, params.to):
            warned = await self._survey()
        span = await self._span(caller, params)
        warned = (*warned, *self._s.past.within_first_scan(span.left, span.right))
        await self._s.past.wait_for_changes(max(span.left, span.right))
        left, right = await self._s.past.tree(span.left), await self._s.past.tree(span.right)
        found = self._parted(caller, differences(left, right, await self._moves(left, right, span)))
        listed = [item for item in found if self._s.access.lists(caller, item.path)]
        room = call.room.framed(*warned)
        page = Page(span, params.max_tokens or PAGE_TOKENS, room)
        for item in listed:
            if item.path <= span.after:
                continue
            if not page.takes(item, await self._patch(caller, item, params.context_lines, page.most)):
                break
        await self._s.notes.note_shown(caller, call, page.event())
        return page.answer(total=len(found), unlisted=len(found) - len(listed), warnings=warned)

    async def _moves(self, left: Tree, right: Tree, span: Span) -> list[tuple[WorkspacePath, WorkspacePath]]:
        """Files that were moved in between, also where they were changed on the way: paths in `left` and in `right`."""
        forward = span.left <= span.right
        old, new = (left, right) if forward else (right, left)
        removed, added = old.keys() - new.keys(), new.keys() - old.keys()
        pairs: list[tuple[WorkspacePath, WorkspacePath]] = []
        for path in removed if added and len(removed) <= MOST_FOLLOWED else ():
            here, since = path, min(span.left, span.right)
            for _ in range(MOST_MOVES):
                rows = await self._s.journal.moved_away((here,))
                moved = [row for row in rows if since < row.effective <= max(span.left, span.right)]
                if not moved:
                    break
                here, since = moved[-1].path, moved[-1].effective
            if here in added:
                pairs.append((path, here) if forward else (here, path))
        return pairs

    async def _span(self, caller: Caller, params: p.GetDiff) -> Span:
        if params.cursor is not None:
            match = _CURSOR.match(params.cursor)
            if match is None:
                raise ParameterInvalid("cursor", "it is not the cursor of an earlier answer")
            left, right = (self._s.past.position(int(number), parameter="cursor") for number in match.groups()[:2])
            return Span(left, right, match[3])
        left = await self._session_start(caller) if params.from_ == "@previous" else self._at(params.from_, "from")
        return Span(left, self._at(params.to, "to"))

    def _at(self, raw: p.Version, parameter: str) -> Seq:
        return (
            self._s.journal.head if raw in ("current", "working") else self._s.past.position(raw, parameter=parameter)
        )

    async def _session_start(self, caller: Caller) -> Seq:
        async for recorded in self._s.journal.events(EventFilter(session=caller.session), batch=1):
            return recorded.seq
        return self._s.journal.head

    async def _survey(self) -> tuple[str, ...]:
        """Import what other programs changed. Notices: while the journal can take nothing, its last versions count."""
        try:
            await self._importer.rescan()
        except (DiskFull, WritesStopped) as error:
            return (
                (
                    f"the journal can't note what other programs changed ({error.code}): its last versions are "
                    "compared. get_diff of one path shows what is there now."
                ),
            )
        return ()

    # --- policy -------------------------------------------------------------------------

    def _parted(self, caller: Caller, found: list[Difference]) -> list[Difference]:
        """Renames of which the caller may read or list one side only, as one file removed and one added."""
        parted, permissions = list[Difference](), self._s.permissions
        for item in found:
            renamed = item.old is not None and item.new is not None and item.old.path != item.new.path
            names = [row.path for row in (item.old, item.new) if row]
            if not renamed or all(permissions.readable(caller, x) and self._s.access.lists(caller, x) for x in names):
                parted.append(item)
            else:
                parted += [Difference(item.old, None), Difference(None, item.new)]
        return sorted(parted, key=lambda item: item.path)

    async def _patch(self, caller: Caller, item: Difference, context: int, most: AnswerSpace) -> FilePatch | r.LeftOut:
        """How a file changed; or why no more is shown than that it did. Of one that no page holds the beginning."""
        access = self._s.access.content_of_many(caller, item.path)
        if access is None:
            return "policy"
        try:
            (old, _), (new, hidden) = await self._state(access, item.old), await self._state(access, item.new)
        except (Denied, ApprovalRequired):
            return "policy"
        except VersionNotKept:
            return "not_kept"
        except VersionTooLarge:
            return "too_large"
        work = partial(file_patch, old, new, context=context, room=most)
        if sum(len(state.data) for state in (old, new) if state is not None) <= OFF_LOOP_BYTES:
            patch = work()
        else:
            try:
                patch = await self._s.workers.run(work)
            except TextTooCostly:
                return "too_large"
        seen = tuple(part for span in patch.shown for part in hidden.without(span))
        return msgspec.structs.replace(patch, shown=seen) if hidden.lines else patch

    async def _state(self, access: ContentAccess, row: VersionRow | None) -> tuple[FileState | None, Hidden]:
        """A file as the caller is shown it, and what of it is hidden."""
        if row is None:
            return None, NOTHING_HIDDEN
        try:
            digest, data = await self._s.past.content(access, row)
        except VersionNotKept:
            digest, data = await self._s.past.content(access, await self._looked_at(access, row))
        known = self._s.state.encodings.of(digest)
        mode = DEFAULT_MODE if row.mode is None else row.mode
        state = FileState(row.path, data, mode, known.written, known.like)
        document = await self._s.contents.text(digest, data) if self._s.redaction.level(access.caller) else None
        if document is None:
            return state, NOTHING_HIDDEN
        shown = await self._s.redaction.shown(access.caller, row.path, digest, document)
        hides = shown.document if shown.hidden.lines else None
        return msgspec.structs.replace(state, shown=hides), shown.hidden

    async def _looked_at(self, access: ContentAccess, row: VersionRow) -> VersionRow:
        """A version after a look at the disk, which keeps its content if it is still there."""
        entry = self._s.state.registry.get(row.path)
        if entry is None or entry.version != row.seq:
            return row
        with suppress(PathError):  # too large, or unreadable now
            async with self._s.locks.shared(row.path):
                await self._observer.refresh_for_display(access)
        return await self._s.journal.version_at(row.path, row.seq) or row


class Page:
    """Files of one answer, as long as there is room; the first one is always on it."""

    def __init__(self, span: Span, budget: int, room: AnswerSpace) -> None:
        self._span, self._budget, self._whole, self._room = span, budget, room, room
        self._spent = 0
        self._texts: list[str] = []
        self._files: list[r.FileDiff] = []
        self._seen: list[SeenLines] = []  # of the newer versions
        self._next: Span | None = None

    @property
    def most(self) -> AnswerSpace:
        """Of a file that may be on a page: what its budget comes to where every character is escaped."""
        return self._whole.at_most(ESCAPED_BYTES * self._budget)

    def takes(self, item: Difference, patch: FilePatch | r.LeftOut) -> bool:
        """Whether the file still goes on this page; if not, the page is full."""
        text = patch.text if isinstance(patch, FilePatch) else ""
        cost = estimate_tokens(text)
        named = 3 * size(item.path) + NAMED_BYTES  # in what was left out, in its call, and in the cursor
        shown = (size(text) + named, text.count("\n") + 2)
        cut = isinstance(patch, FilePatch) and patch.goes_on is not None
        too_large = cut or cost > self._budget or not self._whole.first([shown], least=0)
        taken = (named, 2) if too_large else shown
        full = not self._room.first([taken], least=0) or len(self._files) >= PAGE_FILES
        if self._files and (full or (self._spent + cost > self._budget and not too_large)):
            self._next = self._span._replace(after=self._files[-1].path)
            return False
        self._room = self._room.less(*taken)
        if isinstance(patch, str):
            self._files.append(_file(item, patch))
        elif too_large:
            span = f'from="{show(self._span.left)}", to="{show(self._span.right)}"'
            self._files.append(_file(item, "too_large", patch, f"get_diff(path={quoted(item.path)}, {span})"))
        else:
            self._files.append(_file(item, None, patch))
            self._spent += cost
            self._texts.append(text)
            self._note(item, patch)
        return True

    def _note(self, item: Difference, patch: FilePatch) -> None:
        """What the session has seen of the newer version by this."""
        new = item.new
        if new is not None and patch.shown:
            self._seen.append(
                SeenLines(path=new.path, version=new.seq, ranges=patch.shown, total_lines=patch.total_lines)
            )

    def event(self) -> DiffShown:
        """That a diff of the tree was shown, and which lines of which file."""
        span = self._span
        seen = tuple(self._seen)
        return DiffShown(path=ROOT, from_version=span.left, to_version=span.right, seen=seen, tokens=self._spent)

    def answer(self, *, total: int, unlisted: int, warnings: tuple[str, ...]) -> r.Diff:
        """The page."""
        shown = [file for file in self._files if file.left_out is None]
        return r.Diff(
            path=ROOT,
            from_version=show(self._span.left),
            to_version=show(self._span.right),
            diff="".join(self._texts),
            added=sum(file.added or 0 for file in shown),
            removed=sum(file.removed or 0 for file in shown),
            files=tuple(self._files),
            total_files=total,
            unlisted=unlisted,
            cursor=str(self._next) if self._next is not None else None,
            warnings=warnings,
        )


def _file(
    item: Difference, left_out: r.LeftOut | None, patch: FilePatch | None = None, follow: str | None = None
) -> r.FileDiff:
    """What an answer says of a file beside its diff."""
    old, new = item.old, item.new
    status: r.FileStatus = "modified"
    if old is None or new is None:
        status = "added" if old is None else "deleted"
    elif old.path != new.path:
        status = "renamed"
    elif old.seq == new.seq or (old.digest is not None and old.digest == new.digest):
        status = "mode"
    counted = patch is not None and not patch.binary
    return r.FileDiff(
        path=item.path,
        status=status,
        moved_from=old.path if status == "renamed" and old is not None else None,
        mode_before=_octal(old, new),
        mode_after=_octal(new, old),
        left_out=left_out,
        added=patch.added if patch is not None and counted else None,
        removed=patch.removed if patch is not None and counted else None,
        binary=patch is not None and patch.binary,
        next=follow,
    )


def _octal(row: VersionRow | None, other: VersionRow | None) -> str | None:
    """The permission bits of one side, where the other has others."""
    if row is None or other is None or row.mode is None or row.mode == other.mode:
        return None
    return f"{row.mode:04o}"
