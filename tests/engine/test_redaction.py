"""Where texts are searched for secrets: a long line keeps the interpreter lock, so that is a worker's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.parts import services_of
from tests.in_memory.workers import ThreadWorkers
from tests.in_memory.workspace import MemoryWorkspace

pytestmark = pytest.mark.anyio

KEY = "AKIAIOSFODNN7EXAMPLE"


@pytest.mark.parametrize(
    ("lines", "in_worker"),
    [
        pytest.param(["a b", f"id = {KEY}"], False, id="small"),
        pytest.param(["a b\t"] * 5000 + [f"id = {KEY}"], False, id="many lines, in a thread"),
        pytest.param(["a b\t"] * 300_000 + [f"id = {KEY}"], True, id="over a million characters"),
        pytest.param(["a b", "c d " * 40_000 + f"id = {KEY}"], True, id="a long line"),
    ],
)
async def test_long_lines_are_searched_by_a_worker(
    lines: list[str], in_worker: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def run(self: ThreadWorkers, work: Callable[[], Any], *, limit_s: float) -> Any:
        asked.append(work)
        return work()

    monkeypatch.setattr(ThreadWorkers, "run", run)
    found = await services_of(MemoryWorkspace()).redaction.search(lines)
    assert [secret.line for secret in found.found] == [len(lines)]
    assert list(found.lines) == [len(lines)]
    assert KEY not in found.lines[len(lines)]
    assert bool(asked) == in_worker
