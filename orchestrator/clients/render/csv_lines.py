"""Entries of the journal as CSV, made of their JSON Lines."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from orchestrator.core.timestamps import written

COLUMNS = (
    *("seq", "time", "kind", "outcome", "agent", "session", "owner", "operation", "stream", "paths"),
    *("arguments", "took_us", "tokens", "approval", "cause", "changes", "event"),
)

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins with one of these is a formula to the programs that people open such files with."""


def csv_lines(entries: str, *, header: bool) -> str:
    """RFC 4180: positions as bare numbers, lists and records as JSON in their cell, no cell a formula."""
    text = io.StringIO()
    rows = csv.writer(text)
    if header:
        rows.writerow(COLUMNS)
    for line in entries.splitlines():
        entry: dict[str, Any] = json.loads(line)
        changes = entry.get("paths", [])
        for position in ("seq", "approval", "cause"):
            entry[position] = (entry.get(position) or "").removeprefix("@")
        entry |= {"time": written(entry["at"]), "paths": " ".join(one["path"] for one in changes), "changes": changes}
        rows.writerow([_cell(entry.get(column)) for column in COLUMNS])
    return text.getvalue()


def _cell(value: Any) -> str:
    if value is None or value == []:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"'{text}" if text.startswith(_FORMULA) else text
