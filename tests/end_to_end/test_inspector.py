"""MCP Inspector's command line, as published on npm, on our transport."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.workspace_factory import CORE, TIMEOUT_S, Place

pytestmark = pytest.mark.soak

PACKAGE = "@modelcontextprotocol/inspector"
VERSION = "0.15.0"


@pytest.fixture(scope="session")
def inspector() -> Path:
    """The command, installed once into the user's cache; without npm, node or the network the tests are skipped."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("npm and node are needed to run MCP Inspector")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "workspace-orchestrator" / f"inspector-{VERSION}"
    command = folder / "node_modules/.bin/mcp-inspector"
    complete = folder / "complete"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            quiet = ("--no-save", "--no-audit", "--no-fund", "--fetch-retries=0", "--loglevel=error")
            try:
                done = subprocess.run(
                    [npm, "install", *quiet, f"{PACKAGE}@{VERSION}"],
                    cwd=folder,
                    check=False,
                    capture_output=True,
                    text=True,
                    timeout=TIMEOUT_S,
                )
            except subprocess.TimeoutExpired:
                pytest.skip(f"npm did not install {PACKAGE} within {TIMEOUT_S} s")
            if done.returncode:
                pytest.skip(f"npm does not install {PACKAGE}: {done.stderr.strip()[-500:]}")
            complete.touch()
    return command


def ask(place: Place, inspector: Path, method: str, *options: str) -> Any:
    transport = place.transport(agent="inspector")
    server = {"command": transport.command, "args": transport.args, "env": transport.env}
    config = place.base / "inspector.json"
    config.write_text(json.dumps({"mcpServers": {"ours": server}}))
    done = subprocess.run(
        [str(inspector), "--cli", "--config", str(config), "--server", "ours", "--method", method, *options],
        env=place.env,
        cwd=place.base,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_tools_list(place: Place, inspector: Path) -> None:
    listed = ask(place, inspector, "tools/list")
    assert sorted(tool["name"] for tool in listed["tools"]) == sorted(CORE)


def test_tools_call(place: Place, inspector: Path) -> None:
    (place.workspace / "a.txt").write_text("one\n")
    read = ask(place, inspector, "tools/call", "--tool-name", "read_file", "--tool-arg", "path=a.txt")
    assert "structuredContent" not in read
    assert "     1\tone\n" in read["content"][0]["text"]
    given = ("path=b.txt", "content=made by Inspector", "mode=create")
    options = [word for pair in given for word in ("--tool-arg", pair)]
    made = ask(place, inspector, "tools/call", "--tool-name", "write_file", *options)
    assert made["structuredContent"]["status"] == "applied"
    assert (place.workspace / "b.txt").read_text() == "made by Inspector"
    refused = ask(place, inspector, "tools/call", "--tool-name", "read_file", "--tool-arg", "path=absent.txt")
    assert refused["isError"]
    assert json.loads(refused["content"][0]["text"])["code"] == "not_found"
