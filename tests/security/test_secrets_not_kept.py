"""What everybody is denied to read does not get into the state directory, until somebody asks to change it."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestrator.core.content import digest_of
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.machine import SystemClock, SystemEntropy
from tests.daemon.daemon_process import RunningDaemon
from tests.security.hostile_workspace import Line

SECRET = b"first=1\nKEY=hunter2-5f0c9d1e\nlast=3\n"
NEWER = b"first=1\nKEY=swordfish-77ab01\nlast=3\n"


class Place:
    """A daemon, an agent and a person; and what its state directory holds."""

    def __init__(self, daemon: RunningDaemon) -> None:
        self.daemon, self.env = daemon, daemon.workspace / ".env"
        self.agent, self.person = Line(daemon.socket, agent="alice"), Line(daemon.socket, person=True)
        self.approver = self.person.done("approver_create")["approver_code"]

    def close(self) -> None:
        self.agent.close()
        self.person.close()

    def replace(self, content: bytes) -> None:
        draft = self.daemon.base / "draft"
        draft.write_bytes(content)
        draft.replace(self.env)

    def version(self) -> str:
        return str(self.agent.done("file_info", path=".env")["version_id"])

    def decided(self, waiting: dict[str, Any]) -> dict[str, Any]:
        self.person.done("approve", approval=waiting["approval"], approver=self.approver, unseen=True)
        return self.agent.done("await_change", id=waiting["approval"], timeout_s=5)

    def kept(self, content: bytes) -> list[str]:
        """Where in the state directory a content, its hash or a part of its hash stands."""
        digest = hashlib.sha256(content)
        needles = {
            "content": content,
            "its line": content.split(b"\n")[1],
            "hash": digest.hexdigest()[:16].encode(),
            "raw hash": digest.digest()[:8],
        }
        found = [
            f"{what} in {path.name}"
            for path in self.daemon.state_dir.rglob("*")
            if path.is_file() and not path.is_socket()
            for what, needle in needles.items()
            if needle in path.read_bytes()
        ]
        return found + (["a blob"] if anyio.run(_has_blob, str(self.daemon.state_dir), content) else [])


async def _has_blob(state_dir: str, content: bytes) -> bool:
    journal = await SqliteJournal.open(state_dir, clock=SystemClock(), entropy=SystemEntropy(), readonly=True)
    try:
        return await journal.has_blob(digest_of(content))
    finally:
        await journal.close()


@pytest.fixture
def place() -> Iterator[Place]:
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/tmp")).resolve()
    daemon = RunningDaemon(base)
    (daemon.workspace / ".env").write_bytes(SECRET)
    (daemon.workspace / "plain.txt").write_text("KEY=public\n")
    daemon.start()
    made = Place(daemon)
    made.person.done("journal_rebuild")  # waits until the background scan is through
    yield made
    made.close()
    assert daemon.stop() == 0
    shutil.rmtree(base)


def test_no_look_keeps_it(place: Place) -> None:
    assert place.kept(b"KEY=public\n"), "what may be read is kept, and found by this search"
    assert place.kept(SECRET) == [], "after the first scan"
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("file_info", {"path": ".env"}),
        ("file_history", {"path": ".env"}),
        ("list_files", {"include_hidden": True}),
        ("find_files", {"glob": "*"}),
        ("search_content", {"pattern": "KEY"}),
        ("read_file", {"path": ".env"}),
        ("read_file", {"path": ".env", "at": "@start"}),
        ("get_diff", {"path": ".env"}),
        ("get_diff", {"from": "@start"}),
        ("edit_file", {"path": ".env", "changes": [{"search": "KEY", "replace": "x"}]}),
        ("write_file", {"path": ".env", "content": "x\n", "mode": "append", "preview": True}),
        ("write_file", {"path": ".env", "content": "x\n", "mode": "truncate"}),
        ("delete_file", {"path": ".env", "preview": True}),
    )
    for caller in (place.agent, place.person):
        for operation, params in calls:
            caller.call(operation, **params)
            assert place.kept(SECRET) == [], operation


def test_nor_does_a_change_by_others(place: Place) -> None:
    before = place.version()
    place.replace(NEWER)
    assert place.version() != before
    stale = place.agent.call("write_file", path=".env", content="x", mode="truncate", base=before)
    assert stale.code == "stale_base"
    place.env.rename(place.env.with_name(".env.local"))
    place.agent.done("file_info", path=".env.local")
    for content in (SECRET, NEWER):
        assert place.kept(content) == []
    place.daemon.stop()
    place.env.with_name(".env.local").write_bytes(SECRET)
    place.daemon.start()
    for content in (SECRET, NEWER):
        assert place.kept(content) == []


def test_a_change_keeps_what_its_undo_needs(place: Place) -> None:
    version = place.version()
    waiting = place.agent.done("write_file", path=".env", content="mine=2\n", mode="truncate", base=version)
    done = place.decided(waiting)
    assert (done["status"], place.env.read_bytes()) == ("applied", b"mine=2\n")
    assert place.decided(place.agent.done("revert", change=done["change"]))["status"] == "applied"
    assert place.env.read_bytes() == SECRET
    assert "a blob" in place.kept(SECRET)
    version = place.version()
    place.env.touch()
    assert place.version() == version, "the hash is known by now, so that a touch is no change"
    place.replace(NEWER)
    assert place.version() != version
    assert place.kept(NEWER) == []


def test_what_is_hidden_can_be_redacted_by_version_and_path(place: Place) -> None:
    version = place.version()
    place.agent.done("delete_file", path=".env")
    assert "a blob" in place.kept(SECRET)
    wrong = place.person.call("journal_redact", blob=version, path="plain.tx", approver=place.approver)
    assert wrong.code == "not_redactable"
    done = place.person.done("journal_redact", blob=version, path=".env", approver=place.approver)
    assert done["size"] == len(SECRET)
    assert not [where for where in place.kept(SECRET) if "hash" not in where]
    plain = place.agent.done("file_info", path="plain.txt")["version_id"]
    assert place.person.done("journal_redact", blob=plain, path="plain.txt", approver=place.approver)["digest"]
    place.replace(NEWER)
    never = place.person.call("journal_redact", blob=place.version(), path=".env", approver=place.approver)
    assert never.code == "not_redactable"
    assert "never" in never.error["message"]


def test_an_undo_of_what_was_redacted_reports_no_hash(place: Place) -> None:
    start = place.version()
    waiting = place.agent.done("write_file", path=".env", content="mine=2\n", mode="truncate", base=start)
    change = place.decided(waiting)["change"]
    place.person.done("journal_redact", blob=start, path=".env", approver=place.approver)
    for operation, params in (("revert", {"change": change}), ("rollback", {"agent": "alice"})):
        refused = place.agent.call(operation, preview=True, **params)
        assert refused.code == "version_not_kept"
        assert hashlib.sha256(SECRET).hexdigest()[:6] not in str(refused.error)
