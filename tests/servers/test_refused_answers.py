"""What an answer shows that is too large to be sent was not seen; a change in it was made all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.json import decode, encode

from orchestrator.api.framing import Request
from orchestrator.core.events.files import FileRead
from orchestrator.core.ids import AgentName, SessionId, WorkspacePath
from orchestrator.engine.caller import Caller
from orchestrator.ports.journal import EventFilter
from orchestrator.servers import dispatch
from orchestrator.workspace.disk import Disk
from tests.crash.inside import living

pytestmark = pytest.mark.anyio

MOST = 2_000


async def test_an_answer_that_is_not_sent_is_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "MAX_REPLY_BYTES", MOST)
    (tmp_path / "work").mkdir()
    (tmp_path / "work/large.txt").write_text("line\n" * MOST)
    (tmp_path / "work/small.txt").write_text("line\n")
    (tmp_path / "state").mkdir(mode=0o700)
    async with living(tmp_path / "state", tmp_path / "work", Disk()) as life:
        alice = Caller(agent=AgentName("alice"), agent_class="cloud", session=SessionId("s-1"), transport="rpc")
        await life.engine.lifecycle.opened(alice, "test")
        dispatcher = dispatch.Dispatcher(life.engine)
        for path, code in (("large.txt", "answer_too_large"), ("small.txt", None)):
            request = Request(method="read_file", params=Raw(encode({"path": path})), id=1)
            reply = decode(await dispatcher.answer(alice, request))
            assert reply.get("error", {}).get("data", {}).get("code") == code
        read = [one.event async for one in life.services.journal.events(EventFilter())]
        assert [event.seen.path for event in read if isinstance(event, FileRead)] == [WorkspacePath("small.txt")]
        refused = [event for event in read if getattr(event, "code", "") == "answer_too_large"]
        assert len(refused) == 1
        written = {"path": "new.txt", "content": "x\n" * 10, "mode": "create", "reason": "r" * 20}
        monkeypatch.setattr(dispatch, "MAX_REPLY_BYTES", 10)
        request = Request(method="write_file", params=Raw(encode(written)), id=2)
        assert "error" in decode(await dispatcher.answer(alice, request))
        assert (tmp_path / "work/new.txt").read_text() == written["content"]
