"""The controlling terminal: its session, and what is asked and shown there and nowhere else."""

from __future__ import annotations

import getpass
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from orchestrator.api import locations
from orchestrator.core.errors import ApproverCodeNeeded, OrchestratorError

TERMINAL = Path("/dev/tty")

SHORT_S = 2.0
"""A start that takes no longer shows no progress."""

LINE_EVERY_S = 5.0


def there_is_one() -> bool:
    """Whether the process has a controlling terminal."""
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def show(text: str) -> None:
    """Write to the terminal itself, past any redirection. Raises OSError."""
    with TERMINAL.open("w", encoding="utf-8") as file:
        file.write(text)


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Shows on stderr what a long start is at: on a terminal in one line, else a line every few seconds."""
    terminal, since, shown_at = sys.stderr.isatty(), time.monotonic(), 0.0

    def doing(what: str) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if now - since > SHORT_S and (terminal or now - shown_at > LINE_EVERY_S):
            shown_at = now
            print(
                f"\r\x1b[K{what}" if terminal else f"the daemon is {what}",
                end="" if terminal else "\n",
                file=sys.stderr,
            )
            sys.stderr.flush()

    try:
        yield doing
    finally:
        if terminal and shown_at:
            print("\r\x1b[K", end="", file=sys.stderr)


def approver_code(*, ask: bool) -> str | None:
    """The code from ORCHESTRATOR_APPROVER, else asked for without echo. Raises ApproverCodeNeeded."""
    given = os.environ.get("ORCHESTRATOR_APPROVER")
    if given:
        return given
    if not ask:
        return None
    if not there_is_one():
        raise ApproverCodeNeeded("this needs the approver code, and there is no terminal to ask on")
    return getpass.getpass("Approver code: ").strip()


class SessionFile(NamedTuple):
    """Remembers a terminal's session with one daemon for one agent, for as long as the login there lasts."""

    path: Path

    @classmethod
    def of_terminal(cls, socket: str, agent: str) -> Self | None:
        """The file of the controlling terminal; None without one, or where others could write it."""
        leader, directory = os.getsid(0), locations.runtime_directory()
        started = _started(leader)
        try:
            locations.check_socket_directory(directory)
        except OrchestratorError:
            return None
        if not started or not there_is_one():
            return None
        key = hashlib.sha256(f"{socket}\0{agent}".encode()).hexdigest()[:16]
        return cls(Path(directory) / f"tty-{leader}-{started}-{key}.session")

    def read(self) -> str | None:
        """The session's id, if there is one."""
        try:
            return self.path.read_text(encoding="utf-8").strip() or None
        except (OSError, UnicodeDecodeError):
            return None

    def write(self, session: str) -> None:
        """Keep the session's id; the files of logins that are over go. Where it fails, the next call has a new one."""
        if self.read() == session:
            return
        try:
            for other in self.path.parent.glob("tty-*-*-*.session"):
                _, leader, started, _ = other.name.split("-", 3)
                if _started(leader) != started:
                    other.unlink(missing_ok=True)
            draft = self.path.with_suffix(f".{os.getpid()}")
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:  # noqa: PTH123  # a mode and flags
                file.write(session)
            draft.replace(self.path)
        except OSError:
            return


def _started(pid: int | str) -> str:
    """When a process was started, in the kernel's ticks; empty if there is none."""
    try:  # the second field may hold spaces and brackets; the time is the 22nd
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
