"""Where it happens: a copy of a repository, a home folder of its own, and the daemon over them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

CALL_TIMEOUT_S = 60
NEVER_COPIED = (".git", ".hg", ".jj", ".venv", "node_modules")
ORCHESTRATOR = (sys.executable, "-P", "-m", "orchestrator")
"""-P: the copy may hold a package of that name."""


class DemoFailed(Exception):
    """Something did not go as the story says it does."""


class Ran(NamedTuple):
    """A command of the CLI that has ended."""

    code: int
    answer: Any


class Stage:
    """The copy, and a person at its command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "work"
        self.approver = ""
        for name in ("home", "run"):
            (folder / name).mkdir(mode=0o700)
        self.env = {
            "HOME": str(folder / "home"),
            "PATH": os.environ.get("PATH", os.defpath),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "LANG": "C.UTF-8",
        }

    def person(self, *arguments: str, stdin: str = "", may: tuple[int, ...] = (0,)) -> Ran:
        """Run the CLI as the person does; its exit code must be one of `may`."""
        done = subprocess.run(
            [*ORCHESTRATOR, "--workspace", str(self.workspace), *arguments, "--json"],
            check=False,
            cwd=self.folder,
            env={**self.env, "ORCHESTRATOR_APPROVER": self.approver},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=CALL_TIMEOUT_S,
        )
        if done.returncode not in may:
            raise DemoFailed(f"orchestrator {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout[:2000]}")
        return Ran(done.returncode, json.loads(done.stdout))

    def up(self, *options: str) -> dict[str, Any]:
        """Start the daemon, or find it."""
        facts: dict[str, Any] = self.person("up", *options).answer
        self.approver = facts["approver_code"] or self.approver
        return facts

    def read(self, path: str) -> str:
        return (self.workspace / path).read_text(encoding="utf-8")


@contextmanager
def stage(source: Path) -> Iterator[Stage]:
    """A copy of `source` to play on; the daemon is stopped and the copy removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="demo-", dir="/tmp")).resolve()  # short: a socket lies in it
    try:
        made = Stage(folder)
        copy(source, made.workspace)
        try:
            yield made
        finally:
            made.person("stop", may=(0, 4))
    finally:
        shutil.rmtree(folder)


def copy(source: Path, target: Path) -> None:
    """The files that git tracks, as they are on disk; without git every file."""
    listed = subprocess.run(
        ["git", "-C", str(source), "ls-files", "-z", "."], check=False, capture_output=True, timeout=CALL_TIMEOUT_S
    )
    target.mkdir()
    if listed.returncode or not listed.stdout:
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*NEVER_COPIED))
        return
    for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
        if not (source / name).is_symlink() and not (source / name).is_file():
            continue  # removed and not committed yet, or a submodule
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / name, target / name, follow_symlinks=False)
