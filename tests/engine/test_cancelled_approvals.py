"""A yes whose call is cancelled, as an MCP client can: once it is in the journal, the change is made."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from orchestrator.core.events.base import Recorded
from orchestrator.core.events.conflicts import ApprovalGranted
from orchestrator.core.policy.parse import parse_policy
from orchestrator.workspace.disk import Disk
from tests.crash.inside import living

pytestmark = pytest.mark.anyio

POLICY = """
name = "asked"
default = "allow"

[[rule]]
name = "asked"
agents = ["*"]
actions = ["create"]
paths = ["**"]
verdict = "ask"
"""


async def test_a_yes_is_carried_out_though_its_call_is_cancelled(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "state").mkdir(mode=0o700)
    async with living(tmp_path / "state", tmp_path / "work", Disk()) as life:
        life.services.permissions.policy = parse_policy(POLICY, source="test")
        code = (await life.person.approver_create()).approver_code
        alice = await life.client("alice")
        approval = (await alice.write_file("a.txt", "one\n", mode="create")).approval or ""
        with anyio.CancelScope() as call:

            def cancel(recorded: Recorded) -> None:
                if isinstance(recorded.event, ApprovalGranted):
                    call.cancel()

            life.services.journal.subscribe(cancel)
            await life.person.approve(approval, approver=code, unseen=True)
        assert call.cancelled_caught
        assert (await alice.await_change(approval, timeout_s=0)).status == "applied"
        assert (tmp_path / "work/a.txt").read_text() == "one\n"
