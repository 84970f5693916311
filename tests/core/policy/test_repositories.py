"""What git takes for a repository; git itself is asked."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.protected import MARKS, is_git_config, is_repository, read_by_git


@pytest.mark.parametrize("marks", [s for n in range(5) for s in itertools.combinations(MARKS, n)], ids="-".join)
def test_as_git_sees_it(tmp_path: Path, marks: tuple[str, ...]) -> None:
    real, here = tmp_path / "real", tmp_path / "here"
    git = ("git", "-c", "safe.directory=*", "-c", "safe.bareRepository=all")
    subprocess.run([*git, "init", "-q", "--bare", str(real)], check=True, capture_output=True)
    here.mkdir()
    for mark in marks:
        if mark == "HEAD":
            (here / mark).write_text("ref: refs/heads/main\n")
        elif mark == "commondir":
            (here / mark).write_text("../real\n")
        else:
            (here / mark).mkdir()
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    asked = subprocess.run([*git, "rev-parse", "--git-dir"], cwd=here, env=env, capture_output=True, check=False)
    assert is_repository({mark.lower() for mark in marks}) == (asked.returncode == 0), asked.stderr


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param("src/HEAD", {"src": {"head"}}, id="HEAD"),
        pytest.param("src/head", {"src": {"head"}}, id="in small letters"),
        pytest.param("a/objects/pack/x", {"a": {"objects"}}, id="in a directory"),
        pytest.param("REFS/heads/a", {".": {"refs"}}, id="at the root"),
        pytest.param("a/hooks/b/config", {"a": {"hooks"}, "a/hooks/b": {"config"}}, id="two"),
        pytest.param("a/\uff28EAD", {"a": {"head"}}, id="fullwidth"),
        pytest.param("a/HEAD.md", {}, id="another name"),
        pytest.param("a/config.py", {}, id="source code"),
    ],
)
def test_names_that_git_reads(path: str, found: dict[str, set[str]]) -> None:
    assert read_by_git([WorkspacePath(path)]) == found


@pytest.mark.parametrize(
    ("path", "text", "asks"),
    [
        pytest.param("a/config", "[core]\n\tfsmonitor = ./x\n", True, id="fsmonitor"),
        pytest.param("a/CONFIG", "[CORE]\nhooksPath=x\n", True, id="capitals"),
        pytest.param("config", "\ufeff  [ core]", True, id="blanks and a mark"),
        pytest.param("config", '[x][filter "a"]\nclean=x', True, id="a second section on the line"),
        pytest.param("config", "[include]\npath=x\n", True, id="what includes another"),
        pytest.param("config.worktree", "[core]\n", True, id="of a worktree"),
        pytest.param("a/config", "[default]\nregion = x\n", False, id="of aws"),
        pytest.param("a/config", "Host x\n  User y\n", False, id="of ssh"),
        pytest.param("a/config.ini", "[core]\n", False, id="another name"),
        pytest.param("a/config", "", False, id="empty"),
    ],
)
def test_git_configurations(path: str, text: str, asks: bool) -> None:
    assert is_git_config(WorkspacePath(path), text.encode()) is asks
