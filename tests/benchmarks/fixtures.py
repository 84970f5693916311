"""The measured file: 20,000 lines of the standard library's own source."""

from __future__ import annotations

import random
import sysconfig
from collections.abc import Sequence
from pathlib import Path

LINES = 20_000
MIDDLE = 10_000


def python_text(count: int = LINES) -> str:
    """The first lines of the top-level modules, in the order of their names."""
    lines: list[str] = []
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        lines += path.read_text(encoding="utf-8").splitlines()
        if len(lines) >= count:
            break
    return "\n".join(lines[:count]) + "\n"


def unique_line(text: str) -> str:
    """A comment in the middle that stands in the text once: where the first edit goes."""
    lines = text.splitlines()
    return next(line for line in lines[MIDDLE:] if line.startswith("# ") and text.count(line) == 1)


def places(seed: int = 50) -> list[int]:
    """Fifty lines, each in a stretch of its own, so that two sides who take every other one never touch."""
    dice = random.Random(seed)
    return [i * 400 + 50 + dice.randrange(300) for i in range(50)]


def edited(lines: Sequence[str], at: Sequence[int], mark: str) -> list[str]:
    """The lines with those places changed; every fifth is deleted, every seventh follows a new line."""
    result = list(lines)
    for i, place in enumerate(sorted(at, reverse=True)):
        if i % 5 == 4:
            del result[place]
        elif i % 7 == 6:
            result.insert(place, f"    new_{mark}_{i} = {place}")
        else:
            result[place] = f"    changed_{mark}_{i} = {place}"
    return result
