"""A daemon with real reviewers: programs, among them the one that asks a model."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.reviewer_servers import BOTH, OPEN
from tests.review.reviewers import KEY
from tests.review.service import Form, base_url, edited

LINES = BOTH["lines"]["1"]  # type: ignore[index]
SHOWN = '\n[[profile]]\nname = "shown"\nagents = ["class:cloud"]\nredaction = "off"\n'
"""Agents are shown secrets, and may change them; reviewers are not."""


class Backed(RunningDaemon):
    """A daemon that was handed a key, and that has a folder of plugins on its path; its clock can be put forward."""

    def __init__(self, base: Path) -> None:
        super().__init__(base, module=("-m", "tests.daemon.clocked", str(base)))

    @property
    def env(self) -> dict[str, str]:
        paths = os.pathsep.join((os.getcwd(), str(self.base / "site")))
        log = str(self.base / "changes.jsonl")
        return {**super().env, "PYTHONPATH": paths, "CHANGE_LOG_FILE": log}

    @property
    def variables(self) -> dict[str, str]:
        return {"REVIEW_KEY": KEY}


@contextmanager
def backed(base: Path, policy: str) -> Iterator[Backed]:
    daemon = Backed(base)
    (daemon.state_dir / "policy.toml").write_text(OPEN + policy, encoding="utf-8")
    assert daemon.start().get("ok") is True
    try:
        yield daemon
    finally:
        assert daemon.stop() == 0, daemon.log[-4000:]
        assert '"level": "error"' not in daemon.log, daemon.log[-4000:]


def model(name: str, url: str, form: Form, *argv: str, more: str = "") -> str:
    """The first-party program, with the key in a variable."""
    given = ("--api", form, "--base-url", base_url(url, form), "--model", "m", "--api-key-env", "REVIEW_KEY", *argv)
    command = json.dumps(["orchestrator-model-reviewer", *given])
    return f'[[reviewer]]\nname = "{name}"\nkind = "program"\nargv = {command}\nenv = ["REVIEW_KEY"]\n{more}\n'


def program(name: str, answer: str = json.dumps(edited((1, LINES)))) -> str:
    """A program that wants both sides' words, or answers something else."""
    argv = json.dumps([sys.executable, "-I", "-c", f"import sys; sys.stdin.read(); print({answer!r})"])
    return f'[[reviewer]]\nname = "{name}"\nkind = "program"\nargv = {argv}\n'


def kept(daemon: Backed) -> bytes:
    """All that the daemon wrote of itself: its log, and its state directory."""
    files = [daemon.base / "daemon.log", *daemon.state_dir.rglob("*")]
    return b"".join(path.read_bytes() for path in files if path.is_file())
