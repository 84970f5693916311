"""What a person decides: agents, the approver code, approvals."""

from __future__ import annotations

from typing import Literal

import click

from orchestrator.api import locations
from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.clients.cli import offline
from orchestrator.clients.cli.context import Settings, shared


@click.group()
def agent() -> None:
    """Who may call, and with which token."""


@agent.command("add")
@click.argument("name")
@click.option("--class", "agent_class", type=click.Choice(["cloud", "local", "review"]), default="cloud")
@shared
@click.pass_obj
def agent_add(settings: Settings, name: str, agent_class: Literal["cloud", "local", "review"]) -> int:
    """Make an agent; prints its token, this once."""
    params = p.AgentAdd(name=name, agent_class=agent_class, approver=settings.approver())
    made = settings.call("agent_add", params, r.AgentToken)
    return settings.show(made, [made.token])


@agent.command("revoke")
@click.argument("name")
@shared
@click.pass_obj
def agent_revoke(settings: Settings, name: str) -> int:
    """Take an agent's token away."""
    return settings.run("agent_revoke", p.AgentRevoke(name=name, approver=settings.approver()), r.Done)


@agent.command("list")
@shared
@click.pass_obj
def agent_list(settings: Settings) -> int:
    """The agents that the daemon knows."""
    return settings.run("agent_list", p.AgentList(), r.Agents)


@click.group()
def approver() -> None:
    """The code that a person decides with."""


@approver.command("reset")
@shared
@click.pass_obj
def approver_reset(settings: Settings) -> int:
    """Replace the code; asks for the old one, prints the new one, this once.

    With the daemon stopped it needs no old code: owning the state directory is enough then.
    """
    root = locations.find_workspace(settings.workspace)
    known = locations.read_location(locations.workspace_id(root))
    if known is not None and known.state != "running":
        code = offline.reset_approver(root, settings.state_dir or known.state_dir)
        return settings.show(r.ApproverCode(approver_code=code), [f"New approver code, shown this once: {code}"])
    made = settings.call("approver_reset", p.ApproverReset(approver=settings.approver()), r.ApproverCode)
    return settings.show(made, [f"New approver code, shown this once: {made.approver_code}"])


@click.group()
def approvals() -> None:
    """Changes that wait for a yes."""


@approvals.command("list")
@click.option("--limit", type=int, default=50, help="Most approvals to show.")
@click.option("--cursor", help="The cursor that the last call ended with.")
@shared
@click.pass_obj
def approvals_list(settings: Settings, limit: int, cursor: str | None) -> int:
    """What waits, oldest first; `approvals show` has the diff of one."""
    return settings.run("approvals_list", p.ApprovalsList(limit=limit, cursor=cursor), r.Approvals)


@approvals.command("show")
@click.argument("approval", metavar="@N")
@shared
@click.pass_obj
def approvals_show(settings: Settings, approval: str) -> int:
    """One of them, with its diff."""
    return settings.run("approvals_show", p.ApprovalsShow(approval=approval), r.ApprovalInfo)


@approvals.command("approve")
@click.argument("approval", metavar="@N")
@shared
@click.pass_obj
def approvals_approve(settings: Settings, approval: str) -> int:
    """Say yes; the daemon applies the change."""
    params = p.Approve(approval=approval, approver=settings.approver())
    return settings.run("approve", params, r.ChangeAnswer)


@approvals.command("deny")
@click.argument("approval", metavar="@N")
@click.option("--reason", default="", help="Why; the agent reads it.")
@shared
@click.pass_obj
def approvals_deny(settings: Settings, approval: str, reason: str) -> int:
    """Say no."""
    params = p.Deny(approval=approval, reason=reason, approver=settings.approver())
    return settings.run("deny", params, r.Done)
