"""Every state that a crash can leave, by hash of the file and of its temporary file: FAULTS rows 2 to 14."""

from __future__ import annotations

import pytest

from orchestrator.core.change import PathChange
from orchestrator.core.content import digest_of
from orchestrator.core.decisions.recovery_verdict import Keep, RollForward, SwapBack, Undo, Verdict, judge
from orchestrator.core.ids import Digest, WorkspacePath

B, A, N = (digest_of(name) for name in (b"before", b"after", b"neither"))
X = None
PATH = WorkspacePath("a")


@pytest.mark.parametrize(
    ("before", "after", "found", "temp", "verdict"),
    [
        pytest.param(B, A, B, X, Undo("crash"), id="patch, row 2: nothing happened"),
        pytest.param(B, A, B, N, Undo("crash"), id="patch, rows 3 and 4: a torn temporary file"),
        pytest.param(B, A, B, A, Undo("crash"), id="patch, rows 5 and 6: a whole one"),
        pytest.param(B, A, A, B, RollForward(), id="patch, rows 7 to 9: exchanged"),
        pytest.param(B, A, A, X, RollForward(), id="patch: unlinked already"),
        pytest.param(B, A, A, N, SwapBack(), id="patch, row 12: exchanged with somebody else's content"),
        pytest.param(B, A, N, B, Keep(), id="patch, row 13: written from outside after the crash"),
        pytest.param(B, A, X, A, Keep(), id="patch, row 14: removed from outside"),
        pytest.param(X, A, X, A, Undo("crash"), id="create: not landed"),
        pytest.param(X, A, A, X, RollForward(), id="create: landed"),
        pytest.param(X, A, N, A, Keep(), id="create: something else took the name"),
        pytest.param(B, X, B, X, Undo("crash"), id="delete: not landed"),
        pytest.param(B, X, X, B, RollForward(), id="delete: renamed away"),
        pytest.param(B, X, X, N, SwapBack(), id="delete: somebody else's content was renamed away"),
        pytest.param(B, X, N, B, Keep(), id="delete: made anew from outside"),
    ],
)
def test_judge(
    before: Digest | None, after: Digest | None, found: Digest | None, temp: Digest | None, verdict: Verdict
) -> None:
    intent = PathChange(path=PATH, before=before, after=after, temp="t")
    assert judge(intent, found=found, temp=temp, source=None) == verdict


@pytest.mark.parametrize(
    ("found", "source", "verdict"),
    [
        pytest.param(X, A, Undo("crash"), id="still where it was"),
        pytest.param(A, X, RollForward(), id="arrived"),
        pytest.param(A, A, Keep(), id="at both ends"),
        pytest.param(N, A, Keep(), id="something else took the name"),
        pytest.param(X, X, Keep(), id="at neither end"),
    ],
)
def test_judge_a_move(found: Digest | None, source: Digest | None, verdict: Verdict) -> None:
    intent = PathChange(path=PATH, before=None, after=A, moved_from=WorkspacePath("b"))
    assert judge(intent, found=found, temp=None, source=source) == verdict
