"""Commands that work on a workspace whose daemon is stopped, or need that."""

from __future__ import annotations

import os
from pathlib import Path

import click

from orchestrator.api import locations
from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.journal import JOURNAL_BACKUP, JournalBackup
from orchestrator.api.operations import APPROVER_RESET, JOURNAL_VERIFY
from orchestrator.clients.cli.context import Settings, shared
from orchestrator.clients.cli.operation_commands import command
from orchestrator.clients.daemon_launcher import StateDirectoryInUse
from orchestrator.core.errors import DaemonUnreachable, WorkspaceHeld


@click.command("reset")
@shared
@click.pass_obj
def approver_reset(settings: Settings) -> int:
    """Replace the code; asks for the old one, prints the new one, this once.

    With the daemon stopped it needs no old code: owning the state directory is enough then.
    """
    known = locations.read_location(locations.workspace_id(settings.root))
    if known is None or known.state == "running":
        return settings.run(APPROVER_RESET, approver=settings.approver())
    from orchestrator.offline import reset_approver

    return settings.show(
        r.ApproverCode(approver_code=reset_approver(settings.root, settings.state_dir or known.state_dir))
    )


@command(JOURNAL_VERIFY, files=("checkpoint",))
def verify(settings: Settings, params: p.JournalVerify) -> int:
    """Check the chain, the payloads, the blobs and the signatures; works with the daemon stopped too.

    With --state-dir it is that journal, whether the daemon runs on another one or not.
    """
    try:
        return settings.show(settings.ask(JOURNAL_VERIFY, params))
    except StateDirectoryInUse:
        pass  # it is the daemon's; this one is nobody's, and is only read
    except DaemonUnreachable:
        if settings.state_dir is None and locations.read_location(locations.workspace_id(settings.root)) is None:
            raise
    from orchestrator.offline import verify

    return settings.show(verify(settings.state_directory, params.checkpoint))


@command(JOURNAL_BACKUP)
def backup(settings: Settings, params: JournalBackup) -> int:
    """Copy the journal into a new folder, and verify the copy; the daemon may run."""
    target = os.path.abspath(Path(params.directory).expanduser())  # noqa: PTH100  # links are the daemon's to follow
    if not _is_stopped(settings):
        return settings.run(JOURNAL_BACKUP, target)
    from orchestrator.offline import backup

    return settings.show(backup(settings.root, settings.state_directory, target))


@click.command()
@click.argument("directory", metavar="DIR")
@click.option("--another-journal", is_flag=True, help="Also a backup of another workspace's journal.")
@shared
@click.pass_obj
def restore(settings: Settings, directory: str, another_journal: bool) -> int:
    """Put a backup in the journal's place; the daemon must be stopped. The journal before it is moved aside."""
    _demand_stopped(settings)
    from orchestrator.offline import restore

    return settings.show(restore(settings.root, settings.state_directory, directory, another_journal=another_journal))


@click.command()
@shared
@click.pass_obj
def adopt(settings: Settings) -> int:
    """Go on with a journal that is behind the files, as after a restore; the daemon must be stopped.

    Each file that differs is recorded as changed from outside, so it can be looked at and undone.
    """
    _demand_stopped(settings)
    from orchestrator.offline import adopt

    return settings.show(adopt(settings.root, settings.state_directory))


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@shared
@click.pass_obj
def reset(settings: Settings, yes: bool) -> int:
    """Begin a new journal at the next start; the daemon must be stopped. The old one is moved aside."""
    _demand_stopped(settings)
    if not yes:
        click.confirm("History, undo, agents and the approver code begin anew. Go on?", abort=True, err=True)
    from orchestrator.offline import reset

    return settings.show(reset(settings.root, settings.state_directory))


def _is_stopped(settings: Settings) -> bool:
    known = locations.read_location(locations.workspace_id(settings.root))
    return known is None or known.state != "running" or not locations.answers(known.socket)


def _demand_stopped(settings: Settings) -> None:
    if not _is_stopped(settings):
        raise WorkspaceHeld("the daemon runs", hint="Run `orchestrator stop` first.")
