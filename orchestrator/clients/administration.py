"""What only a person can do, as methods of the Python client.

Written out so that editors and type checkers know them; a test holds them equal to the catalogue.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal, TypeVar

from orchestrator.api import parameters as p
from orchestrator.api import results as r

R = TypeVar("R", bound=r.Result)


class AdministrationCalls:
    """The operations that are never an agent's tool."""

    @abstractmethod
    async def _call(self, result: type[R], params: p.Params) -> R: ...

    async def status(self) -> r.StatusInfo:
        """What the daemon is doing."""
        return await self._call(r.StatusInfo, p.Status())

    async def approvals_list(self, *, limit: int = 50, cursor: str | None = None) -> r.Approvals:
        """Changes that wait for a yes, oldest first, without their diffs."""
        return await self._call(r.Approvals, p.ApprovalsList(limit=limit, cursor=cursor))

    async def approvals_show(self, approval: str | int) -> r.ApprovalInfo:
        """One of them, with its diff."""
        return await self._call(r.ApprovalInfo, p.ApprovalsShow(approval=approval))

    async def approve(self, approval: str | int, *, approver: str | None = None) -> r.ChangeAnswer:
        """Say yes: the daemon applies the change."""
        return await self._call(r.ChangeAnswer, p.Approve(approval=approval, approver=approver))

    async def deny(self, approval: str | int, *, approver: str | None = None, reason: str = "") -> r.Done:
        """Say no."""
        return await self._call(r.Done, p.Deny(approval=approval, approver=approver, reason=reason))

    async def agent_add(
        self, name: str, *, approver: str | None = None, agent_class: Literal["cloud", "local", "review"] = "cloud"
    ) -> r.AgentToken:
        """Make an agent and show its token once."""
        return await self._call(r.AgentToken, p.AgentAdd(name=name, approver=approver, agent_class=agent_class))

    async def agent_revoke(self, name: str, *, approver: str | None = None) -> r.Done:
        """Take an agent's token away."""
        return await self._call(r.Done, p.AgentRevoke(name=name, approver=approver))

    async def agent_list(self) -> r.Agents:
        """Who may call."""
        return await self._call(r.Agents, p.AgentList())

    async def approver_create(self) -> r.ApproverCode:
        """Make the approver code, once."""
        return await self._call(r.ApproverCode, p.ApproverCreate())

    async def approver_reset(self, *, approver: str | None = None) -> r.ApproverCode:
        """Replace the approver code."""
        return await self._call(r.ApproverCode, p.ApproverReset(approver=approver))

    async def policy_check(self, text: str, *, source: str = "policy.toml") -> r.PolicyReport:
        """Check the text of a policy file."""
        return await self._call(r.PolicyReport, p.PolicyCheck(text=text, source=source))

    async def policy_reload(self, *, approver: str | None = None) -> r.PolicyReport:
        """Read the policy file again."""
        return await self._call(r.PolicyReport, p.PolicyReload(approver=approver))

    async def journal_verify(self, *, checkpoint: str | None = None) -> r.VerifyAnswer:
        """Check the chain, the payloads and the blobs; with a checkpoint file's text, compare it."""
        return await self._call(r.VerifyAnswer, p.JournalVerify(checkpoint=checkpoint))

    async def journal_rebuild(self, *, check: Literal[True] = True) -> r.RebuildAnswer:
        """Replay everything and compare."""
        return await self._call(r.RebuildAnswer, p.JournalRebuild(check=check))

    async def workspace_check(self) -> r.WorkspaceReport:
        """Compare the disk with the journal."""
        return await self._call(r.WorkspaceReport, p.WorkspaceCheck())

    async def stop(self) -> r.Done:
        """End the daemon."""
        return await self._call(r.Done, p.Stop())
