"""A sample of the corpus through the real daemon: over our socket, and over MCP as an agent's program sends it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import TextContent

from orchestrator.clients.python import RemoteError
from tests.corpus import doubtful, generated, handmade
from tests.corpus.case import Case
from tests.corpus.cases import CASES
from tests.daemon.daemon_process import RunningDaemon
from tests.end_to_end.workspace_factory import Place

pytestmark = pytest.mark.anyio

ALLOW_ALL = 'name = "open"\ndefault = "allow"\n'


def spread(cases: tuple[Case, ...], most: int) -> Iterator[Case]:
    """That many, from first to last."""
    for at in range(most):
        yield cases[at * len(cases) // most]


GENERATED, BY_HAND = tuple(generated.cases()), (*handmade.cases(), *doubtful.cases())


def put(case: Case, workspace: Path) -> None:
    """The files as the case has them, and no others."""
    for path in there(workspace):
        (workspace / path).unlink()
    for path, text in case.before.items():
        file = workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())


def there(workspace: Path) -> dict[str, str]:
    """The files; what was swapped out may still stand beside them for a moment after the answer."""
    files = (file for file in workspace.rglob("*") if file.is_file() and not file.name.startswith(".orchestrator-"))
    return {str(file.relative_to(workspace)): file.read_bytes().decode() for file in files}


def judge(case: Case, code: str | None, workspace: Path) -> None:
    if code is not None:
        assert code in case.codes, (case.name, code)
        assert there(workspace) == case.before, case.name
        return
    assert case.after is not None, case.name
    assert there(workspace) == case.expected(), case.name


async def test_over_our_socket(base: Path) -> None:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(ALLOW_ALL)
    daemon.start()
    for case in (*spread(GENERATED, 60), *BY_HAND):
        put(case, daemon.workspace)
        code = None
        async with daemon.client("alice") as alice:
            for path in case.before:
                await alice.read_file(path)
            try:
                answer = await alice.apply_patch(case.patch, path=case.path)
            except RemoteError as error:
                code = error.code
            else:
                assert answer.status == "applied", (case.name, answer)
        judge(case, code, daemon.workspace)
    assert daemon.stop() == 0


async def test_over_mcp(place: Place) -> None:
    for case in spread(tuple(case for case in CASES if None not in (case.after or {}).values()), 40):
        put(case, place.workspace)
        async with place.client("alice") as client:  # its session has seen no file of another case
            for path in case.before:
                await client.call_tool("read_file", {"path": path})
            arguments = {"patch": case.patch} | ({"path": case.path} if case.path else {})
            result = await client.call_tool("apply_patch", arguments)
            (block, *_) = result.content
            assert isinstance(block, TextContent)
            reported: dict[str, Any] = json.loads(block.text)
            code = reported["code"] if result.is_error else None
        judge(case, code, place.workspace)
