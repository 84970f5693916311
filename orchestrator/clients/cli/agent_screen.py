"""How a run is followed and answered on a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
import click

from orchestrator.agents.wire import Option, PlanEntry, ToolCall
from orchestrator.clients.cli.context import echo
from orchestrator.core.errors import escaped, plural
from orchestrator.core.text.diff import diff

MOST_DIFF_LINES = 12
MOST_ROW = 160
MOST_LINE = 2000
"""Characters of what the agent says without a line end."""

_STATES = {"completed": "(done)", "failed": "(failed)"}


class SilentScreen:
    """Nobody follows it, and nobody is asked."""

    def text(self, text: str, *, thought: bool) -> None:
        """Nothing."""

    def call(self, call: ToolCall, *, edits: bool) -> None:
        """Nothing."""

    def plan(self, entries: Sequence[PlanEntry]) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """On stderr: stdout has one JSON document."""
        echo(text, err=True)

    def end(self) -> None:
        """Nothing."""

    async def ask(self, call: ToolCall, options: Sequence[Option], why: str) -> str | None:
        """Nobody."""
        return None


class TerminalScreen(SilentScreen):
    """Lines on stdout; questions on the controlling terminal, if there is one. All that an agent says is escaped."""

    def __init__(self, terminal: Path) -> None:
        self._terminal = terminal
        self._said, self._thought = "", False

    def text(self, text: str, *, thought: bool) -> None:
        """Whole lines as they come."""
        if thought != self._thought:
            self.end()
        self._thought = thought
        *lines, self._said = (self._said + text).split("\n")
        for line in lines:
            self._say(line)
        while len(self._said) > MOST_LINE:
            self._say(self._said[:MOST_LINE])
            self._said = self._said[MOST_LINE:]

    def end(self) -> None:
        """What was said is a line now."""
        if self._said:
            said, self._said = self._said, ""
            self._say(said)

    def _say(self, line: str) -> None:
        shown = escaped(line.expandtabs(4))
        echo(click.style(shown, dim=True) if self._thought else shown)

    def call(self, call: ToolCall, *, edits: bool) -> None:
        """What it is, on what; an edit with its first lines, a failure with what is said of it."""
        self.end()
        for line in _call_lines(call, edits=edits):
            echo(line)
        if call.status == "failed" and call.text:
            echo(f"  {escaped(call.text.splitlines()[0])[:MOST_ROW]}")

    def plan(self, entries: Sequence[PlanEntry]) -> None:
        """One line each."""
        self.end()
        for entry in entries[:20]:
            echo(f"  {'x' if entry.status == 'completed' else '-'} {escaped(entry.content)[:200]}")

    def note(self, text: str) -> None:
        """On stderr."""
        self.end()
        echo(click.style(f"[{text}]", fg="yellow"), err=True)

    async def ask(self, call: ToolCall, options: Sequence[Option], why: str) -> str | None:
        """The person's choice; None where there is no terminal, or it is closed."""
        self.end()
        try:
            fd = os.open(self._terminal, os.O_RDWR | os.O_NOCTTY)
        except OSError:
            return None
        try:
            _show(fd, ["", f"{_name(call)} asks for permission ({escaped(why)}):", *_call_lines(call, edits=True)])
            _show(fd, [f"  {number} {escaped(option.name)[:100]}" for number, option in enumerate(options, 1)])
            while True:
                _show(fd, [f"Which one (1 to {len(options)})?"])
                await anyio.wait_readable(fd)
                typed = os.read(fd, 1000)
                if not typed:
                    return None
                number = typed.decode("utf-8", "replace").strip()
                if number.isdecimal() and 1 <= int(number) <= len(options):
                    return options[int(number) - 1].option_id
        finally:
            os.close(fd)


def _name(call: ToolCall) -> str:
    return escaped(call.title or call.kind or "a tool call")[:200]


def _call_lines(call: ToolCall, *, edits: bool) -> Iterator[str]:
    state = _STATES.get(call.status or "", "")
    paths = ", ".join(escaped(path) for path in call.paths[:5])
    yield click.style("> ", fg="cyan") + " ".join(part for part in (_name(call), paths, state) if part)
    yield from (f"  $ {escaped(line)}" for line in call.command.splitlines())
    for edit in call.diffs[:5] if edits else ():
        rows = list(_diff_rows((edit.old_text or "").splitlines(), edit.new_text.splitlines()))
        yield from rows[:MOST_DIFF_LINES]
        if len(rows) > MOST_DIFF_LINES:
            yield f"  … {plural(len(rows) - MOST_DIFF_LINES, 'line')} more"


def _diff_rows(old: list[str], new: list[str]) -> Iterator[str]:
    for hunk in diff(old, new):
        for line in old[hunk.old_start : hunk.old_end]:
            yield click.style(f"  - {escaped(line.expandtabs(4))[:MOST_ROW]}", fg="red")
        for line in new[hunk.new_start : hunk.new_end]:
            yield click.style(f"  + {escaped(line.expandtabs(4))[:MOST_ROW]}", fg="green")


def _show(fd: int, lines: Sequence[str]) -> None:
    os.write(fd, "".join(f"{click.unstyle(line)}\n" for line in lines).encode())
