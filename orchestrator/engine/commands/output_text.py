"""A command's output as a caller is shown it: text, without control sequences and without secrets."""

from __future__ import annotations

import re
from typing import NamedTuple

from orchestrator.core.paths import ROOT
from orchestrator.core.shown_text import COVER
from orchestrator.engine.caller import Caller
from orchestrator.engine.redaction import Redaction

CONTROL = re.compile(
    r"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]"
)
"""Colours, movements of the cursor, titles; and control characters other than tab and newline."""

AROUND_BYTES = 16 * 1024
"""Looked at before and behind what is shown: a secret may begin before it and end behind it."""


class Shown(NamedTuple):
    """A part of the output: from which byte to before which, and its text."""

    start: int
    end: int
    text: str


def first_bytes(data: bytes, most: int) -> bytes:
    """As many whole lines as fit, of a longer line a part that ends with a whole character."""
    if len(data) <= most:
        return data
    end = data.rfind(b"\n", 0, most) + 1
    if end == 0:
        end = most
        while end > most - 4 and data[end] & 0xC0 == 0x80:
            end -= 1
    return data[:end]


async def shown(redaction: Redaction, caller: Caller, kept: bytes, at: int, data: bytes, *, start: int) -> Shown:
    """`data`, which begins at byte `at` of what is kept and at byte `start` of the output."""
    end = at + len(data)
    before, behind = kept[max(0, at - AROUND_BYTES) : at], kept[end : end + AROUND_BYTES]
    lines = [_rows(line) for line in (before + data + behind).split(b"\n")]
    hidden = await redaction.of_lines(caller, ROOT, [row for rows in lines for row in rows])
    parts = data.split(b"\n")
    first = before.count(b"\n")
    number = 1 + sum(len(rows) for rows in lines[:first])
    texts = []
    for part, rows in zip(parts, lines[first : first + len(parts)], strict=True):
        shown_rows = [hidden.lines.get(number + i, row) for i, row in enumerate(rows)]
        number += len(rows)
        own = _rows(part)
        if own != rows:  # a part of a line, of which only the whole is known to hold no secret
            shown_rows = [COVER * len(row) for row in own] if shown_rows != rows else own
        texts.append("\n".join(shown_rows))
    return Shown(start, start + len(data), "\n".join(texts))


def _rows(line: bytes) -> list[str]:
    """What a terminal would show of a line, each return beginning a row of its own."""
    text = line.decode("utf-8", "replace").rstrip("\r")
    return [CONTROL.sub("", row) for row in text.split("\r")]
