"""The home folder as workspace: what daemons keep in it, for every workspace, is as if absent. FAULTS row 58."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.daemon_process import RunningDaemon
from tests.security.hostile_workspace import Line

ROOT = ".local/state/orchestrator"
OTHER = "0123456789abcdef"
KEPT = "kept-by-a-daemon-77"


class HomeDaemon(RunningDaemon):
    """Its workspace is the home folder, which holds the state, the sockets, and what other daemons keep."""

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.workspace = self.home
        self.runtime = self.home / "run"
        self.socket = self.runtime / "orchestrator" / "s"
        self.state_dir = self.home / ROOT / self.id
        elsewhere = self.home / "elsewhere" / "state"
        for folder in (self.state_dir, self.home / ROOT / OTHER, elsewhere, self.home / "xdg" / "orchestrator" / OTHER):
            folder.mkdir(parents=True, mode=0o700)
        for folder in (self.home / "run", self.home / "run" / "orchestrator"):
            folder.mkdir(mode=0o700)
        for folder in (self.home / ROOT / OTHER, elsewhere, self.home / "xdg" / "orchestrator" / OTHER):
            (folder / "journal.db").write_text(KEPT)
        known = {"workspace": "/elsewhere", "state_dir": str(elsewhere), "socket": str(elsewhere / "s"), "pid": 1}
        (self.home / ROOT / f"{OTHER}.location").write_text(json.dumps({**known, "state": "stopped"}))
        for name in (f"{OTHER}.mark", f"{OTHER}.lock"):
            (self.home / ROOT / name).write_text(KEPT)

    @property
    def env(self) -> dict[str, str]:
        return {**super().env, "XDG_STATE_HOME": str(self.home / "xdg")}


@pytest.fixture(scope="module")
def daemon() -> Iterator[HomeDaemon]:
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/tmp")).resolve()
    made = HomeDaemon(base)
    (made.home / "plain.txt").write_text(f"{KEPT} in plain sight\n")
    made.start()
    yield made
    assert made.stop() == 0
    shutil.rmtree(base)


def kept(daemon: HomeDaemon) -> dict[str, bytes]:
    """What other daemons keep, and the names of our own."""
    found = {}
    for place in (ROOT, "xdg", "elsewhere", "run"):
        for path in (daemon.home / place).rglob("*"):
            own = path.is_relative_to(daemon.state_dir) or path.is_socket() or daemon.id in path.name
            found[str(path)] = b"" if own or path.is_dir() else path.read_bytes()
    return {path: data for path, data in found.items() if ".orchestrator-" not in path and "journal.db-" not in path}


PLACES = [
    ROOT,
    f"{ROOT}/{OTHER}.location",
    f"{ROOT}/{OTHER}.mark",
    f"{ROOT}/{OTHER}.lock",
    f"{ROOT}/{OTHER}",
    f"{ROOT}/{OTHER}/journal.db",
    f"{ROOT}/ffffffffffffffff.location",
    f"{ROOT}/ffffffffffffffff/policy.toml",
    f"{ROOT}/own.location",
    f"{ROOT}/own/policy.toml",
    f"{ROOT}/own/journal.db",
    f".LOCAL/State/Orchestrator/{OTHER}.mark",
    "xdg/orchestrator",
    f"xdg/orchestrator/{OTHER}/journal.db",
    "elsewhere/state",
    "elsewhere/state/journal.db",
    "run/orchestrator",
    "run/orchestrator/s",
    "run/orchestrator/other.sock",
]


@pytest.mark.parametrize("path", PLACES)
def test_the_state_root_is_as_if_absent(daemon: HomeDaemon, path: str) -> None:
    path = path.replace("own", daemon.id)
    before = kept(daemon)
    with Line(daemon.socket, agent="alice") as agent:
        calls: tuple[tuple[str, dict[str, Any]], ...] = (
            ("read_file", {"path": path}),
            ("file_info", {"path": path}),
            ("file_history", {"path": path}),
            ("search_content", {"path": path, "pattern": KEPT}),
            ("list_files", {"path": path}),
            ("edit_file", {"path": path, "changes": [{"search": KEPT, "replace": "x"}]}),
            ("write_file", {"path": path, "content": "x", "mode": "append"}),
            ("write_file", {"path": path, "content": "x", "mode": "create"}),
            ("write_file", {"path": f"{path}/x", "content": "x", "mode": "create"}),
            ("delete_file", {"path": path}),
            ("create_directory", {"path": path}),
            ("move_file", {"source": path, "destination": "mine.db"}),
            ("move_file", {"source": "plain.txt", "destination": path}),
            ("apply_patch", {"patch": f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"}),
        )
        for operation, params in calls:
            answer = agent.call(operation, **params)
            assert answer.code in ("denied", "not_found", "not_a_file"), (operation, answer.raw[:300])
            assert KEPT.encode() not in answer.raw
    assert kept(daemon) == before


def test_listings_and_searches_leave_it_out(daemon: HomeDaemon) -> None:
    with Line(daemon.socket, agent="alice") as agent:
        listed = agent.done("list_files", recursive=True, include_hidden=True).get("entries", ())
        assert {entry["path"] for entry in listed} == {
            *("plain.txt", ".local", ".local/state", "xdg", "elsewhere", "run"),
        }
        found = agent.done("find_files", glob="*").get("entries", ())
        assert [entry["path"] for entry in found] == ["plain.txt"]
        assert [hit["path"] for hit in agent.done("search_content", pattern=KEPT)["hits"]] == ["plain.txt"]
    with Line(daemon.socket, person=True) as person:
        scanned = person.done("journal_query", kind="files_found", limit=50)
        assert KEPT not in json.dumps(scanned)
        assert ROOT not in json.dumps(scanned)


@pytest.mark.parametrize("path", [f"{ROOT}/{OTHER}.mark", f"{ROOT}/{OTHER}/journal.db", "elsewhere/state/journal.db"])
def test_by_another_name(daemon: HomeDaemon, path: str) -> None:
    """A hard link in the workspace is as if absent, also to what came after the start."""
    late = daemon.home / ROOT / OTHER / "late"
    late.write_text(KEPT)
    for owned in (daemon.home / path, late):
        alias = daemon.home / "alias.txt"
        os.link(owned, alias)
        try:
            with Line(daemon.socket, agent="alice") as agent:
                for operation, params in (
                    ("read_file", {}),
                    ("search_content", {"pattern": KEPT}),
                    ("edit_file", {"changes": [{"search": KEPT, "replace": "x"}]}),
                    ("delete_file", {}),
                ):
                    assert agent.call(operation, path=alias.name, **params).code in ("denied", "not_found")
                assert "alias.txt" not in [entry["path"] for entry in agent.done("list_files").get("entries", ())]
            assert alias.stat().st_ino == owned.stat().st_ino
        finally:
            alias.unlink()


def test_by_symbolic_link(daemon: HomeDaemon) -> None:
    (daemon.home / "to-state").symlink_to(daemon.home / ROOT)
    with Line(daemon.socket, agent="alice") as agent:
        answer = agent.call("read_file", path=f"to-state/{OTHER}.mark")
        assert answer.code == "symlink_refused"
        assert agent.call("list_files", path="to-state").code in ("symlink_refused", "not_a_directory")
    (daemon.home / "to-state").unlink()


@pytest.mark.parametrize("operation", ["delete_file", "move_file"])
def test_what_holds_it_can_go_and_it_stays(daemon: HomeDaemon, operation: str) -> None:
    share = daemon.home / ".local" / "share"
    share.mkdir()
    (share / "x.txt").write_text("x\n")
    before = kept(daemon)
    with Line(daemon.socket, agent="alice") as agent, Line(daemon.socket, person=True) as person:
        if not daemon.approver:
            daemon.approver = person.done("approver_create")["approver_code"]
        params = {"path": ".local"} if operation == "delete_file" else {"source": ".local", "destination": "there"}
        waiting = agent.done(operation, **params)
        person.done("approve", approval=waiting["approval"], approver=daemon.approver, unseen=True)
        assert agent.done("await_change", id=waiting["approval"], timeout_s=5)["status"] == "applied"
    assert not (share / "x.txt").exists()
    assert kept(daemon) == before
    shutil.rmtree(daemon.home / "there", ignore_errors=True)


def test_the_state_root_is_no_workspace(tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path)
    daemon.workspace = daemon.home / ROOT / "inner"
    daemon.workspace.mkdir(parents=True)
    assert daemon.start()["code"] == "workspace_unknown"
    assert daemon.wait() == 1
