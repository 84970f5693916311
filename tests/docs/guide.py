"""docs/operations.md as a story: its commands in order, what they are said to write, and what happened before them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from orchestrator.api.locations import workspace_id
from tests.docs.terminal import Terminal

INTERRUPT = "^C"
"""The last line that is shown of a command which goes on until it is interrupted."""

_GIVEN = re.compile(r"<!-- given: (.+) -->")
_EXIT = re.compile(r"\(exit code (\d+)\)")


class Given(NamedTuple):
    """Something that happened, which the test must bring about."""

    name: str


class Step(NamedTuple):
    """A command as it is typed, the lines that it writes, and its exit code."""

    command: str
    reported: list[str]
    code: int


def story(text: str) -> Iterator[Given | Step]:
    """What stands in the guide, in its order: every comment `given`, every command of a console block."""
    lines = iter(text.splitlines())
    for line in lines:
        if found := _GIVEN.fullmatch(line):
            yield Given(found[1])
        elif line.startswith("```console"):
            yield from _typed(list(iter(lambda: next(lines), "```")))


def _typed(lines: list[str]) -> Iterator[Step]:
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    assert starts[:1] == [0], f"a console block begins with a command: {lines[0]}"
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        reported, code = lines[start + 1 : end], 0
        if reported and (found := _EXIT.fullmatch(reported[-1])):
            reported, code = reported[:-1], int(found[1])
        yield Step(lines[start][2:], reported, code)


class Operator:
    """A person at a terminal, with a home of their own and a repository in it."""

    def __init__(self, base: Path) -> None:
        self.home = base / "home"
        self.shop = self.home / "shop"
        (base / "run").mkdir(mode=0o700)
        self.shop.mkdir(parents=True)
        self.home.chmod(0o700)
        self.env = {
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(base / "run"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        self._terminal = Terminal(self.home, self.env)

    @property
    def state_dir(self) -> Path:
        """Where the daemon on the repository keeps its journal."""
        return self.home / ".local/state/orchestrator" / workspace_id(str(self.shop))

    def run(self, step: Step) -> tuple[list[str], int]:
        """Type a command; where the guide shows ^C, interrupt it when as much has come as the guide shows."""
        shown = len(step.reported) - 1 if step.reported[-1:] == [INTERRUPT] else None
        return self._terminal.run(step.command, interrupt_after=shown)

    def sh(self, script: str) -> str:
        """Run what others do, in the repository; no step of the guide."""
        done = subprocess.run(
            ["timeout", "300", "bash", "-euc", script],
            cwd=self.shop,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def close(self) -> None:
        """Leave the terminal, and end the daemon."""
        self._terminal.close()
        subprocess.run(["orchestrator", "stop"], cwd=self.shop, env=self.env, capture_output=True, check=False)
