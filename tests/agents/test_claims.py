"""Whether an edit that an agent reports is on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.agents.claims import missing, takes_all
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


@pytest.mark.parametrize(
    ("old", "new", "takes"),
    [
        pytest.param("all:\n\tpytest -q\n", "", True, id="all"),
        pytest.param("all:\n", "", False, id="a passage"),
        pytest.param("all:\n\tpytest -q\n", "x", False, id="another text instead"),
        pytest.param(None, "", False, id="a new file"),
    ],
)
def test_takes_all(tmp_path: Path, old: str | None, new: str, takes: bool) -> None:
    (tmp_path / "Makefile").write_text("all:\n\tpytest -q\n")
    assert takes_all(str(tmp_path), "Makefile", Content(type="diff", path="x", old_text=old, new_text=new)) is takes
    assert not takes_all(str(tmp_path), "absent", Content(type="diff", path="x", old_text="x", new_text=""))
