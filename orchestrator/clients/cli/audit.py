"""Who did what: the journal's events, shown or written out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, TypedDict, TypeVar, Unpack, get_args

import click

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.audit import ExportPage, Format, JournalExport
from orchestrator.api.feed import Subscribe
from orchestrator.clients import render
from orchestrator.clients.cli import subscription
from orchestrator.clients.cli.context import DONE, Settings, echo, json_escaped, shared_but_agent, usage
from orchestrator.clients.cli.outfile import new_file, outside
from orchestrator.clients.cli.records import journal
from orchestrator.clients.connection import Connection
from orchestrator.core.events.base import Outcome

Command = TypeVar("Command", bound=Callable[..., Any])


class Filters(TypedDict):
    """What the options of `filtered` give."""

    path: str | None
    by: str | None
    session: str | None
    task: str | None
    kind: str | None
    since: str | None
    until: str | None
    outcome: Outcome | None


def filtered(command: Command) -> Command:
    """The options that choose events."""
    for option in (
        click.option("--outcome", type=click.Choice(get_args(Outcome)), help="Only what came out so."),
        click.option("--until", metavar="MOMENT", help="Up to @N, or a date and time in ISO 8601 (no zone: UTC)."),
        click.option("--since", metavar="MOMENT", help="From there on, written like --until."),
        click.option("--kind", help="Only events of this kind, e.g. change_applied."),
        click.option("--task", metavar="@N", help="Only what belongs to this task."),
        click.option("--session", help="Only this session's."),
        click.option("--agent", "by", metavar="NAME", help="Only this agent's events."),
        click.argument("path", required=False),
    ):
        command = option(command)
    return command


def paged(command: Command) -> Command:
    """The options that choose a page."""
    cursor = click.option("--cursor", help="Go on where the last answer ended.")
    return click.option("--limit", type=int, default=20, show_default=True)(cursor(command))


@click.command()
@filtered
@paged
@click.option("--follow", "-f", is_flag=True, help="Show events as they happen; PATH is then a glob.")
@click.option("--from", "from_", metavar="@N", help="With --follow: also those since @N.")
@shared_but_agent
@click.pass_obj
def log(
    settings: Settings,
    *,
    limit: int,
    cursor: str | None,
    follow: bool,
    from_: str | None,
    **filters: Unpack[Filters],
) -> int:
    """The versions of a file; without PATH, or with a filter, the journal's events."""
    if follow:
        return _follow(settings, filters, from_)
    if from_ is not None:
        usage("--from goes with --follow")
    if filters["path"] is not None and not any(value for name, value in filters.items() if name != "path"):
        history = p.FileHistory(path=settings.path(filters["path"]), limit=limit, cursor=cursor)
        return settings.run("file_history", history, r.History)
    return _query(settings, filters, limit, cursor)


def _follow(settings: Settings, filters: Filters, from_: str | None) -> int:
    if any(value for name, value in filters.items() if name not in ("path", "kind")):
        usage("--follow goes with PATH, --kind and --from")
    globs = () if filters["path"] is None else (settings.path(filters["path"]),)
    kinds = (filters["kind"],) if filters["kind"] else ()
    return subscription.follow(settings, Subscribe(after=from_, kinds=kinds, globs=globs))


@journal.command("query")
@filtered
@paged
@shared_but_agent
@click.pass_obj
def journal_query(settings: Settings, *, limit: int, cursor: str | None, **filters: Unpack[Filters]) -> int:
    """The journal's events, newest first; with PATH those about it."""
    return _query(settings, filters, limit, cursor)


@journal.command("export")
@filtered
@click.option("--format", "format_", type=click.Choice(get_args(Format)), default="jsonl", show_default=True)
@click.option("--out", metavar="FILE", help="Write there, to a new file, outside of the workspace.")
@click.option("--after", metavar="@N", default="@0", help="Only what came later than this event.")
@shared_but_agent
@click.pass_obj
def journal_export(
    settings: Settings, *, format_: Format, out: str | None, after: str, **filters: Unpack[Filters]
) -> int:
    """Write the journal's events out, oldest first: JSON Lines, CSV, or OCSF File System Activity."""
    params = JournalExport(**_chosen(settings, filters), format=format_, after=after)
    place = None if out is None else outside(settings, out)
    with settings.connect() as connection:
        pages = _pages(connection, params)
        first = next(pages)  # what is refused leaves no file
        if place is None:
            shown = partial(_print, format_=format_)
            events, left_out, last = _write(chain((first,), pages), shown)
        else:
            try:
                with open(new_file(place), "w", encoding="utf-8", newline="") as file:  # noqa: PTH123  # a descriptor
                    events, left_out, last = _write(chain((first,), pages), file.write)
            except FileExistsError:
                usage(f"--out: {out} is there already")
            except OSError as error:
                usage(f"{out}: {error.strerror}")
    without = f", {left_out} left out that are about no file" if left_out else ""
    echo(f"{events} events{without}; the last is {last}", err=True)
    return DONE


def _pages(connection: Connection, params: JournalExport) -> Iterator[ExportPage]:
    """Page after page, none kept."""
    fields = {name: getattr(params, name) for name in params.__struct_fields__}
    while True:
        page = connection.call("journal_export", JournalExport(**fields), ExportPage)
        yield page
        if not page.more:
            return
        fields["after"] = page.after


def _write(pages: Iterable[ExportPage], write: Callable[[str], object]) -> tuple[int, int, str]:
    """How many events were written, how many left out, and where it ended."""
    events, left_out, last = 0, 0, ""
    for page in pages:
        write(page.text)
        events, left_out, last = events + page.events, left_out + page.left_out, page.after
    sys.stdout.flush()
    return events, left_out, last


def _print(text: str, format_: Format) -> None:
    """Characters that do not show are escaped: in JSON always, in CSV, which has no escapes, on a terminal only."""
    if format_ != "csv":
        text = json_escaped(text)
    elif sys.stdout.isatty():
        text = "".join(f"{line}\n" for line in render.content(text))
    click.echo(text, nl=False)


def _query(settings: Settings, filters: Filters, limit: int, cursor: str | None) -> int:
    query = p.JournalQuery(**_chosen(settings, filters), limit=limit, cursor=cursor)
    return settings.run("journal_query", query, r.JournalPage)


def _chosen(settings: Settings, filters: Filters) -> dict[str, Any]:
    """The filters as parameters."""
    chosen: dict[str, Any] = {name: value for name, value in filters.items() if name not in ("path", "by")}
    path = filters["path"]
    return {"path": None if path is None else settings.path(path), "agent": filters["by"], **chosen}
