"""`connect`, `disconnect` and what they leave of a person's configuration, by the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from orchestrator.api.operations import toolset
from orchestrator.clients.connect.templates import Client
from tests.end_to_end.workspace_factory import ORCHESTRATOR, TIMEOUT_S, Place, Ran

CLIENTS = get_args(Client)
EVERY_CLIENT = pytest.mark.parametrize("client", CLIENTS)

FILES = {
    "claude": (".mcp.json", ".claude/settings.local.json"),
    "codex": (".codex/config.toml", "~/.codex/config.toml"),
    "gemini": (".gemini/settings.json", "~/.gemini/trustedFolders.json"),
    "opencode": ("opencode.json",),
    "cursor": (".cursor/mcp.json",),
    "vscode": (".vscode/mcp.json",),
}


def paths(place: Place, client: str) -> list[Path]:
    return [
        place.home / name.removeprefix("~/") if name.startswith("~/") else place.workspace / name
        for name in FILES[client]
    ]


def contents(place: Place) -> dict[str, bytes]:
    """Every file of the workspace and, outside of the daemons' state, of the home."""
    found = [*place.workspace.rglob("*"), *(each for each in place.home.rglob("*") if ".local" not in each.parts)]
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in found}


def state(place: Place) -> Path:
    return Path(place.location["state_dir"]) / "clients"


def said(path: Path) -> Any:
    return tomllib.loads(path.read_text()) if path.suffix == ".toml" else json.loads(path.read_text())


def connected(place: Place, client: str, *options: str, approver: str = "") -> Ran:
    ran = place.cli("connect", client, "--yes", *options, approver=approver)
    assert ran.code == 0, ran
    return ran


@EVERY_CLIENT
def test_connect_twice_and_disconnect(place: Place, client: str) -> None:
    before = contents(place)
    first = connected(place, client)
    assert f"checked: {len(toolset('core'))} tools offered" in first.out
    assert [*paths(place, client)] == [path for path in paths(place, client) if path.exists()]
    written = contents(place)
    again = connected(place, client)
    assert "written: " not in again.out
    assert contents(place) == written
    undone = place.cli("disconnect", client, "--yes")
    assert (undone.code, contents(place)) == (0, before), undone
    twice = place.cli("disconnect", client, "--yes", "--json")
    assert (twice.code, twice.json["code"]) == (1, "not_connected")


@EVERY_CLIENT
def test_connecting_anew_keeps_what_was_there_first(place: Place, client: str) -> None:
    connected(place, "vscode" if client == "cursor" else "cursor")
    before = contents(place)
    connected(place, client, "--agent", "first")
    connected(place, client, "--agent", "second")
    assert any(b"second" in content for content in contents(place).values())
    assert not any(b"first" in content for content in contents(place).values())
    assert place.cli("disconnect", client, "--yes").code == 0
    assert contents(place) == before


def test_a_name_that_the_daemon_refuses_is_not_written(place: Place) -> None:
    approver = place.up()["approver_code"]
    assert place.cli("agent", "add", "opencode", approver=approver).code == 0
    ran = place.cli("connect", "opencode", "--yes")
    assert ran.code == 1
    assert "opencode needs its token" in ran.err
    assert contents(place) == {}


@EVERY_CLIENT
def test_a_token_of_its_own_outside_of_the_workspace(place: Place, client: str) -> None:
    approver = place.up()["approver_code"]
    answer = json.loads(connected(place, client, "--json", approver=approver).out)
    token = Path(answer["token_file"])
    assert token == state(place) / f"{client}.token"
    assert (token.stat().st_mode & 0o777, token.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    secret = token.read_text().strip()
    assert secret.startswith("orc_")
    assert not any(secret.encode() in content for content in contents(place).values())
    (agent,) = place.cli("agent", "list", "--json").json["agents"]
    assert (agent["name"], agent["token"]) == (client, "yes")
    assert json.loads(connected(place, client, "--json").out)["token_file"] == str(token)
    assert token.read_text().strip() == secret
    assert place.cli("disconnect", client, "--yes").code == 0
    assert not token.exists()
    back = json.loads(connected(place, client, "--json", approver=approver).out)
    assert Path(back["token_file"]).read_text().strip() != secret


@EVERY_CLIENT
def test_a_broken_configuration_is_left_alone(place: Place, client: str) -> None:
    for path in paths(place, client):
        path.parent.mkdir(exist_ok=True)
        path.write_text('{\n  // mine\n  "a": \n')
        before = contents(place)
        ran = place.cli("connect", client, "--yes")
        assert ran.code == 1
        assert f"{path} can't be read as " in ran.err
        assert ("line 1" if path.suffix == ".toml" else "line 2, column 3") in ran.err
        assert "add by hand what is below" in ran.err
        assert contents(place) == before
        path.unlink()


@EVERY_CLIENT
def test_print_changes_nothing(place: Place, client: str) -> None:
    ran = place.cli("connect", client, "--print")
    assert ran.code == 0
    assert contents(place) == {}
    assert not (place.home / ".local").exists()
    printed = place.cli("connect", client, "--print", "--json").json
    connected(place, client)
    assert {each["path"]: each["text"] for each in printed["files"]} == {
        str(path): path.read_text() for path in paths(place, client)
    }


def test_what_a_person_had_and_adds_stays(place: Place) -> None:
    settings = place.workspace / ".claude" / "settings.local.json"
    settings.parent.mkdir()
    mine = {"permissions": {"deny": ["WebFetch"], "allow": ["mcp__other"]}, "model": "x"}
    settings.write_text(json.dumps(mine, indent=4))
    connected(place, "claude")
    merged = said(settings)
    assert {"WebFetch", "Read", "Bash", "Read(**/.env)"} <= {*merged["permissions"]["deny"]}
    assert merged["model"] == "x"
    merged["permissions"]["allow"].append("mcp__later")
    settings.write_text(json.dumps(merged))
    servers = said(place.workspace / ".mcp.json")
    servers["mcpServers"]["orchestrator"]["args"].append("--toolset=full")
    (place.workspace / ".mcp.json").write_text(json.dumps(servers))
    ran = place.cli("disconnect", "claude", "--yes")
    assert ran.code == 0
    assert "mcpServers.orchestrator changed since, so it stays" in ran.out
    mine["permissions"]["allow"].append("mcp__later")  # type: ignore[index]
    assert said(settings) == mine
    assert said(place.workspace / ".mcp.json") == servers


def test_one_file_that_is_refused_keeps_the_other_from_being_written(place: Place) -> None:
    trust = place.home / ".codex" / "config.toml"
    trust.parent.mkdir()
    trust.write_text(f'[projects."{place.workspace}"]\ntrust_level = "untrusted"\n')
    before = contents(place)
    ran = place.cli("connect", "codex", "--yes")
    assert ran.code == 1
    assert "which somebody decided" in ran.err
    assert contents(place) == before


def test_it_asks_unless_told_not_to(place: Place) -> None:
    ran = place.cli("connect", "opencode")
    assert ran.code == 2
    assert "--yes writes without asking" in ran.err
    assert '+    "*": false,' in ran.out
    assert contents(place) == {}


def test_no_on_the_terminal_writes_nothing(place: Place) -> None:
    place.up()
    spawn = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    command = [sys.executable, "-c", spawn, *ORCHESTRATOR, "--workspace", str(place.workspace), "connect", "opencode"]
    env = {**place.env, "ORCHESTRATOR_APPROVER": "wrong"}
    no = subprocess.run(
        command, check=False, input=b"n\n", capture_output=True, env=env, cwd=place.workspace, timeout=TIMEOUT_S
    )
    assert no.returncode != 0
    assert b"Write this?" in no.stdout
    assert contents(place) == {}


def test_a_wrong_code_writes_nothing(place: Place) -> None:
    place.up()
    ran = place.cli("connect", "opencode", "--yes", approver="wrong")
    assert ran.code == 1
    assert contents(place) == {}


def test_a_token_file_of_the_persons_own(place: Place) -> None:
    inside = place.workspace / "token"
    inside.write_text("orc_x")
    ran = place.cli("connect", "opencode", "--yes", "--token-file", str(inside))
    assert (ran.code, "lies in the workspace" in ran.err) == (1, True)
    inside.unlink()
    approver = place.up()["approver_code"]
    outside = place.home / "token"
    outside.write_text(place.cli("agent", "add", "bob", approver=approver).out)
    outside.chmod(0o644)
    ran = place.cli("connect", "opencode", "--yes", "--token-file", str(outside))
    assert (ran.code, "has mode 0644" in ran.err) == (1, True)
    outside.chmod(0o600)
    connected(place, "opencode", "--token-file", str(outside))
    assert str(outside) in said(place.workspace / "opencode.json")["mcp"]["orchestrator"]["command"]
    assert place.cli("disconnect", "opencode", "--yes").code == 0
    assert outside.exists()


def test_a_token_that_the_daemon_refuses_is_replaced_with_the_code(place: Place) -> None:
    approver = place.up()["approver_code"]
    connected(place, "opencode", approver=approver)
    assert place.cli("agent", "revoke", "opencode", approver=approver).code == 0
    ran = place.cli("connect", "opencode", "--yes", "--json")
    assert (ran.code, ran.json["code"]) == (1, "token_refused")
    connected(place, "opencode", approver=approver)
    connected(place, "opencode")


def test_a_workspace_whose_name_has_quotes_and_spaces(base: Path) -> None:
    place = Place(base)
    place.workspace = base / 'my "best" pro\'ject $HOME'
    place.workspace.mkdir()
    try:
        for client in CLIENTS:
            connected(place, client)
        command = said(place.workspace / "opencode.json")["mcp"]["orchestrator"]["command"]
        assert str(place.workspace) in command
        assert (
            str(place.workspace) in said(place.workspace / ".codex/config.toml")["mcp_servers"]["orchestrator"]["args"]
        )
        assert [*said(place.home / ".codex/config.toml")["projects"]] == [str(place.workspace)]
        for client in CLIENTS:
            assert place.cli("disconnect", client, "--yes").code == 0
        assert [*place.workspace.iterdir()] == []
    finally:
        place.clear()


def test_more_than_one_version_of_a_client(place: Place) -> None:
    folders = []
    for version in ("1.0.0", "2.1.316"):
        package = place.base / version
        package.mkdir()
        (package / "package.json").write_text(json.dumps({"version": version}))
        (package / "claude").write_text("#!/bin/false\n")
        (package / "claude").chmod(0o755)
        folders.append(str(package))
    place.env["PATH"] = os.pathsep.join((*folders, place.env["PATH"]))
    notes = json.loads(connected(place, "claude", "--json").out)["notes"]
    assert f"{folders[0]}/claude is 1.0.0; these settings were tried out with 2.1.316" in notes
    assert any(f"not {folders[1]}/claude (2.1.316)" in note for note in notes)


def test_what_goes_past_is_said(place: Place) -> None:
    (place.workspace / "opencode.json").write_text('{"tools": {"*": false, "bash": true}, "mcp": {"files": {}}}')
    (place.workspace / "opencode.jsonc").write_text("{}")
    notes = "\n".join(json.loads(connected(place, "opencode", "--json").out)["notes"])
    assert "turns tools of its own on again, behind '*': bash" in notes
    assert "names other MCP servers, which go past the daemon: files" in notes
    assert "opencode.jsonc is read by opencode too" in notes


def test_a_server_of_our_name_elsewhere_is_said(place: Place) -> None:
    servers = {"orchestrator": {"command": "/bin/false"}}
    (place.home / ".claude.json").write_text(json.dumps({"projects": {str(place.workspace): {"mcpServers": servers}}}))
    notes = "\n".join(json.loads(connected(place, "claude", "--json").out)["notes"])
    assert "takes that one instead: run `claude mcp remove --scope local orchestrator` here" in notes


def test_a_server_that_was_turned_off_is_said(place: Place) -> None:
    settings = place.workspace / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"mcp": {"excluded": ["orchestrator"]}}')
    notes = "\n".join(json.loads(connected(place, "gemini", "--json").out)["notes"])
    assert f"{settings} has orchestrator under mcp.excluded, so Gemini CLI does not start it" in notes


def test_two_projects_in_one_file_of_the_user(place: Place) -> None:
    other = place.base / "other"
    other.mkdir()
    connected(place, "codex")
    assert place.run("connect", "codex", "--yes", "--workspace", str(other)).code == 0
    trust = place.home / ".codex" / "config.toml"
    assert [*said(trust)["projects"]] == [str(place.workspace), str(other)]
    assert place.cli("disconnect", "codex", "--yes").code == 0
    assert [*said(trust)["projects"]] == [str(other)]


def test_a_folder_that_takes_no_file(place: Place) -> None:
    (place.home / ".codex").write_text("a file")
    before = contents(place)
    ran = place.cli("connect", "codex", "--yes")
    assert ran.code == 1
    assert contents(place) == before
    assert not (state(place) / "codex.json").exists()


def test_a_client_that_nobody_knows(place: Place) -> None:
    ran = place.cli("connect", "emacs", "--yes")
    assert ran.code == 2
    assert "'claude', 'codex', 'gemini', 'opencode', 'cursor', 'vscode'" in ran.err
