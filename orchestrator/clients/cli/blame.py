"""Who wrote what, and what happened since."""

from __future__ import annotations

from collections.abc import Iterator

import click

from orchestrator.api import blame as t
from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.clients import render
from orchestrator.clients.cli.context import Settings, shared
from orchestrator.clients.cli.files import WHOLE_TOKENS
from orchestrator.clients.connection import Connection
from orchestrator.core.errors import escaped


@click.command()
@click.argument("path")
@click.option("--at", help="The file as it was at @N.")
@click.option("--start", type=int, default=1, help="First line.")
@click.option("--end", type=int, help="Last line.")
@shared
@click.pass_obj
def blame(settings: Settings, path: str, *, at: str | None, start: int, end: int | None) -> int:
    """Who brought each line of a file in."""
    params = t.Blame(path=settings.path(path), at=at, start=start, end=end)
    with settings.connect() as connection:
        blamed = connection.call("blame", params, t.BlameAnswer)
        lines = () if settings.json else tuple(_text(connection, blamed))
    return settings.show(blamed, _annotated(blamed, lines))


def _text(connection: Connection, blamed: t.BlameAnswer) -> Iterator[str]:
    """The lines that were blamed, of the very version."""
    start = blamed.start
    while start <= blamed.end:
        params = p.ReadFile(
            path=blamed.path,
            start=start,
            end=blamed.end,
            at=blamed.version_id,
            line_numbers=False,
            max_tokens=WHOLE_TOKENS,
        )
        page = connection.call("read_file", params, r.FileText)
        yield from render.content(page.text)
        if page.end < start:
            return
        start = page.end + 1


def _annotated(blamed: t.BlameAnswer, lines: tuple[str, ...]) -> Iterator[str]:
    """As git shows it: version, author, time, number, line; a mark where the file had another name."""
    rows = [
        (part, (part.version, _who(part), render.when(part.at), escaped(part.path or ""))) for part in blamed.ranges
    ]
    widths = [max((len(row[column]) for _, row in rows), default=0) for column in range(4)]
    digits = len(str(blamed.end))
    for part, row in rows:
        head = " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width)
        for number in range(part.start, part.end + 1):
            place = number - blamed.start
            text = lines[place] if place < len(lines) else ""
            yield click.style(f"{head} {number:>{digits}}) ", dim=True) + text


def _who(part: t.BlamedLines) -> str:
    who = escaped(part.agent) if part.agent else part.kind
    return f"{who} ({escaped(part.approver)})" if part.approver else who


@click.command()
@click.argument("version", metavar="@N")
@click.option("--glob", "globs", multiple=True, help="Only these; gitignore-style, may be repeated.")
@click.option("--limit", type=int, default=100, show_default=True)
@shared
@click.pass_obj
def since(settings: Settings, *, version: str, globs: tuple[str, ...], limit: int) -> int:
    """What changed after @N, oldest first."""
    params = t.ChangesSince(version=version, globs=globs, limit=limit)
    changes = settings.call("changes_since", params, t.Changes)
    return settings.show(changes, _changes(changes))


def _changes(changes: t.Changes) -> Iterator[str]:
    yield from render.table(
        (
            change.version,
            render.when(change.at),
            change.agent or "",
            change.kind,
            "" if change.added is None else f"+{change.added} -{change.removed}",
            change.path if change.moved_from is None else f"{change.moved_from} → {change.path}",
        )
        for change in changes.changes
    )
    if changes.left_out:
        yield f"{changes.left_out} paths are left out by policy"
    if changes.more:
        yield f"… go on with: since {changes.head}"
