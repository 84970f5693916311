"""Lines for a terminal. Control and direction characters of files and agents come out visible."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence

import click

from orchestrator.core.errors import escaped

MOST_NAMES = 6
"""Of one event in its line; `--json` has all."""


def table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Rows with their columns aligned, without columns that are empty; the last one runs free."""
    cells = [[escaped(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width).rstrip()


def facts(*pairs: tuple[str, str | None]) -> Iterator[str]:
    """Names and values, aligned; empty values are left out."""
    return table((f"{name}:", value) for name, value in pairs if value)


def content(text: str) -> Iterator[str]:
    """File content, line by line; tabs stay."""
    for line in text.removesuffix("\n").split("\n") if text else ():
        yield "\t".join(escaped(part) for part in line.removesuffix("\r").split("\t"))


def numbered(text: str, start: int) -> Iterator[str]:
    """File content with line numbers."""
    for number, line in enumerate(content(text), max(start, 1)):
        yield click.style(f"{number:>6}  ", dim=True) + line


def diff_lines(diff: str) -> Iterator[str]:
    """A unified diff, coloured."""
    for line in content(diff):
        if line.startswith(("+++", "---")):
            yield click.style(line, bold=True)
        else:
            colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
            yield click.style(line, fg=colour) if colour else line


def some(names: Sequence[str]) -> str:
    """Names in one cell; of many the first, and how many more there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def when(at_ms: int | None) -> str:
    """A time as the person's clock shows it; empty for none."""
    if at_ms is None:
        return ""
    return datetime.datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def go_on(shown: int, total: int | None, cursor: str | None) -> Iterator[str]:
    """How to see the rest of a list, if it goes on."""
    if cursor is not None:
        yield f"… {shown}{f' of {total}' if total is not None else ''}; go on with --cursor {cursor}"
