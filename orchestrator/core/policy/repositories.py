"""Git repositories that a change would make: git runs what their configuration and hooks name.

A directory needs no `.git` to be one. Git takes any directory for a repository that holds `HEAD`, `objects` and
`refs`, or `HEAD` and `commondir`; whoever then calls git in it, or below it, runs the program of `core.fsmonitor`.
Source: `is_git_directory` and `setup_git_directory_gently` in git's setup.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from typing import Final

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import fold, folded_component

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
