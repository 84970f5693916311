"""`doctor`: what could keep the daemon or a connected client from working, each with the next step."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click

from orchestrator.api import locations, processes, sockets
from orchestrator.api import parameters as p
from orchestrator.api.administration import STATUS, StatusInfo
from orchestrator.api.diagnosis import Check, Diagnosis
from orchestrator.api.locations import Location
from orchestrator.clients.cli.connect import offered, target
from orchestrator.clients.cli.context import Command, Settings
from orchestrator.clients.connect import connection_record as records
from orchestrator.clients.connect import installed
from orchestrator.clients.connect.effective_settings import command_of, ways_past
from orchestrator.clients.connect.hook_settings import template_of
from orchestrator.clients.connect.settings_document import holds, parse
from orchestrator.clients.connect.templates import Client
from orchestrator.clients.connection import Caller, Connection
from orchestrator.core.errors import OrchestratorError, escaped, plural
from orchestrator.version import VERSION

LOG_BYTES, LOG_ERRORS = 256 * 1024, 3
"""Of the end of the log, and how many of its errors are shown."""

MOST_JOURNAL_BYTES = 64 * 1024 * 1024
"""A larger journal is not verified in passing."""

_COLOURS = {"ok": "green", "warning": "yellow", "failure": "red"}


@click.command(cls=Command)
@click.pass_obj
def doctor(settings: Settings) -> int:
    """Look at the machine, the daemon and every connected client; works with the daemon stopped too.

    Exit code 1 where something has failed; what only could be better is a warning.
    """
    from orchestrator.system_checks import system_checks

    checks = [*system_checks(settings.root), *_places(settings)]
    found, problem = _daemon(settings)
    checks += problem
    status = None
    if found is not None:
        status, more = _status(found)
        checks += more
    else:
        checks += _stopped_journal(settings)
    checks += _log(settings)
    for client in get_args(Client):
        checks += _client(settings, client, found if status else None)
    diagnosis = Diagnosis(ok=not any(check.status == "failure" for check in checks), checks=tuple(checks))
    return settings.show(diagnosis, _lines(diagnosis))


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    for check in diagnosis.checks:
        shown = click.style(f"{check.status:<8}", fg=_COLOURS[check.status])
        yield f"{shown} {check.subject}: {escaped(check.finding)}"
        if check.next:
            yield f"         {escaped(check.next)}"


def _ok(subject: str, finding: str) -> Check:
    return Check(subject=subject, status="ok", finding=finding)


def _warning(subject: str, finding: str, to_do: str = "") -> Check:
    return Check(subject=subject, status="warning", finding=finding, next=to_do)


def _failure(subject: str, finding: str, to_do: str = "") -> Check:
    return Check(subject=subject, status="failure", finding=finding, next=to_do)


# --- files that are nobody else's --------------------------------------------------------


def _places(settings: Settings) -> Iterator[Check]:
    state = settings.state_directory
    socket = Path(sockets.runtime_directory())
    if socket.exists():
        try:
            sockets.check_socket_directory(str(socket))
            yield _ok("socket's folder", str(socket))
        except sockets.SocketDirectoryUnsafe as error:
            yield _failure("socket's folder", error.message, error.hint)
    known = locations.read_location(locations.workspace_id(settings.root))
    private = [(state, "state directory"), (known.socket if known else "", "socket")]
    private += [(str(path), "token") for path in sorted(records.folder(state).glob("*.token"))]
    for path, subject in private:
        yield from _private(path, subject)


def _private(path: str, subject: str) -> Iterator[Check]:
    try:
        found = os.lstat(path)  # of a link, too
    except OSError:
        return
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.getuid():
        yield _failure(subject, f"{path} belongs to uid {found.st_uid}", "Work as that user, or move it away.")
    elif mode & 0o077:
        right = "700" if stat.S_ISDIR(found.st_mode) else "600"
        yield _failure(subject, f"{path} has mode {mode:04o}: others can use it", f"chmod {right} {path}")
    else:
        yield _ok(subject, f"{path} is yours alone")


# --- the daemon and its journal ----------------------------------------------------------


def _daemon(settings: Settings) -> tuple[Location | None, list[Check]]:
    try:
        found = settings.daemon().find()
    except OrchestratorError as error:
        return None, [_failure("daemon", error.message, error.hint)]
    if found is not None:
        return found, []
    serving = processes.serving(settings.root)
    if serving is not None:
        finding = f"process {serving.pid} serves {serving.workspace} and does not listen on {serving.socket}"
        return None, [_failure("daemon", finding, "Wait a moment; else `orchestrator stop`, then `orchestrator up`.")]
    return None, [_warning("daemon", "it does not run", "`orchestrator up`; an agent that connects starts it as well.")]


def _status(found: Location) -> tuple[StatusInfo | None, list[Check]]:
    try:
        with Connection(found.socket, Caller(client="orchestrator doctor")) as connection:
            status = connection.call(STATUS, p.Params())
    except OrchestratorError as error:
        return None, [_failure("daemon", error.message, error.hint)]
    return status, [*_health(status)]


CONFINE = (
    "Allow unprivileged user namespaces or install bubblewrap, and start the daemon anew; "
    "or let a person say yes to each command."
)


def _health(status: StatusInfo) -> Iterator[Check]:
    restart = "`orchestrator stop`, then `orchestrator up`."
    if status.version != VERSION:
        yield _warning("daemon", f"version {status.version} runs, and {VERSION} is installed", restart)
    else:
        yield _ok("daemon", f"version {status.version}, process {status.pid}")
    health = status.health
    for note in health.amiss:
        yield (_warning if health.state == "ok" else _failure)("daemon", note)
    for subject, said in (("watching", health.watching), ("Landlock", health.landlock), ("search", health.search)):
        if said not in ("live", "on"):
            yield _warning(subject, said)
    if health.commands.startswith("nothing"):
        yield _warning("commands", f"what agents run is confined by {health.commands}", CONFINE)
    else:
        yield _ok("commands", f"what agents run is confined by {health.commands}")
    if health.checked.startswith("failed"):
        yield _failure("journal", health.checked, "`orchestrator journal verify` says more.")
    else:
        yield _ok("journal", f"at {status.head}" + (f", checked: {health.checked}" if health.checked else ""))
    if health.diverged:
        finding = f"{plural(len(health.diverged), 'change')} met other content: {', '.join(health.diverged)}"
        yield _warning("journal", finding, "`orchestrator log` shows what was found.")


def _stopped_journal(settings: Settings) -> Iterator[Check]:
    database = Path(settings.state_directory) / "journal.db"
    if not database.exists():
        yield _ok("journal", "there is none yet")
        return
    if processes.holder_of(settings.state_directory) is not None:
        return  # a daemon comes up or ends, as said above
    if (size := database.stat().st_size) > MOST_JOURNAL_BYTES:
        yield _warning("journal", f"not verified: it has {size >> 20} MiB", "`orchestrator journal verify`")
        return
    import anyio  # other commands do without these two

    from orchestrator.offline import verify

    try:
        answer = anyio.run(verify, settings.state_directory, None)
    except OrchestratorError as error:
        yield _failure("journal", error.message, error.hint)
        return
    if answer.ok:
        yield _ok("journal", f"verified, at {answer.head}")
    for problem in answer.problems:
        yield _failure("journal", problem, "`orchestrator journal verify` says more; a backup can be restored.")


def _log(settings: Settings) -> Iterator[Check]:
    path = Path(settings.state_directory) / "daemon.log"
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LOG_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return
    errors = [said for line in lines if (said := _logged_error(line))]
    for said in errors[-LOG_ERRORS:]:
        yield _warning("log", said, f"{path} has the rest.")
    if not errors:
        yield _ok("log", "no errors in what is kept of it")


def _logged_error(line: bytes) -> str:
    """An error as the log has it; empty for any other line."""
    try:
        entry = json.loads(line)
    except ValueError:
        return ""
    if not isinstance(entry, dict) or entry.get("level") not in ("error", "critical"):
        return ""
    why = entry.get("error") or entry.get("message") or ""
    return f"{str(entry.get('timestamp', ''))[:19]} {entry.get('event', '')}" + (f": {why}" if why else "")


# --- connected clients -------------------------------------------------------------------


def _client(settings: Settings, client: Client, found: Location | None) -> Iterator[Check]:
    again = f"`orchestrator connect {client}` writes it anew."
    try:
        record = records.load(settings.state_directory, client)
        if record is None:
            return
        if record.native:
            again = f"`orchestrator connect {client} --native` writes it anew."
        template = template_of(client, native=record.native)
        given = dict(zip(record.command, record.command[1:], strict=False))
        token = given.get("--token-file", "")
        to = target(settings, record.agent, token)._replace(command=record.command)
        for change in records.connecting(template.files(to), record):
            if change.new == change.now:
                yield _ok(client, f"{change.file.path} says what it must")
            else:
                document = parse(change.now, change.file.form)
                lacks = [each.name for each in change.file.settings if not holds(document, each)]
                yield _failure(client, f"{change.file.path} lacks {', '.join(lacks) or 'its former form'}", again)
        yield from (_warning(client, note) for note in (*installed.remarks(template), *ways_past(template, to)))
        if found is not None:
            yield from _answered(client, record.agent, token, found)
            tools, _ = offered(template, command_of(template, to) or record.command, settings.root)
            finding = "the hook answers" if record.native else f"the transport offers {plural(tools, 'tool')}"
            yield _ok(client, finding)
    except OrchestratorError as error:
        yield _failure(client, error.message, error.hint or again)


def _answered(client: Client, agent: str, token_file: str, found: Location) -> Iterator[Check]:
    """Whether the daemon takes the caller. Raises OrchestratorError where it does not."""
    if not token_file:
        to_do = f"`orchestrator connect {client}` in a terminal makes a token."
        yield _warning(client, f"{agent} is a claim without a token", to_do)
        return
    try:
        token = Path(token_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        yield _failure(
            client, f"{token_file} can't be read: {error}", f"`orchestrator connect {client}` makes another."
        )
        return
    with Connection(found.socket, Caller(token=token, client="orchestrator doctor")) as connection:
        yield _ok(client, f"its token is good: it is {connection.welcome.agent}")
