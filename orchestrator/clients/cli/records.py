"""Checking: the session, the policy, the journal."""

from __future__ import annotations

import click

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.clients.cli.context import Settings, shared, text_of, usage


@click.command()
@shared
@click.pass_obj
def session(settings: Settings) -> int:
    """What this session has read and changed, and what waits."""
    return settings.run("session_status", p.SessionStatus(), r.SessionInfo)


@click.group()
def policy() -> None:
    """What agents may do."""


@policy.command("check")
@click.argument("file", metavar="FILE|-")
@shared
@click.pass_obj
def policy_check(settings: Settings, file: str) -> int:
    """Check a policy file; changes nothing."""
    return settings.run("policy_check", p.PolicyCheck(text=text_of(file), source=file), r.PolicyReport)


@policy.command("reload")
@shared
@click.pass_obj
def policy_reload(settings: Settings) -> int:
    """Have the daemon read its policy file again."""
    return settings.run("policy_reload", p.PolicyReload(approver=settings.approver()), r.PolicyReport)


@click.group()
def journal() -> None:
    """The record of everything, and whether it holds."""


@journal.command("rebuild")
@click.option("--check", is_flag=True, help="Only compare; changes nothing.")
@shared
@click.pass_obj
def journal_rebuild(settings: Settings, check: bool) -> int:
    """Replay everything and compare with what the daemon holds."""
    if not check:
        usage("this version only compares: give --check")
    return settings.run("journal_rebuild", p.JournalRebuild(), r.RebuildAnswer)


@journal.command("compare")
@shared
@click.pass_obj
def journal_compare(settings: Settings) -> int:
    """Compare the files on disk with the journal."""
    return settings.run("workspace_check", p.WorkspaceCheck(), r.WorkspaceReport)
