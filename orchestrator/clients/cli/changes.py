"""Changing: patch, edit, write, revert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import click

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api import rollback as u
from orchestrator.clients.cli.context import Settings, shared, shared_but_agent, text_of, usage

Command = TypeVar("Command", bound=Callable[..., Any])


def changing(command: Command) -> Command:
    """The options that every change has."""
    return shared(changing_but_agent(command))


def changing_but_agent(command: Command) -> Command:
    """Those of a change whose own `--agent` is a filter, without the global ones."""
    for option in (
        click.option("--reason", default="", help="Why, for those who read the history."),
        click.option("--preview", is_flag=True, help="Only show what would happen."),
    ):
        command = option(command)
    return command


base = click.option("--base", help="The version, @N or sha256:…, that the change was made against.")


@click.command()
@click.argument("file", metavar="FILE|-")
@click.option("--path", help="The file to patch, where the patch names none.")
@base
@changing
@click.pass_obj
def patch(settings: Settings, *, file: str, path: str | None, base: str | None, preview: bool, reason: str) -> int:
    """Apply a patch in any usual form, of one file or several: all of it or none."""
    params = p.ApplyPatch(
        patch=text_of(file),
        path=None if path is None else settings.path(path),
        base=base,
        preview=preview,
        reason=reason,
    )
    return settings.run("apply_patch", params, r.ChangeAnswer)


@click.command()
@click.argument("path")
@click.option("--search", help="The present text.")
@click.option("--replace", help="The new text.")
@click.option("--count", type=int, default=1, show_default=True, help="How often the text must stand.")
@click.option("--fuzzy/--exact", default=None, help="Whether the text may be misquoted; else the policy says.")
@click.option("--start", type=int, help="Instead of --search: the first line to replace.")
@click.option("--end", type=int, help="With --start: the last line.")
@click.option("--expect", help="With --start: the text that these lines hold.")
@click.option("--symbol", help="Instead of --search: a function, class, key or heading, as in Class.method.")
@click.option("--content", metavar="FILE|-", help="With --symbol: its whole new text.")
@base
@changing
@click.pass_obj
def edit(
    settings: Settings,
    *,
    path: str,
    search: str | None,
    replace: str | None,
    count: int,
    fuzzy: bool | None,
    start: int | None,
    end: int | None,
    expect: str | None,
    symbol: str | None,
    content: str | None,
    base: str | None,
    preview: bool,
    reason: str,
) -> int:
    """Replace a passage of a file, lines by number, or a symbol."""
    given = [search is not None, start is not None, symbol is not None]
    if sum(given) != 1 or (content if symbol is not None else replace) is None:
        usage("give --search and --replace; or --start, --end, --expect and --replace; or --symbol and --content")
    change = p.Replacement(
        search=search,
        replace=replace,
        expected_count=count,
        fuzzy=fuzzy,
        start=start,
        end=end,
        expect=expect,
        symbol=symbol,
        content=None if content is None else text_of(content),
    )
    params = p.EditFile(path=settings.path(path), changes=(change,), base=base, preview=preview, reason=reason)
    return settings.run("edit_file", params, r.ChangeAnswer)


@click.command()
@click.argument("path")
@click.argument("file", metavar="[FILE|-]", default="-")
@click.option("--mode", type=click.Choice(["truncate", "append", "create"]), default="truncate", show_default=True)
@base
@changing
@click.pass_obj
def write(
    settings: Settings,
    *,
    path: str,
    file: str,
    mode: Literal["truncate", "append", "create"],
    base: str | None,
    preview: bool,
    reason: str,
) -> int:
    """Write a whole file, or append to one, from FILE or stdin."""
    params = p.WriteFile(
        path=settings.path(path), content=text_of(file), mode=mode, base=base, preview=preview, reason=reason
    )
    return settings.run("write_file", params, r.ChangeAnswer)


@click.command()
@click.argument("change", metavar="@N")
@changing
@click.pass_obj
def revert(settings: Settings, change: str, preview: bool, reason: str) -> int:
    """Undo one change; what others changed later is kept."""
    params = p.Revert(change=change, preview=preview, reason=reason)
    return settings.run("revert", params, r.ChangeAnswer)


@click.command()
@click.option("--agent", "by", metavar="NAME", help="Only changes of this agent; 'outside': those by other hands.")
@click.option("--session", "of_session", metavar="ID", help="Only changes of this session.")
@click.option("--task", metavar="@N", help="Only changes of this task.")
@click.option("--glob", "globs", multiple=True, help="Only these files; gitignore-style, may be repeated.")
@click.option("--since", metavar="@N|TIME", help="Only what came after; TIME in ISO 8601 (no zone: UTC).")
@click.option("--until", metavar="@N|TIME", help="Only what came until then.")
@shared_but_agent
@changing_but_agent
@click.pass_obj
def rollback(
    settings: Settings,
    *,
    by: str | None,
    of_session: str | None,
    task: str | None,
    globs: tuple[str, ...],
    since: str | None,
    until: str | None,
    preview: bool,
    reason: str,
) -> int:
    """Undo many changes as one; what others changed later is kept."""
    params = u.Rollback(
        agent=by,
        session=of_session,
        task=task,
        globs=globs,
        since=since,
        until=until,
        preview=preview,
        reason=reason,
    )
    return settings.run("rollback", params, u.RollbackAnswer)
