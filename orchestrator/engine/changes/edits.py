"""What one entry of `changes` asks for: which form it has, and what the policy adds to it."""

from __future__ import annotations

from orchestrator.api import parameters as p
from orchestrator.api.parameters import CHANGE_FORMS
from orchestrator.core.decisions.structure import Change
from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.policy.rules import EditRules
from orchestrator.core.text.locate import LineReplacement, Replacement
from orchestrator.core.text.locate_symbol import SymbolChange


def change_of(change: p.Replacement, at: int, rules: EditRules) -> Change:
    """The change, `at` counted from 1. Raises ParameterInvalid where it is of no form, or of two."""
    numbered = {"start": change.start, "end": change.end, "expect": change.expect}
    given = [name for name, value in numbered.items() if value is not None]
    if change.symbol is not None or change.content is not None:
        return _of_symbol(change, at, [*given, *(["search"] if change.search is not None else [])])
    if change.search is not None and given:
        raise ParameterInvalid("changes", f"change {at} has both search and {given[0]}", hint=CHANGE_FORMS)
    if change.replace is None:
        raise ParameterInvalid("replace", f"is required (change {at})", hint=f"'' removes the passage. {CHANGE_FORMS}")
    if change.search is not None:
        fuzzy = rules.fuzzy if change.fuzzy is None else change.fuzzy
        return Replacement(change.search, change.replace, change.expected_count, fuzzy)
    if not given:
        raise ParameterInvalid("search", f"is required (change {at})", hint=CHANGE_FORMS)
    if change.start is None or change.end is None or change.expect is None:
        missing = next(name for name, value in numbered.items() if value is None)
        raise ParameterInvalid(missing, f"is required beside {given[0]} (change {at})", hint=CHANGE_FORMS)
    if change.fuzzy is not None or change.expected_count != 1:
        raise ParameterInvalid("changes", f"change {at}: fuzzy and expected_count go with search", hint=CHANGE_FORMS)
    return LineReplacement(change.start, change.end, change.expect, change.replace)


def _of_symbol(change: p.Replacement, at: int, given: list[str]) -> SymbolChange:
    if change.symbol is None or change.content is None:
        raise ParameterInvalid("changes", f"change {at}: symbol and content go together", hint=CHANGE_FORMS)
    if given or change.replace is not None or change.fuzzy is not None or change.expected_count != 1:
        raise ParameterInvalid("changes", f"change {at} has parts of two forms", hint=CHANGE_FORMS)
    return SymbolChange(change.symbol, change.content)
