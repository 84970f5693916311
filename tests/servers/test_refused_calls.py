"""What a refused call brought is not kept: it may be 16 MB, and the cycle collector comes seldom."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.json import encode

from orchestrator.api.framing import Request
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.ids import AgentName, SessionId
from orchestrator.engine.caller import Caller
from orchestrator.servers.dispatch import Dispatcher
from orchestrator.workspace.disk import Disk
from tests.crash.inside import living

pytestmark = pytest.mark.anyio


@contextmanager
def no_collector() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def test_nothing_holds_a_refusal_once_it_is_answered(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_text("one\n")
    (tmp_path / "state").mkdir(mode=0o700)
    async with living(tmp_path / "state", tmp_path / "work", Disk()) as life:
        alice = Caller(agent=AgentName("alice"), agent_class="cloud", session=SessionId("s-1"), transport="mcp")
        await life.engine.lifecycle.opened(alice, "test")
        params = {"path": "a.txt", "content": "two\n" * 300_000, "mode": "create"}  # so large that a thread looks at it
        request, dispatcher = Request(method="write_file", params=Raw(encode(params))), Dispatcher(life.engine)
        with no_collector():
            try:
                await dispatcher.respond(alice, request)
            except OrchestratorError as error:
                kept = weakref.ref(error)
            assert kept() is None
