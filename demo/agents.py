"""The agents seen from the story: two processes, told what to call, whose answers come when they come."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from demo.stage import CALL_TIMEOUT_S, DemoFailed, Stage


class Answer(NamedTuple):
    """What a tool call came to."""

    refused: bool
    texts: tuple[str, ...]
    structured: dict[str, Any] | None

    @property
    def json(self) -> dict[str, Any]:
        """The answer of a change, or the refusal."""
        told: dict[str, Any] = json.loads(self.texts[0])
        return told


class Agent:
    """One client process with an identity of its own."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name, self._process = name, process
        self.hello: dict[str, Any] = {}

    def greet(self) -> None:
        """Wait until it is connected."""
        self.hello = self._heard()

    def ask(self, tool: str, **arguments: Any) -> None:
        """Send a call and do not wait."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"tool": tool, "arguments": arguments}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Answer:
        """Wait for the answer of the oldest call that has none."""
        heard = self._heard()
        return Answer(heard["refused"], tuple(heard["texts"]), heard["structured"])

    def call(self, tool: str, **arguments: Any) -> Answer:
        """Call and wait; a refusal ends the story."""
        self.ask(tool, **arguments)
        got = self.answer()
        if got.refused:
            raise DemoFailed(f"{self.name}'s {tool} was refused: {got.texts[0]}")
        return got

    def _heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise DemoFailed(f"the process of {self.name} ended")
        told: dict[str, Any] = json.loads(line)
        return told


@contextmanager
def agents(stage: Stage, **modes: Literal["auto", "legacy"]) -> Iterator[list[Agent]]:
    """Start one process for each name, side by side; `modes` says which MCP era each of them speaks."""
    processes = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "demo.agent", "--workspace", str(stage.workspace)),
                "--name",
                name,
                "--mode",
                mode,
            ],
            cwd=Path(__file__).parent.parent,
            env=stage.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, mode in modes.items()
    ]
    try:
        cast = [Agent(name, process) for name, process in zip(modes, processes, strict=True)]
        for agent in cast:
            agent.greet()
        yield cast
        for process in processes:
            process.communicate(timeout=CALL_TIMEOUT_S)
    finally:
        for process in processes:
            process.kill()
            process.communicate()
