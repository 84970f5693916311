"""Requests for a person's yes: each is shown whole, and answered by who was shown it."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from orchestrator.api import administration as a
from orchestrator.clients.cli.context import REFUSED, Command, Settings, on_a_terminal
from orchestrator.clients.cli.operation_commands import OperationCommand
from orchestrator.core.errors import plural


@click.command("approvals show", cls=Command)
@click.argument("approval", metavar="@N")
@click.pass_obj
def approvals_show(settings: Settings, approval: str) -> int:
    """One request with all that it would do: every file, whole. Who was shown it may approve it."""
    return settings.show(whole(settings, approval))


def whole(settings: Settings, approval: str) -> a.ApprovalInfo:
    """A request with all its pages joined."""
    page = settings.ask(a.APPROVALS_SHOW, a.ApprovalsShow(approval=approval))
    texts, unkept = [page.diff or ""], [*page.unkept]
    while page.cursor is not None:
        page = settings.ask(a.APPROVALS_SHOW, a.ApprovalsShow(approval=approval, cursor=page.cursor))
        texts.append(page.diff or "")
        unkept += page.unkept
    return msgspec.structs.replace(page, diff="".join(texts), unkept=tuple(unkept))


def confirmed(settings: Settings, approval: str) -> a.ApprovalInfo | None:
    """Show a request on the terminal and ask whether to approve it; None: no, or it waits no more."""
    info = whole(settings, approval)
    settings.show(info)
    if info.state != "waiting":
        click.echo(f"{info.approval} does not wait any more: {info.state}", err=True)
        return None
    what = f"{info.approval} ({plural(info.path_count, 'path')})"
    if not info.shown_whole:
        what += f", though {plural(len(info.unkept), 'file')} of it can't be shown"
    return info if click.confirm(f"Approve {what}?", err=True) else None


def _look_first(settings: Settings, typed: dict[str, Any]) -> None:
    """A person at a terminal is shown what a yes would be for, and asked."""
    if settings.json or typed["unseen"] or not on_a_terminal() or not settings.is_person:
        return
    info = confirmed(settings, typed["approval"])
    if info is None:
        click.get_current_context().exit(REFUSED)
    typed["unseen"] = not info.shown_whole


approvals_approve = OperationCommand(a.APPROVE, prepare=_look_first)
