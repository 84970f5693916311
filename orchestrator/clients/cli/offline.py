"""Commands that work on a workspace whose daemon is stopped, or need that."""

from __future__ import annotations

import os
from pathlib import Path

import click

from orchestrator.api import locations
from orchestrator.api.administration import APPROVER_RESET
from orchestrator.api.journal_checks import JOURNAL_VERIFY, JournalVerify
from orchestrator.api.journal_operations import JOURNAL_BACKUP, JournalBackup
from orchestrator.clients.cli.context import Command, Settings
from orchestrator.clients.cli.operation_commands import command
from orchestrator.clients.running_daemon import StateDirectoryInUse, find
from orchestrator.core.errors import DaemonUnreachable


@click.command("reset", cls=Command)
@click.pass_obj
def approver_reset(settings: Settings) -> int:
    """Replace the code; asks for the old one, prints the new one, this once.

    With the daemon stopped it needs no old code: owning the state directory is enough then.
    """
    known = locations.read_location(locations.workspace_id(settings.root))
    if known is None or known.state == "running":
        return settings.run(APPROVER_RESET, approver=settings.approver())
    import anyio

    from orchestrator.offline import reset_approver

    return settings.show(anyio.run(reset_approver, settings.root, settings.state_directory))


@command(JOURNAL_VERIFY, files=("checkpoint",))
def verify(settings: Settings, params: JournalVerify) -> int:
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
    import anyio

    from orchestrator.offline import verify

    return settings.show(anyio.run(verify, settings.state_directory, params.checkpoint))


@command(JOURNAL_BACKUP)
def backup(settings: Settings, params: JournalBackup) -> int:
    """Copy the journal into a new folder, and verify the copy; the daemon may run."""
    target = os.path.abspath(Path(params.directory).expanduser())  # noqa: PTH100  # links are the daemon's to follow
    if find(settings.root) is not None:
        return settings.run(JOURNAL_BACKUP, target)
    import anyio

    from orchestrator.offline import backup

    return settings.show(anyio.run(backup, settings.root, settings.state_directory, target))


@click.command(cls=Command)
@click.argument("directory", metavar="DIR")
@click.option("--another-journal", is_flag=True, help="Also a backup of another workspace's journal.")
@click.pass_obj
def restore(settings: Settings, directory: str, another_journal: bool) -> int:
    """Put a backup in the journal's place; the daemon must be stopped. The journal before it is moved aside."""
    from orchestrator.offline import restore

    return settings.show(restore(settings.root, settings.state_directory, directory, another_journal=another_journal))


@click.command(cls=Command)
@click.pass_obj
def adopt(settings: Settings) -> int:
    """Go on with a journal that is behind the files, as after a restore; the daemon must be stopped.

    Each file that differs is recorded as an external change, so it can be looked at and undone.
    """
    import anyio

    from orchestrator.offline import adopt

    return settings.show(anyio.run(adopt, settings.root, settings.state_directory))


@click.command(cls=Command)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def reset(settings: Settings, yes: bool) -> int:
    """Begin a new journal at the next start; the daemon must be stopped. The old one is moved aside."""
    if not yes:
        click.confirm("History, undo, agents and the approver code begin anew. Go on?", abort=True, err=True)
    from orchestrator.offline import reset

    return settings.show(reset(settings.root, settings.state_directory))
