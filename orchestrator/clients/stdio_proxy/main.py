"""The stdio transport, `orchestrator mcp`: what an agent starts to reach the daemon.

It starts the daemon if none runs and joins its own stdin and stdout to the daemon's socket; who asks for the tools
has them at once.
Standard library only, and little of it: every agent pays for this at each of its starts.
Only protocol is written to stdout.
"""

from __future__ import annotations

import getopt
import os
import sys
from typing import Any

from orchestrator.api import locations, sockets
from orchestrator.api.toolsets import TOOLSETS, settings_for
from orchestrator.clients.running_daemon import DaemonDied, RemoteError, WorkspaceDaemon, accepted
from orchestrator.clients.stdio_proxy.messages import Handshake, failed, read_message
from orchestrator.clients.stdio_proxy.relay import Link, Pipe, StillUnreachable, complain
from orchestrator.core.errors import DaemonStopped, OperatorError, OrchestratorError, WorkspaceHeld

USAGE = """\
Usage: orchestrator mcp [OPTIONS]

  Serve MCP on stdin and stdout; starts the daemon if none runs.

Options:
  --workspace DIR       The workspace; default: found from the current folder.
  --state-dir DIR       Where the daemon keeps its journal.
  --agent NAME          Who calls (or ORCHESTRATOR_AGENT); without it 'unnamed'.
  --token-file FILE     The agent's token (or ORCHESTRATOR_TOKEN).
  --toolset NAME        Which tools to offer: core (default) or full; or, with the names and answers of other
                        servers: filesystem, editor, largefile, localfiles, filesystem-tool.
  --structured          Typed content for reads too.
  --max-answer-bytes N  Cut answers to so many bytes, 4000 at least; default: what is known of the client.
  --help
"""

OPTIONS = "workspace= state-dir= agent= token-file= toolset= structured max-answer-bytes= help".split()

WELCOME_TIMEOUT_S = 30.0


class TokenUnreadable(OperatorError, code="token_unreadable"):
    """The token file is not there, or not ours to read."""


class Dialler:
    """Connects to the workspace's daemon, starting it where that is called for. `introduction` goes to the preamble."""

    def __init__(self, root: str, state_dir: str | None, session: str | None, introduction: dict[str, Any]) -> None:
        self._root, self._state_dir, self._first_session = root, state_dir, session
        self._introduction = introduction

    def dial(self, session: str | None) -> Link:
        """Connect, resuming `session`; without one it is the first time, and a daemon is started if none runs.

        One that a person stopped later on is not started again from here.
        Raises StillUnreachable, OrchestratorError, OSError.
        """
        daemon = WorkspaceDaemon(self._root, self._state_dir)
        known = locations.read_location(locations.workspace_id(self._root))
        if known is not None and daemon.keeps_state(known):
            try:
                return self._resumed(known.socket, session)
            except OSError as error:
                if known.state == "stopped" and session is not None:
                    raise DaemonStopped(f"a person stopped the daemon of {self._root}") from error
        elif session is not None and daemon.find() is None:
            raise StillUnreachable("its location file was removed")
        try:
            location, _ = daemon.ensure()
        except DaemonDied as error:
            raise StillUnreachable(f"{error.message}. {error.hint}") from error
        except (RemoteError, WorkspaceHeld) as error:
            if error.code == "workspace_held" and session is not None:
                raise StillUnreachable("the old one is still ending") from error
            raise
        return self._resumed(location.socket, session)

    def _resumed(self, path: str, session: str | None) -> Link:
        try:
            return self._link(path, session or self._first_session)
        except RemoteError as error:
            if session is None or error.code != "session_unknown":
                raise
            return self._link(path, None)

    def _link(self, path: str, session: str | None) -> Link:
        connection = sockets.connect(path, WELCOME_TIMEOUT_S)
        try:
            connection.sendall(sockets.preamble("mcp", session=session, **self._introduction))
            lines = connection.makefile("rb")
            welcome = accepted(lines.readline())
            if welcome is None or "session" not in welcome:
                raise ConnectionResetError("the daemon closed the connection, or what answers is not the daemon")
            connection.settimeout(None)
            return Link(connection, lines, str(welcome["session"]))
        except BaseException:
            connection.close()
            raise


def main(argv: list[str], token: str | None = None) -> int:
    """Serve until the client closes its side, with the token that the environment had, unless a file names one.

    Exit code 0; 1 where no daemon could be had; 2 for wrong usage.
    """
    try:
        options, rest = getopt.getopt(argv, "", OPTIONS)
        given = dict(options)
        if rest:
            raise getopt.GetoptError(f"unexpected argument {rest[0]}")
        if given.get("--toolset", "core") not in TOOLSETS:
            raise getopt.GetoptError(f"--toolset is one of {', '.join(TOOLSETS)}")
        most = given.get("--max-answer-bytes", "4000")
        if not most.isdecimal() or int(most) < 4000:
            raise getopt.GetoptError("--max-answer-bytes is a number, 4000 at least")
    except getopt.GetoptError as error:
        print(f"orchestrator mcp: {error}\n\n{USAGE}", file=sys.stderr)
        return 2
    if "--help" in given:
        print(USAGE)
        return 0
    toolset, structured = given.get("--toolset", "core"), "--structured" in given
    introduction = {
        "agent": given.get("--agent") or os.environ.get("ORCHESTRATOR_AGENT"),
        "client": "orchestrator mcp",
        "toolset": toolset,
        "settings": settings_for(toolset, os.environ),
        "structured": structured,
        "max_answer_bytes": int(given["--max-answer-bytes"]) if "--max-answer-bytes" in given else None,
    }
    try:
        introduction["token"] = _token(given["--token-file"]) if "--token-file" in given else token
        root = locations.find_workspace(given.get("--workspace"))
    except OrchestratorError as error:
        return _refuse_all(error)
    dialler = Dialler(root, given.get("--state-dir"), os.environ.get("ORCHESTRATOR_SESSION"), introduction)
    state_dir = locations.state_directory(locations.workspace_id(root), given.get("--state-dir"))
    mark = f"{state_dir}/{locations.TOOLS_MARK}"
    constants = Handshake(toolset, structured=structured, mark=mark)
    never = Pipe(dialler.dial, constants, sys.stdin.buffer, sys.stdout.buffer).run()
    return 0 if never is None else 1


def _token(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123  # pathlib is too dear here
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise TokenUnreadable(f"the token file {path} cannot be read: {error}") from error


def _refuse_all(error: OrchestratorError) -> int:
    """Show the error to the person on stderr, and to the client as the answer to each request."""
    complain(error)
    for line in sys.stdin.buffer:
        call = read_message(line).call
        if call is not None:
            sys.stdout.buffer.write(failed(call, error))
            sys.stdout.buffer.flush()
    return 1
