"""Who holds a stale view of a file."""

from __future__ import annotations

from collections.abc import Iterator

import click

from orchestrator.api import stale_readers as n
from orchestrator.clients import render
from orchestrator.clients.cli.context import Settings, shared
from orchestrator.core.errors import escaped


@click.command()
@click.argument("path", metavar="PATH")
@click.option("--limit", type=int, default=20, show_default=True, help="At most so many sessions.")
@shared
@click.pass_obj
def readers(settings: Settings, path: str, limit: int) -> int:
    """Who read lines of PATH that others have changed since."""
    params = n.StaleReaders(path=settings.path(path), limit=limit)
    answer = settings.call("stale_readers", params, n.StaleReadersAnswer)
    return settings.show(answer, _lines(answer))


def _lines(answer: n.StaleReadersAnswer) -> Iterator[str]:
    if not answer.readers:
        yield f"nobody holds a stale view of {escaped(answer.path)}"
        return
    yield from render.table(
        (
            escaped(reader.agent or "-"),
            reader.session,
            reader.version_id,
            ", ".join(map(n.seen_span, reader.lines)) or "all",
            f"{reader.changes} by {escaped(', '.join(reader.by))} since {reader.since}",
        )
        for reader in answer.readers
    )
    if answer.total > len(answer.readers):
        yield f"and {answer.total - len(answer.readers)} more sessions"
