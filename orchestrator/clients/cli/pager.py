"""Long answers on a terminal go through a pager, as git's do: `$PAGER`, else less; none where either is `cat` or ""."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress

import click


def paged(lines: Iterable[str]) -> bool:
    """Show lines in the pager until the person has seen enough; False, and nothing is shown, where there is none."""
    command = _command() if sys.stdout.isatty() else []
    if not command:
        return False
    env = {"LESS": "FRX", "LV": "-c", **os.environ}
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=env)
    except OSError:
        return False
    plain = bool(os.environ.get("NO_COLOR"))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the pager's
    try:
        with suppress(BrokenPipeError), pager:
            assert pager.stdin is not None
            for line in lines:
                pager.stdin.write((click.unstyle(line) if plain else line).encode("utf-8", "backslashreplace") + b"\n")
    finally:
        signal.signal(signal.SIGINT, before)
    return True


def _command() -> list[str]:
    with suppress(ValueError):  # a quote without its end
        words = shlex.split(os.environ.get("PAGER", "less"))
        return [] if words in ([], ["cat"]) else words
    return []
