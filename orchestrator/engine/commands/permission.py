"""Whether a command may be run: by policy, or by a person's yes to exactly this one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from orchestrator.api.commands import RunCommand
from orchestrator.core.change import PathChange, Provenance, running
from orchestrator.core.commands import CommandLine
from orchestrator.core.errors import FileNotFound, NotADirectory, ParameterInvalid, escaped
from orchestrator.core.events.conflicts import ApprovalRequested
from orchestrator.core.ids import Seq, WorkspacePath
from orchestrator.core.paths import ROOT
from orchestrator.core.policy.rules import Allow, NeedApproval
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.services import Services
from orchestrator.ports.workspace import Workspace


class Permitted(NamedTuple):
    """A command that may be run now."""

    line: CommandLine
    rule: str
    approval: Seq | None = None  # that lets it, once


class Waits(NamedTuple):
    """A command that a person is asked about."""

    line: CommandLine
    approval: Seq
    rule: str


def check_words(argv: Sequence[str]) -> None:
    """Raises ParameterInvalid for what no program can be given."""
    if not argv[0]:
        raise ParameterInvalid("argv", "the program's name is empty")
    if any("\0" in word for word in argv):
        raise ParameterInvalid("argv", "a word holds NUL, which no program can be given")


def check_directory(workspace: Workspace, cwd: WorkspacePath) -> None:
    """Raises NotADirectory, FileNotFound and the PathError family where no command can begin."""
    stat = workspace.stat(cwd) if cwd != ROOT else None
    if cwd != ROOT and stat is None:
        raise FileNotFound(cwd, "there is no such directory")
    if stat is not None and stat.kind != "directory":
        raise NotADirectory(cwd, "a command begins in a directory")


class CommandPermissions:
    """Asks policy, and a person where policy says so."""

    def __init__(self, services: Services) -> None:
        self._s = services

    def environment(self, given: Sequence[str]) -> tuple[str, ...]:
        """What a caller sets, by name. Raises ParameterInvalid for a name that policy does not let it set."""
        allowed, found = self._s.permissions.policy.commands.env, dict[str, str]()
        for variable in given:
            name, equals, value = variable.partition("=")
            if not equals or "\0" in value:
                raise ParameterInvalid("env", f"'{escaped(variable[:100])}': is written NAME=value, without NUL")
            if name not in allowed:
                named = ", ".join(allowed) or "none"
                raise ParameterInvalid("env", f"'{escaped(name[:100])}' may not be set; policy lets these be: {named}")
            found[name] = value
        return tuple(f"{name}={found[name]}" for name in sorted(found))

    async def ask(
        self, caller: Caller, call: Call, command: RunCommand, cwd: WorkspacePath, environment: tuple[str, ...]
    ) -> Permitted | Waits:
        """In the mode that the call names, or the first that policy lets it have without asking. Raises Denied."""
        permissions = self._s.permissions
        first = permissions.policy.commands.default_mode
        line = permissions.likeliest(caller, CommandLine(command.argv, cwd, first, environment), command.mode)
        verdict = permissions.permit(caller, running(line))
        if isinstance(verdict, Allow):
            return Permitted(line, verdict.rule)
        return await self.ask_person(caller, call, line, verdict)

    async def ask_person(
        self, caller: Caller, call: Call, line: CommandLine, verdict: NeedApproval, *, how: str = ""
    ) -> Permitted | Waits:
        """By a yes that was given to exactly this command, of the same operation; else there is a request for one.

        `how` is what a person should know beside the policy's reason.
        """
        operation, now = call.operation.name, self._s.clock.now_ms()
        known = self._s.state.pending.command_request(caller.agent, line, operation, now)
        if known is not None and known.state == "granted":
            return Permitted(line, verdict.rule, known.seq)
        if known is not None:
            return Waits(line, known.seq, verdict.reason)
        request = ApprovalRequested(
            provenance=Provenance(operation=operation, reason=getattr(call.params, "reason", "")),
            paths=(PathChange(line.cwd, None, None),),
            rule=". ".join(filter(None, (f"{verdict.rule}: {verdict.reason}", how))),
            permissions=(running(line),),
            expires_at=now + self._s.permissions.policy.limits.approval_ttl_s * 1000,
        )
        recorded = await self._s.notes.append(caller.aside(call), (f"approval:{line.cwd}", request))
        return Waits(line, recorded[0].seq, verdict.reason)
