"""Keeping the journal: copies of it, old events out of the way, and what to do when it was lost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from orchestrator.api import locations
from orchestrator.api import maintenance as k
from orchestrator.clients import render
from orchestrator.clients.cli import offline
from orchestrator.clients.cli.context import Settings, shared
from orchestrator.core.errors import WorkspaceHeld, escaped


@click.command("backup")
@click.argument("directory", metavar="DIR")
@shared
@click.pass_obj
def backup(settings: Settings, directory: str) -> int:
    """Copy the journal into a new folder, and verify the copy; the daemon may run."""
    target = os.path.abspath(Path(directory).expanduser())  # noqa: PTH100  # links are the daemon's to follow
    stopped = _stopped(settings)
    if stopped is not None:
        answer = offline.backup(*stopped, target)
    else:
        answer = settings.call("journal_backup", k.JournalBackup(directory=target), k.BackupAnswer)
    return settings.show(answer, _backed_up(answer))


@click.command("restore")
@click.argument("directory", metavar="DIR")
@click.option("--foreign", is_flag=True, help="Also a backup of another workspace's journal.")
@shared
@click.pass_obj
def restore(settings: Settings, directory: str, foreign: bool) -> int:
    """Put a backup in the journal's place; the daemon must be stopped. The journal before it is moved aside."""
    root, state_dir = _demand_stopped(settings)
    answer = offline.restore(root, state_dir, directory, foreign=foreign)
    return settings.show(answer, _told(answer.message, ("moved aside", answer.set_aside)))


@click.command("adopt")
@shared
@click.pass_obj
def adopt(settings: Settings) -> int:
    """Go on with a journal that is behind the files, as after a restore; the daemon must be stopped.

    Each file that differs is recorded as changed from outside, so it can be looked at and undone.
    """
    answer = offline.adopt(*_demand_stopped(settings))
    return settings.show(answer, _told(answer.message, ("contents moved aside", answer.set_aside)))


@click.command("archive")
@click.option("--before", required=True, metavar="@N", help="Every event before this one.")
@shared
@click.pass_obj
def archive(settings: Settings, before: str) -> int:
    """Move old events into compressed, sealed files; asks for the approver code."""
    params = k.JournalArchive(before=before, approver=settings.approver())
    answer = settings.call("journal_archive", params, k.ArchiveAnswer)
    return settings.show(answer, _archived(answer))


@click.command("unarchive")
@click.argument("file", metavar="FILE")
@shared
@click.pass_obj
def unarchive(settings: Settings, file: str) -> int:
    """Put the newest archived file's events back; asks for the approver code."""
    params = k.JournalUnarchive(file=file, approver=settings.approver())
    answer = settings.call("journal_unarchive", params, k.ArchiveAnswer)
    return settings.show(answer, _archived(answer))


@click.command("collect")
@click.option("--grace", metavar="DAYS", type=click.IntRange(0), default=30, help="Keep what was named since. 30.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@shared
@click.pass_obj
def collect(settings: Settings, grace: int, dry_run: bool) -> int:
    """Remove kept contents that nothing outside the archive needs; asks for the approver code."""
    approver = None if dry_run else settings.approver()
    params = k.JournalCollect(grace_days=grace, dry_run=dry_run, approver=approver)
    answer = settings.call("journal_collect", params, k.CollectAnswer)
    more = f"{answer.young} more, named in the last {grace} days" if answer.young else None
    return settings.show(answer, _told(f"{answer.message}, {answer.size} bytes", ("kept for now", more)))


@click.command("reset")
@click.option("--yes", is_flag=True, help="Do not ask.")
@shared
@click.pass_obj
def reset(settings: Settings, yes: bool) -> int:
    """Begin a new journal at the next start; the daemon must be stopped. The old one is moved aside."""
    stopped = _demand_stopped(settings)
    if not yes:
        click.confirm("History, undo, agents and the approver code begin anew. Go on?", abort=True, err=True)
    answer = offline.reset(*stopped)
    return settings.show(answer, [answer.message])


COMMANDS: tuple[click.Command, ...] = (backup, restore, adopt, archive, unarchive, collect, reset)


def _stopped(settings: Settings) -> tuple[str, str] | None:
    """Workspace and state directory of a daemon that does not answer; None if it does."""
    root = locations.find_workspace(settings.workspace)
    identity = locations.workspace_id(root)
    known = locations.read_location(identity)
    if known is not None and known.state == "running" and locations.answers(known.socket):
        return None
    return root, locations.state_directory(identity, settings.state_dir)


def _demand_stopped(settings: Settings) -> tuple[str, str]:
    stopped = _stopped(settings)
    if stopped is None:
        raise WorkspaceHeld("the daemon runs", hint="Run `orchestrator stop` first.")
    return stopped


def _backed_up(answer: k.BackupAnswer) -> Iterator[str]:
    yield f"the journal up to {answer.head} is in {escaped(answer.directory)}, verified"
    yield from render.facts(
        ("journal", answer.journal),
        ("head hash", answer.head_hash),
        ("files", f"{answer.files}, {answer.size} bytes, {answer.contents} contents"),
    )
    yield from (f"not checked: {escaped(what)}" for what in answer.unchecked)


def _archived(answer: k.ArchiveAnswer) -> Iterator[str]:
    yield answer.message
    yield from render.table(
        (f"{line.first} to {line.last}", line.file, f"{line.size} bytes") for line in answer.archived
    )


def _told(message: str, *more: tuple[str, str | None]) -> Iterable[str]:
    return (escaped(message), *render.facts(*((name, value or "") for name, value in more)))
