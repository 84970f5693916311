"""The controlling terminal: its login, and what is asked and shown there and nowhere else."""

from __future__ import annotations

import getpass
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from orchestrator.core.errors import ApproverCodeNeeded

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


def progress() -> Callable[[str], None]:
    """Shows on stderr what a long start is at, in a line every few seconds."""
    due = time.monotonic() + SHORT_S

    def doing(what: str) -> None:
        nonlocal due
        if time.monotonic() > due:
            due = time.monotonic() + LINE_EVERY_S
            print(f"the daemon is {what}", file=sys.stderr, flush=True)

    return doing


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


def login() -> str | None:
    """Names the login at the controlling terminal for as long as it lasts; None without one."""
    leader = os.getsid(0)
    try:  # the second field may hold spaces and brackets; the start, in the kernel's ticks, is the 22nd
        started = Path(f"/proc/{leader}/stat").read_text().rpartition(")")[2].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (OSError, IndexError):
        return None
    return f"{boot}:{leader}:{started}" if there_is_one() else None
