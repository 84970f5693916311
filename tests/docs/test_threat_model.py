"""Each published case that the threat model names has a test here, and it is there."""

from __future__ import annotations

import ast
import re

import pytest

from tests.docs.documents import ROOT

TEXT = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
CASES = TEXT.partition("\n## Published cases")[2].partition("\n## ")[0]
ROWS = [line for line in CASES.splitlines() if line.startswith("|")][2:]
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_there_are_cases() -> None:
    assert len(ROWS) >= 20


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:40])
def test_a_case_names_a_test_that_is_there(row: str) -> None:
    named = _TEST.findall(row.split("|")[-2])
    assert named, "a row without a test"
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert name in there, f"{file} has no {name}"
