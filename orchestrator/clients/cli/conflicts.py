"""The queue of changes that could not be applied: looked at, and resolved by a person."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import click
import msgspec

from orchestrator.api import conflicts as c
from orchestrator.clients.cli.context import DONE, Command, Settings, text_of, usage
from orchestrator.clients.cli.operation_commands import OperationCommand, TextFile, command
from orchestrator.core.errors import CallerError, escaped

_MARKER = re.compile(r"^(<{7}|\|{7}|>{7})( |$)", re.MULTILINE)
ABSENT = "@0"
"""As a version: no file is there."""

MOST_TOKENS = 10_000_000
"""For one conflict: its texts are needed whole, to be edited."""


class EditEmpty(CallerError, code="edit_empty", hint="The conflict still waits."):
    """The editor gave back nothing that could be meant."""


class MarkersLeft(
    CallerError,
    code="markers_left",
    hint="Decide each place between <<<<<<< and >>>>>>>, take the marker lines out, and save.",
):
    """The edited file still has a conflict marker."""


def _as_printed(settings: Settings, typed: dict[str, Any]) -> None:
    """A list for people has no contents, so none is asked for: they would count as read."""
    typed["contents"] = settings.json


conflicts_list = OperationCommand(c.LIST_CONFLICTS, hide=("conflict", "max_tokens", "contents"), prepare=_as_printed)


@click.command("conflicts show", cls=Command)
@click.argument("conflict", metavar="@N")
@click.pass_obj
def conflicts_show(settings: Settings, conflict: str) -> int:
    """One conflict: where it overlaps, the diff from the current content to the proposed, what reviewers answered."""
    return settings.show(_find(settings, conflict))


def _chosen(settings: Settings, typed: dict[str, Any]) -> None:
    """The options as a choice or its content."""
    edit, on = typed.pop("edit"), typed["on"]
    given = [typed[name] is not None for name in ("choice", "review", "content")]
    if sum((*given, edit)) != 1:
        usage("give one of --choose, --accept, --edit and --file")
    if on is not None and (edit or typed["review"] is not None):
        usage("--edit and --accept know what you look at: leave --on out")
    if edit:
        found = _find(settings, typed["conflict"])
        typed |= {"content": _edited(found), "on": found.current_version or ABSENT}
    if typed["choice"] is None:
        typed["choice"] = "content" if typed["review"] is None else "review"


@command(
    c.RESOLVE_CONFLICT,
    files=("content",),
    hide=("regions",),
    options=(
        click.Option(
            ["--choose", "choice"],
            type=click.Choice(["current", "proposed"]),
            help="The side to keep; say why with --reason.",
        ),
        click.Option(
            ["--accept", "review"], metavar="@N", help="A reviewer's proposal: its review, as `show` names it."
        ),
        click.Option(["--edit"], is_flag=True, help="Edit the file with its markers in $EDITOR."),
        click.Option(["--file", "content"], type=TextFile(), help="Another content, whole; with --on."),
        click.Option(
            ["--on"],
            metavar="@N",
            help="The version you looked at: `current` of `show` ('@0': none). --file needs it.",
        ),
    ),
    prepare=_chosen,
)
def conflicts_resolve(settings: Settings, params: c.ResolveConflict) -> int:
    """Resolve a conflict, in one of these ways."""
    answer = settings.ask(c.RESOLVE_CONFLICT, params)
    if answer.status != "dropped":
        return settings.show(answer)
    settings.show(answer, [f"resolved: {escaped(answer.message)}"])  # the file holds already what was chosen
    return DONE


def _find(settings: Settings, conflict: str) -> c.ConflictInfo:
    """One conflict, with all pages of its diff."""
    wanted = c.ListConflicts(conflict=conflict, max_tokens=MOST_TOKENS)
    page = settings.ask(c.LIST_CONFLICTS, wanted)
    (found,) = page.conflicts
    while page.cursor is not None:
        page = settings.ask(c.LIST_CONFLICTS, msgspec.structs.replace(wanted, cursor=page.cursor))
        (more,) = page.conflicts
        diff = (found.diff or "") + (more.diff or "")
        found = msgspec.structs.replace(found, diff=diff, diff_truncated=more.diff_truncated)
    return found


def _edited(found: c.ConflictInfo) -> str:
    """What a person makes of the file. Raises EditEmpty, MarkersLeft."""
    if found.marked is None:
        why = "is too long to be edited so" if found.texts_left_out else "has no lines to choose from"
        raise EditEmpty(f"{found.conflict} {why}; use --choose or --file")
    with tempfile.TemporaryDirectory(prefix="orchestrator-") as folder:
        place = Path(folder) / Path(found.path).name
        place.write_bytes(found.marked.encode())
        click.edit(filename=str(place))
        content = text_of(str(place))
    if not content.strip() or content == found.marked:
        raise EditEmpty(f"the file was saved {'unchanged' if content.strip() else 'empty'}")
    if _MARKER.search(content):
        raise MarkersLeft("a conflict marker is left in the file")
    return content
