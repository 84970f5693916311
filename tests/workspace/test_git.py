"""Ignore rules, beside git itself."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from orchestrator.workspace.confine import Confinement
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.ignore import IgnoreRules
from orchestrator.workspace.local import LocalWorkspace
from tests.workspace.changes import as_path

pytestmark = pytest.mark.usefixtures("leases", "no_leaks")

NAMES = ["a", "b", "c.py", "build", "d.o", "e f", "x#y", "[z]", "!n", "é"]
PARTS = [
    *(
        "a",
        "b",
        "*",
        "**",
        "*.py",
        "build",
        "?",
        "[ab]",
        "c.py",
        "d.*",
        "e f",
        "\\#a",
        "x#y",
        "[!a]",
        "[^b]",
        "\\[z\\]",
    ),
    *("\\!n", "é", "*.o", "*a*", "*[a-z]*e*", "c*p*y", "[[:alpha:]]", "[[:punct:]]*", "[[:no:]]", "[]a]", "[a-", "a\\"),
]
GIT = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


def a_line(random_: random.Random) -> str:
    line = "/".join(random_.choice(PARTS) for _ in range(random_.choice([1, 1, 1, 2, 2, 3])))
    for chance, before, after in (
        (0.25, "/", ""),
        (0.3, "", "/"),
        (0.3, "!", ""),
        (0.05, "", "  "),
        (0.03, "", "\\ "),
        (0.05, "#", ""),
        (0.05, "", "\r"),
    ):
        if random_.random() < chance:
            line = before + line + after
    return line


def build(root: Path, random_: random.Random) -> None:
    folders = [root]
    for _ in range(8):
        folder = random_.choice(folders) / random_.choice(NAMES)
        if not folder.exists():
            folder.mkdir()
            folders.append(folder)
    for _ in range(25):
        file = random_.choice(folders) / random_.choice(NAMES)
        if not file.exists():
            file.touch()
    for folder in folders:
        if folder == root or random_.random() < 0.3:
            lines = [a_line(random_) for _ in range(random_.randint(1, 6))]
            (folder / ".gitignore").write_bytes("\n".join(lines).encode())
    subprocess.run(["git", "init", "-q", "--template=", str(root)], check=True, env=GIT)
    (root / ".git/info").mkdir()
    (root / ".git/info/exclude").write_text("\n".join(a_line(random_) for _ in range(2)))


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("seed", range(60))
def test_as_git_lists(seed: int, root: Path) -> None:
    build(root, random.Random(seed))
    command = ["git", "-C", str(root), "ls-files", "-o", "--exclude-standard", "-z"]
    listed = subprocess.run(command, check=True, capture_output=True, env=GIT).stdout.decode()
    workspace = LocalWorkspace(str(root), disk=Disk())
    try:
        assert {file.path for file in workspace.scan().files} == set(listed.split("\0")) - {""}
    finally:
        workspace.close()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_as_git_checks(root: Path) -> None:
    build(root, random.Random(1))
    paths = [path for path in root.rglob("*") if ".git" not in path.relative_to(root).parts and not path.is_symlink()]
    asked = "\0".join(str(path.relative_to(root)) for path in paths)
    command = ["git", "-C", str(root), "check-ignore", "--no-index", "-z", "--stdin"]
    reported = subprocess.run(command, input=asked.encode(), check=False, capture_output=True, env=GIT).stdout.decode()
    workspace = LocalWorkspace(str(root), disk=Disk())
    try:
        ours = {
            str(path.relative_to(root))
            for path in paths
            if workspace.ignore.ignored(as_path(str(path.relative_to(root))), directory=path.is_dir())
        }
    finally:
        workspace.close()
    assert ours == set(reported.split("\0")) - {""}


def test_rules(workspace: LocalWorkspace, root: Path) -> None:
    (root / "kept/deep").mkdir(parents=True)
    (root / ".gitignore").write_text("*.log\n/out\n!keep.log\n")
    (root / ".orchestratorignore").write_text("!b.log\nsecret\n!.git\n!.orchestrator-1.tmp\n")
    (root / "kept/.gitignore").write_text("!a.log\n")
    answers = {
        ("a.log", False): True,
        ("keep.log", False): False,
        ("b.log", False): False,
        ("kept/a.log", False): False,
        ("kept/deep/c.log", False): True,
        ("out", True): True,
        ("out/keep.log", False): True,
        ("kept/out", False): False,
        ("secret/x", False): True,
        (".git", True): True,
        ("kept/.git/config", False): True,
        (".hg/x", False): True,
        (".orchestrator-1.tmp", False): True,
        (".", True): False,
        ("nowhere/x", False): False,
    }
    assert {key: workspace.ignore.ignored(as_path(key[0]), directory=key[1]) for key in answers} == answers


def test_rule_files_are_read_again_when_they_change(root: Path) -> None:
    at = Confinement(str(root), Disk())
    now_s = 0.0
    rules = IgnoreRules(at, now_s=lambda: now_s, fresh_s=1.0)
    (root / "d").mkdir()

    def ignored() -> bool:
        return rules.ignored(as_path("d/x"), directory=False)

    try:
        assert not ignored()
        (root / ".gitignore").write_text("x\n")
        assert not ignored()
        now_s = 1.0
        assert ignored()
        (root / "d/.gitignore").write_text("!x\n")
        rules.refresh()
        assert not ignored()
        (root / "d/.gitignore").unlink()
        now_s = 3.0
        assert ignored()
        (root / ".gitignore").write_text("y\n")
        now_s = 5.0
        assert not ignored()
    finally:
        at.close()


def test_a_linked_rule_file_counts_for_nothing(workspace: LocalWorkspace, root: Path) -> None:
    (root.parent / "rules").write_text("x\n")
    (root / ".gitignore").symlink_to(root.parent / "rules")
    assert not workspace.ignore.ignored(as_path("x"), directory=False)
