"""Entries of the journal as text for other programs."""

from __future__ import annotations

import csv
import io
from typing import Any

import msgspec

from orchestrator.api import results as r
from orchestrator.core.timestamps import written

_ENCODER = msgspec.json.Encoder()

COLUMNS = (
    *("seq", "time", "kind", "outcome", "agent", "session", "owner", "operation", "stream", "paths"),
    *("arguments", "took_us", "tokens", "approval", "cause", "changes", "event"),
)

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""With these at its begin, a cell is a formula to the programs that people open such files with."""


CSV_HEADER = ",".join(COLUMNS) + "\r\n"
"""What stands before the first line."""


def json_line(entry: r.JournalEntry) -> str:
    """An entry as `journal_query` gives it, on a line."""
    return _ENCODER.encode(entry).decode() + "\n"


def csv_line(entry: r.JournalEntry) -> str:
    """RFC 4180; positions as bare numbers, lists and records as JSON in their cell."""
    told = io.StringIO()
    csv.writer(told).writerow([cell(value) for value in _values(entry)])
    return told.getvalue()


def cell(value: Any) -> str:
    """A value as a cell that no spreadsheet runs."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else _ENCODER.encode(value).decode()
    return f"'{text}" if text.startswith(_FORMULA) else text


def _values(entry: r.JournalEntry) -> tuple[Any, ...]:
    return (
        *(_number(entry.seq), written(entry.at), entry.kind, entry.outcome, entry.agent, entry.session, entry.owner),
        *(entry.operation, entry.stream, " ".join(path.path for path in entry.paths), entry.arguments, entry.took_us),
        *(entry.tokens, _number(entry.approval), _number(entry.cause), entry.paths or None, entry.event),
    )


def _number(position: str | None) -> str | None:
    return position.removeprefix("@") if position is not None else None
