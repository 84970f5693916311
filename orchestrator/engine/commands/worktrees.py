"""Copies of the tree in which launched agents work; each outlives the daemon, until it is closed."""

from __future__ import annotations

from orchestrator.api import parameters as p
from orchestrator.api.commands import CommandChange
from orchestrator.api.worktrees import CloseWorktree, Worktree, WorktreeAnswer
from orchestrator.core.errors import NotPermitted, VersionUnknown, escaped, plural
from orchestrator.core.ids import AgentName, SessionId, show
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.commands.command_service import LISTED_CHANGES
from orchestrator.engine.commands.scratch import ScratchResults
from orchestrator.engine.external.watch import Watching
from orchestrator.engine.services import Services
from orchestrator.ports.commands import ScratchTrees


class WorktreeService:
    """The two operations."""

    def __init__(self, services: Services, watching: Watching, trees: ScratchTrees, results: ScratchResults) -> None:
        self._s, self._watching, self._trees, self._results = services, watching, trees, results

    async def open_worktree(self, caller: Caller, call: Call, params: p.Params) -> Worktree:
        await self._watching.settle()
        files = self._s.access.contents_of(caller, self._s.state.registry.paths(), ("read",))
        at = self._s.journal.head
        tree = await self._trees.make(files, kept_for=(caller.agent, caller.session))
        tree.release()
        return Worktree(worktree=tree.folder.rpartition("/")[2], folder=tree.folder, at=show(at))

    async def close_worktree(self, caller: Caller, call: Call, params: CloseWorktree) -> WorktreeAnswer:
        tree = await self._trees.reopen(params.worktree)
        if tree is None:
            raise VersionUnknown(f"there is no worktree {escaped(params.worktree)}", hint="It was closed before.")
        done = params.drop
        try:
            agent, session = tree.kept_for
            if not caller.is_person and caller.agent != agent:
                done = False
                raise NotPermitted(f"{escaped(params.worktree)} is a worktree of {agent}")
            if params.drop:
                return WorktreeAnswer(message="the copy is removed, and what was made of it")
            author = self._s.permissions.author(AgentName(agent), SessionId(session)) if caller.is_person else caller
            back = await self._results.bring_back(author, call, tree)
            done = back.whole
            if not done:
                back.warnings.append(f"the copy is kept in {tree.folder}; close it again, or drop it")
        finally:
            if done:
                await tree.remove()
            else:
                tree.release()
        changed = self._s.access.listed(caller, back.changed.items())
        if back.change is not None:
            message = f"{plural(len(changed), 'file')} changed, and revert(change='{show(back.change)}') undoes that"
        else:
            message = back.warnings[0] if back.warnings else "no file changed"
        return WorktreeAnswer(
            message=message,
            change=show(back.change) if back.change is not None else None,
            changes=tuple(CommandChange(path=path, change=show(seq)) for path, seq in changed[:LISTED_CHANGES]),
            more_changes=max(0, len(changed) - LISTED_CHANGES),
            warnings=tuple(back.warnings),
        )
