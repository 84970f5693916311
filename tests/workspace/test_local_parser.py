"""The parser over its worker: limits that hold, workers that die and are replaced, outlines that are remembered."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from orchestrator.core.content import digest_of
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.symbols import Outline
from orchestrator.workspace import local_parser
from orchestrator.workspace.local_parser import LocalParser
from orchestrator.workspace.workers import WorkerPool

pytestmark = pytest.mark.anyio

STUCK = b"[" * 256_000
"""JSON that parses in a blink, and whose definitions are looked for minutes: inside C code, with all locks held."""

CRASHES = b"- " * 128_000
"""YAML that ends the process that parses it (tree-sitter-yaml 0.7)."""


class Parser(LocalParser):
    """A parser with a pool of its own."""

    def __init__(self, *, limit_s: float = 20.0, cache_bytes: int = local_parser.CACHE_BYTES) -> None:
        self._pool = WorkerPool()
        super().__init__(self._pool, limit_s=limit_s, cache_bytes=cache_bytes)
        self.aclose = self._pool.aclose

    @property
    def worker_pid(self) -> int | None:
        """The process that waits for work, if there is one."""
        return next(iter(self._pool.free_pids), None)


@pytest.fixture
async def parser() -> AsyncIterator[Parser]:
    made = Parser()
    yield made
    await made.aclose()


async def outline(parser: Parser, name: str, data: bytes) -> Outline:
    found = await parser.outline(WorkspacePath(name), digest_of(data), data)
    assert found is not None
    return found


async def test_a_text_is_parsed_by_a_process_of_its_own(parser: Parser) -> None:
    assert parser.worker_pid is None
    found = await outline(parser, "a.py", b"def f():\n    pass\n")
    assert [name for name, _ in found.walk()] == ["f"]
    assert parser.worker_pid not in (None, os.getpid())
    assert os.getsid(parser.worker_pid or 0) == parser.worker_pid


async def test_the_time_limit_holds_inside_c_code() -> None:
    parser = Parser(limit_s=0.5)
    try:
        with anyio.fail_after(60):
            found = await outline(parser, "a.json", STUCK)
        assert (found.language, found.parsed) == ("text", False)
    finally:
        await parser.aclose()


async def test_a_text_that_crashes_its_grammar_costs_one_worker(parser: Parser) -> None:
    await outline(parser, "a.py", b"x = 1\n")
    first = parser.worker_pid
    assert not (await outline(parser, "a.yaml", CRASHES)).parsed
    assert (await outline(parser, "b.py", b"y = 1\n")).parsed
    assert parser.worker_pid not in (None, first)


async def test_a_worker_killed_while_idle_costs_nothing(parser: Parser) -> None:
    await outline(parser, "a.py", b"x = 1\n")
    first = parser.worker_pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    with anyio.fail_after(60):
        while parser.worker_pid is not None:
            await anyio.lowlevel.checkpoint()
    assert (await outline(parser, "b.py", b"def g(): ...\n")).parsed
    assert parser.worker_pid != first


async def test_a_worker_killed_in_the_middle_is_replaced() -> None:
    parser = Parser(limit_s=2.0)
    try:
        await _killed_in_the_middle(parser)
    finally:
        await parser.aclose()


async def _killed_in_the_middle(parser: Parser) -> None:
    await outline(parser, "a.py", b"x = 1\n")
    first = parser.worker_pid
    assert first is not None
    found: list[Outline] = []

    async def ask() -> None:
        found.append(await outline(parser, "a.json", STUCK))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()  # it waits for the answer
        os.kill(first, signal.SIGKILL)
    assert not found[0].parsed
    assert (await outline(parser, "b.py", b"def g(): ...\n")).parsed
    assert parser.worker_pid != first


async def test_a_missing_wheel_degrades_in_the_worker_too(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (base / "tree_sitter_python.py").write_text("print('hello')\nraise ImportError('it is not here')\n")
    monkeypatch.setenv("PYTHONPATH", str(base))
    parser = Parser(limit_s=20.0)
    try:
        assert not (await outline(parser, "a.py", b"def f():\n    pass\n")).parsed
        worker = parser.worker_pid
        assert worker is not None
        assert (await outline(parser, "a.json", b'{"a": 1}\n')).parsed
        assert parser.worker_pid == worker
    finally:
        await parser.aclose()


async def test_a_caller_who_goes_away_leaves_no_answer_for_the_next(parser: Parser) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(outline, parser, "a.json", STUCK)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert [name for name, _ in (await outline(parser, "b.py", b"def g(): ...\n")).walk()] == ["g"]


async def test_outlines_are_remembered_by_language_and_content(parser: Parser) -> None:
    text = b"def f():\n    pass\n"
    first = await outline(parser, "a.py", text)
    worker = parser.worker_pid
    assert worker is not None
    os.kill(worker, signal.SIGKILL)
    assert await outline(parser, "elsewhere/b.py", text) is first
    assert (await outline(parser, "a.rb", text)) is not first


async def test_what_is_remembered_is_bounded() -> None:
    parser = Parser(limit_s=20.0, cache_bytes=200)
    try:
        texts = [f"def f{n}():\n    pass\n".encode() for n in range(20)]
        first = await outline(parser, "a.py", texts[0])
        for text in texts:
            await outline(parser, "a.py", text)
        again = await outline(parser, "a.py", texts[0])
        assert again == first
        assert again is not first
    finally:
        await parser.aclose()


async def test_too_large_a_text_is_not_parsed(parser: Parser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_parser, "MOST_PARSED_BYTES", 10)
    found = await outline(parser, "a.py", b"def f():\n    pass\n")
    assert (found.parsed, found.symbols[0].name) == (False, "f")
    assert parser.worker_pid is None


async def test_without_a_grammar_no_process_is_started(parser: Parser) -> None:
    found = await outline(parser, "notes.txt", b"# One\n\ntext\n\n# Two\n")
    assert [(s.name, s.line, s.end_line) for s in found.symbols] == [("One", 1, 3), ("Two", 5, 5)]
    assert await parser.outline(WorkspacePath("a.py"), digest_of(b"\0"), b"\0") is None
    assert await parser.outline(WorkspacePath("a.bin"), digest_of(b"\0"), b"\0") is None


async def test_a_text_is_compiled_for_those_who_ask_and_not_twice(parser: Parser) -> None:
    broken, name = b"def f():\npass\n", WorkspacePath("a.py")  # the grammar takes it
    plain = await outline(parser, name, broken)
    assert (plain.errors, plain.compiles) == (0, None)
    compiled = await parser.outline(name, digest_of(broken), broken, compiled=True)
    assert compiled is not None
    assert compiled.compiles is False
    assert await parser.outline(name, digest_of(broken), broken, compiled=True) is compiled
    assert await outline(parser, "b.py", broken) is compiled, "it says all that the plain one does"


async def test_what_is_remembered_can_be_forgotten(parser: Parser) -> None:
    first = await outline(parser, "a.py", b"x = 1\n")
    assert (len(parser.outlines), parser.outlines.held_bytes > 0) == (1, True)
    parser.outlines.clear()
    again = await outline(parser, "a.py", b"x = 1\n")
    assert again == first
    assert again is not first
