"""Trees, and what became of them, as people read it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from orchestrator.api import results as r
from orchestrator.api import time_travel as t
from orchestrator.clients.render import diff_lines, table
from orchestrator.core.errors import escaped

_WHY = {
    "policy": "policy keeps its lines from you",
    "not_kept": "its content was not kept",
    "too_large": "its diff is too large for one answer",
}


def tree_diff(diff: r.Diff) -> Iterator[str]:
    """The patch, then what it can't say, then the sum."""
    yield from diff_lines(diff.diff)
    yield from notes(diff)
    yield f"{diff.total_files} files differ: {diff.added} lines added, {diff.removed} removed"


def notes(diff: r.Diff) -> Iterator[str]:
    """What the patch leaves out."""
    for file in diff.files:
        if file.left_out is not None:
            yield f"{escaped(file.path)} ({file.status}): {_WHY[file.left_out]}" + (
                f": {escaped(file.next)}" if file.next else ""
            )
        elif file.mode_before and file.mode_after:
            yield f"{escaped(file.path)}: mode {file.mode_before} became {file.mode_after}"
    if diff.unlisted:
        yield f"{diff.unlisted} more differ whose names policy keeps from you"


def replayed(result: t.Replayed) -> Iterator[str]:
    """What was written, and each file that was not."""
    mark = click.style("ok", fg="green") if result.complete else click.style("incomplete", fg="red")
    yield f"{mark}: {result.files} files of {result.at}, {result.bytes} bytes, in {escaped(result.into)}"
    yield from table((f"  {item.path}", item.reason, item.message) for item in result.left_out)
    if result.unlisted:
        yield f"  {result.unlisted} more whose names policy keeps from you"


def replay_report(report: t.ReplayReport) -> Iterator[str]:
    """Whether the disk is what the journal says, and where it is not."""
    mark = click.style("ok", fg="green") if report.ok else click.style("not ok", fg="red")
    yield f"{mark}: {report.events} events replayed into {report.files} files and compared with the disk"
    yield from table(
        (f"  {d.path}", d.kind, f"journal {d.journal or 'absent'}", f"disk {d.disk or 'absent'}")
        for d in report.differences
    )
    yield from (f"  not checked, its content was never hashed: {escaped(path)}" for path in report.unchecked)
