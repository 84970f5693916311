"""Definitions that one side takes or changes and the other works with: with the real grammars, nothing is settled."""

from __future__ import annotations

import pytest

from orchestrator.core.content import ThreeWay
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.merge import LineMerge, MergeConflict
from orchestrator.core.text.merging.automatic_merge import AutomaticMerge, merge_automatically
from orchestrator.core.text.merging.rules import NEAR_LINES
from orchestrator.core.text.symbols import Outline, language_of
from orchestrator.workspace.local_parser import outlined


def merged(path: str, base: str, current: str, proposed: str) -> AutomaticMerge | MergeConflict:
    """What becomes of three texts, each outlined by its grammar."""
    name = WorkspacePath(path)
    one, two, three = (text.removesuffix("\n").split("\n") for text in (base, current, proposed))
    outlines = ThreeWay(*(outline(name, text) for text in (base, current, proposed)))
    return merge_automatically(LineMerge(one, two, three), outlines, path=name)


def outline(path: WorkspacePath, text: str) -> Outline | None:
    found = outlined(language_of(path) or "text", text.encode(), 4.0)
    assert found is not None
    assert found.parsed
    assert not found.errors
    return found


LOAD = "def load():\n    return 1\n\n\ndef main():\n    load()\n"
FAR = "\n".join(f"# {n}" for n in range(2 * NEAR_LINES))
TAIL = "\n\ndef tail():\n    stop()\n"


@pytest.mark.parametrize(
    ("path", "base", "current", "proposed", "rule"),
    [
        pytest.param(
            "a.py", LOAD, LOAD.replace("load", "read"), f"{LOAD}\n\ndef more():\n    load()\n", None,
            id="renamed with its caller, used in what is added",
        ),
        pytest.param(
            "a.py", f"{LOAD}{FAR}{TAIL}", f"{LOAD.replace('load', 'read')}{FAR}{TAIL}\n\ndef one():\n    pass\n",
            f"{LOAD}{FAR}{TAIL}\n\ndef two():\n    load()\n", None, id="renamed far away, used in what is added",
        ),
        pytest.param(
            "a.py", f"{LOAD}{FAR}{TAIL}", f"{LOAD.replace('load', 'read')}{FAR}{TAIL}\n\ndef one():\n    pass\n",
            f"{LOAD}{FAR}{TAIL}\n\ndef two():\n    pass\n", "additions", id="renamed far away, not used",
        ),
        pytest.param(
            "a.py", TAIL, f"{TAIL}\n\ndef one():\n    pass\n", f"{TAIL}\n\ndef two():\n    one()\n", None,
            id="one added, and used by the other",
        ),
        pytest.param(
            "a.py", TAIL, f"{TAIL.replace('tail', 'last')}\n\ndef one():\n    pass\n",
            f"{TAIL}\n\ndef two():\n    pass\n", None, id="added after what was renamed",
        ),
        pytest.param(
            "a.py", TAIL, f"{TAIL}\n\nclass A:\n    def __init__(self):\n        pass\n",
            f"{TAIL}\n\nclass B:\n    def __init__(self):\n        pass\n", "additions", id="methods of one name",
        ),
        pytest.param("a.yaml", "a: &x 1\n", "a: &x 1\nb: 2\n", "a: &x 1\nc: *x\n", None, id="YAML, an alias"),
        pytest.param("a.yaml", "a: 1\n", "a: 1\nb: 2\n", "a: 1\nc: 3\n", "additions", id="YAML, two keys"),
        pytest.param(
            "a.php", "<?php\nfunction a() {}\n", "<?php\nfunction a() {}\nfunction b() {}\n",
            "<?php\nfunction a() {}\nfunction B() {}\n", None, id="PHP, one name but for its case",
        ),
        pytest.param(
            "a.php", "<?php\nfunction a() {}\n", "<?php\nfunction a() {}\nfunction b() {}\n",
            "<?php\nfunction a() {}\nfunction c() {}\n", "additions", id="PHP, two names",
        ),
    ],
)  # fmt: skip
def test_what_is_independent(path: str, base: str, current: str, proposed: str, rule: str | None) -> None:
    for one, other in ((current, proposed), (proposed, current)):
        result = merged(path, base, one, other)
        if rule is None:
            assert isinstance(result, MergeConflict), result
        else:
            assert isinstance(result, AutomaticMerge), result
            assert rule in [region.rule for region in result.report]
