"""Conflicts to put before reviewers."""

from __future__ import annotations

from orchestrator.api.conflicts import Party
from orchestrator.core.ids import WorkspacePath
from orchestrator.ports.reviewers import ReviewRegion, ReviewRequest

SECRET = "ghp_" + "a1B2c3D4e5" * 4


def conflict(*, secret: bool = False, injected: str = "") -> ReviewRequest:
    """Two regions of one file."""
    return ReviewRequest(
        conflict="@7",
        path=WorkspacePath("src/app.py"),
        regions=(
            ReviewRegion(
                number=1,
                base=("limit = 1",),
                current=("limit = 2", *((f"token = '{SECRET}'",) if secret else ())),
                proposed=("limit = 3", *((injected,) if injected else ())),
                before=("import app",),
                after=("", "def main():"),
            ),
            ReviewRegion(number=2, base=(), current=("    a()",), proposed=("    b()",), before=("def main():",)),
        ),
        proposer=Party(agent="bob", task="raise limits", reason="needed" + (f" {SECRET}" if secret else "")),
        holders=(Party(agent="alice", reason="tuned"),),
    )
