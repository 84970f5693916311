"""Passages of the base whose lines others moved: a change goes where its passage stands, or it waits."""

from __future__ import annotations

from difflib import unified_diff

import msgspec
import pytest

from orchestrator.core.decisions import rebase
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts, Need, Outcome
from orchestrator.core.decisions.patches import Patch
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.rules import EditRules
from orchestrator.core.text.forms.recognise import parse
from orchestrator.core.text.locate import Replacement
from orchestrator.core.text.outline import plain_outline
from orchestrator.core.text.symbols import language_of
from orchestrator.workspace.local_parser import outlined
from tests.core.decisions.fixtures import facts, new_data


def rows(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def go(name: str, *body: str) -> str:
    return rows(f"func {name}(x int) {{", "\tfor {", *(f"\t\t{line}" for line in body), "\t}", "}", "")


def python(name: str, *body: str) -> str:
    return rows(f"def {name}(x):", "    while x:", *(f"        {line}" for line in body), "")


def item(name: str, *steps: str) -> str:
    return rows(f"- name: {name}", "  steps:", *(f"    - {step}" for step in steps))


def section(name: str, *items: str) -> str:
    return rows(f"## {name}", "", *(f"- {line}" for line in items), "")


def decided(change: Replacement | str, here: Facts) -> Outcome:
    """The decision, with the outlines that it asks for; a change in words is the text that a diff leads to."""
    outcome: Outcome | Need
    for _ in range(4):
        if isinstance(change, str):
            assert here.base is not None
            content = here.contents[here.base.digest]
            assert isinstance(content, bytes)
            base = content.decode()
            diff = unified_diff(base.splitlines(True), change.splitlines(True), here.path, here.path)
            outcome = Patch.of(here.path, parse("".join(diff)).files[0]).decide({here.path: here})
        else:
            outcome = rebase.edit([change], here)
        if not isinstance(outcome, Need):
            break
        found = dict(here.outlines)
        for source in outcome.outlines:
            language = language_of(here.path)
            text = source.data.decode().split("\n")
            found[source.digest] = outlined(language, source.data, 4.0) if language else plain_outline(text)
        here = msgspec.structs.replace(here, outlines=found)
    return outcome


GO = go("fn0", "x += 1"), go("fn1", "log(x)", "x += 1", "log(x)", "y = x"), go("fn2", "break")
EQUAL = go("fn4", "x += 1", "log(x)"), go("fn5", "x += 1", "log(x)")
PY = python("f0", "y = x", "b()", "log(x)"), python("f1", "b()"), python("f2", "break")
ITEMS = item("a", "x"), item("b", "x")
LISTS = section("a", "x"), section("b", "x")


@pytest.mark.parametrize(("path", "base", "order", "part", "old", "new"), [
    pytest.param("a.go", GO, (1, 0, 2), 0, go("fn0", "x += 1")[:-6], go("fn0", "x += 2")[:-6], id="Go"),
    pytest.param("a.py", PY, (1, 0, 2), 1, PY[1].rstrip() + "\n", python("f1", "b(1)").rstrip() + "\n", id="Python"),
    pytest.param("a.yaml", ITEMS, (1, 0), 0, ITEMS[0], item("a", "y"), id="items"),
    pytest.param("a.go", EQUAL, (1, 0), 0, EQUAL[0], go("fn4", "x += 2", "log(x)"), id="equal bodies, the first"),
    pytest.param("a.go", EQUAL, (1, 0), 1, EQUAL[1], go("fn5", "x += 2", "log(x)"), id="equal bodies, the second"),
    pytest.param("a.md", LISTS, (1, 0), 0, LISTS[0], section("a", "y"), id="sections, the first"),
    pytest.param("a.md", LISTS, (1, 0), 1, LISTS[1], section("b", "x", "y"), id="sections, the second"),
])  # fmt: skip
@pytest.mark.parametrize("whole", [False, True], ids=["by its passage", "by a diff"])
def test_it_goes_to_the_lines_that_it_names_or_waits(
    path: str, base: tuple[str, ...], order: tuple[int, ...], part: int, old: str, new: str, whole: bool
) -> None:
    """Others moved one part behind another."""
    here = facts("".join(base[at] for at in order), base="".join(base), path=WorkspacePath(path))
    here = msgspec.structs.replace(here, edits=EditRules())
    assert old in base[part]
    parts = [text.replace(old, new) if at == part else text for at, text in enumerate(base)]
    outcome = decided("".join(parts) if whole else Replacement(old, new), here)
    if isinstance(outcome, Apply):
        assert new_data(outcome).decode() == "".join(parts[at] for at in order)
    else:
        assert isinstance(outcome, ConflictOutcome)
        assert outcome.regions


def test_no_rule_takes_equal_lines_of_two_functions_for_each_other() -> None:
    """The passage names no function; git sees a conflict there."""
    parts = python("f0", "y = x", "break", "log(x)"), python("f1", "break"), python("f2", "log(x)")
    now = "".join(parts[at] for at in (1, 0, 2))
    here = msgspec.structs.replace(facts(now, base="".join(parts), path=WorkspacePath("a.py")), edits=EditRules())
    outcome = decided(Replacement("    while x:\n        break\n", "    while x:\n        stop()\n"), here)
    assert isinstance(outcome, ConflictOutcome)
