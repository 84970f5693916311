"""Who did what: the journal's events, shown, followed and exported; its checkpoints; and the past as a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from orchestrator.api import history as t
from orchestrator.api import journal_operations as k
from orchestrator.api import parameters as p
from orchestrator.api.framing import FeedEvent, Subscribe
from orchestrator.api.journal_checks import JOURNAL_REBUILD, REPLAY_CHECK
from orchestrator.api.operations import FILE_HISTORY
from orchestrator.clients.cli.context import DONE, Command, Settings, echo, echo_json, json_escaped, usage
from orchestrator.clients.cli.new_folder import ContentMismatch, NewFolder, OutputPathRefused
from orchestrator.clients.cli.operation_commands import OperationCommand, command
from orchestrator.clients.connection import Connection
from orchestrator.clients.render.generic import some, when
from orchestrator.clients.running_daemon import RemoteError
from orchestrator.core.errors import escaped, plural

query = OperationCommand(k.JOURNAL_QUERY, defaults={"limit": 20})
archive = OperationCommand(
    k.JOURNAL_ARCHIVE,
    about="Move old events into compressed files with a checksum; they stay readable.",
    flags=("before",),
)


@command(
    k.JOURNAL_QUERY,
    words="log",
    defaults={"limit": 20},
    options=(
        click.Option(["--follow", "-f"], is_flag=True, help="Show events as they happen; PATH is then a glob."),
        click.Option(["--from", "from_"], metavar="@N", help="With --follow: also those since @N."),
    ),
)
def log(settings: Settings, params: k.JournalQuery, *, follow: bool, from_: str | None) -> int:
    """The versions of a file; without PATH, or with a filter, the journal's events."""
    filters = {name for name in k.JournalFilter.__struct_fields__ if getattr(params, name) is not None}
    if follow:
        if filters - {"path", "kind"}:
            usage("--follow goes with PATH, --kind and --from")
        kinds, globs = (tuple(filter(None, [params.kind])), tuple(filter(None, [params.path])))
        return _follow(settings, Subscribe(after=from_, kinds=kinds, globs=globs))
    if from_ is not None:
        usage("--from goes with --follow")
    if params.path is not None and filters == {"path"}:
        return settings.run(FILE_HISTORY, p.FileHistory(path=params.path, limit=params.limit, cursor=params.cursor))
    return settings.run(k.JOURNAL_QUERY, params)


def _follow(settings: Settings, wanted: Subscribe) -> int:
    """Print events as they happen, until interrupted or the daemon ends."""
    with settings.connect() as connection:
        for event in connection.follow(wanted):
            _print_event(event, as_json=settings.json)
    return DONE


def _print_event(event: FeedEvent, *, as_json: bool) -> None:
    if as_json:
        echo_json(event)
    else:
        about = some([*map(escaped, event.paths)])
        echo(f"{event.seq}  {when(event.at)}  {escaped(event.agent or '-')}  {event.kind}  {about}".rstrip())


@command(k.JOURNAL_EXPORT, hide=("limit",))
def export(settings: Settings, params: k.JournalExport) -> int:
    """Write the journal's events out as JSON Lines, oldest first."""
    events, more = 0, True
    with settings.connect() as connection:
        while more:
            page = connection.call(k.JOURNAL_EXPORT, params)
            click.echo(json_escaped(page.text), nl=False)
            events, more = events + page.events, page.more
            params = msgspec.structs.replace(params, after=page.after)
    echo(f"{plural(events, 'event')}; the last is {page.after}", err=True)
    return DONE


redact = OperationCommand(
    k.JOURNAL_REDACT,
    about="Take the texts of an event, or a content, out of the journal for good. It can't be undone.",
    options=(click.Argument(["event"], metavar="[@N]", required=False),),
)


rebuild = OperationCommand(
    JOURNAL_REBUILD,
    about="Replay everything and compare with what the daemon holds.",
    options=(click.Option(["--check"], is_flag=True, required=True, help="Only compare; changes nothing."),),
)


@click.command(cls=Command)
@click.option("--to", "at", metavar="@N", help="The state to rebuild: @N, current, or @start (the first scan's end).")
@click.option("--into", metavar="DIR", type=click.Path(path_type=Path), help="A new or empty folder to write it to.")
@click.option("--check", is_flag=True, help="Rebuild the present from the journal and compare it with the disk.")
@click.pass_obj
def replay(settings: Settings, *, at: str | None, into: Path | None, check: bool) -> int:
    """Rebuild the tracked files as they were at any point, or check that the journal explains the disk."""
    if check and at is None and into is None:
        return settings.run(REPLAY_CHECK, p.Params())
    if check or at is None or into is None:
        usage("give --to and --into, or --check alone")
    with settings.connect() as connection:
        return settings.show(_rebuilt(settings, connection, at, into))


def _rebuilt(settings: Settings, connection: Connection, at: str, into: Path) -> t.Replayed:
    page = connection.call(t.TREE_AT, t.TreeAt(at=at, contents=True))  # a wrong position makes no folder
    left_out, warnings = list[t.NotWritten](), page.warnings
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
            complete=not left_out and not unlisted and not warnings,
            left_out=tuple(left_out),
            unlisted=unlisted,
            warnings=warnings,
        )


def _write(connection: Connection, folder: NewFolder, entry: t.TreeEntry) -> int | t.NotWritten:
    """Write one file; how many bytes it has, or why it was left out. Raises OutputPathRefused."""
    if entry.left_out is not None:
        return t.NotWritten(path=entry.path, reason=entry.left_out)
    try:
        return folder.write(entry, _pieces(connection, entry))
    except RemoteError as error:
        return t.NotWritten(path=entry.path, reason=error.code)
    except ContentMismatch:
        return t.NotWritten(path=entry.path, reason="not_whole")
    except (FileExistsError, NotADirectoryError, IsADirectoryError):  # another file of the tree has its name there
        return t.NotWritten(path=entry.path, reason="not_portable")
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
