"""`connect --native`: a client keeps its own tools, and runs our hook around them."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orchestrator.clients.connect.hook_settings import HOOKED
from orchestrator.clients.connect.templates import Target
from orchestrator.clients.hooks.program import CLIENTS
from tests.end_to_end.test_connections import connected, contents, said, state
from tests.end_to_end.workspace_factory import TIMEOUT_S, Place

EVERY_HOOK = pytest.mark.parametrize("client", [client for client in HOOKED if client in CLIENTS])


def files(place: Place, client: str) -> dict[Path, str]:
    """Its configuration files, and their form."""
    to = Target(workspace=str(place.workspace), home=str(place.home), command=("x",))
    return {Path(file.path): file.form for file in HOOKED[client].files(to)}  # type: ignore[index]


def settings(place: Place) -> Path:
    return place.workspace / ".claude" / "settings.local.json"


def command(place: Place) -> str:
    """What Claude Code runs before its tools, as its settings say."""
    text: str = said(settings(place))["hooks"]["PreToolUse"][-1]["hooks"][0]["command"]
    return text


def claude_runs(place: Place, event: str, tool: str, **takes: Any) -> str:
    """What Claude Code's hook answers, run as Claude does."""
    given = {
        "hook_event_name": event,
        "session_id": "one",
        "cwd": str(place.workspace),
        "tool_name": tool,
        "tool_input": takes,
        "tool_use_id": "toolu_1",
    }
    ran = subprocess.run(
        ["/bin/sh", "-c", command(place)],
        check=True,
        input=json.dumps(given).encode(),
        capture_output=True,
        env=place.env,
        cwd=place.home,
        timeout=TIMEOUT_S,
    )
    return ran.stdout.decode()


@EVERY_HOOK
def test_it_is_written_once_and_undone(place: Place, client: str) -> None:
    before = contents(place)
    first = connected(place, client, "--native")
    assert "checked: the hook answers" in first.out
    assert [path for path in files(place, client) if not path.exists()] == []
    written = contents(place)
    assert "written: " not in connected(place, client, "--native").out
    assert contents(place) == written
    undone = place.cli("disconnect", client, "--yes")
    assert (undone.code, contents(place)) == (0, before), undone


@EVERY_HOOK
def test_a_broken_file_is_left_alone(place: Place, client: str) -> None:
    for path in files(place, client):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{\n  // mine\n  "a": \n')
        before = contents(place)
        ran = place.cli("connect", client, "--native", "--yes")
        assert (ran.code, f"{path} " in ran.err) == (1, True)
        assert "add by hand what is below" in ran.err
        assert contents(place) == before
        path.unlink()


@EVERY_HOOK
def test_our_tools_make_way_for_the_hook_and_come_back(place: Place, client: str) -> None:
    before = contents(place)
    connected(place, client)
    with_tools = contents(place)
    connected(place, client, "--native")
    with_hook = contents(place)
    assert not any(b'"mcp"' in content for content in with_hook.values())
    connected(place, client)
    assert contents(place) == with_tools
    connected(place, client, "--native")
    assert contents(place) == with_hook
    assert place.cli("disconnect", client, "--yes").code == 0
    assert contents(place) == before


@EVERY_HOOK
def test_doctor_runs_the_hook_that_the_settings_name(place: Place, client: str) -> None:
    connected(place, client, "--native")
    ran = place.cli("doctor", "--json")
    checks = [each for each in ran.json["checks"] if each["subject"] == client]
    assert "the hook answers" in {each["finding"] for each in checks}
    assert not [each for each in checks if each["status"] == "failure"]
    path = next(iter(files(place, client)))
    path.write_text(path.read_text().replace("hook", "hooks", 1))
    checks = [each for each in place.cli("doctor", "--json").json["checks"] if each["subject"] == client]
    failed = [each for each in checks if each["status"] == "failure"]
    assert [str(path) in each["finding"] for each in failed] == [True]
    assert "--native" in failed[0]["next"] or path.suffix == ".js"


def test_the_hook_acts_for_the_agent_of_the_token(place: Place) -> None:
    approver = place.up()["approver_code"]
    connected(place, "claude", "--native", "--agent", "anna", approver=approver)
    assert f"--token-file {state(place) / 'anna.token'}" in command(place)
    takes = {"file_path": str(place.workspace / "a.txt"), "content": "two\n"}
    assert claude_runs(place, "PreToolUse", "Write", **takes) == ""
    (place.workspace / "a.txt").write_text("two\n")
    assert claude_runs(place, "PostToolUse", "Write", **takes) == ""
    assert [part["agent"] for part in place.cli("blame", "a.txt", "--json").json["ranges"]] == ["anna"]
    denied = claude_runs(place, "PreToolUse", "Read", file_path=str(place.workspace / ".env"))
    assert json.loads(denied)["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert place.cli("agent", "revoke", "anna", approver=approver).code == 0
    checks = [each for each in place.cli("doctor", "--json").json["checks"] if each["subject"] == "claude"]
    assert [each["status"] for each in checks][-1] == "failure"


def test_what_a_person_had_and_adds_stays(place: Place) -> None:
    settings(place).parent.mkdir()
    own = {"matcher": "Edit", "hooks": [{"type": "command", "command": "ruff check"}]}
    mine: dict[str, Any] = {"model": "x", "hooks": {"PreToolUse": [own], "Stop": [own]}}
    settings(place).write_text(json.dumps(mine, indent=4))
    connected(place, "claude", "--native")
    merged = said(settings(place))
    assert merged["hooks"]["PreToolUse"][0] == own
    assert len(merged["hooks"]["PreToolUse"]) == 2
    merged["hooks"]["PostToolUse"].append(own)
    settings(place).write_text(json.dumps(merged, indent=4))
    assert place.cli("disconnect", "claude", "--yes").code == 0
    mine["hooks"]["PostToolUse"] = [own]
    assert said(settings(place)) == mine


def test_a_hook_that_a_person_changed_stays_and_is_named(place: Place) -> None:
    connected(place, "claude", "--native")
    settings(place).write_text(settings(place).read_text().replace('"timeout": 10,', '"timeout": 30,'))
    ran = place.cli("disconnect", "claude", "--yes")
    assert (ran.code, "our hook is still run" in ran.out) == (0, True)
    assert command(place) in ran.out


@pytest.mark.parametrize(
    "there",
    [
        pytest.param({"hooks": []}, id="no table"),
        pytest.param({"hooks": {"PreToolUse": {"matcher": "Edit"}}}, id="no list"),
    ],
)
def test_settings_of_another_shape_are_refused(place: Place, there: dict[str, Any]) -> None:
    settings(place).parent.mkdir()
    settings(place).write_text(json.dumps(there))
    ran = place.cli("connect", "claude", "--native", "--yes", "--json")
    assert (ran.code, ran.json["code"]) == (1, "settings_refused")
    assert "hooks" in ran.json["message"]
    assert said(settings(place)) == there


def test_what_keeps_the_hook_from_being_run_or_runs_another_is_said(place: Place) -> None:
    for path in (place.workspace / ".claude/settings.json", place.home / ".claude/settings.json"):
        path.parent.mkdir()
    (place.home / ".claude/settings.json").write_text('{"disableAllHooks": true}')
    other = {"matcher": "Edit", "hooks": [{"type": "command", "command": "orchestrator hook claude"}]}
    (place.workspace / ".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [other]}}))
    notes = "\n".join(json.loads(connected(place, "claude", "--native", "--json").out)["notes"])
    assert f"{place.home}/.claude/settings.json turns all hooks off" in notes
    assert f"{place.workspace}/.claude/settings.json runs `orchestrator hook` too" in notes


def test_another_plugin_of_that_name_is_left_alone(place: Place) -> None:
    plugin = place.workspace / ".opencode/plugins/orchestrator.js"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("export const Mine = async () => ({})\n")
    ran = place.cli("connect", "opencode", "--native", "--yes", "--json")
    assert (ran.code, ran.json["code"]) == (1, "settings_refused")
    assert "const COMMAND = [" in ran.json["shown"]
    assert plugin.read_text() == "export const Mine = async () => ({})\n"


def test_codex_trusts_the_hook_at_its_place_in_the_list(place: Place) -> None:
    hooks, own = place.workspace / ".codex/hooks.json", place.home / ".codex/config.toml"
    hooks.parent.mkdir()
    mine = {"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}
    hooks.write_text(json.dumps({"hooks": {"PreToolUse": [mine]}}))
    for agent in ("first", "second"):  # of the second, another hash stands at the same place
        connected(place, "codex", "--native", "--agent", agent)
        (entry,) = said(hooks)["hooks"]["PreToolUse"][1:]
        trusted = said(own)["hooks"]["state"][f"{hooks}:pre_tool_use:1:0"]["trusted_hash"]
        told = json.dumps(
            {
                "event_name": "pre_tool_use",
                "hooks": [{"async": False, **entry["hooks"][0]}],
                "matcher": entry["matcher"],
            },
            separators=(",", ":"),
            sort_keys=True,
        )
        assert trusted == f"sha256:{hashlib.sha256(told.encode()).hexdigest()}"
        assert f"{hooks}:post_tool_use:0:0" in said(own)["hooks"]["state"]
    merged = said(hooks)
    merged["hooks"]["PreToolUse"].insert(0, mine)
    hooks.write_text(json.dumps(merged))
    assert place.cli("doctor").code == 1  # Codex would skip it
    connected(place, "codex", "--native", "--agent", "second")
    assert f"{hooks}:pre_tool_use:2:0" in said(own)["hooks"]["state"]
    assert place.cli("doctor").code == 0


def test_a_hook_that_gemini_does_not_run_is_said(place: Place) -> None:
    for path, said_there in (
        (place.workspace / ".gemini/settings.json", {"hooksConfig": {"disabled": ["orchestrator"]}}),
        (place.home / ".gemini/settings.json", {"hooksConfig": {"enabled": False}}),
    ):
        path.parent.mkdir()
        path.write_text(json.dumps(said_there))
    notes = "\n".join(json.loads(connected(place, "gemini", "--native", "--json").out)["notes"])
    assert f"{place.home}/.gemini/settings.json turns all hooks off" in notes
    assert "has orchestrator under hooksConfig.disabled" in notes


def test_a_hook_that_does_not_answer_is_not_written(place: Place) -> None:
    place.up()
    token = place.home / "token"
    token.write_text("orc_wrong")
    token.chmod(0o600)
    ran = place.cli("connect", "claude", "--native", "--yes", "--json", "--token-file", str(token))
    assert (ran.code, ran.json["code"]) == (1, "hook_failed")
    assert not settings(place).exists()


def test_a_client_without_a_hook_is_refused(place: Place) -> None:
    ran = place.cli("connect", "vscode", "--native", "--yes", "--json")
    assert (ran.code, ran.json["code"]) == (1, "no_hook")
    assert "`orchestrator connect vscode` without --native" in ran.json["hint"]
    assert contents(place) == {}
