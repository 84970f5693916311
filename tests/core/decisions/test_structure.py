"""Given what both sides made of a file that parses: what becomes of a change that fits by its lines."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from orchestrator.core.decisions import rebase, structure
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts, Need, Outcome
from orchestrator.core.errors import ChangesOverlap, SymbolNotFound
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.text.locate import Replacement
from orchestrator.core.text.locate_symbol import SymbolChange
from orchestrator.core.text.symbols import Outline, Symbol
from tests.core.decisions.fixtures import facts, new_data

PATH = WorkspacePath("a.py")
BASE = "def f():\n    a = 1\n    b = 2\n    c = 3\n    d = 4\n    return a\n\n\ndef g():\n    return 2\n"


def outline(text: str, errors: int = 0) -> Outline:
    """As the grammar would have it, of texts like BASE."""
    lines = text.splitlines()
    starts = [at for at, line in enumerate(lines, 1) if line.startswith("def ")]
    symbols = []
    for start, following in zip(starts, [*starts[1:], len(lines) + 1], strict=True):
        end = max(at for at in range(start, following) if lines[at - 1].strip())
        symbols.append(Symbol(lines[start - 1][4:5], "function", start, end))
    return Outline("python", tuple(symbols), errors)


def decide(changes: Sequence[structure.Change], here: Facts, *, broken: str = "never") -> Outcome:
    """As the engine does it; a text that holds `broken` has one error."""
    while isinstance(outcome := rebase.edit(changes, here), Need) and outcome.outlines:
        made: dict[Digest, Outline | None] = {
            source.digest: outline(source.data.decode(), errors=int(broken in source.data.decode()))
            for source in outcome.outlines
        }
        here = msgspec.structs.replace(here, outlines={**here.outlines, **made})
    return outcome


def test_a_merge_of_clean_sides_that_does_not_parse_is_a_conflict() -> None:
    now = BASE.replace("a = 1", "a = (1,")
    outcome = decide([Replacement("d = 4", "d = 5)")], facts(now, base=BASE, path=PATH), broken="d = 5)\n    return a")
    assert isinstance(outcome, Apply), "what the proposal brings along is its author's own"
    both = "a = (1,\n    b = 2\n    c = 3\n    d = 5)"
    outcome = decide([Replacement("d = 4", "d = 5)")], facts(now, base=BASE, path=PATH), broken=both)
    assert isinstance(outcome, ConflictOutcome)
    assert "parse" in outcome.why
    assert outcome.proposed == BASE.replace("d = 4", "d = 5)").encode()
    region = outcome.regions[0]
    assert (region.base.start, region.base.length, region.current.length, region.proposed.length) == (1, 4, 4, 4)


@pytest.mark.parametrize(
    ("path", "broken"),
    [
        pytest.param("a.txt", "a = 9", id="no grammar"),
        pytest.param("a.py", "def g", id="both sides were broken already"),
    ],
)
def test_what_is_not_held_to_parse(path: str, broken: str) -> None:
    here = facts(BASE.replace("a = 1", "a = 9"), base=BASE, path=WorkspacePath(path))
    assert isinstance(decide([Replacement("d = 4", "d = 5")], here, broken=broken), Apply)


def test_on_its_own_base_nothing_is_parsed() -> None:
    assert isinstance(rebase.edit([Replacement("d = 4", "d = 5")], facts(BASE, base=BASE, path=PATH)), Apply)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        pytest.param(("d = 4", "d = 5"), ("f",), id="the same function"),
        pytest.param(("return 2", "return 3"), (), id="another function"),
    ],
)
def test_a_symbol_that_others_changed_too_is_flagged(change: tuple[str, str], names: tuple[str, ...]) -> None:
    here = facts(BASE.replace("a = 1", "a = 9"), base=BASE, path=PATH)
    outcome = decide([Replacement(*change)], here)
    assert isinstance(outcome, Apply)
    assert outcome.fit.rung == "shifted"
    assert outcome.fit.same_symbol == names
    assert len(outcome.fit.warnings) == len(names)


def test_ones_own_changes_are_not_flagged() -> None:
    here = msgspec.structs.replace(facts(BASE.replace("a = 1", "a = 9"), base=BASE, path=PATH), only_own_changes=True)
    outcome = decide([Replacement("d = 4", "d = 5")], here)
    assert isinstance(outcome, Apply)
    assert outcome.fit.same_symbol == ()


def test_symbols_and_passages_go_together() -> None:
    changes: list[structure.Change] = [SymbolChange("g", "def g():\n    return 7\n"), Replacement("a = 1", "a = 8")]
    outcome = decide(changes, facts(BASE, path=PATH))
    assert isinstance(outcome, Apply)
    assert new_data(outcome) == BASE.replace("return 2", "return 7").replace("a = 1", "a = 8").encode()
    with pytest.raises(ChangesOverlap):
        decide([SymbolChange("f", "def f(): ...\n"), Replacement("a = 1", "a = 8")], facts(BASE, path=PATH))


def test_a_symbol_is_found_in_the_base_and_carried_onto_the_present() -> None:
    now = "import os\n\n" + BASE
    outcome = decide([SymbolChange("g", "def g():\n    return 7\n")], facts(now, base=BASE, path=PATH))
    assert isinstance(outcome, Apply)
    assert outcome.fit.rung == "shifted"
    assert new_data(outcome) == now.replace("return 2", "return 7").encode()


def test_a_symbol_that_only_the_present_has_is_found_there_unless_the_base_is_named() -> None:
    now = BASE + "\n\ndef h():\n    pass\n"
    change = SymbolChange("h", "def h():\n    return 1\n")
    outcome = decide([change], facts(now, base=BASE, path=PATH))
    assert isinstance(outcome, Apply)
    assert new_data(outcome) == now.replace("pass", "return 1").encode()
    with pytest.raises(SymbolNotFound):
        decide([change], facts(now, base=BASE, path=PATH, implied=False))
