"""A daemon under attack: lines on its raw socket, and what must hold after each refusal."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from tests.daemon.daemon_process import RunningDaemon, running

SECRET = "outside-secret-6d1f2a"
"""Stands in every file that no caller may see; no reply may hold it."""

TEMP = ".orchestrator-"
REFUSALS = ("read_refused", "change_refused", "call_refused")
TIMEOUT_S = 60
_WHOLE_BYTES = 1 << 20


class Answer(NamedTuple):
    """One reply, as it came and as it reads."""

    raw: bytes
    reply: dict[str, Any]

    @property
    def code(self) -> str | None:
        """The refusal's code; None for a result."""
        return self.error["code"] if "error" in self.reply else None

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.reply["error"]["data"]
        return error

    @property
    def result(self) -> dict[str, Any]:
        assert "result" in self.reply, self.reply
        result: dict[str, Any] = self.reply["result"]
        return result


class Line:
    """One connection; what it sends may be anything."""

    def __init__(
        self, path: str | Path, *, transport: str = "rpc", raw: bytes | None = None, **preamble: object
    ) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TIMEOUT_S)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rb")
        first = raw if raw is not None else json.dumps({"orchestrator": 1, "transport": transport, **preamble}).encode()
        self.send(first)
        self.first = self.receive()
        """The welcome, or the refusal of the preamble."""
        self._last = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    @property
    def session(self) -> str:
        return str(self.first.reply["session"])

    def send(self, line: bytes) -> None:
        self._socket.sendall(line + b"\n")

    def receive(self) -> Answer:
        line = self._lines.readline()
        return Answer(line, json.loads(line) if line else {})

    def ended(self) -> bool:
        """Whether the daemon has closed the connection; waits for it."""
        return self._lines.readline() == b""

    def call(self, operation: str, **params: object) -> Answer:
        """One call. A parameter `from_` is sent as `from`."""
        self._last += 1
        given = {name.rstrip("_"): value for name, value in params.items()}
        self.send(json.dumps({"jsonrpc": "2.0", "id": self._last, "method": operation, "params": given}).encode())
        answer = self.receive()
        assert answer.reply.get("id") == self._last, answer
        return answer

    def done(self, operation: str, **params: object) -> dict[str, Any]:
        """The result of a call that must not be refused."""
        return self.call(operation, **params).result


class Caller(Protocol):
    """Whoever makes calls, by whichever transport."""

    def call(self, operation: str, **params: object) -> Answer:
        """One call; a refusal's `error` and a result's `result` are as on the socket."""


class HostileWorkspace:
    """The daemon, an agent and a person on its socket, and files beside the workspace that hold the secret."""

    def __init__(self, daemon: RunningDaemon) -> None:
        self.daemon, self.base, self.work = daemon, daemon.base, daemon.workspace
        self.outside = self.base / "S"
        self.outside.write_text(SECRET)
        self.twin = self.base / "work-evil"
        self.twin.mkdir()
        (self.twin / "S").write_text(SECRET)
        (self.work / "a.txt").write_text("one\ntwo\nthree\n")
        (self.work / "a").mkdir()
        (self.work / "a" / "b.txt").write_text("b\n")
        self.agent = Line(daemon.socket, agent="alice")
        self.person = Line(daemon.socket, person=True)
        self.approver: str = self.person.done("approver_create")["approver_code"]

    def close(self) -> None:
        self.agent.close()
        self.person.close()

    def line(self, **preamble: object) -> Line:
        """A further connection."""
        return Line(self.daemon.socket, **preamble)  # type: ignore[arg-type]  # what it says may be wrong

    # --- what must hold ---------------------------------------------------------------

    def refused(self, operation: str, code: str, *, caller: Caller | None = None, **params: object) -> Answer:
        """Make a call that must be refused with this code and without any consequence."""
        with self.untouched(refusals=1):
            answer = (caller or self.agent).call(operation, **params)
        assert answer.code == code, answer.raw[:600]
        self.tight(answer)
        return answer

    def tight(self, answer: Answer) -> None:
        """A refusal that says what to do, without a trace, and without what it protects."""
        assert SECRET.encode() not in answer.raw
        assert b"Traceback" not in answer.raw
        assert answer.error["message"]
        assert answer.error["hint"], answer.reply
        assert not any(ord(c) < 32 for c in answer.error["message"]), answer.error["message"]

    @contextmanager
    def untouched(self, *, refusals: int | None = None) -> Iterator[None]:
        """No file in or beside the workspace changes, and so many refusals are noted."""
        before, mark = self.snapshot(), self.head()
        yield
        assert self.snapshot() == before
        if refusals is not None:
            noted = self.refusals_since(mark)
            assert len(noted) == refusals, noted
            assert SECRET not in json.dumps(noted)

    def head(self) -> int:
        return int(self.person.done("status")["head"].removeprefix("@"))

    def refusals_since(self, mark: int) -> list[dict[str, Any]]:
        """The refusal events behind this one, oldest first."""
        found, after, more = list[dict[str, Any]](), f"@{mark}", True
        while more:
            page = self.person.done("journal_export", after=after)
            found += map(json.loads, page.get("text", "").splitlines())
            after, more = page.get("after", after), page.get("more", False)
        return [entry for entry in found if entry["kind"] in REFUSALS]

    def snapshot(self) -> dict[str, object]:
        """Everything in and beside the workspace; not the daemon's temporary files and its mark, which come and go."""
        return {
            os.fsencode(path.relative_to(self.base)).decode("utf-8", "backslashreplace"): _fact(path)
            for top in (self.work, self.twin, self.outside, self.daemon.home)
            for path in (top, *(top.rglob("*") if top.is_dir() else ()))
            if not path.name.startswith(TEMP) and ".mark" not in path.name
        }


def _fact(path: Path) -> object:
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        return str(path.readlink())
    if not stat.S_ISREG(found.st_mode):
        return found.st_mode
    content: object = path.read_bytes() if found.st_size <= _WHOLE_BYTES else found.st_size
    return found.st_mode, content


@contextmanager
def fort_in_tmp() -> Iterator[HostileWorkspace]:
    """A hostile in a folder of its own, with a path short enough for a socket."""
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/tmp")).resolve()
    try:
        with running(base, "--http", "0", clocked=True) as daemon:
            hostile = HostileWorkspace(daemon)
            try:
                yield hostile
            finally:
                hostile.close()
        if [*daemon.workspace.rglob(f"{TEMP}*")]:  # a change that diverged leaves what came out of it to the next start
            daemon.start()
            assert daemon.stop() == 0
        assert not [*daemon.workspace.rglob(f"{TEMP}*")], "nothing temporary stays"
    finally:
        shutil.rmtree(base)
