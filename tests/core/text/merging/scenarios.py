"""Merges, written briefly: texts with their outlines."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from textwrap import dedent

from orchestrator.core.content import AUTOMATIC_RULES, AutomaticRule, ThreeWay
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.merge import LineMerge, MergeConflict
from orchestrator.core.text.merging.automatic_merge import AutomaticMerge, merge_automatically
from orchestrator.core.text.merging.rules import NO_OUTLINES
from orchestrator.core.text.symbols import Outline, Symbol

PYTHON = WorkspacePath("a.py")

_DEFINITION = re.compile(r"(?P<indent> *)(?P<kind>def|class) (?P<name>\w+)")


def lines(text: str) -> list[str]:
    """The lines of an indented text."""
    return dedent(text).strip("\n").split("\n") if text.strip() else []


def outline(text: list[str]) -> Outline:
    """What a Python text defines, by its indentation."""
    return Outline("python", tuple(_symbols(text, 0, len(text), "")))


def _symbols(text: list[str], start: int, end: int, indent: str) -> Iterable[Symbol]:
    at = start
    while at < end:
        match = _DEFINITION.match(text[at])
        if not match or match["indent"] != indent:
            at += 1
            continue
        stop = at + 1
        while stop < end and (not text[stop].strip() or text[stop].startswith(indent + " ")):
            stop += 1
        last = stop
        while not text[last - 1].strip():
            last -= 1
        first = at - 1 if at > start and text[at - 1].startswith(f"{indent}@") else at
        kind = "class" if match["kind"] == "class" else "method" if indent else "function"
        children = tuple(_symbols(text, at + 1, last, indent + "    "))
        yield Symbol(match["name"], kind, first + 1, last, children)
        at = stop


def merging(
    base: str,
    current: str,
    proposed: str,
    *,
    path: WorkspacePath = PYTHON,
    rules: Collection[AutomaticRule] = AUTOMATIC_RULES,
    outlined: bool = True,
) -> AutomaticMerge | MergeConflict:
    """What becomes of three texts."""
    one, two, three = (lines(side) for side in (base, current, proposed))
    outlines = ThreeWay(one, two, three).map(outline) if outlined and path == PYTHON else NO_OUTLINES
    return merge_automatically(LineMerge(one, two, three), outlines, path=path, rules=rules)


def check(rule: str, base: str, current: str, proposed: str, merged: str | None, path: str = "a.py") -> None:
    """`merged` None: a conflict, either way round; else both ways round merge by the rule."""
    result = merging(base, current, proposed, path=WorkspacePath(path))
    turned = merging(base, proposed, current, path=WorkspacePath(path))
    if merged is None:
        assert isinstance(result, MergeConflict), result
        assert isinstance(turned, MergeConflict), turned
        return
    assert isinstance(result, AutomaticMerge), result
    assert list(result.lines) == lines(merged)
    assert [region.rule for region in result.report if region.rule != "clean"] == [rule]
    assert isinstance(turned, AutomaticMerge)
    assert sorted(turned.lines) == sorted(result.lines)
