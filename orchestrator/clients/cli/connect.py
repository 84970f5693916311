"""`connect` and `disconnect`: a client's own configuration files, and the token that they name."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import msgspec

from orchestrator.api import locations
from orchestrator.api import results as r
from orchestrator.api.policy_files import shipped_policies
from orchestrator.clients.cli import agent_token
from orchestrator.clients.cli.context import Command, Settings, echo, on_a_terminal, usage
from orchestrator.clients.cli.policies import policy_texts
from orchestrator.clients.connect import connection_record as records
from orchestrator.clients.connect import installed, settings_file
from orchestrator.clients.connect.connection_record import ConnectionRecord, FileChange, WrittenFile
from orchestrator.clients.connect.effective_settings import command_of, hook_commands, ways_past
from orchestrator.clients.connect.handshake import shake
from orchestrator.clients.connect.hook_settings import template_of
from orchestrator.clients.connect.hook_trial import try_hook
from orchestrator.clients.connect.templates import Client, Target, Template
from orchestrator.clients.render.diff_rows import diff_lines
from orchestrator.core.errors import CallerError, escaped, plural
from orchestrator.core.policy.parse import parse_layers

CLIENT = click.Choice(get_args(Client))


class NotConnected(CallerError, code="not_connected"):
    """There is nothing that `disconnect` could undo."""


class FileAnswer(r.Result, frozen=True, kw_only=True):
    """One configuration file. `kept`: settings that a person changed since, so they stay."""

    path: str
    about: str
    diff: str
    kept: tuple[str, ...] = ()


class ConnectAnswer(r.Result, frozen=True, kw_only=True):
    """What `connect` did. `off` and `past`: the client's own tools, and what still goes past the daemon."""

    client: str
    agent: str
    token_file: str = ""  # empty: the agent's name is a claim
    files: tuple[FileAnswer, ...]
    native: bool  # it keeps its own tools, with our hook around them
    tools: int  # of ours, that the client is offered
    checked_s: float
    off: str
    past: tuple[str, ...]
    start: str
    notes: tuple[str, ...] = ()


class DisconnectAnswer(r.Result, frozen=True, kw_only=True):
    """What `disconnect` undid."""

    client: str
    files: tuple[FileAnswer, ...]
    notes: tuple[str, ...] = ()


class PrintedFile(r.Result, frozen=True, kw_only=True):
    """A configuration file that would hold nothing else."""

    path: str
    about: str
    text: str


class PrintedSettings(r.Result, frozen=True, kw_only=True):
    """What `connect --print` answers."""

    client: str
    files: tuple[PrintedFile, ...]
    off: str
    past: tuple[str, ...]
    start: str


@click.command(cls=Command)
@click.argument("client", type=CLIENT)
@click.option("--native", is_flag=True, help="Leave its own tools on, and have our hook judge and record their use.")
@click.option("--print", "only_print", is_flag=True, help="Print the settings; change nothing.")
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.pass_obj
def connect(settings: Settings, client: Client, native: bool, only_print: bool, yes: bool) -> int:
    """Write a client's configuration: our tools, a token of its own, its own file tools and shell off.

    It shows the difference and asks, starts the transport as the client will, and writes only if that answers. The
    agent has the client's name, or that of --agent; --token-file names a token that you made. With --native the client
    gets our hook in place of our tools. `disconnect` undoes it.
    """
    agent, given, settings.agent, settings.token_file = settings.agent or client, settings.token_file, None, None
    template, root, state = template_of(client, native=native), settings.root, settings.state_directory
    runs = ("hook", client) if native else ("mcp",)
    own = records.folder(state) / f"{agent}.token"
    if only_print:
        token = given or (str(own) if own.exists() else "")
        return _print(settings, client, template, target(settings, agent, token, runs))
    settings.daemon().ensure()
    record = records.load(state, client)
    if given is not None:
        token, code = agent_token.checked_file(given, root), None
    else:
        refused = agent_token.refusal(settings, own) if own.exists() else None
        code = agent_token.approver_code(settings) if refused or not own.exists() else None
        if refused and not code:
            raise refused
        token = str(own) if own.exists() or code else ""
    to = target(settings, agent, token, runs)
    files = template.files(to)
    wanted = records.connecting(files, record)
    changes = (*wanted, *(records.disconnecting(record, apart=files) if record else ()))
    _show_and_ask(settings, changes, yes=yes)
    if code:
        agent_token.make(settings, agent, own, code)
    tools, took_s = offered(template, to.command, root)  # before anything is written that would not work
    made = token if given is None else ""
    if any(change.new != change.now for change in changes) or record is None or record.token_file != made:
        new = ConnectionRecord(
            client=client,
            agent=agent,
            command=to.command,
            token_file=made,
            files=tuple(map(_written, changes)),
            native=native,
        )
        _keep(state, new)
        try:
            records.carry_out(changes)
        except settings_file.SettingsRefused:
            records.put_back(state, client, record)
            raise
        if len(wanted) < len(changes):  # what the other way of connecting had written is restored
            _keep(state, msgspec.structs.replace(new, files=tuple(map(_written, wanted))))
    written = all(change.new == change.now for change in records.connecting(template.files(to), None))
    if not written or command_of(template, to) != to.command:
        raise settings_file.SettingsRefused(changes[0].file.path, "was changed again while it was written")
    notes = [*installed.remarks(template), *ways_past(template, to)]
    if not token:
        notes.append(
            f"{agent} is only a claim, without a token: run `orchestrator up` in a terminal for the approver code, "
            "then connect again"
        )
    answer = ConnectAnswer(
        client=client,
        agent=agent,
        token_file=token,
        files=tuple(map(_file_answer, changes)),
        native=native,
        tools=tools,
        checked_s=round(took_s, 2),
        off=template.off,
        past=template.past,
        start=template.start,
        notes=tuple(notes),
    )
    return settings.show(answer, _connected(answer, template))


@click.command(cls=Command)
@click.argument("client", type=CLIENT)
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.pass_obj
def disconnect(settings: Settings, client: Client, yes: bool) -> int:
    """Undo what `connect` wrote; what a person changed since stays, and is named."""
    state = settings.state_directory
    record = records.load(state, client)
    if record is None:
        raise NotConnected(
            f"{client} was not connected to {escaped(settings.root)} by `orchestrator connect`",
            hint="What was written by hand is taken out by hand.",
        )
    changes = records.disconnecting(record)
    _show_and_ask(settings, changes, yes=yes)
    records.carry_out(changes)
    records.remove(state, client)
    notes = [
        f"{escaped(change.file.path)}: {', '.join(map(escaped, change.kept))} changed since, so it stays"
        for change in changes
        if change.kept
    ]
    if record.native and (left := hook_commands(tuple(change.file for change in changes))):
        notes.append(f"our hook is still run, and was changed since: take it out by hand: {escaped(', '.join(left))}")
    if record.token_file:
        Path(record.token_file).unlink(missing_ok=True)
        notes.append(
            f"its token file is removed; `orchestrator agent revoke {record.agent}` takes the token itself away"
        )
    answer = DisconnectAnswer(client=client, files=tuple(map(_file_answer, changes)), notes=tuple(notes))
    return settings.show(answer, _disconnected(answer))


# --- what is written ---------------------------------------------------------------------


def target(settings: Settings, agent: str, token_file: str, runs: tuple[str, ...] = ("mcp",)) -> Target:
    """What a template is filled in with here; `runs`: the command of this program that the client starts."""
    root = settings.root
    names = ("--token-file", token_file) if token_file else ("--agent", agent)
    kept = ("--state-dir", settings.state_directory) if settings.state_dir and runs == ("mcp",) else ()
    return Target(
        workspace=root,
        home=locations.home_directory(),
        command=(*program(), *runs, "--workspace", root, *names, *kept),
        denied=_denied(settings, agent),
        codex_home=os.environ.get("CODEX_HOME", ""),
    )


def offered(template: Template, command: tuple[str, ...], root: str) -> tuple[int, float]:
    """Start what the client starts: the tools that it is offered, none by a hook, and the seconds that it took.

    Raises HandshakeFailed, HookFailed.
    """
    if template.hooks is not None:
        return 0, try_hook(shlex.join(command), template.hooks.events(root), root)
    took = shake(command, root)
    return len(took.tools), took.took_s


def program() -> tuple[str, ...]:
    """How this program is started from anywhere."""
    script = shutil.which(sys.argv[0]) if sys.argv[0] else None
    if script is not None and Path(script).name == "orchestrator":
        return (str(Path(script).absolute()),)
    return (sys.executable, "-P", "-m", "orchestrator")


def _denied(settings: Settings, agent: str) -> tuple[str, ...]:
    """The globs that policy lets this agent never read. Raises PolicyInvalid."""
    policy = parse_layers(policy_texts(settings), shipped_policies())
    rules = (
        rule
        for rule in policy.rules
        if rule.verdict == "deny" and "read" in rule.actions and not rule.is_narrowed
        if {"*", "class:cloud", agent} & {*rule.agents}
    )
    return tuple(dict.fromkeys(glob for rule in rules for glob in rule.paths if not glob.startswith("!")))


# --- asking and showing ------------------------------------------------------------------


def _show_and_ask(settings: Settings, changes: tuple[FileChange, ...], *, yes: bool) -> None:
    if not any(change.diff for change in changes):
        return
    if not settings.json:
        for change in changes:
            for line in diff_lines(change.diff):
                echo(line)
    if not yes:
        if not on_a_terminal():
            usage("there is no terminal to ask on; --yes writes without asking")
        click.confirm("Write this?", abort=True, err=True)


def _written(change: FileChange) -> WrittenFile:
    return WrittenFile(file=change.file, before=change.before, after=change.new, made_folders=change.made_folders)


def _keep(state: str, record: ConnectionRecord) -> None:
    """Before the files are written: a crash between leaves nothing that can't be undone."""
    try:
        records.save(state, record)
    except OSError as error:
        raise settings_file.SettingsRefused(
            str(records.folder(state)), f"can't be written: {error.strerror}"
        ) from error


def _file_answer(change: FileChange) -> FileAnswer:
    return FileAnswer(path=change.file.path, about=change.file.about, diff=change.diff, kept=change.kept)


def _connected(answer: ConnectAnswer, template: Template) -> Iterator[str]:
    for file in answer.files:
        yield f"{'written' if file.diff else 'unchanged'}: {escaped(file.path)} ({file.about})"
    yield f"agent: {answer.agent}, " + (
        f"by the token in {escaped(answer.token_file)}" if answer.token_file else "a claim"
    )
    seen = "the hook answers" if answer.native else f"{plural(answer.tools, 'tool')} offered"
    yield f"checked: {seen}, {answer.checked_s:.2f} s"
    yield from _fence(answer.off, answer.past)
    for note in answer.notes:
        yield f"note: {note}"
    yield f"start {template.title} in this folder: {answer.start}"


def _fence(off: str, past: tuple[str, ...]) -> Iterator[str]:
    yield f"its own tools that are off: {off}"
    yield "what still goes past the daemon:"
    yield from (f"  {each}" for each in past)


def _disconnected(answer: DisconnectAnswer) -> Iterator[str]:
    for file in answer.files:
        yield f"{'restored' if file.diff else 'unchanged'}: {escaped(file.path)}"
    for note in answer.notes:
        yield f"note: {note}"


def _print(settings: Settings, client: Client, template: Template, to: Target) -> int:
    files = template.files(to)
    answer = PrintedSettings(
        client=client,
        files=tuple(PrintedFile(path=each.path, about=each.about, text=settings_file.by_hand(each)) for each in files),
        off=template.off,
        past=template.past,
        start=template.start,
    )
    return settings.show(answer, _printed(answer))


def _printed(answer: PrintedSettings) -> Iterator[str]:
    for file in answer.files:
        yield f"# {escaped(file.path)} ({file.about})"
        yield from map(escaped, file.text.splitlines())
    yield from _fence(answer.off, answer.past)
