"""docs/operations.md, typed into a terminal from the first command to the last: what it shows is what comes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.docs.accidents import GIVEN
from tests.docs.documents import ROOT, blocks
from tests.docs.guide import Given, Operator, Step, story
from tests.docs.matching import Versions

GUIDE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
STORY = list(story(GUIDE))
STEPS = [item for item in STORY if isinstance(item, Step)]

NOT_TYPED = {
    "orchestrator cache": "how much it forgets depends on how far the daemon's scan came",
    "orchestrator conflicts show": "the guide's story comes to no conflict; README.md's does",
    "orchestrator conflicts resolve": "the guide's story comes to no conflict; README.md's does",
}
"""What the guide's sentences name and the story does not run, and why."""


@pytest.mark.soak
@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
def test_every_command_of_the_guide(base: Path) -> None:
    versions, operator = Versions(), Operator(base)
    try:
        for item in STORY:
            if isinstance(item, Given):
                GIVEN[item.name](operator)
                continue
            step = item._replace(command=versions.real(item.command))
            real, code = operator.run(step)
            wrong = versions.match_lines(step.reported, real)
            came = f"\nit came, with exit code {code}:\n" + "\n".join(real)
            assert wrong is None, f"$ {step.command}\nthe guide says: {wrong}{came}"
            assert code == step.code, f"$ {step.command}\nthe guide says: exit code {step.code}{came}"
    finally:
        operator.close()


def test_every_accident_of_the_test_is_reported_in_the_guide() -> None:
    assert [item.name for item in STORY if isinstance(item, Given)] == list(GIVEN)


def test_no_command_of_the_guide_is_left_out_of_the_story() -> None:
    """Commands stand in console blocks, each of which the story types; what sentences name was typed in one."""
    assert {block.info for block in blocks(GUIDE, "")} == {"console"}
    assert len(STEPS) == len(re.findall(r"^\$ ", GUIDE, re.MULTILINE))
    typed = {path for step in STEPS for path in _paths(step.command)}
    sentences = re.sub(r"^```.*?^```$", "", GUIDE, flags=re.MULTILINE | re.DOTALL)
    named = {_path(command) for command in re.findall(r"`(orchestrator [^`]+)`", sentences)}
    assert named - typed == set(NOT_TYPED)


def _paths(command: str) -> list[str]:
    return [_path(part) for part in command.split(" | ") if part.startswith("orchestrator ")]


def _path(command: str) -> str:
    """A command without what it is given: `orchestrator journal verify`."""
    words = command.split()
    length = 3 if words[1] in ("journal", "approvals", "conflicts", "lease") else 2
    return " ".join(words[:length])
