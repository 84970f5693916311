"""What the command line does on a workspace whose daemon is stopped."""

from __future__ import annotations

from orchestrator.api import maintenance as k
from orchestrator.api.results import VerifyAnswer


def reset_approver(workspace: str, state_dir: str) -> str:
    """A new approver code, on the strength of owning the state directory. Raises WorkspaceHeld."""
    from orchestrator.offline import reset_approver as reset

    return reset(workspace, state_dir)


def verify(state_dir: str, checkpoint: str | None) -> VerifyAnswer:
    """What `journal_verify` answers, without a daemon."""
    from orchestrator.offline import verify as check

    return check(state_dir, checkpoint)


def backup(workspace: str, state_dir: str, directory: str) -> k.BackupAnswer:
    """A verified copy of the journal. Raises WorkspaceHeld, BackupRefused, DiskFull."""
    from orchestrator.offline import backup

    return backup(workspace, state_dir, directory)


def restore(workspace: str, state_dir: str, directory: str, *, foreign: bool = False) -> k.RestoreAnswer:
    """A backup in the journal's place. Raises WorkspaceHeld, BackupInvalid, BackupForeign, DiskFull."""
    from orchestrator.offline import restore

    return restore(workspace, state_dir, directory, foreign=foreign)


def reset(workspace: str, state_dir: str) -> k.ResetAnswer:
    """No journal any more; the old one is moved aside. Raises WorkspaceHeld."""
    from orchestrator.offline import reset

    return reset(workspace, state_dir)


def adopt(workspace: str, state_dir: str) -> k.AdoptAnswer:
    """Go on with a journal that is behind its files. Raises WorkspaceHeld."""
    from orchestrator.offline import adopt

    return adopt(workspace, state_dir)
