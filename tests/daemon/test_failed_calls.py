"""A call that fails inside the daemon is an event as a refusal is; where the journal can't take it, it is answered."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from orchestrator.clients.python import RemoteError, Replacement
from orchestrator.journal.database_file import FILE_NAME
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.damage import alter
from tests.daemon.failing import SECRET

pytestmark = pytest.mark.anyio


async def failed(call: Awaitable[object]) -> RemoteError:
    with pytest.raises(RemoteError) as error:
        await call
    return error.value


def noted(daemon: RunningDaemon) -> tuple[dict[str, Any], dict[str, Any]]:
    """The newest refusal of a call, and what the call was."""
    with closing(sqlite3.connect(f"file:{daemon.state_dir / FILE_NAME}?mode=ro", uri=True)) as journal:
        payload, details = journal.execute(
            "SELECT payload, details FROM events WHERE tag = 'call_refused' ORDER BY seq DESC LIMIT 1"
        ).fetchone()
    return json.loads(payload), json.loads(details)


class Defective(RunningDaemon):
    """A daemon with a defect at one step, or on a disk with a switch."""

    def __init__(self, base: Path, *at: str) -> None:
        self.switch = base / "trouble"
        super().__init__(base, module=("-m", "tests.daemon.failing", str(self.switch), *at))


async def test_a_damaged_content(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.txt").write_text("one\n")
    async with daemon.client("alice") as alice:
        first = (await alice.read_file("a.txt")).version_id
        await alice.edit_file("a.txt", [Replacement(search="one", replace="two")])
    assert daemon.stop() == 0
    alter("UPDATE blobs SET data = x'00'")(daemon.state_dir)
    daemon.start()
    async with daemon.client("alice") as alice:
        why = await failed(alice.read_file("a.txt", at=first))
        assert why.code == "journal_corrupt"
        event, call = noted(daemon)
        assert (event["operation"], event["code"], event["message"]) == ("read_file", why.code, why.message)
        assert call["arguments"] == {"path": "a.txt", "at": first}
    assert f"read_file, code {why.code}" in cli(daemon, "log", "--kind", "call_refused")[1]


async def test_a_defect_is_an_event_without_its_trace(base: Path) -> None:
    daemon = Defective(base, "--at", "temp_created", "defect")
    daemon.start()
    try:
        async with daemon.client("alice") as alice:
            why = await failed(alice.write_file("a.txt", "one\n", mode="create"))
            assert why.code == "internal"
            event, _ = noted(daemon)
            assert (event["code"], event["message"]) == (why.code, why.message)
            assert why.message == "write_file failed inside the daemon (RuntimeError)"
            assert SECRET not in json.dumps(event)
            assert SECRET in daemon.log
    finally:
        daemon.stop()


async def test_a_folder_that_is_gone(daemon: RunningDaemon) -> None:
    elsewhere = daemon.base / "elsewhere"
    async with daemon.client("alice") as alice:
        daemon.workspace.rename(elsewhere)
        why = await failed(alice.write_file("a.txt", "one\n", mode="create", request_id="1"))
        event, call = noted(daemon)
        assert (event["code"], why.code, call["operation"]) == ("workspace_moved", "workspace_moved", "write_file")
        elsewhere.rename(daemon.workspace)
        again = await alice.write_file("a.txt", "one\n", mode="create", request_id="1")
        assert again.status == "applied", "the same request is not answered by what failed"


async def test_the_caller_is_answered_where_the_journal_takes_nothing(base: Path) -> None:
    daemon = Defective(base)
    daemon.start()
    try:
        (daemon.workspace / "a.txt").write_text("one\n")
        async with daemon.client("alice") as alice:
            await alice.read_file("a.txt")
            daemon.switch.write_text("sync")
            why = await failed(alice.edit_file("a.txt", [Replacement(search="one", replace="two")]))
            assert why.code == "writes_stopped"
        async with daemon.client() as person:
            assert any("not in the journal" in note for note in (await person.status()).health.notes)
        assert "reads are answered and not noted" in daemon.log
    finally:
        daemon.stop()
