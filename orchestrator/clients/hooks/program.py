"""The program behind `orchestrator hook CLIENT`: one event in, one call of the daemon, one answer out.

A tool may act only on the daemon's word. Whatever else happens is a denial with its reason, unless the person who
installed the hook lets tools act without a daemon.
"""

# Importing pathlib would take 6 ms.
# ruff: noqa: PTH112, PTH118, PTH119, PTH120, PTH123

from __future__ import annotations

import os
import sys

from orchestrator.api import locations
from orchestrator.clients.hooks.event import Unreadable
from orchestrator.clients.hooks.one_call import Refused, call
from orchestrator.clients.hooks.patch_paths import within
from orchestrator.core.errors import DaemonUnreachable, OrchestratorError

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take 2 ms of each hook
    from typing import Any, Protocol

    from orchestrator.clients.hooks.event import Event

    class Adapter(Protocol):
        """The module of one client."""

        PASS: str
        """The answer by which the client goes on as it would without the hook."""

        def read(self, data: bytes) -> Event | None:
            """The event; None of a tool that is none of ours. Raises Unreadable."""

        def denial(self, reason: str) -> str:
            """What keeps the tool from acting; its model reads the reason."""

        def remark(self, event: Event, said: str) -> str:
            """What tells the model something beside a tool's result."""


CLIENTS = ("claude", "codex", "cursor", "gemini", "opencode")

USAGE = """\
Usage: orchestrator hook CLIENT [OPTIONS]

  Judge and record what an agent does with its own tools. CLIENT: claude, codex, cursor, gemini or
  opencode. It runs this itself: see docs/hooks.md.

Options:
  --workspace DIR          The workspace; default: found from where the agent works.
  --agent NAME             Who the agent is (or ORCHESTRATOR_AGENT); default: CLIENT.
  --token-file FILE        The agent's token (or ORCHESTRATOR_TOKEN).
  --without-daemon RULE    deny (default) or allow: what becomes of its tools while no daemon can be reached.
  --help
"""

OPTIONS = ("--workspace", "--agent", "--token-file", "--without-daemon")

WITHIN_S = 5.0
"""For all that the daemon has to do with one call."""

MOST_BYTES = 64 * 1024 * 1024
"""Of an event."""

BLOCK = 2
"""The exit code by which a client keeps a tool from acting; stderr says why."""


def main(argv: list[str], token: str | None = None) -> int:
    """Answer one event. Exit code 0, or 2: the tool is denied, and stderr says why."""
    if "--help" in argv:
        print(USAGE, flush=True)
        return 0
    given, rest, wrong = _options(argv)
    if len(rest) != 1 or rest[0] not in CLIENTS:
        wrong = wrong or f"CLIENT is one of: {', '.join(CLIENTS)}"
    if given.get("--without-daemon", "deny") not in ("deny", "allow"):
        wrong = wrong or "--without-daemon is deny or allow"
    if wrong:
        print(f"orchestrator hook: {wrong}\n\n{USAGE}", file=sys.stderr)
        return BLOCK
    try:
        answer = _answer(rest[0], given, token)
        if answer:
            print(answer, flush=True)
    except Exception as error:  # noqa: BLE001  # a hook that fails would let the tool act
        print(f"The orchestrator's hook failed, so this is denied: {error!r}", file=sys.stderr)
        return BLOCK
    return 0


def _options(argv: list[str]) -> tuple[dict[str, str], list[str], str]:
    """Options with their values, what else there is, and what is wrong. getopt and argparse would take 1 and 6 ms."""
    given, rest, words = dict[str, str](), list[str](), iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            rest.append(word)
        elif name not in OPTIONS:
            return given, rest, f"option {name} is not known"
        else:
            given[name] = value if equals else next(words, "")
            if not given[name]:
                return given, rest, f"option {name} needs a value"
    return given, rest, ""


def _answer(client: str, given: dict[str, str], token: str | None) -> str:
    """What goes to stdout; nothing: the client goes on as it would without this hook."""
    adapter: Adapter = getattr(__import__(f"orchestrator.clients.hooks.{client}").clients.hooks, client)
    data = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        return adapter.denial(f"Denied: the event has more than {MOST_BYTES} bytes. Write the file in parts.")
    try:
        event = adapter.read(data)
    except Unreadable as error:
        return adapter.denial(f"Denied: the orchestrator's hook can't read the event: {error}. Tell your person.")
    if event is None:
        return adapter.PASS
    denied, told = _judged(client, event, given, token)
    if denied and event.before:
        return adapter.denial(f"Denied: {denied}")
    if denied:
        told = f"The orchestrator could not record this: {denied}"
    return adapter.remark(event, told) if told else adapter.PASS


def _judged(client: str, event: Event, given: dict[str, str], token: str | None) -> tuple[str, str]:
    """Why the daemon refuses an event, and what it tells beside it."""
    try:
        root = locations.find_workspace(given.get("--workspace"), cwd=event.cwd)
        path, more = _ours(event, event.path, root), event.more
        if "patch" in more:
            more = {**more, "patch": within(more["patch"], lambda named: _ours(event, named, root))}
        if path is None or more.get("patch") == "":
            return "", ""
        secret = _token(given["--token-file"]) if "--token-file" in given else token
        introduction: dict[str, Any] = {
            "agent": given.get("--agent") or os.environ.get("ORCHESTRATOR_AGENT") or (None if secret else client),
            "token": secret,
            "login": f"hook\0{client}\0{event.session}",
            "client": f"orchestrator hook {client}",
        }
        if event.kind == "command" and event.before and (folder := _outside(event, root)):
            more = {**more, "outside": folder}
        params = {"client": client, "tool": event.tool, "kind": event.kind, "call": event.call, "path": path}
        request = {
            "method": "native_before" if event.before else "native_after",
            "params": {**params, **more},
            "call_id": event.call,
        }
        reply = call(root, introduction, request, WITHIN_S)
        if event.alone:
            call(root, introduction, {**request, "method": "native_after", "params": params}, WITHIN_S)
    except Refused as refused:
        return _reason(refused), ""
    except Unreadable as error:
        return f"the orchestrator's hook can't read the event: {error}", ""
    except DaemonUnreachable as error:
        if given.get("--without-daemon") == "allow":
            return "", ""
        hint = "Ask the person you work for to run `orchestrator up` in the workspace, then try again."
        return f"{error.message}. {hint}", ""
    except OrchestratorError as error:
        return f"{error.message}. {error.hint}".strip(), ""
    warnings = reply["result"].get("warnings", ())
    return "", "\n".join((*warnings, *map(_notice, reply.get("notices") or [])))


def _ours(event: Event, given: str, root: str) -> str | None:
    """The path as the daemon takes it; None of a file that is not in the workspace, or a folder that is listed."""
    if event.kind == "patch" and not given:
        return ""
    path = os.path.normpath(os.path.join(event.cwd, given))
    if event.kind == "read" and os.path.isdir(path):
        return None
    for spelt in (path, f"{os.path.realpath(os.path.dirname(path))}/{os.path.basename(path)}", os.path.realpath(path)):
        if spelt.startswith(f"{root}/"):
            return spelt[len(root) + 1 :]
    return "" if event.kind == "command" else None


def _outside(event: Event, root: str) -> str:
    """The folder in which a command begins, if that is not in the workspace."""
    folder = os.path.realpath(os.path.join(event.cwd, event.path))
    return "" if folder == root or folder.startswith(f"{root}/") else folder


def _reason(refused: Refused) -> str:
    said = refused.refusal
    parts = [f"{said.get('message', '')}. {said.get('hint', '')}".strip()]
    if said.get("shown"):
        parts.append(f"What changed:\n{said['shown']}")
    return "\n".join((*parts, *map(_notice, refused.notices)))


def _notice(notice: dict[str, Any]) -> str:
    who = ", ".join(notice.get("by") or []) or "somebody"
    doing = {"deleted": "was deleted", "moved": "was moved"}.get(notice.get("kind", ""), "was changed")
    text = f"{notice.get('path')}, which you read, {doing} by {who} since {notice.get('since')}: read it again."
    if notice.get("more_files"):
        text += f" So were {notice['more_files']} more files."
    return text


def _token(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise OrchestratorError(f"the token file {path} cannot be read: {error}") from error
