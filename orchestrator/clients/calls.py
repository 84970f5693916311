"""What an agent can do, as methods of the Python client.

Written out so that editors and type checkers know them; a test holds them equal to the catalogue.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, TypeVar

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api import rollback as u
from orchestrator.core.events.outcomes import Outcome

R = TypeVar("R", bound=r.Result)


class AgentCalls:
    """The operations that agents have too."""

    @abstractmethod
    async def _call(self, result: type[R], params: p.Params) -> R: ...

    async def list_files(
        self,
        path: str = ".",
        *,
        globs: Sequence[str] = (),
        recursive: bool = False,
        max_depth: int | None = None,
        include_hidden: bool = False,
        limit: int = 200,
        cursor: str | None = None,
    ) -> r.Listing:
        """List a directory: name, kind, size and version of each entry. Ignored files are left out."""
        return await self._call(
            r.Listing,
            p.ListFiles(
                path=path,
                globs=tuple(globs),
                recursive=recursive,
                max_depth=max_depth,
                include_hidden=include_hidden,
                limit=limit,
                cursor=cursor,
            ),
        )

    async def find_files(
        self, glob: str, *, path: str = ".", recursive: bool = True, limit: int = 200, cursor: str | None = None
    ) -> r.Listing:
        """Find files by a glob on their path."""
        return await self._call(
            r.Listing, p.FindFiles(glob=glob, path=path, recursive=recursive, limit=limit, cursor=cursor)
        )

    async def file_info(self, path: str) -> r.FileFacts:
        """Facts about one path: size, kind, encoding, line ends, version, hash. A missing file is no error."""
        return await self._call(r.FileFacts, p.FileInfo(path=path))

    async def search_content(
        self,
        pattern: str,
        *,
        path: str = ".",
        globs: Sequence[str] = (),
        mode: Literal["exact"] = "exact",
        case_sensitive: bool = True,
        word: bool = False,
        invert: bool = False,
        count_only: bool = False,
        context_lines: int = 2,
        max_results: int = 20,
        cursor: str | None = None,
    ) -> r.SearchResult:
        """Find an exact text in one file or below a directory; shows lines with context, paged."""
        return await self._call(
            r.SearchResult,
            p.SearchContent(
                pattern=pattern,
                path=path,
                globs=tuple(globs),
                mode=mode,
                case_sensitive=case_sensitive,
                word=word,
                invert=invert,
                count_only=count_only,
                context_lines=context_lines,
                max_results=max_results,
                cursor=cursor,
            ),
        )

    async def read_file(
        self,
        path: str,
        *,
        start: int = 1,
        end: int | None = None,
        max_tokens: int = 8000,
        line_numbers: bool = True,
        at: str | int | None = None,
    ) -> r.FileText:
        """Read a text file, or lines of it, within a token budget. Ends with the call that reads on."""
        return await self._call(
            r.FileText,
            p.ReadFile(path=path, start=start, end=end, max_tokens=max_tokens, line_numbers=line_numbers, at=at),
        )

    async def read_lines(
        self,
        path: str,
        *,
        start: int = 1,
        end: int | None = None,
        context: int = 0,
        line_numbers: bool = True,
        at: str | int | None = None,
    ) -> r.FileText:
        """Read exactly these lines of a text file."""
        return await self._call(
            r.FileText, p.ReadLines(path=path, start=start, end=end, context=context, line_numbers=line_numbers, at=at)
        )

    async def edit_file(
        self,
        path: str,
        changes: Sequence[p.Replacement],
        *,
        preview: bool = False,
        reason: str = "",
        request_id: str | None = None,
        base: str | int | None = None,
        supersedes: str | int | None = None,
    ) -> r.ChangeAnswer:
        """Change passages of one file, by search and replace or by line numbers; all of them or none.

        A stale edit is rebased where that is safe, else it becomes a conflict that waits.
        """
        return await self._call(
            r.ChangeAnswer,
            p.EditFile(
                path=path,
                changes=tuple(changes),
                preview=preview,
                reason=reason,
                request_id=request_id,
                base=base,
                supersedes=supersedes,
            ),
        )

    async def apply_patch(
        self,
        patch: str,
        *,
        preview: bool = False,
        reason: str = "",
        request_id: str | None = None,
        path: str | None = None,
        base: str | int | None = None,
        supersedes: str | int | None = None,
    ) -> r.ChangeAnswer:
        """Apply a patch in any usual form, of one file or several (all or none); creates, deletes, renames."""
        return await self._call(
            r.ChangeAnswer,
            p.ApplyPatch(
                patch=patch,
                preview=preview,
                reason=reason,
                request_id=request_id,
                path=path,
                base=base,
                supersedes=supersedes,
            ),
        )

    async def write_file(
        self,
        path: str,
        content: str,
        mode: Literal["truncate", "append", "create"],
        *,
        preview: bool = False,
        reason: str = "",
        request_id: str | None = None,
        base: str | int | None = None,
        supersedes: str | int | None = None,
    ) -> r.ChangeAnswer:
        """Create a file, append to one, or replace one that this session has read whole."""
        return await self._call(
            r.ChangeAnswer,
            p.WriteFile(
                path=path,
                content=content,
                mode=mode,
                preview=preview,
                reason=reason,
                request_id=request_id,
                base=base,
                supersedes=supersedes,
            ),
        )

    async def move_file(
        self,
        source: str,
        destination: str,
        *,
        preview: bool = False,
        reason: str = "",
        request_id: str | None = None,
        base: str | int | None = None,
    ) -> r.ChangeAnswer:
        """Move or rename a file or a folder; never overwrites."""
        return await self._call(
            r.ChangeAnswer,
            p.MoveFile(
                source=source, destination=destination, preview=preview, reason=reason, request_id=request_id, base=base
            ),
        )

    async def delete_file(
        self,
        path: str,
        *,
        preview: bool = False,
        reason: str = "",
        request_id: str | None = None,
        base: str | int | None = None,
    ) -> r.ChangeAnswer:
        """Delete a file, or a folder with all in it; revert brings it back."""
        return await self._call(
            r.ChangeAnswer, p.DeleteFile(path=path, preview=preview, reason=reason, request_id=request_id, base=base)
        )

    async def create_directory(
        self, path: str, *, preview: bool = False, reason: str = "", request_id: str | None = None
    ) -> r.ChangeAnswer:
        """Make a directory, and those above it."""
        return await self._call(
            r.ChangeAnswer, p.CreateDirectory(path=path, preview=preview, reason=reason, request_id=request_id)
        )

    async def file_history(self, path: str, *, limit: int = 20, cursor: str | None = None) -> r.History:
        """The versions of a file, newest first: who, when, by which operation, why."""
        return await self._call(r.History, p.FileHistory(path=path, limit=limit, cursor=cursor))

    async def get_diff(
        self,
        path: str | None = None,
        *,
        from_: str | int = "@previous",
        to: str | int = "current",
        context_lines: int = 3,
        max_tokens: int | None = None,
        cursor: str | None = None,
    ) -> r.Diff:
        """The difference between two versions of a file, whole; without path, of all files, paged."""
        return await self._call(
            r.Diff,
            p.GetDiff(path=path, from_=from_, to=to, context_lines=context_lines, max_tokens=max_tokens, cursor=cursor),
        )

    async def revert(
        self, change: str | int, *, preview: bool = False, reason: str = "", request_id: str | None = None
    ) -> r.ChangeAnswer:
        """Undo one change, whenever it was made; later changes of others are kept."""
        return await self._call(
            r.ChangeAnswer, p.Revert(change=change, preview=preview, reason=reason, request_id=request_id)
        )

    async def rollback(
        self,
        *,
        agent: str | None = None,
        session: str | None = None,
        task: str | int | None = None,
        globs: Sequence[str] = (),
        since: str | int | None = None,
        until: str | int | None = None,
        preview: bool = False,
        reason: str = "",
        request_id: str | None = None,
    ) -> u.RollbackAnswer:
        """Undo all changes of an agent, session, task, of some files or of a span of time, as one change.

        Later work of others is kept; where it overlaps, the file becomes a conflict.
        """
        return await self._call(
            u.RollbackAnswer,
            u.Rollback(
                agent=agent,
                session=session,
                task=task,
                globs=tuple(globs),
                since=since,
                until=until,
                preview=preview,
                reason=reason,
                request_id=request_id,
            ),
        )

    async def session_status(self, *, all_leases: bool = False, cursor: str | None = None) -> r.SessionInfo:
        """What this session has read (stale reads marked), what waits, what it changed, its tasks."""
        return await self._call(r.SessionInfo, p.SessionStatus(all_leases=all_leases, cursor=cursor))

    async def begin_task(self, title: str, *, request_id: str | None = None) -> r.TaskAnswer:
        """Say what you work on; your changes carry the task until it ends."""
        return await self._call(r.TaskAnswer, p.BeginTask(title=title, request_id=request_id))

    async def end_task(self, task: str | int, *, outcome: str = "", request_id: str | None = None) -> r.TaskAnswer:
        """Say that a task is over, and what came of it."""
        return await self._call(r.TaskAnswer, p.EndTask(task=task, outcome=outcome, request_id=request_id))

    async def list_conflicts(
        self,
        *,
        conflict: str | int | None = None,
        limit: int = 20,
        cursor: str | None = None,
        max_tokens: int = 20_000,
    ) -> r.Conflicts:
        """The changes that fitted nowhere and wait: base, current and proposed content of each."""
        return await self._call(
            r.Conflicts, p.ListConflicts(conflict=conflict, limit=limit, cursor=cursor, max_tokens=max_tokens)
        )

    async def resolve_conflict(
        self,
        conflict: str | int,
        choice: Literal["current", "proposed", "content", "regions", "review"],
        *,
        content: str | None = None,
        regions: Sequence[Literal["current", "proposed"]] | None = None,
        on: str | int | None = None,
        review: str | int | None = None,
        reason: str = "",
        request_id: str | None = None,
        approver: str | None = None,
    ) -> r.ChangeAnswer:
        """Settle a conflict: the current content, the proposed one, or another. For reviewers and approvers."""
        return await self._call(
            r.ChangeAnswer,
            p.ResolveConflict(
                conflict=conflict,
                choice=choice,
                content=content,
                regions=tuple(regions) if regions is not None else None,
                on=on,
                review=review,
                reason=reason,
                request_id=request_id,
                approver=approver,
            ),
        )

    async def await_change(self, id: str | int, *, timeout_s: float = 25.0) -> r.ChangeAnswer:
        """Wait for the final answer of a change that waits for an approval or lies in conflict."""
        return await self._call(r.ChangeAnswer, p.AwaitChange(id=id, timeout_s=timeout_s))

    async def journal_query(
        self,
        path: str | None = None,
        *,
        agent: str | None = None,
        session: str | None = None,
        task: str | int | None = None,
        kind: str | None = None,
        since: str | int | None = None,
        until: str | int | None = None,
        outcome: Outcome | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> r.JournalPage:
        """Events of the journal, newest first: your own session's, or all of them for a person."""
        return await self._call(
            r.JournalPage,
            p.JournalQuery(
                path=path,
                agent=agent,
                session=session,
                task=task,
                kind=kind,
                since=since,
                until=until,
                outcome=outcome,
                limit=limit,
                cursor=cursor,
            ),
        )
