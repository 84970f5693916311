"""What a plugin can be asked, in one file.

A plugin is a package with an entry point in the group `orchestrator`; the entry point's name is the
plugin's. What it leads to, a module or an object, has any of these functions, marked with `hook`.
Every call is made in a thread of its own and given up on after `[plugins] timeout_s`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
import pluggy

from orchestrator.core.change import PathChange
from orchestrator.core.ids import Seq

GROUP: Final = "orchestrator"
"""The entry points' group, and the name that hooks are marked with."""

F = TypeVar("F", bound=Callable[..., object])

hook: Callable[[F], F] = pluggy.HookimplMarker(GROUP)
"""Marks a plugin's function as the answer to the hook of its name."""

_spec: Callable[[F], F] = pluggy.HookspecMarker(GROUP)


class AppliedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change that is on disk and in the journal. No file content, and no reason, which may be redacted there."""

    seq: Seq  # of its ChangeApplied; `@N` to callers
    at: int  # ms since the epoch
    agent: str | None
    session: str | None
    operation: str
    rung: str
    paths: tuple[PathChange, ...]
    reverts: tuple[Seq, ...] = ()


class Hooks:
    """The hooks. None of them can refuse or alter a change."""

    @_spec
    def orchestrator_summarize(self, path: str, text: str, max_tokens: int) -> str | None:
        """What a file's text is about, in at most so many tokens; None: nothing to say of it.

        Secrets in the text are hidden as from an agent. The answer is remembered by its arguments and the plugins'
        versions.
        """

    @_spec
    def orchestrator_change_applied(self, change: AppliedChange) -> None:
        """A change has been applied. Called in the journal's order, after the fact."""
