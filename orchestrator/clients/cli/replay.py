"""The workspace as it was, written into a folder of its own; and whether the journal explains the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from orchestrator.api import time_travel as t
from orchestrator.clients.cli.context import Settings, shared, usage
from orchestrator.clients.connection import Connection, RemoteError
from orchestrator.clients.export_tree import NotWhole, Target, TargetRefused

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
        return settings.run(t.REPLAY_CHECK)
    if at is None or into is None:
        usage("give --to and --into, or --check")
    with settings.connect() as connection:
        return settings.show(_rebuilt(connection, at, into, settings.state_directory))


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
                        hint="Empty the folder and start again.",
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
        reason, message = error.code, error.message
    except NotWhole as error:
        reason, message = "not_whole", str(error)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        reason, message = "not_portable", "another file of the tree has its name there"
    return t.NotWritten(path=entry.path, reason=reason, message=message), 0


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
