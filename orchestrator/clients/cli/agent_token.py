"""The token of a client that is connected: made with the approver code, kept in a file of the state directory."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.api import administration as a
from orchestrator.api import parameters as p
from orchestrator.clients.cli.context import Settings, on_a_terminal
from orchestrator.clients.connect import connection_record, settings_file
from orchestrator.clients.connection import Caller, Connection
from orchestrator.clients.running_daemon import RemoteError
from orchestrator.core.errors import OperatorError, escaped


class TokenFileUnsafe(OperatorError, code="token_file_unsafe"):
    """A token that others could read, or that would be committed with the project."""


class TokenRefused(
    OperatorError,
    code="token_refused",
    hint="Connect again in a terminal, or with ORCHESTRATOR_APPROVER: with the approver code a new one is made.",
):
    """The daemon does not take the token that was made for a client."""


def checked_file(given: str, root: str) -> str:
    path = Path(given).expanduser().absolute()
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise TokenFileUnsafe(f"{escaped(str(path))}: {error.strerror}") from error
    if path.resolve().is_relative_to(root):
        raise TokenFileUnsafe(
            f"{escaped(str(path))} lies in the workspace", hint="Move it out: there it could be committed, and read."
        )
    if mode & 0o077:
        raise TokenFileUnsafe(
            f"{escaped(str(path))} has mode {mode & 0o777:04o}", hint=f"chmod 600 {escaped(str(path))}"
        )
    return str(path)


def refusal(settings: Settings, file: Path) -> TokenRefused | None:
    """Why the daemon does not take the token in the file; None where it does."""
    try:
        caller = Caller(token=file.read_text(encoding="utf-8").strip(), client="orchestrator connect")
        Connection(settings.daemon().running().socket, caller).close()
    except (RemoteError, OSError, UnicodeDecodeError) as error:
        return TokenRefused(f"the token in {escaped(str(file))} is no good: {error}")
    return None


def approver_code(settings: Settings) -> str | None:
    """The approver code, if there is one and somebody to give it."""
    if settings.approver_code is None and not on_a_terminal():
        return None
    with _as_person(settings) as connection:
        if connection.call(a.STATUS, p.Params()).approver == "missing":
            return None
    if settings.approver_code is None:
        click.echo("The code makes the agent's own token. Without it (Enter) its name is only a claim.", err=True)
    return settings.approver() or None


def make(settings: Settings, agent: str, file: Path, code: str) -> None:
    with _as_person(settings) as connection:
        known = {each.name: each for each in connection.call(a.AGENT_LIST, p.Params()).agents}
        if agent in known and known[agent].token in ("yes", "expired"):  # its file was lost, or another made it
            token = connection.call(a.AGENT_ROTATE, a.AgentRotate(approver=code, name=agent)).token
        else:
            token = connection.call(a.AGENT_ADD, a.AgentAdd(approver=code, name=agent)).token
    connection_record.make_folder(settings.state_directory)
    settings_file.put(file, f"{token}\n", 0o600)


def _as_person(settings: Settings) -> Connection:
    return Connection(settings.daemon().running().socket, Caller(client="orchestrator connect"))
