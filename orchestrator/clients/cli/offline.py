"""What the command line does on a workspace whose daemon is stopped."""

from __future__ import annotations

from orchestrator.api.results import VerifyAnswer


def reset_approver(workspace: str, state_dir: str) -> str:
    """A new approver code, on the strength of owning the state directory. Raises WorkspaceHeld."""
    from orchestrator.offline import reset_approver as reset

    return reset(workspace, state_dir)


def verify(state_dir: str, checkpoint: str | None) -> VerifyAnswer:
    """What `journal_verify` answers, without a daemon."""
    from orchestrator.offline import verify as check

    return check(state_dir, checkpoint)
