"""A daemon whose clock tests put forward: `python -m tests.daemon.clocked FOLDER <daemon's arguments>`.

So nothing is late because the machine is slow, and what is to be late need not be waited for.
"""

from __future__ import annotations

import sys
from pathlib import Path

from orchestrator import daemon
from orchestrator.machine import SystemClock

AHEAD = "ahead"
"""The file in the folder: how many seconds the clock is ahead."""


def passes(folder: Path, seconds: int) -> None:
    """So much later it is for the daemon; what waits for a time looks at the clock at the next event of a file."""
    (folder / "next").write_text(str(seconds))
    (folder / "next").replace(folder / AHEAD)


def put_forward(folder: Path) -> None:
    """Let every clock of this process be ahead as `passes` says."""
    now_ms, ahead = SystemClock.now_ms, folder / AHEAD

    def later_ms(clock: SystemClock) -> int:
        return now_ms(clock) + (int(ahead.read_text()) * 1000 if ahead.exists() else 0)

    SystemClock.now_ms = later_ms  # type: ignore[assignment, method-assign]


def main(argv: list[str]) -> int:
    """As `orchestrator daemon`."""
    put_forward(Path(argv[0]))
    return daemon.main(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
