"""tag_file and list_tags: who may say what of a file, and where it was said."""

from __future__ import annotations

from orchestrator.api import tags as t
from orchestrator.core.errors import Denied, FileNotFound, ParameterInvalid, escaped
from orchestrator.core.events.files import FileTagged
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import MOST_TAGS, tag_problem, within
from orchestrator.core.policy.rules import Allow
from orchestrator.core.text.answer_space import json_size
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import Observer, regular
from orchestrator.engine.services import Services


class TagService:
    """Sets tags. Those that policy goes by are set by who has the approver code, as a change of the policy is."""

    def __init__(self, services: Services, observer: Observer, gate: ApproverGate) -> None:
        self._s, self._observer, self._gate = services, observer, gate

    async def tag_file(self, caller: Caller, call: Call, params: t.TagFile) -> t.TaggedFile:
        path = self._s.paths.file(params.path)
        await self._s.access.names(caller, call, path)
        for tag in params.tags:
            if problem := tag_problem(tag):
                raise ParameterInvalid("tags", problem)
        stat = self._s.workspace.stat(path)
        if not self._s.state.tags.of(path):  # they can be taken off, and more be set, where a file was
            regular(path, stat)
        self._check_writer(caller, path)
        if policed := sorted(self._s.permissions.policy.tags.intersection(params.tags)):
            await self._check_approver(caller, params.approver, policed)
        known = self._s.state.tags.of(path)
        named = dict.fromkeys(params.tags)
        changed = tuple(tag for tag in named if (tag in known) == params.remove)
        if not params.remove and len(known) + len(changed) > MOST_TAGS:
            raise ParameterInvalid("tags", f"{escaped(path)} would have more than {MOST_TAGS} tags")
        if changed and stat is not None:  # so that the file is known again where it is moved
            async with self._s.locks.hold((path,)):
                await self._observer.refresh(path, content=False)
        if changed:
            event = FileTagged(path=path, **{"removed" if params.remove else "added": changed})
            await self._s.notes.append(caller.origin(call), (f"tags:{path}", event))
        return t.TaggedFile(path=path, tags=self._s.state.tags.of(path))

    async def list_tags(self, caller: Caller, call: Call, params: t.ListTags) -> t.TaggedFiles:
        folder, access = self._s.paths.either(params.path), self._s.access
        found = [
            t.TaggedFile(path=path, tags=tags)
            for path, tags in self._s.state.tags
            if within(path, folder) and (params.tag is None or params.tag in tags) and access.lists(caller, path)
        ]
        if not found and self._s.workspace.stat(folder) is None:
            tag = escaped(params.path)
            hint = f"`orchestrator tags --tag {tag}` shows the files with the tag {tag}."
            raise FileNotFound(folder, "there is no such file or directory", hint=hint)
        rest = [one for one in found if params.cursor is None or one.path > params.cursor]
        room = call.room.framed(max((one.path for one in rest), key=len, default=""))
        page = rest[: min(params.limit, room.first((json_size(one), 1) for one in rest))]
        return t.TaggedFiles(
            files=tuple(page), total=len(found), cursor=page[-1].path if len(page) < len(rest) else None
        )

    def _check_writer(self, caller: Caller, path: WorkspacePath) -> None:
        """An agent tags what it may write without asking. Raises Denied."""
        if caller.is_person:
            return
        verdict = self._s.permissions.verdict(caller, "write", path, on_disk=True)
        if not isinstance(verdict, Allow):
            raise Denied(
                f"tag {escaped(path)}: only who may write a file without asking tags it",
                hint="A person can: `orchestrator tag PATH TAG`.",
                details={"path": escaped(path), "action": "write", "rule": verdict.rule},
            )

    async def _check_approver(self, caller: Caller, code: str | None, policed: list[str]) -> None:
        """Raises Denied, ApproverCodeNeeded."""
        if not caller.is_person:
            raise Denied(
                f"rules of the policy go by {', '.join(policed)}, which a person alone sets and takes off",
                hint="A person can: `orchestrator tag PATH TAG`.",
                details={"tags": policed},
            )
        await self._gate.check(caller, code)
