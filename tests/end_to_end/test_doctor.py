"""`doctor`, with and without a daemon, on what is well and on what is broken; it changes nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from orchestrator.api.operations import toolset
from orchestrator.workspace.command_confinement import find_confinement
from tests.end_to_end.test_connections import connected, contents, said, state
from tests.end_to_end.workspace_factory import Place


def looked(place: Place, *, ok: bool) -> list[dict[str, Any]]:
    ran = place.cli("doctor", "--json")
    assert ran.json["ok"] is ok, ran.json
    assert ran.code == (0 if ok else 1)
    checks: list[dict[str, Any]] = ran.json["checks"]
    assert ok is not any(check["status"] == "failure" for check in checks)
    return checks


def of(checks: list[dict[str, Any]], status: str, subject: str = "") -> str:
    chosen = [each for each in checks if each["status"] == status and each["subject"].startswith(subject)]
    return "\n".join(f"{each['subject']}: {each['finding']} {each['next']}" for each in chosen)


def test_all_is_well(place: Place) -> None:
    approver = place.up()["approver_code"]
    for client in ("claude", "codex"):
        connected(place, client, approver=approver)
    before = contents(place)
    checks = looked(place, ok=True)
    well = of(checks, "ok")
    for subject in ("socket's folder", "state directory", "socket", "token", "daemon", "journal", "log"):
        assert f"\n{subject}: " in well
    assert f"claude: the transport offers {len(toolset('core'))} tools" in well
    assert "codex: its token is good: it is codex" in well
    assert contents(place) == before
    lines = place.cli("doctor").out.splitlines()
    assert all(line.startswith(("ok       ", "warning  ", "failure  ", "         ")) for line in lines)


def test_it_starts_no_daemon(place: Place) -> None:
    assert "daemon: it does not run `orchestrator up`" in of(looked(place, ok=True), "warning")
    assert not (place.home / ".local").exists()
    connected(place, "opencode")
    place.cli("stop")
    checks = looked(place, ok=True)
    assert "journal: verified, at @" in of(checks, "ok")
    assert "opencode.json says what it must" in of(checks, "ok", "opencode")
    assert place.location["state"] == "stopped"


def test_a_killed_daemon(place: Place) -> None:
    place.up()
    place.kill_daemon()
    assert "daemon: it does not run" in of(looked(place, ok=True), "warning")


@pytest.mark.parametrize(
    ("break_it", "finding"),
    [
        pytest.param(lambda text: text.replace('"*": false,', ""), 'lacks tools."*"', id="a setting is gone"),
        pytest.param(lambda text: text[:-3], "can't be read as JSON: line ", id="broken"),
        pytest.param(lambda text: "", "lacks mcp.orchestrator", id="emptied"),
    ],
)
def test_a_client_says_no_longer_what_it_must(place: Place, break_it: Any, finding: str) -> None:
    connected(place, "opencode")
    settings = place.workspace / "opencode.json"
    written = settings.read_text()
    settings.write_text(break_it(written))
    assert finding in of(looked(place, ok=False), "failure", "opencode")
    settings.write_text(written)
    looked(place, ok=True)


def test_a_client_starts_something_else(place: Place) -> None:
    connected(place, "opencode")
    settings = place.workspace / "opencode.json"
    settings.write_text(settings.read_text().replace('"mcp",', '"mcq",'))
    failures = of(looked(place, ok=False), "failure", "opencode")
    assert "lacks mcp.orchestrator" in failures
    assert "the transport ended: " in failures
    connected(place, "opencode")
    looked(place, ok=True)


def test_the_policy_denies_more_than_claude_was_told(place: Place) -> None:
    connected(place, "claude")
    assert place.cli("policy", "init").code == 0
    policy = Path(place.location["state_dir"]) / "policy.toml"
    rule = 'name = "mine"\nagents = ["*"]\nactions = ["read"]\npaths = ["*.secret"]\nverdict = "deny"\n'
    policy.write_text(f"{policy.read_text()}\n[[rule]]\n{rule}")
    assert "lacks permissions.deny" in of(looked(place, ok=False), "failure", "claude")
    connected(place, "claude")
    assert "Read(**/*.secret)" in said(place.workspace / ".claude/settings.local.json")["permissions"]["deny"]
    looked(place, ok=True)


def test_tokens(place: Place) -> None:
    approver = place.up()["approver_code"]
    connected(place, "opencode", approver=approver)
    token = state(place) / "opencode.token"
    token.chmod(0o644)
    assert f"{token} has mode 0644: others can use it chmod 600 {token}" in of(looked(place, ok=False), "failure")
    token.chmod(0o600)
    assert place.cli("agent", "revoke", "opencode", approver=approver).code == 0
    assert "token" in of(looked(place, ok=False), "failure", "opencode")
    token.unlink()
    assert f"{token} can't be read" in of(looked(place, ok=False), "failure", "opencode")


def test_modes(place: Place) -> None:
    facts = place.up()
    for path in (facts["state_dir"], facts["socket"]):
        mode = Path(path).stat().st_mode
        os.chmod(path, 0o777)
        assert f"{path} has mode 0777" in of(looked(place, ok=False), "failure")
        os.chmod(path, mode)
    folder = Path(facts["socket"]).parent
    folder.chmod(0o755)
    assert "has mode 0755" in of(looked(place, ok=False), "failure", "socket's folder")
    folder.chmod(0o700)


def test_a_damaged_journal_of_a_stopped_daemon(place: Place) -> None:
    facts = place.up()
    place.cli("stop")
    database = Path(facts["state_dir"]) / "journal.db"
    content = bytearray(database.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    database.write_bytes(content)
    assert of(looked(place, ok=False), "failure", "journal")


def test_the_logs_last_errors(place: Place) -> None:
    facts = place.up()
    entries = [{"level": "error", "event": f"trouble {number}", "error": "why"} for number in range(5)]
    with (Path(facts["state_dir"]) / "daemon.log").open("a") as log:
        log.write("no JSON\n" + "".join(f"{json.dumps(entry)}\n" for entry in entries))
    warnings = of(looked(place, ok=True), "warning", "log")
    assert [line.partition(":")[2].split(":")[0].strip() for line in warnings.splitlines()] == [
        "trouble 2", "trouble 3", "trouble 4",
    ]  # fmt: skip


def test_a_bubblewrap_that_does_not_work(place: Place) -> None:
    (place.base / "bwrap").write_text("#!/bin/sh\necho 'no namespaces here' >&2; exit 1\n")
    (place.base / "bwrap").chmod(0o755)
    if find_confinement().by == "namespaces":
        place.env["PATH"] = f"{place.base}:{place.env['PATH']}"
        assert "confined by namespaces and landlock" in of(looked(place, ok=True), "ok", "commands")
        return
    place.env["PATH"] = f"{place.base}:{place.env['PATH']}"
    assert "bubblewrap does not work here (no namespaces here)" in of(looked(place, ok=True), "warning", "commands")
    place.env["PATH"] = str(place.base / "nothing")
    assert "bubblewrap is not installed Install" in of(looked(place, ok=True), "warning", "commands")


def test_a_record_that_nobody_can_read(place: Place) -> None:
    connected(place, "opencode")
    record = state(place) / "opencode.json"
    record.write_text("{")
    assert f"{record} can't be read" in of(looked(place, ok=False), "failure", "opencode")
    ran = place.cli("disconnect", "opencode", "--yes", "--json")
    assert (ran.code, ran.json["code"]) == (1, "record_unreadable")
