"""A daemon that kills itself at a named step: `python -m tests.crash.crashing --at STEP[:n] … <daemon's arguments>`.

SIGKILL, so that nothing is flushed, closed or unlinked on the way out.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path

from orchestrator.daemon import Daemon, serve
from orchestrator.daemon_config import parse
from orchestrator.logs import start_logging
from orchestrator.workspace.disk import ignore_lease_breaks

WAIT_S = 60
"""For the other thread's step; a test that names an order that can't be fails by its daemon's living on."""


class Crash:
    """The step hook.

    `at` is the step at whose n-th time the process ends; with `after`, not before that one was
    reached too (the intent's commit and the temporary file go on side by side). `meddle` is a
    step at whose n-th time another program's content is put into a file.
    """

    def __init__(
        self, at: str | None, *, after: str | None = None, meddle: str | None = None, path: str | None = None
    ) -> None:
        self._at, self._after, self._meddle = map(_point, (at, after, meddle))
        self._path = path
        self._seen: Counter[str] = Counter()
        self._reached = threading.Condition()

    def __call__(self, name: str) -> None:
        with self._reached:
            self._seen[name] += 1
            self._seen[ANY] += 1
            now = (name, self._seen[name])
            self._reached.notify_all()
            if self._at in (now, (ANY, self._seen[ANY])):
                self._reached.wait_for(
                    lambda: self._after is None or self._seen[self._after[0]] >= self._after[1], WAIT_S
                )
                os.kill(os.getpid(), signal.SIGKILL)
        if now == self._meddle and self._path is not None:
            Path(self._path).write_bytes(FOREIGN)


ANY = "any"
"""In place of a step's name: every step counts."""

FOREIGN = b"another program wrote this\n"


def _point(text: str | None) -> tuple[str, int] | None:
    """`name` or `name:n`; names have colons of their own."""
    if text is None:
        return None
    name, _, count = text.rpartition(":")
    return (name, int(count)) if count.isdigit() else (text, 1)


def main(argv: list[str]) -> int:
    """As `orchestrator daemon`, with the hook."""
    parser = argparse.ArgumentParser(prog="crashing", allow_abbrev=False)
    parser.add_argument("--at")
    parser.add_argument("--after")
    parser.add_argument("--meddle")
    parser.add_argument("--path")
    given, rest = parser.parse_known_args(argv)
    config = parse(rest)
    start_logging()
    ignore_lease_breaks()
    step = Crash(given.at, after=given.after, meddle=given.meddle, path=given.path)
    return serve(Daemon(config, step=step))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
