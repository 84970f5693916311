"""The approver code: shown once, and replaced with the old one, or by the owner while nothing runs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from orchestrator.clients.python import RemoteError
from tests.daemon.running import RunningDaemon

pytestmark = pytest.mark.anyio


async def test_it_is_made_once_and_replaced_with_the_old_one(daemon: RunningDaemon) -> None:
    async with daemon.client() as person:
        first = (await person.approver_create()).approver_code
        assert first is not None
        assert (await person.approver_create()).approver_code is None
        with pytest.raises(RemoteError) as refused:
            await person.approver_reset(approver="wrong")
        assert refused.value.code == "approver_code_needed"
        second = (await person.approver_reset(approver=first.upper())).approver_code
        assert second not in (None, first)
        with pytest.raises(RemoteError):
            await person.approver_reset(approver=first)


async def test_a_lost_code_is_replaced_by_the_owner_while_nothing_runs(daemon: RunningDaemon) -> None:
    lost = await daemon.make_approver()

    def reset() -> subprocess.CompletedProcess[str]:
        options = ["--workspace", str(daemon.workspace), "--json"]
        return subprocess.run(
            [sys.executable, "-m", "orchestrator", *options, "approver", "reset"],
            env=daemon.env,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    assert reset().returncode == 1  # a daemon runs, so the old code is asked for
    assert daemon.stop() == 0
    made = reset()
    assert made.returncode == 0, made.stderr
    code = json.loads(made.stdout)["approver_code"]
    daemon.start()
    async with daemon.client() as person:
        with pytest.raises(RemoteError):
            await person.approver_reset(approver=lost)
        assert (await person.approver_reset(approver=code)).approver_code
        last = (await person.journal_query(kind="approver_set")).entries
        assert [entry.event["by"] for entry in last] == ["old_code", "owner_uid", "first_up"]
        assert all("scrypt" not in entry.event for entry in last)
