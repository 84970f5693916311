"""A new read-only operation, added to a copy of the program as docs/architecture.md says: four files, and all have it.

The copy is a program of its own: its daemon, command line, Python client and documents run from there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.raw_socket import Talk

ROOT = Path(__file__).resolve().parents[2]

ENTRY = '''\
"""count_lines: how many lines a file has."""

from __future__ import annotations

from orchestrator.api.operation import READS, Operation
from orchestrator.api.parameters import Params, PathText
from orchestrator.api.results import Result


class CountLines(Params, frozen=True):
    path: PathText


class LineCount(Result, frozen=True, kw_only=True):
    path: str
    lines: int


COUNT_LINES = Operation(
    "count_lines", CountLines, LineCount, "How many lines a file has.", raises=READS, command="count-lines"
)
'''

HANDLER = '''\
"""Counts the lines of files."""

from __future__ import annotations

from orchestrator.api.line_count import CountLines, LineCount
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import Observer, required
from orchestrator.engine.services import Services


class LineCounter:
    """Answers `count_lines`."""

    def __init__(self, services: Services, observer: Observer) -> None:
        self._s, self._observer = services, observer

    async def count_lines(self, caller: Caller, call: Call, params: CountLines) -> LineCount:
        path = self._s.paths.file(params.path)
        access = self._s.access.content(caller, call, path)
        async with self._s.locks.shared(path):
            _, _, data = required(await self._observer.refresh_for_display(access))
        return LineCount(path=path, lines=data.count(b"\\n"))
'''

IMPORT = "from orchestrator.engine.reads.line_counter import LineCounter\n"
ROW = "            handled_by(line_count.COUNT_LINES, LineCounter(services, observer).count_lines),\n"

CALLED = """
import anyio, sys
from orchestrator.clients.python import FileAccess

async def main():
    async with FileAccess.connect(agent="alice", socket=sys.argv[1]) as files:
        print((await files.count_lines("a.txt")).lines)

anyio.run(main)
"""

DOCUMENTED = "from tests.docs.documents import generated; import json; print(json.dumps(generated()))"


def edit(path: Path, *pairs: tuple[str, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for old, new in pairs:
        assert text.count(old) == 1, f"{path.name}: {old}"
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def program(base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy with the entry, and with no handler yet; processes that are started take it."""
    copy = base / "program"
    left = shutil.ignore_patterns("__pycache__")
    for name in ("orchestrator", "policies", "tests/docs"):
        shutil.copytree(ROOT / name, copy / name, ignore=left)
    shutil.copy(ROOT / "tests/__init__.py", copy / "tests")
    api = copy / "orchestrator/api"
    (api / "line_count.py").write_text(ENTRY)
    edit(
        api / "operations.py",
        ("    native_edits,\n    policies,", "    native_edits,\n    line_count,\n    policies,"),
        ("MODULES = (\n", "MODULES = (\n    line_count,\n"),
    )
    monkeypatch.chdir(copy)
    return copy


def add_handler(program: Path) -> None:
    engine = program / "orchestrator/engine"
    (engine / "reads/line_counter.py").write_text(HANDLER)
    edit(
        engine / "engine.py",
        (
            "api import history, journal_operations, policies,",
            "api import history, journal_operations, line_count, policies,",
        ),
        ("from orchestrator.engine.reads.listing import", f"{IMPORT}from orchestrator.engine.reads.listing import"),
        ("        handlers = handlers_of(\n", f"        handlers = handlers_of(\n{ROW}"),
    )


def run(daemon: RunningDaemon, *arguments: str) -> str:
    """What a Python of the copy says."""
    env = {**daemon.env, "PYTHONPATH": os.getcwd()}
    done = subprocess.run(
        [sys.executable, *arguments], env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_table_has_a_new_operation(base: Path, program: Path) -> None:
    daemon = RunningDaemon(base, executed=True)
    said = daemon.start()
    assert not said["ok"], "an operation that nothing handles"
    assert "count_lines" in str(said["message"])
    daemon.wait()

    add_handler(program)
    (daemon.workspace / "a.txt").write_text("one\ntwo\n")
    assert daemon.start()["ok"]
    try:
        everywhere(daemon)
    finally:
        daemon.stop()


def everywhere(daemon: RunningDaemon) -> None:
    socket = Talk(daemon, "alice")
    socket.call("count_lines", path="a.txt")
    assert socket.answer()["result"] == {"path": "a.txt", "lines": 2}
    socket.call("count_lines", pth="a.txt")
    assert socket.answer()["error"]["data"]["details"]["nearest"] == "path"
    socket.call("journal_query", kind="answer_shown")
    assert [entry["operation"] for entry in socket.answer()["result"]["entries"]] == ["count_lines"]
    socket.close()

    mcp = Talk(daemon, "alice", "mcp")
    mcp.ask("tools/list")
    listed: list[dict[str, Any]] = mcp.answer()["result"]["tools"]
    (tool,) = [tool for tool in listed if tool["name"] == "count_lines"]
    assert (tool["inputSchema"]["required"], tool["annotations"]["readOnlyHint"]) == (["path"], True)
    mcp.call("count_lines", path="a.txt")
    assert mcp.answer()["result"]["structuredContent"] == {"path": "a.txt", "lines": 2}
    mcp.close()

    assert run(daemon, "-c", CALLED, str(daemon.socket)) == "2\n"
    command = ("--workspace", str(daemon.workspace), "--state-dir", str(daemon.state_dir), "--json")
    assert json.loads(run(daemon, "-m", "orchestrator", *command, "count-lines", "a.txt")) == {
        "path": "a.txt",
        "lines": 2,
    }
    documents = json.loads(run(daemon, "-c", DOCUMENTED))
    assert "| `count_lines` | How many lines a file has. | `path` | `LineCount` | full |" in documents["operations"]
    assert "#### count_lines" in documents["parameters"]
    stub = run(daemon, "-c", "from tests.docs.client_stub import stub; print(stub())")
    assert "async def count_lines(self, path: str) -> orchestrator.api.line_count.LineCount:" in stub
