"""Refuses edits whose text has a placeholder for left-out lines ("# ... existing code ...")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.text.forms.left_out import left_out, left_out_of
from orchestrator.core.text.locate import LineReplacement, Replacement
from orchestrator.core.text.locate_symbol import SymbolChange

Change = Replacement | LineReplacement | SymbolChange

_HINT = "Write out every line; to keep lines, leave them out of what is replaced, and send several short changes."
_HINT_WHOLE = "Send the whole content, every line of it; or change only some lines with edit_file."


def refuse_elided(changes: Sequence[Change], present: Sequence[str], path: str) -> None:
    """Refuse changes with such a line, unless the file, whose lines are given, holds it. Raises ParameterInvalid."""
    found = list(_elided(changes, path))
    known = {line.strip() for line in present} if found else set()
    for at, name, line in found:
        if line not in known:
            why = f"has {line[:60]!r}, a placeholder for lines that were left out (change {at})"
            raise ParameterInvalid(name, why, hint=_HINT)


def refuse_elided_whole(name: str, content: str, present: Sequence[str], path: str) -> None:
    """The same of a whole content that takes the place of these lines; `name` is its parameter's."""
    lines = [line.strip() for line in content.splitlines()]
    known = {line.strip() for line in present}
    if known <= set(lines):
        return  # no line goes
    line = next((line for line in lines if line not in known and left_out_of(line, path)), None)
    if line is not None:
        raise ParameterInvalid(name, f"has {line[:60]!r}, a placeholder for lines that were left out", hint=_HINT_WHOLE)


def _elided(changes: Sequence[Change], path: str) -> Iterator[tuple[int, str, str]]:
    """The change, from 1, its parameter and the line."""
    for at, change in enumerate(changes, 1):
        name, text = ("content", change.content) if isinstance(change, SymbolChange) else ("replace", change.replace)
        quoted = _lines(change.search) if isinstance(change, Replacement) else Counter[str]()
        replaces = not isinstance(change, Replacement) or bool(quoted - _lines(text))
        yield from (
            (at, name, line.strip())
            for line in text.splitlines()
            if left_out(line) or (replaces and line.strip() not in quoted and left_out_of(line, path))
        )


def _lines(text: str) -> Counter[str]:
    return Counter(filter(None, map(str.strip, text.splitlines())))
