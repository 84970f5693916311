"""What is ignored is what git ignores, on trees and rules made at random."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from orchestrator.core.ids import WorkspacePath
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace

NAMES = ["a", "b", "build", "src", "x.py", "y.log", "z.tmp", "keep.log", "doc"]
RULES = ["*.log", "!keep.log", "build/", "/a", "src/*.tmp", "**/doc", "b/**", "!b/x.py", "*.py", "!*.py", "/src/", "x*"]


def make_tree(root: Path, seed: int) -> None:
    """Some folders, some files, some rule files."""
    chance = random.Random(seed)
    folders = [root]
    for _ in range(8):
        folder = chance.choice(folders) / chance.choice(NAMES)
        if not folder.exists():
            folder.mkdir()
            folders.append(folder)
    for folder in folders:
        for name in chance.sample(NAMES, 4):
            if not (folder / name).exists():
                (folder / name).write_text("x")
        if chance.random() < 0.5:
            (folder / ".gitignore").write_text("\n".join(chance.sample(RULES, 3)) + "\n")
    (root / ".git" / "info").mkdir(parents=True, exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text(chance.choice(RULES) + "\n")


@pytest.mark.parametrize("seed", range(40))
def test_as_git(root: Path, seed: int) -> None:
    plain = {"HOME": str(root.parent), "PATH": "/usr/bin:/bin"}
    subprocess.run(["git", "init", "-q", str(root)], check=True, env=plain)
    make_tree(root, seed)
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-o", "--exclude-standard", "-z"],
        check=True,
        capture_output=True,
        env=plain,
    ).stdout
    expected = {name.decode() for name in listed.split(b"\0") if name}
    workspace = LocalWorkspace(str(root), disk=Disk())
    assert {item.path for item in workspace.scan().files} == expected
    workspace.close()


def test_our_own_rules(root: Path) -> None:
    (root / ".orchestratorignore").write_text("private/\n")
    (root / "private").mkdir()
    (root / "private" / "a").write_text("x")
    (root / ".orchestrator-77.tmp").write_text("x")
    (root / "b").write_text("x")
    workspace = LocalWorkspace(str(root), disk=Disk())
    assert [item.path for item in workspace.scan().files] == [".orchestratorignore", "b"]
    assert workspace.ignore.ignored(WorkspacePath("private/a"), directory=False)
    assert workspace.temps() == [".orchestrator-77.tmp"]
    workspace.close()


def test_the_scan_says_what_it_left_out(root: Path) -> None:
    (root / "ok").write_text("x")
    (root / "link").symlink_to("ok")
    (root / "bad\nname").write_text("x")
    workspace = LocalWorkspace(str(root), disk=Disk())
    result = workspace.scan()
    assert [item.path for item in result.files] == ["ok"]
    assert result.skipped == {"names that break the name rule": 1}
    workspace.close()
