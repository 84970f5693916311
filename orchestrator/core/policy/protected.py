"""The rules that no policy file can switch off."""

from __future__ import annotations

from typing import Final

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.globs import literal
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
STATE_REASON: Final = "the daemon's own files"


def own_state(paths: tuple[WorkspacePath, ...]) -> Rule:
    """The rule for the daemon's own files: nobody does anything there through the daemon."""
    return Rule(
        name=f"{BUILT_IN}state",
        agents=("*",),
        actions=ACTIONS,
        paths=tuple(literal(path) for path in paths),
        verdict="deny",
        reason=STATE_REASON,
    )


def built_in(state_paths: tuple[WorkspacePath, ...]) -> tuple[Rule, ...]:
    """All of them. Without paths the rule on the daemon's files stands for identity alone."""
    return (GIT, TEMPORARY, EDITORS, own_state(state_paths))
