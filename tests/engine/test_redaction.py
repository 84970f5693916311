"""Where texts are searched for secrets: a long line keeps the interpreter lock, so that is a worker's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from orchestrator.core.content import digest_of
from orchestrator.core.ids import AgentName, SessionId, WorkspacePath
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.secrets import MOST_KEY_LINES
from orchestrator.engine.caller import Caller
from orchestrator.engine.redaction import Redaction
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


CALLER = Caller(agent=AgentName("bob"), agent_class="cloud", session=SessionId("s-1"), transport="rpc")
LOG = [f"{number:06} a line of a log that grows" for number in range(40_000)]
HEAD, END = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"


@pytest.mark.parametrize(
    ("more", "found"),
    [
        pytest.param(["one", "two"], [], id="nothing"),
        pytest.param(["one", f"id = {KEY}", "two"], [40_002], id="a token"),
        pytest.param(
            [HEAD, BODY, BODY, "-----END PRIVATE KEY-----", "two"], [40_001, 40_002, 40_003, 40_004], id="key"
        ),
    ],
)
async def test_of_a_log_that_grew_the_new_lines_are_searched(
    more: list[str], found: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    redaction = services_of(MemoryWorkspace()).redaction
    searched: list[int] = []
    search = Redaction.search

    async def counted(self: Redaction, lines: Sequence[str], *args: Any, **options: Any) -> Any:
        searched.append(len(lines))
        return await search(self, lines, *args, **options)

    monkeypatch.setattr(Redaction, "search", counted)
    path = WorkspacePath("app.log")
    for lines, wanted in ((LOG, []), (LOG + more, found), ([f"id = {KEY}", *LOG[1:], *more], [1, *found])):
        data = "\n".join(lines).encode()
        document = decode(data)
        assert document is not None
        hidden = await redaction.of(CALLER, path, digest_of(data), document)
        assert [secret.line for secret in hidden.found] == wanted
        assert sorted(hidden.lines) == wanted
    assert searched == [len(LOG), len(more) + MOST_KEY_LINES + 1, len(LOG) + len(more)]
