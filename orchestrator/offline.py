"""The composition root for a workspace that no daemon serves."""

from __future__ import annotations

import anyio

from orchestrator.api.results import VerifyAnswer
from orchestrator.core.checkpoint import Checkpoint, parse_checkpoint
from orchestrator.core.events.base import Origin
from orchestrator.engine.approver import STREAM, new_code
from orchestrator.engine.sealing import verified
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.machine import SystemClock, SystemEntropy
from orchestrator.ports import NewEvent, Unit
from orchestrator.workspace.holding import hold_root, hold_state


def reset_approver(workspace: str, state_dir: str) -> str:
    """Make a new approver code without the old one; the journal says that the owner's uid did it.

    Who can do this can read the journal anyway: it takes the state directory's owner.
    Raises WorkspaceHeld while a daemon runs, and what opening the journal raises.
    """
    state, root = hold_state(state_dir), hold_root(workspace)
    try:
        return anyio.run(_reset, state_dir)
    finally:
        root.close()
        state.close()


async def _reset(state_dir: str) -> str:
    entropy = SystemEntropy()
    journal = await SqliteJournal.open(state_dir, clock=SystemClock(), entropy=entropy)
    try:
        code, event = new_code(entropy, "owner_uid")
        await journal.append(Unit((NewEvent(STREAM, event),), Origin()))
    finally:
        await journal.close()
    return code


def verify(state_dir: str, checkpoint: str | None) -> VerifyAnswer:
    """Check the journal of a stopped daemon, with the text of a checkpoint file perhaps; nothing is written.

    Raises CheckpointInvalid, CheckpointForeign, and what opening the journal raises.
    """
    return anyio.run(_verify, state_dir, parse_checkpoint(checkpoint) if checkpoint is not None else None)


async def _verify(state_dir: str, checkpoint: Checkpoint | None) -> VerifyAnswer:
    journal = await SqliteJournal.open(state_dir, clock=SystemClock(), entropy=SystemEntropy(), readonly=True)
    try:
        return verified(await journal.verify(checkpoint))
    finally:
        await journal.close()
