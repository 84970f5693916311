"""An index of vectors: contents in passages, and the passages that are near a question."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from orchestrator.core.ids import Digest
from orchestrator.core.policy.rules import SemanticRules
from orchestrator.core.text.chunks import Chunk


class ContentTexts(NamedTuple):
    """A content, its passages, and what is embedded of each."""

    digest: Digest
    chunks: tuple[Chunk, ...]
    texts: tuple[str, ...]


class Near(NamedTuple):
    """A passage of a content, and how near it is: over 0, at most 1."""

    digest: Digest
    chunk: Chunk
    score: float


class OpenedIndex(NamedTuple):
    """What an index had when it was opened."""

    model: str
    contents: frozenset[Digest]
    chunks: int


class SemanticIndex(Protocol):
    """Keeps vectors, never texts, beyond a restart; those of another model go.

    Each call raises EmbeddingFailed, after which it may be open no more, and `open` SemanticSearchOff besides.
    """

    @property
    def is_open(self) -> bool:
        """Whether it takes calls."""

    async def open(self, settings: SemanticRules) -> OpenedIndex:
        """Begin with these settings, anew if it is open."""

    async def add(self, contents: Sequence[ContentTexts]) -> tuple[int, frozenset[Digest]]:
        """Embed and keep them. How many passages it has then, and the contents for which there is no room."""

    async def remove(self, digests: Collection[Digest]) -> int:
        """Forget contents. How many passages it has then."""

    async def nearest(self, text: str, among: Collection[Digest] | None, most: int) -> list[Near]:
        """The passages nearest to a text, of these contents or (None) of all, the best first."""

    async def aclose(self) -> None:
        """End it."""
