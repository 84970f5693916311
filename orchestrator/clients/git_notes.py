"""A checkpoint as a git note: kept with the workspace's own history, and pushed with it."""

from __future__ import annotations

import os
import subprocess

from orchestrator.core.errors import GitNoteFailed

REF = "orchestrator"
"""`refs/notes/orchestrator`; `git log --notes=orchestrator` shows them."""

TIMEOUT_S = 30

ELSE = "Write the checkpoint to a file: --out FILE."


def attach(root: str, text: str) -> str:
    """Attach a text to the present commit of the workspace's repository, after what is there; the commit's id.

    Nothing that the environment or the repository's hooks say is run. Raises GitNoteFailed.
    """
    if not _git(root, "rev-parse", "--git-dir").stdout:
        raise GitNoteFailed(f"{root} is in no git repository", hint=ELSE)
    commit = _git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").stdout.strip()
    if not commit:
        raise GitNoteFailed(f"the git repository of {root} has no commit yet")
    noted = _git(root, "notes", f"--ref={REF}", "append", "--file=-", commit, given=text)
    if noted.returncode != 0:
        raise GitNoteFailed(f"git made no note: {noted.stderr.strip()[-500:]}")
    return commit


def _git(root: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = ("git", "-C", root, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", *arguments)
    try:
        return subprocess.run(
            command, input=given, capture_output=True, text=True, env=_environment(), timeout=TIMEOUT_S, check=False
        )
    except FileNotFoundError as error:
        raise GitNoteFailed("there is no git on this machine", hint=ELSE) from error
    except subprocess.TimeoutExpired as error:
        raise GitNoteFailed(f"git took longer than {TIMEOUT_S} s", hint=ELSE) from error


def _environment() -> dict[str, str]:
    """Without GIT_*, which could lead to another repository or run a program."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
