"""A change that touches what somebody else changed waits where a route wants that."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from orchestrator.core.content import digest_of
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts, Held, Part
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath
from orchestrator.core.policy.parse import parse_policy
from orchestrator.engine.caller import Caller
from orchestrator.engine.changes.review_first import routed

PATH = WorkspacePath("a.py")
OLD, NEW = b"def f():\n    return 1\n", b"def f():\n    return 2\n"
CALLER = Caller(agent=AgentName("bob"), agent_class="cloud", session=SessionId("s"), door="rpc")


@pytest.mark.parametrize(
    ("route", "flagged", "waits"),
    [
        pytest.param('[[route]]\nsame_symbol = true\nreviewers = ["x"]\n', True, True, id="wanted"),
        pytest.param('[[route]]\nsame_symbol = true\nreviewers = ["x"]\n', False, False, id="not flagged"),
        pytest.param('[[route]]\nreviewers = ["x"]\n', True, False, id="a route for conflicts"),
        pytest.param("", True, False, id="no route"),
        pytest.param(
            '[[route]]\nsame_symbol = true\npaths = ["*.c"]\nreviewers = ["x"]\n', True, False, id="another path"
        ),
    ],
)
def test_routed(route: str, flagged: bool, waits: bool) -> None:
    policy = parse_policy('name = "p"\ndefault = "allow"\n' + route, source="test")
    part = Part(path=PATH, before=digest_of(OLD), after=digest_of(NEW), data=NEW)
    plan = Apply(parts=(part,), rung="merged", same_symbol=("f",) if flagged else ())
    facts = {PATH: Facts(PATH, Held(OLD, digest_of(OLD), 0o644), Seq(7))}
    services, wanted = SimpleNamespace(policy=policy), SimpleNamespace(resolves=None, pre_approved=False, caller=CALLER)
    outcome = routed(services, wanted, facts, plan)  # type: ignore[arg-type]  # all that it looks at
    if not waits:
        assert outcome is plan
        return
    assert isinstance(outcome, ConflictOutcome)
    assert (outcome.base, outcome.base_version, outcome.proposed) == (digest_of(OLD), 7, NEW)
    assert (outcome.same_symbol, [(r.current.start, r.current.length) for r in outcome.regions]) == (("f",), [(1, 1)])
