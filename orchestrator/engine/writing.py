"""The operations that change files: parameters to commands."""

from __future__ import annotations

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.decisions.commands import Command, Delete, Edit, Move, Patch, Wish, Write
from orchestrator.core.decisions.decision import Apply, Part
from orchestrator.core.errors import FileExists, NotAvailable, ParameterInvalid
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.rules import NeedApproval
from orchestrator.core.text.locate import Replacement
from orchestrator.core.text.patch import parse_unified
from orchestrator.engine.answers import Answers, everything
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changing import Changer, Wanted
from orchestrator.engine.effects import Effects, Intent
from orchestrator.engine.paths import Paths
from orchestrator.engine.services import Services


class Writer:
    """Reads paths and patches, then hands a command on."""

    def __init__(self, services: Services, changer: Changer, effects: Effects, answers: Answers, paths: Paths) -> None:
        self._s, self._changer, self._effects = services, changer, effects
        self._answers, self._paths = answers, paths

    async def edit_file(self, caller: Caller, call: Call, params: p.EditFile) -> r.ChangeAnswer:
        path = self._paths.file(params.path)
        self._changer.refuse_early(caller, Wish("write", path))
        changes = tuple(Replacement(c.search, c.replace, c.expected_count) for c in params.changes)
        return await self._change(
            caller, call, Edit(path=path, changes=changes), params, params.base, params.supersedes
        )

    async def apply_patch(self, caller: Caller, call: Call, params: p.ApplyPatch) -> r.ChangeAnswer:
        patch = parse_unified(params.patch)
        named = patch.new_path or patch.old_path
        if params.path is not None:
            path = self._paths.file(params.path)
            if named is not None and self._paths.file(named) != path:
                raise ParameterInvalid("path", f"is {path}, but the patch is of {named}")
        elif named is not None:
            path = self._paths.file(named)
        else:
            raise ParameterInvalid("path", "is required, since the patch names no file")
        if patch.headed and patch.old_path and patch.new_path and patch.old_path != patch.new_path:
            raise NotAvailable("a patch that renames is not built in this version", hint="Use move_file, then patch.")
        creating = patch.headed and patch.old_path is None
        if creating:
            path = self._paths.new(path)
        deleting = patch.headed and patch.new_path is None
        self._changer.refuse_early(caller, Wish("delete" if deleting else "create" if creating else "write", path))
        return await self._change(caller, call, Patch(path=path, patch=patch), params, params.base, params.supersedes)

    async def write_file(self, caller: Caller, call: Call, params: p.WriteFile) -> r.ChangeAnswer:
        path = self._paths.file(params.path, may_create=True)
        if self._s.state.registry.get(path) is None and self._s.workspace.stat(path) is None:
            path = self._paths.new(params.path)
            self._changer.refuse_early(caller, Wish("create", path))
        else:
            self._changer.refuse_early(caller, Wish("write", path))
        command = Write(path=path, content=params.content, mode=params.mode)
        return await self._change(caller, call, command, params, params.base, params.supersedes)

    async def move_file(self, caller: Caller, call: Call, params: p.MoveFile) -> r.ChangeAnswer:
        source = self._paths.file(params.source)
        destination = self._paths.new(params.destination)
        self._changer.refuse_early(caller, Wish("move", source), Wish("create", destination))
        self._no_directory(source, "moving")
        if (stat := self._s.workspace.stat(destination)) is not None and stat.kind == "directory":
            raise FileExists(destination, "it is a directory", hint="Name the file's new path in full.")
        return await self._change(caller, call, Move(source=source, destination=destination), params, params.base, None)

    async def delete_file(self, caller: Caller, call: Call, params: p.DeleteFile) -> r.ChangeAnswer:
        path = self._paths.file(params.path)
        self._changer.refuse_early(caller, Wish("delete", path))
        self._no_directory(path, "deleting")
        return await self._change(caller, call, Delete(path=path), params, params.base, None)

    async def create_directory(self, caller: Caller, call: Call, params: p.CreateDirectory) -> r.ChangeAnswer:
        path = self._paths.new_directory(params.path)
        if path == ".":
            raise FileExists(path, "it is the workspace's root")
        verdict = self._s.permit(caller, "create", path, directory=True, on_disk=True)
        reservations = self._changer.reservations
        await reservations.wait(caller, (path,), preview=params.preview)
        crossing = await reservations.crossing(caller, (path,), preview=params.preview)
        if isinstance(verdict, NeedApproval) and not params.preview:
            return await self._ask_directory(caller, call, params, path, verdict)
        async with self._s.locks.alone((path,)):
            if self._s.workspace.stat(path) is not None:
                raise FileExists(path, "it exists already")
            part = Part(path=path, before=None, after=None, directory=True)
            plan = Apply(parts=(part,), warnings=crossing.warnings)
            if params.preview:
                would_be = "waiting" if isinstance(verdict, NeedApproval) else "applied"
                return await self._answers.of_plan(plan, would_be=would_be, shows=everything)
            intent = msgspec.structs.replace(self._directory_intent(caller, call, params), leases=crossing.leases)
            applied = await self._effects.carry_out(plan, intent)
        return await self._answers.of_applied(
            applied.recorded, applied.event, shows=everything, warnings=applied.warnings
        )

    async def _ask_directory(
        self, caller: Caller, call: Call, params: p.CreateDirectory, path: WorkspacePath, verdict: NeedApproval
    ) -> r.ChangeAnswer:
        plan = Apply(parts=(Part(path=path, before=None, after=None, directory=True),))
        intent = self._directory_intent(caller, call, params)
        return await self._changer.request(plan, intent, (verdict,), shows=everything)

    def _directory_intent(self, caller: Caller, call: Call, params: p.CreateDirectory) -> Intent:
        session = self._s.state.sessions.get(caller.session)
        return Intent(
            operation=call.operation.name,
            origin=caller.origin(call),
            task=session.task if session else None,
            reason=params.reason,
        )

    async def _change(
        self,
        caller: Caller,
        call: Call,
        command: Command,
        params: p.ChangeParams,
        base: p.Version | None,
        supersedes: p.Version | None,
    ) -> r.ChangeAnswer:
        wanted = Wanted(
            caller=caller,
            call=call,
            base=base,
            preview=params.preview,
            supersedes=supersedes,
            reason=params.reason,
        )
        return await self._changer.change(command, wanted)

    def _no_directory(self, path: WorkspacePath, what: str) -> None:
        stat = self._s.workspace.stat(path)
        if stat is not None and stat.kind == "directory":
            raise NotAvailable(
                f"{path} is a directory, and {what} one is not built in this version",
                hint="Name the files in it one by one.",
            )
