"""Files: looked at (text, versions, authors, differences), and changed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.history import BLAME, Blame, BlameAnswer, BlamedLines
from orchestrator.api.operation import AnyOperation
from orchestrator.api.operations import APPLY_PATCH, EDIT_FILE, GET_DIFF, READ_FILE, SEARCH_CONTENT, WRITE_FILE
from orchestrator.api.structure import (
    GET_OVERVIEW,
    READ_CONTENT,
    READ_ENCLOSING,
    READ_SYMBOL,
    ReadContent,
    ReadEnclosing,
    ReadSymbol,
)
from orchestrator.api.tags import TAG_FILE, TagFile
from orchestrator.clients.cli.context import Settings, echo, usage
from orchestrator.clients.cli.operation_commands import OperationCommand, command, parameters
from orchestrator.clients.connection import Connection
from orchestrator.clients.render.answers import diff_notes
from orchestrator.clients.render.commands import for_people
from orchestrator.clients.render.generic import content, numbered, table, when
from orchestrator.clients.running_daemon import RemoteError
from orchestrator.core.errors import ApproverCodeNeeded

WHOLE_TOKENS = 200_000
"""A person reads past the budget that suits a model; this is the most that the daemon gives at once."""

MOST_TOKENS = 2_000_000
"""Of one page of a diff: the most that the daemon gives."""


def _how_to_match(settings: Settings, typed: dict[str, Any]) -> None:
    if typed.pop("regex"):
        typed["mode"] = "regex"


search = OperationCommand(
    SEARCH_CONTENT,
    defaults={"context_lines": 0, "max_results": 200},
    options=(
        click.Option(["--case-sensitive/--ignore-case", " /-i"], default=True, help="Whether 'a' finds 'A'."),
        click.Option(["--regex", "-e"], is_flag=True, help="As --mode regex."),
    ),
    prepare=_how_to_match,
)

overview = OperationCommand(GET_OVERVIEW, defaults={"max_tokens": WHOLE_TOKENS}, hide=("max_tokens",))

_AS_TEXT = ("max_tokens", "line_numbers")


@command(READ_FILE, hide=_AS_TEXT, defaults={"delta": False})
def open_file(settings: Settings, params: p.ReadFile) -> int:
    """Show a file, or lines of it; on a terminal with their numbers."""
    return _shown(settings, READ_FILE, params)


@command(READ_SYMBOL, hide=_AS_TEXT)
def symbol(settings: Settings, params: ReadSymbol) -> int:
    """Show one function, class, key or section of a file."""
    return _shown(settings, READ_SYMBOL, params)


@command(READ_ENCLOSING, hide=_AS_TEXT)
def around(settings: Settings, params: ReadEnclosing) -> int:
    """Show the whole function, class or section around a line of a file."""
    return _shown(settings, READ_ENCLOSING, params)


@command(READ_CONTENT, hide=_AS_TEXT)
def read(settings: Settings, params: ReadContent) -> int:
    """Show lines from a line or a text on, the symbol around it, or either end of a file."""
    return _shown(settings, READ_CONTENT, params)


def _shown(settings: Settings, operation: AnyOperation, params: p.Params) -> int:
    """Lines of a file; on a terminal with their numbers."""
    pieces = bool(getattr(params, "delta", False))
    text = settings.ask(operation, msgspec.structs.replace(params, line_numbers=pieces, max_tokens=WHOLE_TOKENS))
    if text.image is not None and not settings.json:
        if sys.stdout.isatty():
            echo(f"{text.image.media_type}, {text.image.size} bytes; into a file or a pipe it is written as it is")
        else:
            click.echo(text.image.data, nl=False)
        return 0
    whole = sys.stdout.isatty() and not pieces
    code = settings.show(text, numbered(text.text, text.start) if whole else content(text.text))
    if text.unchanged_since is not None and not settings.json:
        echo(f"lines {text.start}-{text.end}: unchanged since {text.unchanged_since}", err=True)
    if text.truncated and not settings.json:
        of = f" of {text.total_lines}" if text.total_lines is not None else ""
        ways = " or ".join(for_people(way) for way in (text.next_in_line, text.next) if way)
        echo(f"… lines {text.start}-{text.end}{of}; go on with {ways}", err=True)
    return code


@command(TAG_FILE, code_first=False)
def tag(settings: Settings, params: TagFile) -> int:
    """Set tags on a file, or take them off with --remove; tags that the policy goes by take the approver code."""
    try:
        return settings.run(TAG_FILE, params)
    except RemoteError as error:
        if error.code != ApproverCodeNeeded.code or not settings.is_person:
            raise
    return settings.run(TAG_FILE, msgspec.structs.replace(params, approver=settings.approver()))


def _from_what(settings: Settings, typed: dict[str, Any]) -> None:
    if typed["path"] is None and typed["from_"] == "@previous":
        usage("without PATH, give --from @N")


@command(GET_DIFF, hide=("max_tokens", "cursor"), prepare=_from_what)
def diff(settings: Settings, params: p.GetDiff) -> int:
    """The difference between two versions of a file; without PATH, of all files.

    Of all files, into a pipe or a file, it is a patch that `git apply` takes, with notes on stderr.
    """
    params = msgspec.structs.replace(params, max_tokens=MOST_TOKENS)
    if params.path is not None:
        return settings.run(GET_DIFF, params)
    with settings.connect() as connection:
        whole = _all_pages(connection, params)
    if settings.json or sys.stdout.isatty():
        return settings.show(whole)
    click.echo(whole.diff.encode(), nl=False)
    for note in diff_notes(whole):
        echo(note, err=True)
    return settings.show(whole, ())


def _all_pages(connection: Connection, params: p.GetDiff) -> r.Diff:
    page = whole = connection.call(GET_DIFF, params)
    while page.cursor is not None:
        page = connection.call(GET_DIFF, msgspec.structs.replace(params, cursor=page.cursor))
        whole = msgspec.structs.replace(
            whole,
            diff=whole.diff + page.diff,
            added=whole.added + page.added,
            removed=whole.removed + page.removed,
            files=(*whole.files, *page.files),
            cursor=None,
        )
    return whole


@command(BLAME)
def blame(settings: Settings, params: Blame) -> int:
    """Who brought in each line of a file."""
    with settings.connect() as connection:
        blamed = _whole_blame(connection, params)
        return settings.show(blamed, () if settings.json else _annotated(blamed, _lines(connection, blamed)))


def _whole_blame(connection: Connection, params: Blame) -> BlameAnswer:
    page = whole = connection.call(BLAME, params)
    while page.next is not None:
        onwards = msgspec.structs.replace(params, start=page.end + 1, at=whole.version_id)
        page = connection.call(BLAME, onwards)
        whole = msgspec.structs.replace(whole, ranges=(*whole.ranges, *page.ranges), end=page.end, next=None)
    return whole


def _lines(connection: Connection, blamed: BlameAnswer) -> Iterator[str]:
    """The lines that were blamed, of the very version."""
    wanted = p.ReadFile(
        blamed.path, end=blamed.end, at=blamed.version_id, line_numbers=False, max_tokens=WHOLE_TOKENS, delta=False
    )
    start = blamed.start
    while start <= blamed.end:
        page = connection.call(READ_FILE, msgspec.structs.replace(wanted, start=start))
        yield from content(page.text)
        if page.end < start:
            return
        start = page.end + 1


def _annotated(blamed: BlameAnswer, lines: Iterator[str]) -> Iterator[str]:
    """As git shows it: version, author, time, number, line; the file's name where it was another."""
    heads = [*table((part.version, _who(part), when(part.at), part.path or "") for part in blamed.ranges)]
    width, digits = max(map(len, heads), default=0), len(str(blamed.end))
    for part, head in zip(blamed.ranges, heads, strict=True):
        for number in range(part.start, part.end + 1):
            yield click.style(f"{head:<{width}}  {number:>{digits}}) ", dim=True) + next(lines, "")


def _who(part: BlamedLines) -> str:
    who = part.agent or part.kind
    if part.lease_holder:
        return f"{who} (under {part.lease_holder}'s lease)"
    return f"{who} ({part.approver})" if part.approver else who


patch = OperationCommand(
    APPLY_PATCH,
    about="Apply a patch in any usual form, of one file or several: all of it or none.",
    files=("patch",),
    flags=("path",),
)
write = OperationCommand(
    WRITE_FILE,
    about="Write a whole file, or append to one, from FILE or stdin.",
    defaults={"content": "-", "mode": "truncate"},
    files=("content",),
    flags=("mode",),
)


def _one_change(settings: Settings, typed: dict[str, Any]) -> None:
    """The options of a change as `changes`."""
    change = {name: typed.pop(name) for name in p.Replacement.__struct_fields__}
    forms = [change["search"] is not None, change["start"] is not None, change["symbol"] is not None]
    if sum(forms) != 1 or change["content" if change["symbol"] is not None else "replace"] is None:
        usage("give --search and --replace; or --start, --end, --expect and --replace; or --symbol and --content")
    typed["changes"] = (p.Replacement(**change),)


edit = OperationCommand(
    EDIT_FILE,
    about="Replace a passage of a file, lines by number, or a symbol.",
    hide=("changes",),
    options=(
        *parameters(p.Replacement, hide={"fuzzy"}, defaults={}, files=("content",)),
        click.Option(["--fuzzy/--exact"], default=None, help="Whether --search may be misquoted; default: policy."),
    ),
    prepare=_one_change,
)
