"""The rules that no policy file can switch off, and the git repositories that a change would make.

Git runs what a repository's configuration and hooks name, and a repository needs no `.git`: git takes any directory
for one that holds `HEAD`, `objects` and `refs`, or `HEAD` and `commondir`. Whoever calls git in it, or below it, runs
the program of `core.fsmonitor`. Source: `is_git_directory` and `setup_git_directory_gently` in git's setup.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from typing import Final, get_args

from orchestrator.core.events.sessions import AgentClass
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import fold, folded_component
from orchestrator.core.policy.rules import ACTIONS, BUILT_IN, CHANGES, Rule

TEMP_PREFIX: Final = ".orchestrator-"
"""What the names of our temporary files begin with."""

GIT: Final = Rule(
    name=f"{BUILT_IN}git",
    agents=("*",),
    actions=CHANGES,
    paths=(".git",),
    verdict="deny",
    reason="hooks and configuration under .git make git run programs; use git itself",
)
TEMPORARY: Final = Rule(
    name=f"{BUILT_IN}temporary",
    agents=("*",),
    actions=ACTIONS,  # also reading: a temporary file holds what its target will, secrets too
    paths=(f"{TEMP_PREFIX}*",),
    verdict="deny",
    reason="a change on its way to the disk; it belongs to the daemon",
)
EDITORS: Final = Rule(
    name=f"{BUILT_IN}editor_files",
    agents=("*",),
    actions=CHANGES,
    paths=(".nfs*", ".wh.*", "*.swp", "*.swo", ".*.sw[a-p]", ".#*", r"\#*#", ".~lock.*#"),
    verdict="deny",
    reason="swap, lock and whiteout files belong to the editor or file system that made them",
)
WORKSPACE_POLICY: Final = Rule(
    name=f"{BUILT_IN}policy",
    agents=tuple(f"class:{name}" for name in get_args(AgentClass) if name != "person"),
    actions=CHANGES,
    paths=("/.orchestrator",),
    verdict="deny",
    reason="the workspace's own policy is written by people",
)


def built_in(state_paths: tuple[WorkspacePath, ...]) -> tuple[Rule, ...]:
    """All of them, with one for the daemon's own files: nobody does anything there through the daemon."""
    own_state = Rule(
        name=f"{BUILT_IN}state",
        agents=("*",),
        actions=ACTIONS,
        paths=tuple(literal(path) for path in state_paths),
        verdict="deny",
        reason="the daemon's own files",
    )
    return (GIT, TEMPORARY, EDITORS, WORKSPACE_POLICY, own_state)


def literal(path: WorkspacePath) -> str:
    """The glob that names exactly this path (and what lies in it)."""
    return "/" + re.sub(r"([\\\[\]!*#? ])", r"\\\1", path)


# --- repositories ------------------------------------------------------------------------

MARKS: Final = ("HEAD", "objects", "refs", "commondir")
"""What makes a directory a repository."""

_READ: Final = frozenset(
    (
        *map(fold, MARKS),
        *("config", "config.worktree", "hooks", "info", "modules", "worktrees", "packed-refs", "index"),
    )
)
_CONFIGS: Final = frozenset(("config", "config.worktree"))
_SECTION = re.compile(
    rb"\[\s*(core|include|includeif|filter|diff|difftool|merge|mergetool|alias|credential|gpg|pager|interactive|"
    rb"sequence|remote|submodule|uploadpack|receive|trailer|sendemail|web|browser|man)[\s\].]",
    re.IGNORECASE,
)


def read_by_git(paths: Iterable[WorkspacePath]) -> dict[WorkspacePath, frozenset[str]]:
    """The directories in which these paths have a name that git reads in a repository, with those names, folded."""
    found: dict[WorkspacePath, set[str]] = {}
    for path in paths:
        above = WorkspacePath(".")
        for name in path.split("/"):
            folded = folded_component(name)[-1]
            if folded in _READ:
                found.setdefault(above, set()).add(folded)
            above = WorkspacePath(name if above == "." else f"{above}/{name}")
    return {directory: frozenset(names) for directory, names in found.items()}


def is_repository(names: Set[str]) -> bool:
    """Whether git takes a directory with these names in it, folded, for a repository."""
    return "head" in names and ("commondir" in names or ("objects" in names and "refs" in names))


def is_git_config(path: WorkspacePath, data: bytes) -> bool:
    """Whether a file could serve as a repository's configuration that makes git run programs."""
    return fold(path.rpartition("/")[2]) in _CONFIGS and _SECTION.search(data) is not None
