"""The form {symbol, content} of a change: told from the others, and checked."""

from __future__ import annotations

from orchestrator.api import parameters as p
from orchestrator.core.decisions.structure import Change
from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.text.locate import Replacement
from orchestrator.core.text.locate_symbol import SymbolChange


def change_of(given: p.Replacement, number: int) -> Change:
    """What a change asks for. `number` is 1-based. Raises ParameterInvalid where it is neither form, or both."""
    if given.symbol is not None or given.content is not None:
        if given.symbol is None or given.content is None:
            raise _unformed(number, "symbol and content go together")
        if given.search is not None or given.replace is not None:
            raise _unformed(number, "it has parts of both forms")
        return SymbolChange(given.symbol, given.content)
    if given.search is None or given.replace is None:
        raise _unformed(number, "search and replace go together")
    return Replacement(given.search, given.replace, given.expected_count)


def _unformed(number: int, why: str) -> ParameterInvalid:
    return ParameterInvalid(
        "changes", f"number {number}: {why}", hint="Send {search, replace} or {symbol, content} for each change."
    )
