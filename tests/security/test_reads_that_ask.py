"""A file that may be read only with a person's yes is shown by no call that has no such yes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.clients.python import FileAccess, RemoteError
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

ASKS = """
name = "asks"
default = "allow"

[[rule]]
name = "with a yes"
agents = ["alice"]
actions = ["read", "search"]
paths = ["asked.txt"]
verdict = "ask"
reason = "a person's diary"
"""

TEXT = "dear diary\n"


@pytest.mark.parametrize(
    ("operation", "parameters"),
    [
        ("read_file", {"path": "asked.txt"}),
        ("read_lines", {"path": "asked.txt"}),
        ("get_overview", {"path": "asked.txt"}),
        ("find_references", {"path": "asked.txt", "symbol": "dear"}),
        ("related_files", {"path": "asked.txt"}),
        ("get_excerpt", {"path": "asked.txt"}),
        ("summarize_file", {"path": "asked.txt"}),
        ("read_symbol", {"path": "asked.txt", "symbol": "dear"}),
        ("read_enclosing", {"path": "asked.txt", "line": 1}),
        ("read_content", {"path": "asked.txt", "pattern": "diary"}),
        ("search_content", {"pattern": "diary", "path": "asked.txt"}),
        ("get_diff", {"path": "asked.txt"}),
        ("get_diff", {"path": "asked.txt", "from_": "@0", "to": "working"}),
        ("blame", {"path": "asked.txt"}),
        ("stale_readers", {"path": "asked.txt"}),
    ],
)
async def test_a_call_without_a_yes_is_refused(base: Path, operation: str, parameters: dict[str, Any]) -> None:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(ASKS)
    (daemon.workspace / "asked.txt").write_text(TEXT)
    with running(base):
        async with daemon.client("bob") as bob, daemon.client("alice") as alice:
            assert (await bob.read_file("asked.txt", line_numbers=False)).text == TEXT
            with pytest.raises(RemoteError) as refused:
                await called(alice, operation, parameters)
            assert refused.value.code == "approval_required"
            assert "diary\n" not in str(refused.value)


async def test_a_tree_leaves_it_out(base: Path) -> None:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(ASKS)
    (daemon.workspace / "asked.txt").write_text(TEXT)
    with running(base):
        async with daemon.client("alice") as alice:
            found = await alice.search_content("diary")
            assert (found.hits, found.files_left_out) == ((), 1)
            diff = await alice.get_diff(from_="@0", to="working")
            assert [(file.path, file.left_out) for file in diff.files] == [("asked.txt", "policy")]
            assert "diary" not in diff.diff


async def called(client: FileAccess, operation: str, parameters: dict[str, Any]) -> None:
    await getattr(client, operation)(**parameters)
