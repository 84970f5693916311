"""Whether an edit that an agent reports is on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.agents.claims import missing
from orchestrator.agents.wire import Content


@pytest.mark.parametrize(
    ("said", "is_missing"),
    [
        pytest.param("all:\n\tpytest -q\n", False, id="the text itself"),
        pytest.param("all:\r\n\tpytest -q", False, id="other line ends"),
        pytest.param("all:\n  pytest -q", False, id="a tab shown as two blanks"),
        pytest.param("all:\n\tpytest -x\n", True, id="another text"),
        pytest.param(" \n", False, id="no text to tell by"),
    ],
)
def test_missing(tmp_path: Path, said: str, is_missing: bool) -> None:
    (tmp_path / "Makefile").write_text("all:\n\tpytest -q\n")
    assert missing(str(tmp_path), "Makefile", Content(type="diff", path="x", new_text=said)) is is_missing
