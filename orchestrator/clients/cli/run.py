"""`orchestrator run`: one agent, started with one task, over ACP."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from orchestrator.agents.permissions import YesTo
from orchestrator.agents.profiles import PROFILES
from orchestrator.clients.cli.context import Command, Settings, text_of, usage
from orchestrator.clients.connect import connection_record as records


@click.command(cls=Command)
@click.argument("name", metavar="AGENT", type=click.Choice([*PROFILES]))
@click.option("--task", required=True, help="What it is to do.")
@click.option("--command", "command_line", metavar="LINE", help="Start the agent so, instead of by its usual program.")
@click.option(
    "--yes-to",
    type=click.Choice(["none", "reads", "edits"]),
    default="edits",
    show_default=True,
    help="What need not be asked about where policy allows it.",
)
@click.option("--worktree", is_flag=True, help="Let it work in a copy; what it made comes back as one change.")
@click.option("--resume", metavar="CONVERSATION", help="Go on with an earlier one of the agent, as its run named it.")
@click.option("--auth", metavar="METHOD", help="Log in with this of the agent's methods.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(1, 86_400), default=3600.0, help="Seconds for all of it.")
@click.option("--max-calls", "most_calls", type=click.IntRange(1), help="End it after so many tool calls.")
@click.option("--max-tokens", "most_tokens", type=click.IntRange(1), help="End it when its context has more.")
@click.pass_obj
def run(  # noqa: PLR0913  # one for each option
    settings: Settings,
    *,
    name: str,
    task: str,
    command_line: str | None,
    yes_to: YesTo,
    worktree: bool,
    resume: str | None,
    auth: str | None,
    timeout_s: float,
    most_calls: int | None,
    most_tokens: int | None,
) -> int:
    """Start an agent with a task, and follow it; it has our tools, and you answer what it asks.

    It has the name of its program, or that of --agent, and the token that `connect` made for it, or --token-file.
    Ctrl+C ends its turn. What it was told and did is kept as a transcript in the state directory.
    """
    profile = PROFILES[name]
    try:
        command = tuple(shlex.split(command_line)) if command_line else profile.command
    except ValueError as error:
        usage(f"--command: {error}")
    if not command or not task.strip():
        usage("--command and --task may not be empty")
    if worktree and resume is not None:
        usage("--resume goes on where the agent was: leave out --worktree")
    token_file = _token_file(settings, settings.agent or name)

    from orchestrator.clients.cli.agent_run import AgentStart, follow  # asyncio only where it is used

    return follow(settings, AgentStart(
        client=name,
        profile=profile,
        command=command,
        name=settings.agent or name,
        token=text_of(token_file).strip() if token_file else settings.token,
        token_file=token_file,
        task=task,
        yes_to=yes_to,
        worktree=worktree,
        timeout_s=timeout_s,
        most_calls=most_calls,
        most_tokens=most_tokens,
        authentication=auth or next((of for key, of in profile.authentication.items() if os.environ.get(key)), None),
        resume=resume,
    ))  # fmt: skip


def _token_file(settings: Settings, agent: str) -> str:
    """The file with the agent's token: the given one, else the one that `connect` made; empty without one."""
    if settings.token_file is not None:
        return str(Path(settings.token_file).absolute())
    own = records.folder(settings.state_directory) / f"{agent}.token"
    return str(own) if own.exists() and not settings.token else ""
