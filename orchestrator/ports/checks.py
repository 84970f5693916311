"""The check command of a policy, run where it can change nothing that counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.routes import Checks


class CheckReport(msgspec.Struct, frozen=True):
    """How it ended; the message has the last lines that it printed."""

    passed: bool
    message: str


class Checker(Protocol):
    """Runs checks in scratch copies."""

    async def check(
        self, checks: Checks, path: WorkspacePath, data: bytes, others: Sequence[WorkspacePath]
    ) -> CheckReport:
        """Run the command with `data` as the content of `path`, and with scope "tree" copies of the others.

        A command that can't be started, is too slow, or whose tree is too large to copy does not pass.
        May be cancelled; the command ends with it, and with all that it started.
        """
