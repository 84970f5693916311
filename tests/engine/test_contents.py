"""Contents at hand: what they take is counted as it is held, decoded lines too, and has a bound."""

from __future__ import annotations

from functools import partial

import pytest

from orchestrator.core.content import digest_of
from orchestrator.core.ids import Digest
from orchestrator.core.projections.registry import Encodings
from orchestrator.core.text.encoding import Document, decode
from orchestrator.engine.contents import Contents
from orchestrator.machine import SystemClock, SystemEntropy
from tests.in_memory.journal import MemoryJournal
from tests.in_memory.workers import ThreadWorkers

pytestmark = pytest.mark.anyio

MOST = 100_000


@pytest.fixture
def contents() -> Contents:
    journal = MemoryJournal(clock=SystemClock(), entropy=SystemEntropy())
    return Contents(journal, Encodings(), ThreadWorkers(), cache_bytes=MOST)


def text_of(number: int, lines: int) -> tuple[Digest, bytes]:
    data = f"{number}\n".encode() * lines
    return digest_of(data), data


@pytest.mark.parametrize("decoded_first", [False, True])
async def test_short_lines_count_for_what_their_decoded_text_takes(contents: Contents, *, decoded_first: bool) -> None:
    """A file of 300 lines of two characters has 600 bytes and takes 20 KB: five of them fit, and not 160."""
    kept = [text_of(number, 300) for number in range(50)]
    for digest, data in kept:
        contents.put(digest, data, decode(data) if decoded_first else None)
        assert await contents.text(digest, data) is not None
        assert contents.held <= MOST
    at_hand = [digest for digest, _ in kept if contents.cached(digest) is not None]
    assert at_hand == [digest for digest, _ in kept[-len(at_hand) :]]
    assert 2 <= len(at_hand) <= 5


async def test_the_content_used_last_stays_whatever_it_takes(contents: Contents) -> None:
    small, large = text_of(1, 10), text_of(2, 20_000)
    contents.put(*small)
    contents.put(*large)
    await contents.text(*large)
    assert contents.cached(large[0]) is not None
    assert contents.cached(small[0]) is None
    contents.put(*small)
    assert contents.cached(large[0]) is None


async def test_a_worker_is_given_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are packed piece by piece. A tuple of 700,000 lines held everybody up for 0.3 s."""
    given = list[object]()

    async def run(self: ThreadWorkers, work: partial[object]) -> object:
        given.extend(work.args)
        return work()

    monkeypatch.setattr(ThreadWorkers, "run", run)
    contents = Contents(MemoryJournal(clock=SystemClock(), entropy=SystemEntropy()), Encodings(), ThreadWorkers())
    (old, before), (new, after) = text_of(1, 3000), text_of(2, 3000)
    contents.put(old, before)
    contents.put(new, after)
    assert await contents.differences(old, new)
    assert [type(one) for one in given] == [Document, Document]


async def test_nothing_is_held_when_all_is_dropped(contents: Contents) -> None:
    for number in range(20):
        digest, data = text_of(number, 20)
        contents.put(digest, data)
        await contents.text(digest, data)
    for number in range(20):
        contents.drop(text_of(number, 20)[0])
    assert contents.held == 0
