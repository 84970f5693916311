"""`orchestrator commit`: what a task or a session changed, as one commit of git."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click

from orchestrator.api import history as t
from orchestrator.api import journal_operations as k
from orchestrator.api import results as r
from orchestrator.clients.cli.context import Command, Settings, usage
from orchestrator.clients.connection import Connection
from orchestrator.clients.git.repository import FILE, PROGRAM, Author, GitFailed, GitRepository
from orchestrator.clients.git.task_changes import Content, TaskFiles
from orchestrator.clients.running_daemon import RemoteError
from orchestrator.core.errors import CallerError, escaped

CHANGED = ("applied", "external")
"""The outcomes of events after which a file's content is another one."""

PAGE = 500
MOST_TASKS = 10
"""Named where none is given."""


class NothingToCommit(CallerError, code="nothing_to_commit", hint="`orchestrator log --task @N` shows what it did."):
    """The last commit has all that the task changed."""


class NotCommitted(r.Result, frozen=True, kw_only=True):
    """A file that the task changed and the commit does not have so."""

    path: str
    reason: str


class Committed(r.Result, frozen=True, kw_only=True):
    """One commit. `commit` is null for a dry run; `version` is the task's last change."""

    commit: str | None
    message: str
    version: str
    files: tuple[str, ...] = ()
    left_out: tuple[NotCommitted, ...] = ()
    warnings: tuple[str, ...] = ()


@click.command(cls=Command)
@click.argument("work", metavar="@N|SESSION", required=False)
@click.option("--message", "-m", help="Its first line; default: the task's title.")
@click.option("--dry-run", is_flag=True, help="Only show what the commit would hold.")
@click.pass_obj
def commit(settings: Settings, *, work: str | None, message: str | None, dry_run: bool) -> int:
    """Commit with git what one task (@N), or one session, changed, and nothing else.

    The author is the agent; task, session and version are in the commit's trailers. Files keep what they hold, and the
    index is touched only for files of the commit of which nothing was staged.
    """
    with settings.connect() as connection:
        if work is None:
            usage("name a task or a session: " + ("; ".join(_tasks(connection)) or "there is no task yet"))
        done = _Work(connection, list(_entries(connection, work)), message)
        return settings.show(*_commit(done, GitRepository.around(settings.root), dry_run=dry_run))


class _Work:
    """What the journal has of a task, or of a session."""

    def __init__(self, connection: Connection, entries: list[k.JournalEntry], message: str | None) -> None:
        self._connection = connection
        self.changes = [entry for entry in entries if entry.paths and entry.outcome in CHANGED]
        if not self.changes:
            raise NothingToCommit("nothing was changed in it")
        begun = next((entry for entry in entries if entry.kind == "task_begun"), None)
        self.agent = self.changes[-1].agent or "unnamed"
        self.version = self.changes[-1].seq
        title = message or (str(begun.event.get("title", "")) if begun else "")
        self.title = " ".join(title.split()) or f"Changes by {self.agent}"
        trailers = [("Agent", self.agent), ("Session", self.changes[-1].session), ("Task", begun and begun.seq)]
        lines = [f"{name}: {value}" for name, value in trailers if value]
        self.message = "\n".join((self.title, "", *lines, f"Version: {self.version}", ""))

    def content(self, path: str, version: str) -> Content:
        """A path's content at a version; None where the journal has not kept it."""
        pieces, offset = [], 0
        while True:
            try:
                piece = self._connection.call(t.CONTENT_AT, t.ContentAt(path=path, at=version, offset=offset))
            except RemoteError as refused:
                if refused.code in ("not_found", "version_not_kept"):
                    return None
                raise
            pieces.append(piece.data)
            if piece.next is None:
                return b"".join(pieces)
            offset = piece.next


def _commit(work: _Work, repository: GitRepository, *, dry_run: bool) -> tuple[Committed, list[str]]:
    def committed(path: str) -> Content:
        blob = repository.committed(path)
        return repository.content(path, blob) if blob is not None else None

    files = TaskFiles(committed, work.content)
    changed = files.take_in(entry.paths for entry in work.changes)
    ignored = repository.ignores([path for path, content in changed.items() if content is not None])
    left_out = files.left_out | dict.fromkeys(ignored, "git ignores it")
    changed = {path: content for path, content in changed.items() if path not in ignored}
    if not changed:
        why = "; ".join(f"{path}: {reason}" for path, reason in left_out.items())
        raise NothingToCommit(f"no file of it is other than in the last commit{f' ({why})' if why else ''}")
    name, warnings = None, list[str]()
    if not dry_run:
        free = [path for path in changed if not repository.staged(path)]
        modes = {path: _mode(repository, path) for path in changed}
        contents = {path: None if data is None else (modes[path], data) for path, data in changed.items()}
        name = repository.commit(contents, work.message, Author(work.agent, f"{_local(work.agent)}@agents.invalid"))
        try:
            repository.follow_in_index(free)
        except GitFailed as failed:
            warnings.append(f"the commit is made, and the index is behind it ({failed.message}): run `git reset -q`")
        warnings += [f"{path} is staged: the index keeps what you staged" for path in changed if path not in free]
    result = Committed(
        commit=name,
        message=work.message,
        version=work.version,
        files=tuple(sorted(changed)),
        left_out=tuple(NotCommitted(path=path, reason=why) for path, why in sorted(left_out.items())),
        warnings=tuple(warnings),
    )
    return result, [*_shown(result)]


def _mode(repository: GitRepository, path: str) -> str:
    """As the last commit has it; of a new file as the disk has it."""
    blob = repository.committed(path)
    if blob is not None:
        return blob.mode
    return PROGRAM if os.access(repository.workspace / path, os.X_OK) else FILE


def _local(agent: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in agent)


def _shown(result: Committed) -> Iterator[str]:
    yield f"{result.commit[:12] if result.commit else 'would commit'}  {escaped(result.message.splitlines()[0])}"
    yield from (f"  {escaped(path)}" for path in result.files)
    for item in result.left_out:
        yield f"  left out: {escaped(item.path)}: {item.reason}"


def _entries(connection: Connection, work: str) -> Iterator[k.JournalEntry]:
    """All events of a task or a session, the oldest first."""
    task, session = (work, None) if work.startswith("@") else (None, work)
    pages, cursor = [], None
    while True:
        page = connection.call(k.JOURNAL_QUERY, k.JournalQuery(task=task, session=session, limit=PAGE, cursor=cursor))
        pages.append(page.entries)
        cursor = page.cursor
        if cursor is None:
            break
    for entries in reversed(pages):
        yield from reversed(entries)


def _tasks(connection: Connection) -> Iterator[str]:
    page = connection.call(k.JOURNAL_QUERY, k.JournalQuery(kind="task_begun", limit=MOST_TASKS))
    for entry in page.entries:
        yield f"{entry.seq} {escaped(str(entry.event.get('title', '')))} ({escaped(entry.agent or '-')})"
