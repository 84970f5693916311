"""Changes that would apply, and wait for a review where a route or the rule for stale reads wants that."""

from __future__ import annotations

import pytest

from orchestrator.core.change import Fit, PathChange, UnseenChange
from orchestrator.core.conflicts.resolution import held_for_review
from orchestrator.core.content import LineRange, digest_of
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts, Held, NewContent
from orchestrator.core.ids import AgentName, Seq, WorkspacePath
from orchestrator.core.policy.parse import parse_policy

PATH = WorkspacePath("a.py")
OLD, NEW = b"def f():\n    return 1\n", b"def f():\n    return 2\n"


UNSEEN = UnseenChange(PATH, Seq(3), LineRange(1, 1), LineRange(1, 1), ("eve",), Seq(5))


@pytest.mark.parametrize(
    ("settings", "flagged", "waits"),
    [
        pytest.param('[[route]]\nsame_symbol = true\nreviewers = ["x"]\n', True, True, id="wanted"),
        pytest.param('[[route]]\nsame_symbol = true\nreviewers = ["x"]\n', False, False, id="not flagged"),
        pytest.param('[[route]]\nreviewers = ["x"]\n', True, False, id="a route for conflicts"),
        pytest.param("", True, False, id="no route"),
        pytest.param(
            '[[route]]\nsame_symbol = true\npaths = ["*.c"]\nreviewers = ["x"]\n', True, False, id="another path"
        ),
        pytest.param('[edits]\nstale_reads = "review"\n', False, True, id="a stale read"),
        pytest.param('[edits]\nstale_reads = "allow"\n', False, False, id="a stale read, allowed"),
    ],
)
def test_held_for_review(settings: str, flagged: bool, waits: bool) -> None:
    policy = parse_policy('name = "p"\ndefault = "allow"\n' + settings, source="test")
    change, contents = PathChange(PATH, digest_of(OLD), digest_of(NEW)), {digest_of(NEW): NewContent(NEW)}
    fit = Fit(rung="merged", same_symbol=("f",) if flagged else ())
    plan = Apply(paths=(change,), contents=contents, fit=fit)
    facts = {PATH: Facts(PATH, Held(OLD, digest_of(OLD), 0o644), Seq(7))}
    unseen = (UNSEEN,) if "stale_reads" in settings else ()
    outcome = held_for_review(plan, facts, policy, unseen, agent=AgentName("bob"), agent_class="cloud")
    if not waits:
        assert outcome is plan
        return
    assert isinstance(outcome, ConflictOutcome)
    assert (outcome.base, outcome.base_version, outcome.proposed) == (digest_of(OLD), 7, NEW)
    assert (outcome.fit, [(r.current.start, r.current.length) for r in outcome.regions]) == (fit, [(1, 1)])
