"""Which acts a grant covers, and which a person can't make one of."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from orchestrator.core.change import PermissionCheck
from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.grants import Grant, grant_for
from orchestrator.core.ids import AgentName, Seq, WorkspacePath
from orchestrator.core.policy.rules import Action, Request


def grant(pattern: str | None, *checks: PermissionCheck) -> Grant:
    asked = checks or (PermissionCheck("write", WorkspacePath("ci/[a].yml")),)
    added = grant_for(
        asked, agent=AgentName("alice"), pattern=pattern, session=None, expires_at=9, approval=Seq(3), by="person:ada"
    )
    return Grant(Seq(4), 0, added)


@pytest.mark.parametrize(
    ("pattern", "agent", "action", "path", "others", "covered"),
    [
        pytest.param(None, "alice", "write", "ci/[a].yml", False, True, id="its own path"),
        pytest.param(None, "alice", "write", "ci/a.yml", False, False, id="a path is no glob"),
        pytest.param("ci/**", "alice", "write", "ci/b/c.yml", False, True, id="what the glob names"),
        pytest.param("ci/**", "alice", "write", "src/ci/b.yml", False, False, id="not elsewhere"),
        pytest.param("ci/**", "alice", "delete", "ci/b.yml", False, False, id="another act"),
        pytest.param("ci/**", "bob", "write", "ci/b.yml", False, False, id="another agent"),
        pytest.param("ci/**", "alice", "write", "ci/b.yml", True, False, id="others' work was not asked about"),
        pytest.param("ci/**", "alice", "write", "CI/b.yml", False, False, id="both spellings, as an allow rule"),
    ],
)
def test_covers(pattern: str | None, agent: str, action: Action, path: str, others: bool, covered: bool) -> None:
    request = Request(agent, "cloud", action, WorkspacePath(path), others)
    assert grant(pattern).covers(request) is covered


@pytest.mark.parametrize("pattern", ["*.py", "!ci/**", "ci/[", "../x"])
def test_a_pattern_names_what_was_asked(pattern: str) -> None:
    with pytest.raises(ParameterInvalid):
        grant(pattern)


@pytest.mark.parametrize(
    ("pattern", "names_in", "fits"),
    [
        pytest.param("ci/**", True, True, id="all in the folder"),
        pytest.param("ci/*", True, True, id="its own names"),
        pytest.param("ci", True, True, id="the folder, and so what is in it"),
        pytest.param("ci/*.yml", True, False, id="some of its names"),
        pytest.param("ci/**", False, False, id="the folder itself was asked about"),
    ],
)
def test_a_pattern_for_the_names_in_a_folder(pattern: str, names_in: bool, fits: bool) -> None:
    asked = (PermissionCheck("list", WorkspacePath("ci"), directory=True),)
    with nullcontext() if fits else pytest.raises(ParameterInvalid):
        grant_for(
            asked,
            agent=AgentName("alice"),
            pattern=pattern,
            session=None,
            expires_at=9,
            approval=Seq(3),
            by="person:ada",
            names_in=names_in,
        )
