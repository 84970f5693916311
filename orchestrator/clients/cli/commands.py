"""Commands that run in the workspace: started here, and what they wrote."""

from __future__ import annotations

from typing import Any

from orchestrator.api.commands import (
    COMMAND_OUTPUT,
    RUN_COMMAND,
    STOP_COMMAND,
    CommandAnswer,
    CommandId,
    CommandOutput,
    RunCommand,
)
from orchestrator.clients.cli.context import DONE, REFUSED, WAITING, Settings, echo
from orchestrator.clients.cli.operation_commands import command
from orchestrator.clients.render.commands import for_people
from orchestrator.core.errors import escaped

PAGE_TOKENS = 100_000


def _where(settings: Settings, typed: dict[str, Any]) -> None:
    typed["cwd"] = settings.path(typed["cwd"])


@command(RUN_COMMAND, flags=("cwd",), prepare=_where)
def run(settings: Settings, params: RunCommand) -> int:
    """Run a program in the workspace, as agents do: `command run -- make test`. Exit code 0 where its own is 0."""
    return _show(settings, settings.ask(RUN_COMMAND, params))


@command(STOP_COMMAND)
def stop(settings: Settings, params: CommandId) -> int:
    """End a command that runs, with all that it started."""
    _show(settings, settings.ask(STOP_COMMAND, params))
    return DONE


@command(COMMAND_OUTPUT, defaults={"max_tokens": PAGE_TOKENS})
def output(settings: Settings, params: CommandOutput) -> int:
    """What a command wrote, also while it runs."""
    page = settings.ask(COMMAND_OUTPUT, params)
    if settings.json:
        return settings.show(page)
    _echo(page.output)
    if page.not_kept:
        echo(f"{page.not_kept} bytes before that are not kept", err=True)
    if page.next is not None:
        echo(for_people(page.next), err=True)
    return DONE


def _show(settings: Settings, answer: CommandAnswer) -> int:
    if settings.json:
        settings.show(answer)
    else:
        _echo(answer.output)
        for line in (answer.message, *answer.warnings, *(f"changed: {item.path}" for item in answer.changes)):
            echo(escaped(for_people(line)), err=True)
        if answer.status == "waiting":
            echo(f"`orchestrator approvals show {answer.approval}` shows it, and asks", err=True)
        elif answer.next is not None:
            echo(escaped(for_people(answer.next)), err=True)
    if answer.status in ("waiting", "running"):
        return WAITING
    return DONE if answer.exit_code == 0 and answer.status == "done" else REFUSED


def _echo(text: str) -> None:
    """What a program wrote, each character of it shown."""
    for line in text.removesuffix("\n").split("\n") if text else ():
        echo(escaped(line.expandtabs()))
