"""Who did what: the journal's events, shown, followed and exported; and its checkpoints."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import click
import msgspec

from orchestrator.api import parameters as p
from orchestrator.api.feed import FeedEvent, Subscribe
from orchestrator.api.journal import (
    JOURNAL_ARCHIVE,
    JOURNAL_CHECKPOINT,
    JOURNAL_EXPORT,
    JOURNAL_REDACT,
    ExportPage,
    JournalExport,
)
from orchestrator.api.operations import FILE_HISTORY, JOURNAL_QUERY, JOURNAL_REBUILD
from orchestrator.clients import git_notes
from orchestrator.clients.cli.context import DONE, Settings, echo, echo_json, json_escaped, usage
from orchestrator.clients.cli.operation_commands import OperationCommand, command
from orchestrator.clients.connection import Connection
from orchestrator.clients.render.text import some, when
from orchestrator.core.errors import CallerError, DaemonRestarted, DaemonUnreachable, escaped, plural

RECONNECT_S = 30.0
"""How long the daemon may be away while it is followed; as over stdio."""

PAUSE_S = 0.2


class OutputPathRefused(
    CallerError,
    code="output_path_refused",
    hint="Name a file outside of the workspace and of the state directory, best on another disk.",
):
    """What is kept beside the journal must not lie where agents write, nor where the journal itself is lost."""


query = OperationCommand(JOURNAL_QUERY, defaults={"limit": 20})
archive = OperationCommand(
    JOURNAL_ARCHIVE,
    about="Move old events into compressed, sealed files; they stay readable.",
    options=(click.Option(["--before"], required=True, metavar="@N", help="Every event before this one."),),
)


@command(
    JOURNAL_QUERY,
    name="log",
    defaults={"limit": 20},
    options=(
        click.Option(["--follow", "-f"], is_flag=True, help="Show events as they happen; PATH is then a glob."),
        click.Option(["--from", "from_"], metavar="@N", help="With --follow: also those since @N."),
    ),
)
def log(settings: Settings, params: p.JournalQuery, *, follow: bool, from_: str | None) -> int:
    """The versions of a file; without PATH, or with a filter, the journal's events."""
    filters = {name for name in p.JournalFilter.__struct_fields__ if getattr(params, name) is not None}
    if follow:
        if filters - {"path", "kind"}:
            usage("--follow goes with PATH, --kind and --from")
        kinds, globs = (tuple(filter(None, [params.kind])), tuple(filter(None, [params.path])))
        return _follow(settings, Subscribe(after=from_, kinds=kinds, globs=globs))
    if from_ is not None:
        usage("--from goes with --follow")
    if params.path is not None and filters == {"path"}:
        return settings.run(FILE_HISTORY, params.path, limit=params.limit, cursor=params.cursor)
    return settings.show(settings.ask(JOURNAL_QUERY, params))


def _follow(settings: Settings, wanted: Subscribe) -> int:
    """Print events as they happen, until interrupted; through a restart of the daemon without gap or repeat."""
    for event in _events(settings, wanted):
        if settings.json:
            echo_json(event)
        else:
            about = some([*map(escaped, event.paths)])
            echo(f"{event.seq}  {when(event.at)}  {escaped(event.agent or '-')}  {event.kind}  {about}".rstrip())
    return DONE


def _events(settings: Settings, wanted: Subscribe) -> Iterator[FeedEvent]:
    give_up: float | None = 0.0  # the first connection must succeed
    while True:
        try:
            with settings.connect() as connection:
                wanted = msgspec.structs.replace(wanted, after=connection.subscribe(wanted).after)
                give_up = None
                for event in connection.events():
                    wanted = msgspec.structs.replace(wanted, after=event.seq)
                    yield event
        except (DaemonRestarted, DaemonUnreachable):
            now = time.monotonic()
            give_up = now + RECONNECT_S if give_up is None else give_up
            if now > give_up:
                raise
            time.sleep(PAUSE_S)


_OUT = click.Option(["--out"], metavar="FILE", help="Write it to a new file, outside of the workspace.")


@command(JOURNAL_EXPORT, hide=("limit",), options=(_OUT,))
def export(settings: Settings, params: JournalExport, *, out: str | None) -> int:
    """Write the journal's events out, oldest first, as JSON Lines."""
    place = None if out is None else _outside(settings, out)
    with settings.connect() as connection:
        pages = _pages(connection, params)
        first = next(pages)  # what is refused leaves no file
        if place is None:
            events, last = _write(chain((first,), pages), _print)
        else:
            with _new_file(place) as file:
                events, last = _write(chain((first,), pages), file.write)
    echo(f"{plural(events, 'event')}; the last is {last}", err=True)
    return DONE


def _pages(connection: Connection, params: JournalExport) -> Iterator[ExportPage]:
    """Page after page, none kept."""
    while True:
        page = connection.call("journal_export", params, ExportPage)
        yield page
        if not page.more:
            return
        params = msgspec.structs.replace(params, after=page.after)


def _write(pages: Iterable[ExportPage], write: Callable[[str], object]) -> tuple[int, str]:
    """How many events were written, and where it ended."""
    events, last = 0, ""
    for page in pages:
        write(page.text)
        events, last = events + page.events, page.after
    sys.stdout.flush()
    return events, last


def _print(text: str) -> None:
    """Characters that do not show are escaped."""
    click.echo(json_escaped(text), nl=False)


@command(
    JOURNAL_CHECKPOINT,
    options=(
        _OUT,
        click.Option(["--git-note"], is_flag=True, help="Attach it to the workspace's present commit, as a git note."),
    ),
)
def checkpoint(settings: Settings, params: p.Params, *, out: str | None, git_note: bool) -> int:
    """Sign where the journal ends now; prints the checkpoint, for `journal verify --checkpoint`."""
    place = None if out is None else _outside(settings, out)
    if place is not None and place.exists():
        usage(f"--out: {out} is there already")
    made = settings.ask(JOURNAL_CHECKPOINT, params)
    lines = [f"Signed the journal up to {made.seq} with key {made.key}."]
    if place is not None:
        with _new_file(place) as file:
            file.write(made.text)
        lines.append(f"Written to {out}: keep a copy where nobody who can write this journal can write.")
    if git_note:
        commit = git_notes.attach(settings.root, made.text)
        lines.append(f"Noted at commit {commit}: `git notes --ref={git_notes.REF} show {commit[:12]}`.")
    return settings.show(made, lines if out is not None or git_note else None)


def _one_of_both(settings: Settings, typed: dict[str, Any]) -> None:
    if (typed["event"] is None) == (typed["blob"] is None):
        usage("name an event, or give --blob")
    if typed["path"] is not None and typed["blob"] is None:
        usage("--path goes with --blob")


redact = OperationCommand(
    JOURNAL_REDACT,
    about="Take the texts of an event, or a content, out of the journal for good. It can't be undone.",
    options=(
        click.Argument(["event"], metavar="@N", required=False),
        click.Option(["--blob"], metavar="sha256:…|@N", help="Remove a content instead, or that of a version."),
        click.Option(["--path"], metavar="P", help="With --blob @N: which file's content, as of that version."),
    ),
    prepare=_one_of_both,
)


def _only_compared(settings: Settings, typed: dict[str, Any]) -> None:
    if not typed["check"]:
        usage("this version only compares: give --check")


rebuild = OperationCommand(
    JOURNAL_REBUILD,
    about="Replay everything and compare with what the daemon holds.",
    options=(click.Option(["--check"], is_flag=True, help="Only compare; changes nothing."),),
    prepare=_only_compared,
)


def _outside(settings: Settings, name: str) -> Path:
    """Where a file may be written, by its real path, links followed. Raises OutputPathRefused, WorkspaceUnknown."""
    place = Path(os.path.realpath(name))
    for folder, what in ((settings.root, "the workspace"), (settings.state_directory, "the state directory")):
        if place.is_relative_to(os.path.realpath(folder)):
            raise OutputPathRefused(f"--out: {escaped(str(place))} is in {what}")
    return place


@contextmanager
def _new_file(place: Path) -> Iterator[TextIO]:
    """A file that was not there, for its owner alone, since names and reasons stand in it; synced at the end."""
    try:
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(handle, "w", encoding="utf-8", newline="") as file:  # noqa: PTH123  # a descriptor
            yield file
            file.flush()
            os.fsync(handle)
    except FileExistsError:
        usage(f"--out: {place} is there already")
    except OSError as error:
        usage(f"--out: {place}: {error.strerror}")
