"""Undo one change; what came later stays, or a person decides."""

from __future__ import annotations

import msgspec
import pytest

from orchestrator.core.content import PathChange, digest_of
from orchestrator.core.decisions.decision import Apply, Clash, Facts, Need
from orchestrator.core.decisions.reverting import revert_content, revert_move
from orchestrator.core.errors import NothingToChange, RevertImpossible
from orchestrator.core.ids import Seq, WorkspacePath
from tests.core.decisions.facts import PATH, facts

TEN = "".join(f"line {n}\n" for n in range(10))
CHANGED = TEN.replace("line 3", "LINE 3")


def change(before: str | None, after: str | None) -> PathChange:
    return PathChange(
        path=PATH,
        before=digest_of(before.encode()) if before is not None else None,
        after=digest_of(after.encode()) if after is not None else None,
        mode=0o755 if after is None else None,
    )


def with_contents(here: Facts, *texts: str) -> Facts:
    return msgspec.structs.replace(here, contents={digest_of(t.encode()): t.encode() for t in texts})


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(CHANGED, TEN, id="nothing came after"),
        pytest.param(
            CHANGED.replace("line 9", "nine"), TEN.replace("line 9", "nine"), id="later work elsewhere is kept"
        ),
        pytest.param("top\n" + CHANGED, "top\n" + TEN, id="later work above is kept"),
    ],
)
def test_revert_keeps_later_work(now: str, expected: str) -> None:
    outcome = revert_content(Seq(4), change(TEN, CHANGED), with_contents(facts(now), TEN, CHANGED))
    assert isinstance(outcome, Apply)
    assert outcome.parts[0].data == expected.encode()


def test_revert_of_a_line_that_was_changed_again_is_a_clash() -> None:
    now = CHANGED.replace("LINE 3", "three")
    outcome = revert_content(Seq(4), change(TEN, CHANGED), with_contents(facts(now), TEN, CHANGED))
    assert isinstance(outcome, Clash)


def test_revert_asks_for_contents_and_says_when_it_is_done() -> None:
    assert isinstance(revert_content(Seq(4), change(TEN, CHANGED), facts("x\n" + CHANGED)), Need)
    with pytest.raises(NothingToChange):
        revert_content(Seq(4), change(TEN, CHANGED), facts(TEN))


def test_revert_of_a_creation_and_of_a_removal() -> None:
    gone = revert_content(Seq(4), change(None, TEN), facts(TEN))
    assert isinstance(gone, Apply)
    assert gone.parts[0].after is None
    assert isinstance(revert_content(Seq(4), change(None, TEN), facts(CHANGED)), Clash)

    back = revert_content(Seq(4), change(TEN, None), with_contents(facts(None), TEN))
    assert isinstance(back, Apply)
    assert (back.parts[0].data, back.parts[0].mode) == (TEN.encode(), 0o755)
    assert isinstance(revert_content(Seq(4), change(TEN, None), with_contents(facts(CHANGED), TEN)), Clash)


def test_revert_of_a_move_takes_later_edits_along() -> None:
    old, new = WorkspacePath("old.txt"), WorkspacePath("new.txt")
    digest = digest_of(TEN.encode())
    source = PathChange(path=old, before=digest, after=None)
    target = PathChange(path=new, before=None, after=digest, moved_from=old)
    outcome = revert_move(Seq(4), source, target, facts(None, path=old), facts(CHANGED, path=new))
    assert outcome.parts[1].path == old
    assert outcome.parts[1].moved_from == new
    assert outcome.parts[1].after == digest_of(CHANGED.encode())
    with pytest.raises(RevertImpossible):
        revert_move(Seq(4), source, target, facts(TEN, path=old), facts(CHANGED, path=new))
    with pytest.raises(RevertImpossible):
        revert_move(Seq(4), source, target, facts(None, path=old), facts(None, path=new))
