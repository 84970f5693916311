"""Callers that leave before their answer: nothing that the daemon's log should complain of."""

from __future__ import annotations

import json
import socket

from orchestrator.clients.connection import Caller
from tests.daemon.daemon_process import RunningDaemon


def call(method: str, **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"


SAID = (
    b"",
    call("read_file", path="a.txt"),  # short: answered before the next line is read
    call("list_files") * 3,  # side by side
    call("nonsense"),
    b"no JSON\n" * 20,
    call("list_files")[:20],
)


def test_callers_leave_at_once(daemon: RunningDaemon) -> None:
    """The fixture's end stops the daemon and looks for errors in its log."""
    (daemon.workspace / "a.txt").write_text("line\n" * 2000)
    for said in SAID * 3:
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(str(daemon.socket))
            caller.sendall(Caller(agent="alice").preamble())
            assert json.loads(caller.makefile("rb").readline())["ok"]
            caller.sendall(said)


def test_what_is_no_preamble(daemon: RunningDaemon) -> None:
    for said in (b"", b"GET / HTTP/1.1\r\n\r\n", b"{}\n", b"x" * 200_000):
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(str(daemon.socket))
            caller.settimeout(60)
            try:
                caller.sendall(said)
            except BrokenPipeError:
                assert len(said) > 64 * 1024
