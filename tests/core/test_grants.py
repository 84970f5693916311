"""Which acts a grant covers, and which a person can't make one of."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from orchestrator.core.change import PermissionCheck
from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.grants import Grant, grants_for
from orchestrator.core.ids import AgentName, Seq, WorkspacePath
from orchestrator.core.policy.rules import Action, Request


def grants(pattern: str | None, *checks: PermissionCheck) -> list[Grant]:
    asked = checks or (PermissionCheck("write", WorkspacePath("ci/[a].yml")),)
    agent, approval = AgentName("alice"), Seq(3)
    added = grants_for(
        asked, agent=agent, pattern=pattern, session=None, expires_at=9, approval=approval, by="person:ada"
    )
    return [Grant(Seq(4), 0, each) for each in added]


@pytest.mark.parametrize(
    ("pattern", "agent", "action", "path", "others", "covered"),
    [
        pytest.param(None, "alice", "write", "ci/[a].yml", False, True, id="its own path"),
        pytest.param(None, "alice", "write", "ci/a.yml", False, False, id="a path is no glob"),
        pytest.param(None, "alice", "write", "ci/[a].yml/b", False, False, id="nor what lies in it, as a folder"),
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
    assert any(grant.covers(request) for grant in grants(pattern)) is covered


MIXED = (
    PermissionCheck("write", WorkspacePath("Makefile")),
    PermissionCheck("delete", WorkspacePath("old.txt"), others_work=True),
    PermissionCheck("create", WorkspacePath("ci"), directory=True),
    PermissionCheck("list", WorkspacePath("ci")),
)


@pytest.mark.parametrize(
    ("action", "path", "others", "covered"),
    [
        pytest.param("write", "Makefile", False, True, id="the write"),
        pytest.param("delete", "old.txt", True, True, id="the delete"),
        pytest.param("delete", "Makefile", False, False, id="not a delete of what was to be written"),
        pytest.param("delete", "Makefile", True, False, id="of others neither"),
        pytest.param("write", "old.txt", False, False, id="not a write of what was to be deleted"),
        pytest.param("create", "ci", False, True, id="the folder"),
        pytest.param("create", "ci/deploy.sh", False, False, id="no file in it"),
        pytest.param("list", "ci/deploy.sh", False, True, id="its names"),
    ],
)
def test_each_act_is_granted_on_its_own_paths_alone(action: Action, path: str, others: bool, covered: bool) -> None:
    request = Request("alice", "cloud", action, WorkspacePath(path), others)
    assert any(grant.covers(request) for grant in grants(None, *MIXED)) is covered


@pytest.mark.parametrize("pattern", ["*.py", "!ci/**", "ci/[", "../x"])
def test_a_pattern_names_what_was_asked(pattern: str) -> None:
    with pytest.raises(ParameterInvalid):
        grants(pattern)


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
        grants_for(
            asked,
            agent=AgentName("alice"),
            pattern=pattern,
            session=None,
            expires_at=9,
            approval=Seq(3),
            by="person:ada",
            names_in=names_in,
        )
