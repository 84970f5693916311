"""The program as the daemon sees it: calls that are cancelled, a program that dies, or is not there."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from orchestrator.core.content import digest_of
from orchestrator.core.errors import EmbeddingFailed, SemanticSearchOff
from orchestrator.core.policy.rules import SemanticRules
from orchestrator.core.text.chunks import Chunk
from orchestrator.embedding import index_program
from orchestrator.embedding.index_program import IndexProgram
from orchestrator.ports.semantic import ContentTexts
from tests.semantic.models import embedding_service, model_folder

pytestmark = pytest.mark.anyio

FIRST, SECOND = Chunk(1, 5, "f"), Chunk(6, 9)
CONTENT = ContentTexts(digest_of(b"x"), (FIRST, SECOND), ("a password", "the invoice"))


async def test_it_keeps_and_finds(tmp_path: Path) -> None:
    index, settings = IndexProgram(tmp_path, os.environ, None), SemanticRules(model=model_folder(tmp_path / "m"))
    assert not index.is_open
    with pytest.raises(EmbeddingFailed):
        await index.nearest("login", None, 5)
    assert (await index.open(settings)).contents == frozenset()
    assert await index.add([CONTENT]) == (2, frozenset())
    assert await index.nearest("login", None, 5) == [(CONTENT.digest, FIRST, 1.0)]
    assert await index.nearest("login", {digest_of(b"y")}, 5) == []
    assert (await index.open(settings)).contents == {CONTENT.digest}, "anew"
    assert await index.remove([CONTENT.digest]) == 0
    await index.aclose()
    assert not index.is_open


async def test_the_answer_to_a_cancelled_call_is_not_taken_for_the_next_one(tmp_path: Path) -> None:
    with embedding_service() as asked:
        index = IndexProgram(tmp_path, os.environ, None)
        await index.open(SemanticRules(base_url=asked.url, service_model="tiny"))
        await index.add([CONTENT])
        asked.arrived.clear()
        asked.goes_on.clear()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(index.nearest, "login", None, 5)
            await to_thread.run_sync(asked.arrived.wait, 60)
            tasks.cancel_scope.cancel()
        asked.goes_on.set()
        assert await index.nearest("payment", None, 5) == [(CONTENT.digest, SECOND, 1.0)]
        await index.aclose()


async def test_a_program_that_dies_fails_one_call_and_is_begun_anew(tmp_path: Path) -> None:
    index, settings = IndexProgram(tmp_path, os.environ, None), SemanticRules(model=model_folder(tmp_path / "m"))
    await index.open(settings)
    process = index._process
    assert process is not None
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:  # of the subreaper
        os.kill(int(child), signal.SIGKILL)
    assert children
    with pytest.raises(EmbeddingFailed):
        await index.add([CONTENT])
    assert not index.is_open
    await index.open(settings)
    assert await index.add([CONTENT]) == (2, frozenset())
    await index.aclose()


async def test_without_the_program_it_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_program, "PROGRAM", "orchestrator-no-such-program")
    with pytest.raises(SemanticSearchOff, match="can't be started"):
        await IndexProgram(tmp_path, os.environ, None).open(SemanticRules(model="/m"))
