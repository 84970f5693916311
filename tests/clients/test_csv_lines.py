"""Cells that no spreadsheet runs."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from orchestrator.clients.cli.journal import CSV_COLUMNS, csv_lines


@pytest.mark.parametrize(("agent", "shown"), [
    (None, ""),
    ("plain", "plain"),
    ("=1+1", "'=1+1"),
    ("+1", "'+1"),
    ("-1", "'-1"),
    ("@x", "'@x"),
    ("\tx", "'\tx"),
    ("a\nb", "a\nb"),
    ("a\u2028b\x85", "a\u2028b\x85"),
    (12, "12"),
    ({"a": "=1"}, '{"a":"=1"}'),
    (-1, "'-1"),
])  # fmt: skip
def test_cell(agent: Any, shown: str) -> None:
    line = json.dumps({"seq": "@7", "at": 0, "kind": "k", "stream": "s", "agent": agent}, ensure_ascii=False)
    head, row = csv.reader(io.StringIO(csv_lines(line, header=True), newline=""))
    assert tuple(head) == CSV_COLUMNS
    assert dict(zip(head, row, strict=True))["agent"] == shown
    assert row[0] == "7"


def test_only_the_first_page_has_a_header() -> None:
    assert csv_lines("", header=False) == ""
