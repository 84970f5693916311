"""Notices for a model: a line each, and what changed between markers that content can't forge."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.api.results import Notice
from orchestrator.api.stale_readers import told
from orchestrator.servers.blocks import fenced


def notices_block(notices: Sequence[Notice], mark: Callable[[], str]) -> str:
    """What goes behind a text answer."""
    rows = []
    for notice in notices:
        head = f"[notice: {told(notice)}]"
        tail = "[the diff goes on: read the file]" if notice.diff_truncated else ""
        rows.append(fenced(head, notice.diff, mark(), tail) if notice.diff else head)
    return "\n".join(rows)
