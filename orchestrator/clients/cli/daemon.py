"""The daemon's life (up, stop), how agents reach it, and what works while it is stopped, or needs that."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, NoReturn, TypeVar

import click
from click.shell_completion import get_completion_class

from orchestrator.api import locations, processes
from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.administration import APPROVER_CREATE, APPROVER_RESET, STATUS, STOP, ApproverReset
from orchestrator.api.journal_checks import JOURNAL_VERIFY, JournalVerify
from orchestrator.api.journal_operations import JOURNAL_BACKUP, JournalBackup
from orchestrator.clients import running_daemon
from orchestrator.clients.cli import context
from orchestrator.clients.cli.connect import program
from orchestrator.clients.cli.context import Command, Settings
from orchestrator.clients.cli.operation_commands import command
from orchestrator.clients.connect.templates import TEMPLATES
from orchestrator.clients.connection import Caller, Connection
from orchestrator.clients.render.generic import facts
from orchestrator.clients.running_daemon import StateDirectoryInUse, ending
from orchestrator.core.errors import DaemonUnreachable, escaped


class UpFacts(r.Result, frozen=True, kw_only=True):
    """What `up` answers."""

    workspace: str
    workspace_id: str
    socket: str
    http: str | None  # the URL of MCP over HTTP, where that is on
    state_dir: str
    pid: int
    started: bool  # by this call
    approver: Literal["set", "missing"]
    approver_code: str | None  # only from the call that made it
    amiss: tuple[str, ...]  # what a person must act on, as `status` says it
    connect: dict[str, str]  # client → the command that connects it


@click.command(cls=Command)
@click.option("--foreground", is_flag=True, help="Run the daemon in the foreground, as systemd needs it.")
@click.option("--no-watch", is_flag=True, help="Record external changes only at a start and where a call meets them.")
@click.option(
    "--http",
    type=click.IntRange(0, 65535),
    is_flag=False,
    flag_value=0,
    metavar="[PORT]",
    help="Serve MCP over HTTP too, on this machine alone, to agents with a token; without PORT the workspace's own.",
)
@click.pass_obj
def up(settings: Settings, foreground: bool, no_watch: bool, http: int | None) -> int:
    """Start the daemon, or find it; say how to connect."""
    root = settings.root
    port = None if http is None else str(http or locations.http_port(locations.workspace_id(root)))
    options = (*(("--no-watch",) if no_watch else ()), *(("--http", port) if port else ()))
    if foreground:
        _become_daemon(root, settings.state_dir, options)
    location, started = settings.daemon().ensure(options)
    if no_watch and not started:
        click.echo("The daemon runs already, as it was started: --no-watch has no effect. Stop it first.", err=True)
    if http is not None and not started:
        click.echo("The daemon runs already, as it was started: --http has no effect. Stop it first.", err=True)
    with Connection(location.socket, Caller(client="orchestrator up")) as connection:
        code = None
        if settings.json or context.has_terminal():  # else nobody would see it
            code = connection.call(APPROVER_CREATE, p.Params()).approver_code
        status = connection.call(STATUS, p.Params())
    known = {name: value for name, value in location.plain().items() if name != "state"}
    found = UpFacts(
        **known,
        workspace_id=locations.workspace_id(root),
        http=status.http,
        started=started,
        approver=status.approver,
        approver_code=code,
        amiss=status.health.amiss,
        connect=_connecting(location.workspace, status.http),
    )
    if code is not None and not settings.json:
        context.TERMINAL.write_text(  # itself, past any redirection
            f"Approver code, shown this once: {code}\nApprovals, agents and policy changes ask for it.\n\n",
            encoding="utf-8",
        )
    state = f"{'started' if started else 'running'}, pid {found.pid}"
    where = facts(("daemon", state), ("workspace", found.workspace), ("socket", found.socket), ("http", found.http))
    agents = (line for agent, how in found.connect.items() for line in (f"  {agent}:", f"    {escaped(how)}"))
    notes = (f"note: {escaped(note)}" for note in found.amiss)
    return settings.show(found, (*where, *notes, "connect an agent (with --print: show what is written):", *agents))


@click.command(cls=Command)
@click.pass_obj
def stop(settings: Settings) -> int:
    """End the daemon; returns when it has ended."""
    try:
        with settings.connect() as connection, ending(connection.pid):
            done = connection.call(STOP, p.Params())
    except DaemonUnreachable as error:
        serving = processes.serving(settings.root)
        if serving is None:
            error.hint = "There is nothing to stop."
            raise
        done = _ended(serving)
    return settings.show(done, ["the daemon has ended"])


def _ended(found: locations.Location) -> r.Done:
    """End a daemon that can't be reached on its socket, by a signal. Raises DaemonUnreachable."""
    try:
        with ending(found.pid):
            os.kill(found.pid, signal.SIGTERM)
    except OSError as error:
        raise DaemonUnreachable(f"process {found.pid} can't be ended: {error.strerror}") from error
    finally:
        # A person stopped it: no agent starts it again, as after a `stop` that reached it.
        locations.write_location(locations.Location(**{**found.plain(), "state": "stopped"}))
    return r.Done(message=f"process {found.pid} did not listen on {found.socket}; it was ended by a signal")


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def mcp(settings: Settings, arguments: tuple[str, ...]) -> int:
    """Serve MCP on stdin and stdout: what agents start."""
    from orchestrator.clients.stdio_proxy.main import main

    return main([*_given(settings, "--state-dir"), *arguments], settings.token)


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def hook(settings: Settings, arguments: tuple[str, ...]) -> int:
    """Judge and record what an agent does with its own tools: what its client runs."""
    from orchestrator.clients.hooks.program import main

    return main([*_given(settings), *arguments], settings.token)


def _given(settings: Settings, *more: str) -> list[str]:
    """The options that came before the command, and that the command takes itself."""
    before = {"--workspace": settings.workspace, "--agent": settings.agent, "--token-file": settings.token_file}
    before |= dict.fromkeys(more, settings.state_dir)
    return [word for name, value in before.items() if value for word in (name, value)]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print the script that completes commands in a shell."""
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(found(context.find_root().command, {}, "orchestrator", "_ORCHESTRATOR_COMPLETE").source())
    return 0


def _become_daemon(root: str, state_dir: str | None, options: tuple[str, ...]) -> NoReturn:
    state = locations.state_directory(locations.workspace_id(root), state_dir)
    command = running_daemon.command(root, state, options, running_daemon.variables_for_programs(state, os.environ))
    os.chdir("/")
    os.execve(command[0], command, running_daemon.environment(state))


def _connecting(workspace: str, http: str | None) -> dict[str, str]:
    """The command that connects each client; what it writes is in one place, `clients/connect/templates.py`."""
    start = shlex.join((*program(), "--workspace", workspace, "connect"))
    bearer = "Authorization: Bearer TOKEN"  # of `orchestrator agent add`
    over_http = {"Claude Code, over HTTP": f'claude mcp add --transport http orchestrator {http} --header "{bearer}"'}
    return {
        **{template.title: f"{start} {client}" for client, template in TEMPLATES.items()},
        **(over_http if http else {}),
    }


# --- with the daemon stopped --------------------------------------------------------------


R = TypeVar("R")


def _alone(settings: Settings, work: Callable[..., Awaitable[r.Result]], *arguments: object) -> int:
    """Do what needs no daemon, and show the answer; what serves for it is imported only where it is done."""
    return settings.show(_ran(work, *arguments))


def _ran(work: Callable[..., Awaitable[R]], *arguments: object) -> R:
    import anyio

    return anyio.run(work, *arguments)


@click.command("approver reset", cls=Command)
@click.option("--own", is_flag=True, help="Type a code of your own, a passphrase say, instead of a random one.")
@click.pass_obj
def approver_reset(settings: Settings, own: bool) -> int:
    """Replace the code; asks for the old one, prints the new one, this once.

    With the daemon stopped it needs no old code: owning the state directory is enough then.
    """
    try:
        settings.daemon().running()
        old = settings.approver()
        new = settings.own_code() if own else None
        made = settings.ask(APPROVER_RESET, ApproverReset(approver=old, new_code=new))
    except DaemonUnreachable:
        if locations.read_location(locations.workspace_id(settings.root)) is None:
            raise
        from orchestrator.offline import reset_approver

        new = settings.own_code() if own else None
        made = _ran(reset_approver, settings.root, settings.state_directory, new)
    return settings.show(made, ["the approver code is what you typed"] if own else None)


@command(JOURNAL_VERIFY, files=("checkpoint",))
def verify(settings: Settings, params: JournalVerify) -> int:
    """Check the chain, the payloads, the blobs and the signatures; works with the daemon stopped too.

    With --state-dir it is that journal, whether the daemon runs on another one or not.
    """
    try:
        return settings.run(JOURNAL_VERIFY, params)
    except StateDirectoryInUse:
        pass  # it is the daemon's; this one is nobody's, and is only read
    except DaemonUnreachable:
        if settings.state_dir is None and locations.read_location(locations.workspace_id(settings.root)) is None:
            raise
    from orchestrator.offline import verify

    return _alone(settings, verify, settings.state_directory, params.checkpoint)


@command(JOURNAL_BACKUP)
def backup(settings: Settings, params: JournalBackup) -> int:
    """Copy the journal into a new folder, and verify the copy, while the daemon runs."""
    target = os.path.abspath(Path(params.directory).expanduser())  # noqa: PTH100  # links are the daemon's to follow
    return settings.run(JOURNAL_BACKUP, JournalBackup(directory=target))


@click.command("journal restore", cls=Command)
@click.argument("directory", metavar="DIR")
@click.pass_obj
def restore(settings: Settings, directory: str) -> int:
    """Put a backup in the journal's place; the daemon must be stopped. The journal before it is moved aside."""
    from orchestrator.offline import restore

    return settings.show(restore(settings.root, settings.state_directory, directory))


@click.command("journal adopt", cls=Command)
@click.pass_obj
def adopt(settings: Settings) -> int:
    """Go on with a journal that is behind the files, as after a restore; the daemon must be stopped.

    Each file that differs is recorded as an external change, so it can be looked at and undone. It asks for the
    approver code of that journal.
    """
    from orchestrator.offline import adopt

    return _alone(settings, adopt, settings.root, settings.state_directory, settings.approver)


@click.command("journal reset", cls=Command)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def reset(settings: Settings, yes: bool) -> int:
    """Begin a new journal at the next start; the daemon must be stopped. The old one is moved aside."""
    if not yes:
        click.confirm("History, undo, agents and the approver code begin anew. Go on?", abort=True, err=True)
    from orchestrator.offline import reset

    return settings.show(reset(settings.root, settings.state_directory))
