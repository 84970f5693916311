"""get_briefing: what a session that begins must know, within a budget of tokens; each part says what it left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeVar

import msgspec

from orchestrator.api import briefing as b
from orchestrator.api import context as c
from orchestrator.core.errors import ApproverError, CallerError, escaped, plural
from orchestrator.core.events.files import DirectoryListed
from orchestrator.core.paths import ROOT, entry_depth, is_convention
from orchestrator.core.text.answer_space import FRAME_BYTES, FRAME_LINES, PER_TOKEN, AnswerSpace, size, weight
from orchestrator.core.text.excerpts import Budget
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.leases import Leases
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.excerpts import Excerpter
from orchestrator.engine.reads.file_tree import FileTree, FileTrees
from orchestrator.engine.services import Services
from orchestrator.engine.sessions import SessionService

T = TypeVar("T")

SHARE = 4
"""One part in so many of what is left goes to a list at most; documents get the rest."""

MOST_FOLDERS = 1000
"""That are looked at: no answer holds as many."""

MOST_DOCUMENTS, MOST_OTHERS, MOST_LEASES, MOST_CHANGED = 6, 20, 20, 3
LEAST_TOKENS = 60
"""Of a document; where there is less, it is named only."""
MOST_LINES = 5000

RESERVED_BYTES = 800
"""For what is said of parts that were left out."""
ROW_BYTES = 12
BYTES_PER_TOKEN = 4

STATUS, AUDIT = "session_status()", "journal_query(), of the full toolset"
_ENCODER = msgspec.json.Encoder()


class Briefer:
    """Puts together what other operations answer; its documents are read as get_excerpt reads them."""

    def __init__(
        self, services: Services, trees: FileTrees, sessions: SessionService, leases: Leases, excerpter: Excerpter
    ) -> None:
        self._s, self._trees, self._sessions = services, trees, sessions
        self._leases, self._excerpter = leases, excerpter

    async def get_briefing(self, caller: Caller, call: Call, params: b.GetBriefing) -> b.Briefing:
        tree = await self._trees.of(caller)
        event = DirectoryListed(operation=call.operation.name, path=ROOT, globs=(), entries=tree.files)
        await self._s.notes.note_shown(caller, call, event)
        own, root = await self._sessions.stack(caller), self._s.workspace.root
        leases = await self._leases.infos(self._leases.live()[:MOST_LEASES], caller)
        others = await self._others(caller)
        tokens = self._s.permissions.answer_tokens(caller, params.max_tokens)
        left = _Left(call.room.framed(escaped(root)).less(RESERVED_BYTES), tokens)
        result = b.Briefing(
            workspace=root,
            session=own.session,
            head=own.head,
            files=tree.files,
            tasks=left.part(own.tasks, b.task_row, "of your tasks", STATUS),
            pending=left.part(own.pending, b.pending_row, "of your changes that wait", STATUS),
            others=left.part(others, b.other_row, "other sessions", AUDIT),
            leases=left.part(leases, b.lease_row, "leases", AUDIT),
            uncommitted_changes=left.part(own.uncommitted_changes, b.change_row, "of your changes", STATUS),
            recent_reads=left.part(own.recent_reads, b.read_row, "of the files that you read", STATUS),
            folders=_folders(tree, left),
        )
        documents, redactions = await self._documents(caller, call, tree, left)
        return msgspec.structs.replace(
            result, documents=documents, redactions=redactions, left_out=tuple(left.left_out)
        )

    async def _others(self, caller: Caller) -> list[b.OtherSession]:
        """The other open sessions that do something, those opened last first."""
        found = list[b.OtherSession]()
        for session in reversed([one for one in self._s.state.sessions if one.open and one.id != caller.session]):
            if len(found) < MOST_OTHERS and (session.tasks or session.changes):
                paths = dict.fromkeys(path for made in reversed(session.changes) for path in made.paths)
                known = (path for path in paths if self._s.access.lists(caller, path))
                other = b.OtherSession(
                    agent=session.agent,
                    asserted=session.asserted,
                    session=session.id,
                    tasks=await self._sessions.tasks(session),
                    changed=tuple(islice(known, MOST_CHANGED)),
                )
                if other.tasks or other.changed:
                    found.append(other)
        return found

    async def _documents(
        self, caller: Caller, call: Call, tree: FileTree, left: _Left
    ) -> tuple[tuple[b.BriefedFile, ...], tuple[str, ...]]:
        """The beginnings of the root's documents, or else of the first ones; further conventions are named."""
        roots = [path for path in tree.documents if entry_depth(path) == 0]
        wanted = (roots or tree.documents)[:MOST_DOCUMENTS]
        shown, redactions = list[b.BriefedFile](), list[str]()
        for at, path in enumerate(wanted):
            access = self._s.access.content_of_many(caller, path)
            if access is None:
                continue
            reading, name = f"read_file(path={quoted(path)})", escaped(path)
            tokens, room = left.share(len(wanted) - at, name)
            if tokens < LEAST_TOKENS:
                left.out(name, reading)
                continue
            asked = c.GetExcerpt(path=path, max_tokens=tokens, max_lines=MOST_LINES)
            try:
                excerpt = await self._excerpter.excerpt(access, msgspec.structs.replace(call, room=room), asked)
            except (CallerError, ApproverError) as error:
                left.out(f"{name}: {error.code}", reading)
                continue
            for part in excerpt.parts:
                document = b.BriefedFile(
                    path=path,
                    version_id=excerpt.version_id,
                    end=part.end,
                    total_lines=excerpt.total_lines,
                    convention=is_convention(path),
                    text=part.text,
                )
                left.take(document, f"{b.document_row(document)}\n{part.text}")
                shown.append(document)
            for lines in excerpt.left_out:
                left.out(f"{name} from line {lines.start} on", lines.next)
            redactions += (f"{name} {redacted}" for redacted in excerpt.redactions)
        further = [path for path in tree.documents if is_convention(path) and path not in wanted]
        if further:
            left.out(
                f"{plural(len(further), 'further file')} with conventions, the first is {escaped(further[0])}",
                f"find_files(glob={quoted(further[0].rpartition('/')[2])})",
            )
        return tuple(shown), tuple(redactions)


def _folders(tree: FileTree, left: _Left) -> tuple[b.FolderFiles, ...]:
    """By path, each below the one that it is in."""
    first = islice(tree.folders.items(), MOST_FOLDERS)
    rows = [b.FolderFiles(path=path, files=files) for path, files in first]
    more = len(tree.folders) - len(rows)
    shown = left.part(rows, b.folder_row, "folders", "list_files(recursive=true)", more=more)
    return tuple(sorted(shown, key=lambda folder: folder.path.split("/")))


class _Left:
    """What is left of an answer, and what it could not hold."""

    def __init__(self, room: AnswerSpace, tokens: int) -> None:
        self._typed = room.typed
        self._budget = Budget.of(tokens, room.bytes // 2 if room.typed else room.bytes, room.lines)
        self.left_out: list[b.LeftOut] = []

    def part(self, items: Sequence[T], row: Callable[[T], str], what: str, way: str, *, more: int = 0) -> tuple[T, ...]:
        """The first items of a list, as far as its share goes; there are so many `more`."""
        left = self._budget
        own = Budget(left.weight // SHARE, left.bytes // SHARE, left.lines // SHARE)
        whole, kept = msgspec.structs.replace(own), list[T]()
        for item in items:
            if not own.take(row(item), frame_bytes=self._frame(item)):
                break
            kept.append(item)
        left.weight -= whole.weight - own.weight
        left.bytes -= whole.bytes - own.bytes
        left.lines -= whole.lines - own.lines
        if len(kept) < len(items) + more:
            self.out(f"{len(items) + more - len(kept)} {what}", way)
        return tuple(kept)

    def share(self, documents: int, name: str) -> tuple[int, AnswerSpace]:
        """Of the next of so many documents: the earlier ones get more."""
        left, parts = self._budget, documents + 1
        tokens = 2 * left.weight // parts // PER_TOKEN
        most = min(2 * left.bytes // parts, tokens * BYTES_PER_TOKEN)
        return tokens, AnswerSpace(most + FRAME_BYTES + 3 * size(name), 2 * left.lines // parts + FRAME_LINES)

    def take(self, item: object, text: str) -> None:
        """Something was put into the answer."""
        left = self._budget
        left.weight = max(0, left.weight - weight(text))
        left.bytes = max(0, left.bytes - size(text) - self._frame(item))
        left.lines = max(0, left.lines - text.count("\n") - 1)

    def out(self, what: str, way: str) -> None:
        """Say what was left out, and the call that shows it."""
        row = b.LeftOut(what=what, next=way)
        self.left_out.append(row)
        self.take(row, f"[left out: {what}: {way}]")

    def _frame(self, item: object) -> int:
        """The bytes of an item beside its text."""
        return len(_ENCODER.encode(item)) if self._typed else ROW_BYTES
