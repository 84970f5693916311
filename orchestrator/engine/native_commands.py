"""Before an agent's own shell runs a command: whether it may, by policy or by a person's yes to exactly this one."""

from __future__ import annotations

import shlex
from typing import Final, NamedTuple

from orchestrator.api import native_edits as n
from orchestrator.core.change import running
from orchestrator.core.commands import CommandLine, shell_argv
from orchestrator.core.errors import ApprovalRequired
from orchestrator.core.events.conflicts import ApprovalUsed
from orchestrator.core.ids import show
from orchestrator.core.paths import ROOT
from orchestrator.core.policy.rules import NeedApproval
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.commands.execution import NOT_KEPT
from orchestrator.engine.commands.permission import CommandPermissions, Waits
from orchestrator.engine.external.native_claims import NativeClaim
from orchestrator.engine.external.watch import Watching
from orchestrator.engine.native_calls import NativeCalls
from orchestrator.engine.services import Services

KEPT_S: Final = 2.5
"""How long a command waits, after the daemon's start, for the contents of the files there are to be kept.

A hook gives the daemon 5 s for all of its answer.
"""


class NativeCommands:
    """Lets an agent's own shell run what it may."""

    def __init__(self, services: Services, watching: Watching, calls: NativeCalls) -> None:
        self._s, self._watching, self._calls = services, watching, calls
        self._permissions = CommandPermissions(services)

    async def permit(self, caller: Caller, call: Call, params: n.NativeBefore) -> n.NativePermit:
        """From here on what changes is this command's. Raises Denied, ApprovalRequired, DiskFull, WritesStopped."""
        folder = self._s.paths.either(params.path) if params.path else ROOT
        line = CommandLine(shell_argv(params.command), folder, "in_place")
        await self._s.permissions.learn_task(caller.session)
        verdict = self._s.permissions.permit(caller, running(line))
        asked = None
        if isinstance(verdict, NeedApproval):
            asked = _Asked(line if not params.outside else _elsewhere(params), verdict)
            await self._check_granted(caller, call, params, asked, use=False)
        kept = await self._watching.kept(KEPT_S)
        await self._watching.settle()  # what changed until now is not this command's
        if asked is not None:
            await self._check_granted(caller, call, params, asked, use=True)
        self._calls.begin(caller, params, NativeClaim(self._calls.group(caller, call, params), None))
        return n.NativePermit(message="what it changes is recorded as yours", warnings=() if kept else (NOT_KEPT,))

    async def _check_granted(
        self, caller: Caller, call: Call, params: n.NativeBefore, asked: _Asked, *, use: bool
    ) -> None:
        """Raises ApprovalRequired unless a person said yes to exactly this; with `use` that yes is used up."""
        tool = f"{params.client} {params.tool}"
        async with self._s.locks.alone((asked.line.cwd,)):
            how = f"It would be run by {tool}, which confines nothing"
            found = await self._permissions.ask_person(caller, call, asked.line, asked.verdict, how=how)
            if isinstance(found, Waits):
                number = show(found.approval)
                raise ApprovalRequired(
                    f"running this needs a person's yes, and waits for it as {number}: {found.rule}",
                    hint="Go on with other work, or tell the person you work for: `orchestrator approvals show "
                    f"{number}` shows it, and `orchestrator approvals approve {number}` says yes. After that, make "
                    "exactly the same call again: it is let through once.",
                    details={"approval": number, "rule": asked.verdict.rule},
                )
            if use and found.approval is not None:
                event = ApprovalUsed(approval=found.approval, tool=tool)
                await self._s.notes.append(caller.aside(call), (f"approval:{asked.line.cwd}", event))


class _Asked(NamedTuple):
    """What policy asks a person about."""

    line: CommandLine
    verdict: NeedApproval


def _elsewhere(params: n.NativeBefore) -> CommandLine:
    """A command that begins outside of the workspace, so that who is asked reads where."""
    return CommandLine(("sh", "-c", f"cd {shlex.quote(params.outside)} && {params.command}"), ROOT, "in_place")
