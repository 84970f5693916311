"""What the scan keeps where there is no room for all."""

from __future__ import annotations

import pytest

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.kept_contents import ALWAYS_BYTES, Candidate, budget, worth_keeping
from orchestrator.core.policy.rules import External


def file(path: str, size: int = 10, mtime_ns: int = 0) -> Candidate:
    return Candidate(WorkspacePath(path), size, mtime_ns)


@pytest.mark.parametrize(
    ("files", "room", "kept"),
    [
        pytest.param([file("b.py"), file("a.py")], 20, ["a.py", "b.py"], id="all"),
        pytest.param([file("a.py"), file("b.py", mtime_ns=5)], 10, ["b.py"], id="the newest"),
        pytest.param([file("photo.raw", mtime_ns=9), file("a.md")], 10, ["a.md"], id="what people write"),
        pytest.param(
            [file("dist/a.js", mtime_ns=9), file("photo.raw")], 10, ["photo.raw"], id="what was made goes first"
        ),
        pytest.param([file("a.py", 30, 9), file("b.py", 5)], 10, ["b.py"], id="a smaller one still fits"),
        pytest.param([file("empty.py", 0)], 0, ["empty.py"], id="no room, and none needed"),
        pytest.param([], 10, [], id="nothing"),
    ],
)
def test_worth_keeping(files: list[Candidate], room: int, kept: list[str]) -> None:
    assert [item.path for item in worth_keeping(files, room)] == kept


@pytest.mark.parametrize(
    ("external", "workspace_bytes", "most"),
    [
        pytest.param(External(), 10, ALWAYS_BYTES, id="a small workspace as a whole"),
        pytest.param(External(), 800_000_000, 400_000_000, id="half of a large one"),
        pytest.param(External(), 10**12, 1024**3, id="no more than the total"),
        pytest.param(External(keep_percent=10), 10**10, 10**9, id="a part of it"),
        pytest.param(External(keep_total_bytes=5), 10**10, 5, id="nearly nothing"),
    ],
)
def test_budget(external: External, workspace_bytes: int, most: int) -> None:
    assert budget(external, workspace_bytes) == most
