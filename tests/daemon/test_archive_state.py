"""An archived file that was damaged or is gone: status and verify say it, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from orchestrator.clients import render
from orchestrator.clients.python import RemoteError
from tests.daemon.archives import daemon, past
from tests.daemon.daemon_process import RunningDaemon

__all__ = ["daemon"]

pytestmark = pytest.mark.anyio

SPOILS: dict[str, tuple[Callable[[Path], object], str]] = {
    "gone": (lambda path: path.unlink(), "archive_missing"),
    "empty": (lambda path: path.write_bytes(b""), "journal_corrupt"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-20]), "journal_corrupt"),
}


@pytest.mark.parametrize("how", SPOILS)
async def test_a_file_that_can_not_be_read(daemon: RunningDaemon, how: str) -> None:
    spoil, code = SPOILS[how]
    _, approver = await past(daemon)
    assert daemon.stop() == 0  # a snapshot, before which can be archived
    assert daemon.start()["ok"]
    async with daemon.client() as person:
        archived = await person.journal_archive(before="@8", approver=approver)
    (line,) = archived.archived
    assert daemon.stop() == 0
    spoil(daemon.state_dir / "archive" / line.file)
    assert daemon.start()["ok"]
    async with daemon.client() as person:
        with anyio.fail_after(60):
            while (health := (await person.status()).health).checked == "running":
                await anyio.lowlevel.checkpoint()
        assert health.checked[0] == "@"
        assert any(line.file in note and "can't be read" in note for note in health.notes), health.notes
        report = await person.journal_verify()
        shown = next(iter(render.rendered(report)))
        if how == "gone":
            assert (report.ok, report.unread) == (True, 7)
            assert "ok as far as it could be checked: 7 events not checked" in shown
        else:
            assert "not ok" in shown
        with pytest.raises(RemoteError) as refused:
            await person.journal_query(kind="files_found")
        assert refused.value.code == code
        assert "Put the file back" in refused.value.hint
    assert daemon.stop() == 0
