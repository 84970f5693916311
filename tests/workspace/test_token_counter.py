"""Tokens by a vocabulary in a folder, counted in a worker; by the estimate where that can't be, with the reason."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from orchestrator.core.text.answer_space import estimate_tokens
from orchestrator.workspace.token_counter import MOST_COUNTED, PATTERNS, VocabularyCounter, counted
from orchestrator.workspace.workers import WorkerPool
from tests.in_memory.workers import ThreadWorkers
from tests.workspace.vocabularies import PIECES, vocabulary

pytestmark = pytest.mark.anyio


@pytest.fixture
async def counter() -> AsyncIterator[VocabularyCounter]:
    workers = WorkerPool()
    yield VocabularyCounter(workers)
    await workers.aclose()


@pytest.mark.parametrize(("text", "tokens"), [
    pytest.param("", 0, id="nothing"),
    pytest.param("line", 1, id="a piece of its own"),
    pytest.param("line line", 3, id="pieces of the pattern are apart"),
    pytest.param("lines", 2, id="a piece and a byte"),
    pytest.param("é", 2, id="bytes, not characters"),
])  # fmt: skip
async def test_a_vocabulary_counts(tmp_path: Path, counter: VocabularyCounter, text: str, tokens: int) -> None:
    assert await counter.count(text, vocabulary(tmp_path / "v")) == (tokens, "tiktoken tiny")


async def test_without_a_vocabulary_it_is_estimated(counter: VocabularyCounter) -> None:
    assert await counter.count("some words", "") == (estimate_tokens("some words"), "estimate")


def _rubbish(folder: Path) -> str:
    (folder / "x.tiktoken").write_text("no vocabulary\n")
    return str(folder)


@pytest.mark.parametrize(("made", "why"), [
    pytest.param(lambda folder: str(folder / "none"), "has 0 .tiktoken files", id="no folder"),
    pytest.param(lambda folder: vocabulary(folder / "v", pattern=None), "has no pattern.txt", id="no pattern"),
    pytest.param(lambda folder: vocabulary(folder / "v", pattern="("), "is no expression", id="a broken pattern"),
    pytest.param(lambda folder: vocabulary(folder / "v", PIECES[1:]), "lacks single bytes", id="a missing byte"),
    pytest.param(_rubbish, "can't be read", id="no vocabulary"),
])  # fmt: skip
async def test_a_vocabulary_that_cant_be_used_is_named(
    tmp_path: Path, counter: VocabularyCounter, made: Callable[[Path], str], why: str
) -> None:
    tokens, method = await counter.count("some words", made(tmp_path))
    assert tokens == estimate_tokens("some words")
    assert method.startswith("estimate (")
    assert why in method


async def test_without_tiktoken_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    tokens, method = await VocabularyCounter(ThreadWorkers()).count("some words", vocabulary(tmp_path / "v"))
    assert tokens == estimate_tokens("some words")
    assert "pip install 'workspace-orchestrator[tokens]'" in method


@pytest.mark.parametrize("name", PATTERNS)
def test_the_known_patterns_need_no_file(tmp_path: Path, name: str) -> None:
    folder = Path(vocabulary(tmp_path / "v", pattern=None))
    (folder / "tiny.tiktoken").rename(folder / f"{name}.tiktoken")
    assert counted(str(folder), "line, 'lines'\n\n    line") == (14, f"tiktoken {name}")


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("run", ["li", " ", "!", "\n "])
def test_a_run_without_end_is_counted(tmp_path: Path, name: str, run: str) -> None:
    folder = Path(vocabulary(tmp_path / "v", pattern=None))
    (folder / "tiny.tiktoken").rename(folder / f"{name}.tiktoken")
    text = run * (MOST_COUNTED // 2 // len(run)) + "x"
    tokens = counted(str(folder), text).tokens
    assert tokens == len(text.replace("li", "1")), "only the letters have a piece"


def test_of_a_long_text_a_part_is_counted(tmp_path: Path) -> None:
    tokens, method = counted(vocabulary(tmp_path / "v"), "line " * (MOST_COUNTED // 2))
    assert method == f"tiktoken tiny, of the first {MOST_COUNTED:,} characters"
    assert tokens == pytest.approx(MOST_COUNTED, rel=0.01)
