"""What a command made of a copy of the workspace comes back as one change of its caller."""

from __future__ import annotations

import msgspec

from orchestrator.core.decisions.scratch import ScratchFile, ScratchPatch, permission
from orchestrator.core.errors import CallerError, NothingToChange, escaped, plural
from orchestrator.core.ids import Seq, WorkspacePath
from orchestrator.core.paths import ancestors
from orchestrator.core.policy.rules import Deny
from orchestrator.engine.caller import Call, Caller, ChangeRequest
from orchestrator.engine.changes.pipeline import ChangePipeline
from orchestrator.engine.services import Services
from orchestrator.ports.commands import ScratchChange, ScratchTree

MOST_BYTES = 256 * 1024 * 1024
"""Of all contents that one command brings back."""

NAMED = 5
"""Paths in a warning."""


class BroughtBack(msgspec.Struct):
    """What became of it."""

    change: Seq | None = None  # the intent, where it was applied
    changed: dict[WorkspacePath, Seq] = msgspec.field(default_factory=dict)
    warnings: list[str] = msgspec.field(default_factory=list)
    whole: bool = True  # all of it was applied, waits, or is in conflict: nothing is in the copy alone


def _nested(paths: set[WorkspacePath]) -> list[WorkspacePath]:
    """Those that lie below another one, and that one: it is a file on one side, and a directory on the other."""
    above = {path: paths.intersection(ancestors(path)) for path in paths}
    return sorted({path for path in paths if above[path]}.union(*above.values()))


class ScratchResults:
    """Puts it through the change pipeline: policy, rebase, conflicts."""

    def __init__(self, services: Services, pipeline: ChangePipeline) -> None:
        self._s, self._pipeline = services, pipeline

    async def bring_back(self, caller: Caller, call: Call, tree: ScratchTree) -> BroughtBack:
        """Refusals are warnings: the command has run."""
        found, back = await tree.changes(most_bytes=MOST_BYTES), BroughtBack()
        back.warnings += [f"{path} did not come back: {why}" for path, why in found.left_out[:NAMED]]
        if len(found.left_out) > NAMED:
            back.warnings.append(f"{plural(len(found.left_out) - NAMED, 'more path')} did not come back")
        back.whole = not found.left_out
        nested = _nested({item.path for item in found.files})
        if nested:
            back.whole, named = False, ", ".join(map(escaped, nested[:NAMED]))
            back.warnings.append(
                f"{plural(len(nested), 'file')} did not come back, as one change can't put a file where a directory "
                f"is, or a directory where a file is: {named}"
            )
        files = [await self._file(item) for item in found.files if item.path not in nested]
        allowed = [item for item in files if not self._denied(caller, item)]
        if denied := [item.path for item in files if item not in allowed]:
            back.whole, named = False, ", ".join(map(escaped, denied[:NAMED]))
            back.warnings.append(f"policy keeps {plural(len(denied), 'file')} from coming back: {named}")
        if allowed:
            await self._apply(caller, call, ScratchPatch(files=tuple(allowed)), back)
        return back

    async def _apply(self, caller: Caller, call: Call, patch: ScratchPatch, back: BroughtBack) -> None:
        params = msgspec.structs.replace(call.params, request_id=None) if call.request_id else call.params
        plain = Call(operation=call.operation, params=params)
        request = ChangeRequest(caller=caller, call=plain, reason=getattr(call.params, "reason", ""))
        try:
            result = await self._pipeline.execute(patch, request)
        except NothingToChange:
            return
        except CallerError as error:
            back.whole = False
            back.warnings.append(f"what it changed did not come back: {error.message}")
            return
        answer = result.answer
        if answer.status == "applied" and answer.change is not None and answer.version_id is not None:
            back.change, version = Seq(int(answer.change[1:])), Seq(int(answer.version_id[1:]))
            paths = result.plan.paths if result.plan is not None else ()
            back.changed = {item.path: version for item in paths}
        elif answer.status != "conflict":
            back.warnings.append(f"what it changed: {answer.message}")
        conflicts = [f"@{seq}" for seq in result.conflicts] or ([answer.conflict] if answer.conflict else [])
        if conflicts:
            back.warnings.append(f"in conflict with what others changed meanwhile: {', '.join(conflicts)}")
        back.warnings += answer.warnings

    async def _file(self, item: ScratchChange) -> ScratchFile:
        """With the version that was copied, where a conflict can be merged by it."""
        version = None
        if item.before is not None and await self._s.contents.find(item.before) is not None:
            row = await self._s.journal.version_with(item.path, item.before)
            version = row.seq if row is not None else None
        return ScratchFile(item.path, item.before, version, item.content, item.mode)

    def _denied(self, caller: Caller, item: ScratchFile) -> bool:
        there = self._s.state.registry.get(item.path) is not None
        return isinstance(self._s.permissions.judge(caller, permission(item, there=there)), Deny)
