"""`orchestrator replay`: rebuilds the tree at a sequence number into a folder, or checks it against the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from orchestrator.api import history as t
from orchestrator.api.journal_checks import REPLAY_CHECK
from orchestrator.clients.cli.context import Command, Settings, usage
from orchestrator.clients.cli.output import ContentMismatch, NewFolder, OutputPathRefused
from orchestrator.clients.connection import Connection
from orchestrator.clients.running_daemon import RemoteError

_REASONS = {
    "policy": "policy keeps its content from you",
    "not_kept": "its content at that time is not in the journal",
}


@click.command(cls=Command)
@click.option("--to", "at", metavar="@N", help="The state to rebuild: @N, or current.")
@click.option("--into", metavar="DIR", type=click.Path(path_type=Path), help="A new or empty folder to write it to.")
@click.option("--check", is_flag=True, help="Rebuild the present from the journal and compare it with the disk.")
@click.pass_obj
def replay(settings: Settings, *, at: str | None, into: Path | None, check: bool) -> int:
    """Rebuild the tracked files as they were at any point, or check that the journal explains the disk."""
    if check and at is None and into is None:
        return settings.run(REPLAY_CHECK)
    if check or at is None or into is None:
        usage("give --to and --into, or --check alone")
    with settings.connect() as connection:
        return settings.show(_rebuilt(settings, connection, at, into))


def _rebuilt(settings: Settings, connection: Connection, at: str, into: Path) -> t.Replayed:
    page = connection.call(t.TREE_AT, t.TreeAt(at=at, contents=True))  # a wrong position makes no folder
    left_out: list[t.NotWritten] = []
    files = size = unlisted = 0
    with NewFolder.opened(settings, into) as folder:
        while True:
            unlisted += page.unlisted
            for entry in page.entries:
                match _write(connection, folder, entry):
                    case int() as written:
                        files, size = files + 1, size + written
                    case why:
                        left_out.append(why)
            if page.cursor is None:
                break
            page = connection.call(t.TREE_AT, t.TreeAt(contents=True, cursor=page.cursor))
        return t.Replayed(
            at=page.at,
            into=str(folder.path),
            files=files,
            bytes=size,
            complete=not left_out and not unlisted,
            left_out=tuple(left_out),
            unlisted=unlisted,
        )


def _write(connection: Connection, folder: NewFolder, entry: t.TreeEntry) -> int | t.NotWritten:
    """Write one file; how many bytes it has, or why it was left out. Raises OutputPathRefused."""
    if entry.left_out is not None:
        return t.NotWritten(path=entry.path, reason=entry.left_out, message=_REASONS[entry.left_out])
    try:
        return folder.write(entry, _pieces(connection, entry))
    except RemoteError as error:
        return t.NotWritten(path=entry.path, reason=error.code, message=error.message)
    except ContentMismatch as error:
        return t.NotWritten(path=entry.path, reason="not_whole", message=str(error))
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        why = "another file of the tree has its name there"
        return t.NotWritten(path=entry.path, reason="not_portable", message=why)
    except OSError as error:
        raise OutputPathRefused(
            f"{entry.path} could not be written into {folder.path}: {error.strerror}",
            hint="Empty the folder and start again.",
        ) from error


def _pieces(connection: Connection, entry: t.TreeEntry) -> Iterator[bytes]:
    if entry.data is not None:
        yield entry.data
        return
    offset: int | None = 0
    while offset is not None:
        piece = connection.call(t.CONTENT_AT, t.ContentAt(path=entry.path, at=entry.version_id, offset=offset))
        yield piece.data
        offset = piece.next
