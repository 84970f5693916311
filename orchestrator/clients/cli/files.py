"""Looking: files, their text, versions and differences."""

from __future__ import annotations

import sys

import click

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.clients import render
from orchestrator.clients.cli import time_travel
from orchestrator.clients.cli.context import Settings, echo, shared, usage

WHOLE_TOKENS = 200_000
"""A person reads past the budget that suits a model; this is the most that the daemon gives at once."""


@click.command()
@click.argument("path", default=".")
@click.option("--glob", "globs", multiple=True, help="Only these; gitignore-style, may be repeated.")
@click.option("--recursive", "-r", is_flag=True, help="Also what is in the directories below.")
@click.option("--hidden", is_flag=True, help="Also names that begin with a dot.")
@click.option("--limit", type=int, default=200, show_default=True)
@click.option("--cursor", help="Go on where the last answer ended.")
@shared
@click.pass_obj
def files(
    settings: Settings,
    *,
    path: str,
    globs: tuple[str, ...],
    recursive: bool,
    hidden: bool,
    limit: int,
    cursor: str | None,
) -> int:
    """List a directory."""
    params = p.ListFiles(
        path=settings.path(path), globs=globs, recursive=recursive, include_hidden=hidden, limit=limit, cursor=cursor
    )
    return settings.run("list_files", params, r.Listing)


@click.command("open")
@click.argument("path")
@click.option("--start", type=int, default=1, help="First line.")
@click.option("--end", type=int, help="Last line.")
@click.option("--at", help="An earlier state, @N.")
@click.option("--numbers/--no-numbers", default=None, help="Number the lines; default on a terminal.")
@shared
@click.pass_obj
def open_file(
    settings: Settings, *, path: str, start: int, end: int | None, at: str | None, numbers: bool | None
) -> int:
    """Show a file, or lines of it."""
    params = p.ReadFile(
        path=settings.path(path), start=start, end=end, at=at, line_numbers=False, max_tokens=WHOLE_TOKENS
    )
    text = settings.call("read_file", params, r.FileText)
    if numbers is None:
        numbers = sys.stdout.isatty()
    code = settings.show(text, render.numbered(text.text, text.start) if numbers else render.content(text.text))
    if text.truncated and not settings.json:
        echo(f"… lines {text.start}-{text.end} of {text.total_lines}; go on with --start {text.end + 1}", err=True)
    return code


@click.command()
@click.argument("pattern")
@click.argument("path", default=".")
@click.option("--glob", "globs", multiple=True, help="Only these files; gitignore-style, may be repeated.")
@click.option("--ignore-case", "-i", is_flag=True)
@click.option("--word", "-w", is_flag=True, help="Only whole words.")
@click.option("--context", "-C", type=int, default=0, show_default=True, help="Lines around each hit.")
@click.option("--limit", type=int, default=200, show_default=True)
@click.option("--cursor", help="Go on where the last answer ended.")
@shared
@click.pass_obj
def search(
    settings: Settings,
    *,
    pattern: str,
    path: str,
    globs: tuple[str, ...],
    ignore_case: bool,
    word: bool,
    context: int,
    limit: int,
    cursor: str | None,
) -> int:
    """Find a text in the files."""
    params = p.SearchContent(
        pattern=pattern,
        path=settings.path(path),
        globs=globs,
        case_sensitive=not ignore_case,
        word=word,
        context_lines=context,
        max_results=limit,
        cursor=cursor,
    )
    return settings.run("search_content", params, r.SearchResult)


@click.command()
@click.argument("path", required=False)
@click.option("--from", "from_", help="@N, @previous (the default for a file) or working.")
@click.option("--to", default="current", show_default=True, help="@N, current or working (the disk now).")
@click.option("--context", "-C", type=int, default=3, show_default=True)
@shared
@click.pass_obj
def diff(settings: Settings, path: str | None, from_: str | None, to: str, context: int) -> int:
    """The difference between two versions of a file; without PATH, of all files."""
    if path is None:
        if from_ is None:
            usage("without PATH, give --from @N")
        return time_travel.tree_diff(settings, from_, to, context)
    params = p.GetDiff(path=settings.path(path), from_=from_ or "@previous", to=to, context_lines=context)
    return settings.run("get_diff", params, r.Diff)
