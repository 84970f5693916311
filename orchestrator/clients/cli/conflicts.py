"""The queue of changes that fitted nowhere: looked at, and settled by a person."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Literal

import click

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.clients import render_conflicts
from orchestrator.clients.cli.context import DONE, Settings, shared, text_of, usage
from orchestrator.clients.connection import RemoteError
from orchestrator.core.errors import CallerError

_MARKER = re.compile(r"^(<{7}|\|{7}|>{7})( |$)", re.MULTILINE)
ABSENT = "@0"
"""As a version: nothing stands there."""

_REGION = re.compile(r"([1-9][0-9]*)=(current|proposed)\Z")

MOST_TOKENS = 10_000_000
"""For one conflict: its texts are needed whole, to be edited."""

Side = Literal["current", "proposed"]


class NoSuchConflict(CallerError):
    """No open conflict has this name."""

    code = "version_unknown"
    hint = "`orchestrator conflicts list` shows the open ones."


class EditEmpty(CallerError):
    """The editor gave back nothing that could be meant."""

    code = "edit_empty"
    hint = "The conflict still waits."


class MarkersLeft(CallerError):
    """A conflict marker still stands in the edited file."""

    code = "markers_left"
    hint = "Decide each place between <<<<<<< and >>>>>>>, take the marker lines out, and save."


@click.group()
def conflicts() -> None:
    """Changes that fitted nowhere."""


@conflicts.command("list")
@shared
@click.pass_obj
def conflicts_list(settings: Settings) -> int:
    """The open conflicts: how far each is, who reviews it, and until when."""
    found = _all(settings)
    return settings.show(found, render_conflicts.conflicts(found))


@conflicts.command("show")
@click.argument("conflict", metavar="@N")
@shared
@click.pass_obj
def conflicts_show(settings: Settings, conflict: str) -> int:
    """One of them: what clashes, the diff from the current content to the proposed, and what reviewers said."""
    found = _find(settings, conflict)
    return settings.show(found, render_conflicts.conflict(found))


@conflicts.command("resolve")
@click.argument("conflict", metavar="@N")
@click.option("--choose", type=click.Choice(["current", "proposed"]), help="The side that stands.")
@click.option("--accept", "review", metavar="@N", help="What the reviewer proposes, in the review that `show` names.")
@click.option("--edit", is_flag=True, help="Edit the file with its markers in $EDITOR.")
@click.option("--region", "regions", metavar="N=SIDE,…", help="A side for each region, as 1=current,2=proposed.")
@click.option("--reject", is_flag=True, help="The change shall not be; say why with --reason.")
@click.option("--file", metavar="FILE|-", help="Another content, whole; with --on.")
@click.option(
    "--on",
    metavar="@N",
    help="The version that you looked at, which `show` names as current ('@0': none); --region and --file need it.",
)
@click.option("--reason", default="", help="Why, for the agent and those who read the history.")
@shared
@click.pass_obj
def conflicts_resolve(
    settings: Settings,
    conflict: str,
    choose: Side | None,
    review: str | None,
    edit: bool,
    regions: str | None,
    reject: bool,
    file: str | None,
    on: str | None,
    reason: str,
) -> int:
    """Settle a conflict, in one of these ways."""
    if sum((choose is not None, review is not None, edit, regions is not None, reject, file is not None)) != 1:
        usage("give one of --choose, --accept, --edit, --region, --reject and --file")
    if reject and not reason:
        usage("--reject needs a --reason: the agent reads it")
    if on is not None and (edit or review is not None):
        usage("--edit and --accept know what you look at: leave --on out")
    content, sides = None, None
    choice: Literal["current", "proposed", "content", "regions", "review"] = "content"
    if choose is not None:
        choice = choose
    elif review is not None:
        choice = "review"
    elif reject:
        choice = "current"
    elif regions is not None:
        choice, sides = "regions", _sides(regions)
    elif file is not None:
        content = text_of(file)
    else:
        found = _find(settings, conflict)
        content, on = _edited(found), found.current_version or ABSENT
    params = p.ResolveConflict(
        conflict=conflict,
        choice=choice,
        content=content,
        regions=sides,
        on=on,
        review=review,
        reason=reason,
        approver=settings.approver(),
    )
    answer = settings.call("resolve_conflict", params, r.ChangeAnswer)
    code = settings.show(answer)
    settled = choice in ("current", "review") and answer.status == "dropped"  # as asked: nothing changes
    return DONE if settled else code


def _find(settings: Settings, conflict: str) -> r.ConflictInfo:
    wanted = p.ListConflicts(conflict=conflict, max_tokens=MOST_TOKENS)
    try:
        (found,) = settings.call("list_conflicts", wanted, r.Conflicts).conflicts
    except RemoteError as error:
        if error.code != NoSuchConflict.code:
            raise
        raise NoSuchConflict(f"no open conflict is called {conflict}") from error
    return found


def _all(settings: Settings) -> r.Conflicts:
    """Every page."""
    found: list[r.ConflictInfo] = []
    cursor = None
    while True:
        page = settings.call("list_conflicts", p.ListConflicts(cursor=cursor), r.Conflicts)
        found += page.conflicts
        cursor = page.cursor
        if cursor is None:
            return r.Conflicts(conflicts=tuple(found))


def _sides(given: str) -> tuple[Side, ...]:
    sides: dict[int, Side] = {}
    for part in given.split(","):
        match = _REGION.match(part.strip())
        if match is None or int(match[1]) in sides:
            usage(f"--region {given}: write each region once, as 1=current,2=proposed")
        sides[int(match[1])] = "current" if match[2] == "current" else "proposed"
    if sorted(sides) != list(range(1, len(sides) + 1)):
        usage(f"--region {given}: name every region, from 1 on")
    return tuple(sides[number] for number in sorted(sides))


def _edited(found: r.ConflictInfo) -> str:
    """What a person makes of the file. Raises EditEmpty, MarkersLeft."""
    if found.marked is None:
        why = "is too long to be edited so" if found.texts_left_out else "has no lines to choose from"
        raise EditEmpty(f"{found.conflict} {why}; use --choose or --file")
    name = Path(found.path).name
    with tempfile.TemporaryDirectory(prefix="orchestrator-") as folder:
        place = Path(folder) / name
        place.write_bytes(found.marked.encode())
        click.edit(filename=str(place))
        content = place.read_bytes().decode("utf-8", "strict")
    if not content.strip() or content == found.marked:
        raise EditEmpty("the file came back empty" if not content.strip() else "the file came back unchanged")
    if _MARKER.search(content):
        raise MarkersLeft("a conflict marker is left in the file")
    return content
