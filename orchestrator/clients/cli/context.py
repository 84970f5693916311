"""What every command shares: the global options, the connection, the terminal, and how an answer is shown."""

from __future__ import annotations

import getpass
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click
import msgspec

from orchestrator.api import locations
from orchestrator.api import results as r
from orchestrator.api.framing import Refusal
from orchestrator.api.operation import Operation
from orchestrator.api.parameters import Params
from orchestrator.api.session_operations import LeaseAnswer
from orchestrator.clients import render
from orchestrator.clients.cli.pager import paged
from orchestrator.clients.connection import Caller, Connection
from orchestrator.clients.running_daemon import WorkspaceDaemon
from orchestrator.core.characters import shows
from orchestrator.core.errors import ApproverCodeNeeded, escaped

R = TypeVar("R", bound=r.Result)

DONE, REFUSED, USAGE, WAITING, UNREACHABLE, INTERNAL = range(6)
"""The exit codes."""

TERMINAL = Path("/dev/tty")

_CODES = {"daemon_unreachable": UNREACHABLE, "daemon_restarted": UNREACHABLE, "internal": INTERNAL}


class Settings:
    """The global options, given before or after the command's name."""

    workspace: str | None = None
    state_dir: str | None = None
    agent: str | None = None
    token_file: str | None = None
    json: bool = False
    token: str | None = None  # that the environment had
    approver_code: str | None = None  # likewise

    @property
    def root(self) -> str:
        """The workspace. Raises WorkspaceUnknown."""
        return locations.find_workspace(self.workspace)

    @property
    def state_directory(self) -> str:
        """Where the workspace's daemon keeps its journal, whether it runs or not. Raises WorkspaceUnknown."""
        return locations.state_directory(locations.workspace_id(self.root), self.state_dir)

    def connect(self) -> Connection:
        """Connect as the caller that options and environment name, in the terminal's session.

        Raises as `WorkspaceDaemon.running` and `Connection`.
        """
        return Connection(self.daemon().running().socket, self._caller())

    def daemon(self) -> WorkspaceDaemon:
        """The workspace's daemon."""
        return WorkspaceDaemon(self.root, self.state_dir)

    def ask(self, operation: Operation[..., Any, R], params: Params) -> R:
        """One call of an operation, on a connection of its own."""
        with self.connect() as connection:
            try:
                return connection.call(operation, params)
            finally:
                for notice in connection.notices:
                    for line in render.noticed(notice):
                        echo(line, err=True)

    def run(self, operation: Operation[..., Any, R], params: Params) -> int:
        """Call, show the answer; the exit code."""
        return self.show(self.ask(operation, params))

    def show(self, result: r.Result, lines: Iterable[str] | None = None) -> int:
        """Print an answer (with --json the typed result, else `lines` or its usual form); the exit code."""
        if self.json:
            echo_json(result)
        else:
            lines = render.rendered(result) if lines is None else lines
            if getattr(result, "diff", None) is None or not paged(lines := [*lines]):
                for line in lines:
                    echo(line)
            for warning in () if isinstance(result, r.ChangeAnswer) else getattr(result, "warnings", ()):
                echo(f"note: {escaped(render.for_people(warning))}", err=True)
        return exit_code(result)

    def refuse(self, refusal: Refusal) -> int:
        """Print a refusal: with --json on stdout, for people on stderr; the exit code."""
        if self.json:
            echo_json(msgspec.structs.replace(refusal, hint=render.for_people(refusal.hint)))
        else:
            for line in render.refused(refusal):
                echo(line, err=True)
        return _CODES.get(refusal.code, REFUSED)

    @property
    def is_person(self) -> bool:
        """Whether it is a person who calls, not an agent."""
        caller = self._caller()
        return not caller.agent and not caller.token

    def approver(self) -> str | None:
        """The approver code: asked of the person; an agent's call goes without, unless the environment has it."""
        given = self.approver_code
        if given or not self.is_person:
            return given
        if not has_terminal():
            raise ApproverCodeNeeded("this needs the approver code, and there is no terminal to ask on")
        return getpass.getpass("Approver code: ").strip()

    def own_code(self) -> str:
        """An approver code of the person's own, typed twice."""
        if not has_terminal():
            raise ApproverCodeNeeded("a code of your own is typed, and there is no terminal to ask on")
        code = getpass.getpass("New approver code: ").strip()
        if getpass.getpass("The same once more: ").strip() != code:
            usage("the two were not the same; nothing was changed")
        return code

    def path(self, given: str) -> str:
        """A path as the daemon takes it, from one relative to the current folder where that is in the workspace."""
        below = os.path.relpath(Path.cwd(), self.root)
        if Path(given).is_absolute() or below == "." or below.split("/")[0] == "..":
            return given
        return os.path.normpath(f"{below}/{given}")

    def _caller(self) -> Caller:
        seen = os.environ.get
        token = self.token
        if self.token_file is not None:
            try:
                token = Path(self.token_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                usage(f"--token-file: {error}")
        session = seen("ORCHESTRATOR_SESSION")
        login = None if session else terminal_login()
        return Caller(self.agent or seen("ORCHESTRATOR_AGENT"), token, session, login=login)


def on_a_terminal() -> bool:
    """Whether a person reads what is printed, and can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def has_terminal() -> bool:
    """Whether the process has a controlling terminal."""
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def terminal_login() -> str | None:
    """Names the login at the controlling terminal for as long as it lasts; None without one."""
    leader = os.getsid(0)
    try:  # the second field may hold spaces and brackets; the start, in the kernel's ticks, is the 22nd
        started = Path(f"/proc/{leader}/stat").read_text().rpartition(")")[2].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (OSError, IndexError):
        return None
    return f"{boot}:{leader}:{started}" if has_terminal() else None


def _keep(context: click.Context, option: click.Parameter, value: object) -> None:
    if value and option.name is not None:
        setattr(context.ensure_object(Settings), option.name, value)


_SHARED: dict[str, dict[str, Any]] = {
    "--workspace": {"metavar": "DIR", "help": "The workspace; default: found from the current folder."},
    "--state-dir": {"metavar": "DIR", "help": "Where the daemon keeps its journal."},
    "--agent": {"metavar": "NAME", "help": "Act as this agent."},
    "--token-file": {"metavar": "FILE", "help": "A file with the agent's token."},
    "--json": {"is_flag": True, "help": "Print one JSON document."},
}


def global_options(*, agent: bool = True) -> list[click.Option]:
    """The options that every command takes. `agent` False: for a command whose own `--agent` is a filter."""
    wanted = {flag: shape for flag, shape in _SHARED.items() if agent or flag != "--agent"}
    return [click.Option([flag], expose_value=False, callback=_keep, **shape) for flag, shape in wanted.items()]


class Command(click.Command):
    """A command by hand, with the global options."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.params += global_options()


def exit_code(result: r.Result) -> int:
    """The exit code of an answer."""
    match result:
        case r.ChangeAnswer(status="applied" | "preview" | "granted"):
            return DONE
        case r.ChangeAnswer(status="waiting" | "still_waiting" | "conflict") | LeaseAnswer(status="clash"):
            return WAITING
        case r.ChangeAnswer():
            return REFUSED
        case _:
            holds = getattr(result, "ok", True) and getattr(result, "complete", True)
            return DONE if holds else REFUSED


def worst(codes: Iterable[int]) -> int:
    """The exit code of several answers."""
    return max(codes, key=(DONE, WAITING, REFUSED, USAGE, UNREACHABLE, INTERNAL).index)


def echo(line: str, *, err: bool = False) -> None:
    """Print a line; coloured only on a terminal, and there not against NO_COLOR."""
    click.echo(line, err=err, color=False if os.environ.get("NO_COLOR") else None)


def echo_json(value: object) -> None:
    """Print one JSON document on a line, with every member; characters that do not show are JSON escapes."""
    click.echo(json_escaped(msgspec.json.encode(_complete(value)).decode()))


def _complete(value: object) -> object:
    """An answer leaves out what is at its default; a script finds every member at its place."""
    match value:
        case msgspec.Struct():
            fields = msgspec.structs.fields(value)
            return {field.encode_name: _complete(getattr(value, field.name)) for field in fields}
        case tuple() | list():
            return [_complete(part) for part in value]
        case _:
            return value


def json_escaped(document: str) -> str:
    """JSON with the same values, in which every character shows. A line end stays."""
    if document.isascii() and "\x7f" not in document:
        return document
    return "".join(c if shows(c) or c == "\n" else json.dumps(c)[1:-1] for c in document)


def usage(message: str) -> NoReturn:
    """End with the exit code for wrong usage."""
    raise click.UsageError(message, click.get_current_context(silent=True))


def text_of(name: str) -> str:
    """The text of a file, or of stdin for '-'."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        usage(f"{name}: {error.strerror}")
    except UnicodeDecodeError:
        usage(f"{name} is not UTF-8 text")
