"""How many line ends a match of a regular expression may go over: what is read behind its first line depends on it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

MOST_BREAKS = 1000
"""More are any number."""

_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)"
    r"|\(\?(?P<flags>[imsU-]+)\)"
    r"|(?P<open>\((?:\?(?:P?<\w+>|(?P<own>[imsU-]*):))?)"
    r"|(?P<close>\))"
    r"|(?P<repeat>[*+?]|\{\d+(?:,(?P<most>\d*))?\})\??"
    r"|(?P<leaf>\\(?:x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|[0-7]{1,3}|[pP](?:\{\^?\w+\}|.)|.)"
    r"|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|.)",
    re.DOTALL,
)


def most_line_breaks(pattern: str, matches_break: Callable[[str], bool]) -> int | None:
    """An upper bound of the line ends in one match of a pattern that RE2 takes; None: any number.

    `matches_break`: whether a class, an escape or a dot, with the flags before it, fits a line end.
    """
    flags = "(?s)" if any("s" in (token["flags"] or token["own"] or "") for token in _TOKEN.finditer(pattern)) else ""
    total, last, outer = 0.0, 0.0, list[float]()
    for token in _TOKEN.finditer(pattern):
        if token["open"]:
            outer.append(total)
            total = last = 0.0
        elif token["close"]:
            last = total
            total += outer.pop()
        elif repeat := token["repeat"]:
            again = last * (_times(repeat, token["most"]) - 1) if last else 0.0
            total, last = total + again, last + again
        elif leaf := token["leaf"]:
            special = len(leaf) > 1 or leaf == "."
            last = float(matches_break(flags + leaf) if special else leaf == "\n")
            total += last
        else:
            quoted = token["quoted"] or ""
            last = float(quoted.endswith("\n"))
            total += quoted.count("\n")
    return int(total) if total <= MOST_BREAKS else None


def _times(repeat: str, most: str | None) -> float:
    if repeat in ("*", "+") or most == "":
        return math.inf
    return 1.0 if repeat == "?" else max(1.0, float(most or repeat[1:-1]))
