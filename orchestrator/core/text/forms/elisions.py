"""Lines that stand for others ("# ... existing code ...") in what edits write; they delete what they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.text.forms.rows import left_out
from orchestrator.core.text.locate import LineReplacement, Replacement
from orchestrator.core.text.locate_symbol import SymbolChange

Change = Replacement | LineReplacement | SymbolChange

_HINT = "Write out every line; to keep lines, leave them out of what is replaced, and send several short changes."


def refuse_elided(changes: Sequence[Change], present: Sequence[str]) -> None:
    """Refuse changes with such a line, unless the file, whose lines are given, holds it. Raises ParameterInvalid."""
    found = list(_elided(changes))
    known = {line.strip() for line in present} if found else set()
    for at, name, line in found:
        if line not in known:
            why = f"has {line[:60]!r}, which stands for lines that were left out (change {at})"
            raise ParameterInvalid(name, why, hint=_HINT)


def _elided(changes: Sequence[Change]) -> Iterator[tuple[int, str, str]]:
    """The change, from 1, its parameter and the line."""
    for at, change in enumerate(changes, 1):
        name, text = ("content", change.content) if isinstance(change, SymbolChange) else ("replace", change.replace)
        yield from ((at, name, line.strip()) for line in text.splitlines() if left_out(line))
