"""The workspace as it was: rebuilt, checked, compared."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api import time_travel as t
from orchestrator.clients import render_trees
from orchestrator.clients.cli.context import DONE, REFUSED, Settings, echo, shared, usage
from orchestrator.clients.cli.outfile import state_directory
from orchestrator.clients.connection import Connection, RemoteError
from orchestrator.clients.export_tree import NotWhole, Target, TargetRefused

MOST_TOKENS = 2_000_000
"""Of one page of a diff: the most that the daemon gives."""

_REASONS = {
    "policy": "policy keeps its content from you",
    "not_kept": "its content at that time is not in the journal",
}


@click.command()
@click.option("--to", "at", metavar="@N", help="The state to rebuild: @N, or current.")
@click.option("--into", metavar="DIR", type=click.Path(path_type=Path), help="A new or empty folder to write it to.")
@click.option("--check", is_flag=True, help="Rebuild the present from the journal and compare it with the disk.")
@shared
@click.pass_obj
def replay(settings: Settings, *, at: str | None, into: Path | None, check: bool) -> int:
    """Rebuild the tracked files as they were at any point, or check that the journal explains the disk."""
    if check:
        if at is not None or into is not None:
            usage("--check goes alone")
        report = settings.call("replay_check", t.ReplayCheck(), t.ReplayReport)
        settings.show(report, render_trees.replay_report(report))
        return DONE if report.ok else REFUSED
    if at is None or into is None:
        usage("give --to and --into, or --check")
    with settings.connect() as connection:
        done = _rebuilt(connection, at, into, state_directory(settings))
    settings.show(done, render_trees.replayed(done))
    return DONE if done.complete else REFUSED


def _rebuilt(connection: Connection, at: str, into: Path, state_dir: str) -> t.Replayed:
    first = connection.call("tree_at", t.TreeAt(at=at, contents=True), t.Tree)  # a wrong position makes no folder
    left_out: list[t.NotWritten] = []
    files = size = unlisted = 0
    with Target.opened(into, workspace=connection.welcome.workspace, state_dir=state_dir) as target:
        for page in _pages(connection, first):
            unlisted += page.unlisted
            for entry in page.entries:
                try:
                    missed, written = _written(connection, target, entry)
                except OSError as error:
                    raise TargetRefused(
                        f"{entry.path} could not be written into {target.path}: {error.strerror}",
                        hint=f"{files} files were written before it; empty the folder and start again.",
                    ) from error
                size += written
                files += missed is None
                left_out += [missed] if missed is not None else []
        return t.Replayed(
            at=first.at,
            into=str(target.path),
            files=files,
            bytes=size,
            complete=not left_out and not unlisted,
            left_out=tuple(left_out),
            unlisted=unlisted,
        )


def _written(connection: Connection, target: Target, entry: t.TreeEntry) -> tuple[t.NotWritten | None, int]:
    """Write one file: why that could not be, or None; and how many bytes. Raises OSError."""
    if entry.left_out is not None:
        return t.NotWritten(path=entry.path, reason=entry.left_out, message=_REASONS[entry.left_out]), 0
    try:
        return None, target.write(entry, _pieces(connection, entry))
    except RemoteError as error:
        return t.NotWritten(path=entry.path, reason=error.code, message=error.message), 0
    except NotWhole as error:
        return t.NotWritten(path=entry.path, reason="not_whole", message=str(error)), 0
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        message = "another file of the tree has its name there"
        return t.NotWritten(path=entry.path, reason="not_portable", message=message), 0


def _pages(connection: Connection, page: t.Tree) -> Iterator[t.Tree]:
    yield page
    while page.cursor is not None:
        page = connection.call("tree_at", t.TreeAt(contents=True, cursor=page.cursor), t.Tree)
        yield page


def _pieces(connection: Connection, entry: t.TreeEntry) -> Iterator[bytes]:
    if entry.data is not None:
        yield entry.data
        return
    offset: int | None = 0
    while offset is not None:
        params = t.ContentAt(path=entry.path, at=entry.version_id, offset=offset)
        piece = connection.call("content_at", params, t.Content)
        yield piece.data
        offset = piece.next


def tree_diff(settings: Settings, from_: str, to: str, context: int) -> int:
    """All files that differ; into a pipe or a file as a patch that `git apply` takes, its notes on stderr."""
    with settings.connect() as connection:
        diff = _whole(connection, p.GetDiff(from_=from_, to=to, context_lines=context, max_tokens=MOST_TOKENS))
    if settings.json or sys.stdout.isatty():
        return settings.show(diff, render_trees.tree_diff(diff))
    click.echo(diff.diff.encode(), nl=False)
    for note in (*render_trees.notes(diff), *(f"note: {warning}" for warning in diff.warnings)):
        echo(note, err=True)
    return DONE


def _whole(connection: Connection, params: p.GetDiff) -> r.Diff:
    """All pages as one."""
    page = whole = connection.call("get_diff", params, r.Diff)
    while page.cursor is not None:
        page = connection.call("get_diff", msgspec.structs.replace(params, cursor=page.cursor), r.Diff)
        whole = msgspec.structs.replace(
            whole,
            diff=whole.diff + page.diff,
            added=whole.added + page.added,
            removed=whole.removed + page.removed,
            files=(*whole.files, *page.files),
            cursor=None,
        )
    return whole
