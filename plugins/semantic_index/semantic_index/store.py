"""Vectors by content, in memory for the search and in a file for the next start."""

from __future__ import annotations

import importlib
import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

ROWS_AT_ONCE = 8192
"""That are multiplied together; the vectors are kept in half precision and are made whole for it."""

MOST_BYTES = 512 << 20
"""Of vectors in memory; twice as much while they are put together anew."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS model (name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS contents (digest TEXT PRIMARY KEY, chunks TEXT NOT NULL, vectors BLOB NOT NULL);
"""

Chunk = tuple[int, int, str]
"""First line, last line, and the symbol that it is of."""


class Store:
    """All of one model. `file` can be made anew from the workspace: nothing is synced, and a damaged one goes."""

    def __init__(self, file: Path, model: str, max_chunks: int) -> None:
        self._np: Any = importlib.import_module("numpy")
        self._most, self.chunks = max_chunks, 0
        self._found: dict[str, tuple[list[Chunk], Any]] = {}
        self._matrix: Any = None
        self._rows: list[tuple[str, Chunk]] = []
        try:
            self._open(file, model)
        except (sqlite3.DatabaseError, ValueError):
            file.unlink(missing_ok=True)
            self._found, self.chunks = {}, 0
            self._open(file, model)

    def _open(self, file: Path, model: str) -> None:
        self._file = sqlite3.connect(file)
        self._file.executescript("PRAGMA synchronous = OFF;" + _SCHEMA)
        if self._file.execute("SELECT name FROM model").fetchall() != [(model,)]:
            self._file.executescript("DELETE FROM contents; DELETE FROM model;")
            self._file.execute("INSERT INTO model VALUES (?)", (model,))
        for digest, chunks, vectors in self._file.execute("SELECT digest, chunks, vectors FROM contents"):
            named = [(start, end, name) for start, end, name in json.loads(chunks)]
            self._keep(digest, named, self._np.frombuffer(vectors, "float16").reshape(len(named), -1))
        self._file.commit()

    @property
    def contents(self) -> list[str]:
        """The digests of those that it has."""
        return list(self._found)

    @property
    def dimensions(self) -> int:
        """Of its vectors; 0 while it has none."""
        return next((int(vectors.shape[1]) for _, vectors in self._found.values()), 0)

    def has_room(self, chunks: int, dimensions: int) -> bool:
        """Whether so many more fit."""
        return self.chunks + chunks <= min(self._most, MOST_BYTES // (2 * dimensions))

    def add(self, digest: str, chunks: Sequence[Chunk], vectors: Any) -> None:
        """Keep a content's vectors, one for each chunk."""
        lengths = self._np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = (vectors / self._np.where(lengths == 0, 1, lengths)).astype("float16")
        self._keep(digest, list(chunks), vectors)
        row = (digest, json.dumps(chunks), vectors.tobytes())
        self._file.execute("INSERT OR REPLACE INTO contents VALUES (?, ?, ?)", row)
        self._file.commit()

    def _keep(self, digest: str, chunks: list[Chunk], vectors: Any) -> None:
        self._found[digest] = chunks, vectors
        self.chunks += len(chunks)
        self._matrix = None

    def remove(self, digests: Iterable[str]) -> None:
        """Forget contents."""
        for digest in digests:
            if digest in self._found:
                self.chunks -= len(self._found.pop(digest)[0])
                self._matrix = None
                self._file.execute("DELETE FROM contents WHERE digest = ?", (digest,))
        self._file.commit()

    def nearest(self, question: Any, among: Collection[str] | None, most: int) -> list[tuple[str, Chunk, float]]:
        """The nearest chunks of these contents (None: of all), the best first, by cosine; only what is above 0."""
        self._arrange()
        if not self._rows or self._matrix.shape[1] != question.shape[0]:
            return []
        question = question.astype("float32") / (float(self._np.linalg.norm(question)) or 1.0)
        scores = self._np.concatenate(
            [
                self._matrix[at : at + ROWS_AT_ONCE].astype("float32") @ question
                for at in range(0, len(self._rows), ROWS_AT_ONCE)
            ]
        )
        if among is not None:
            scores = self._np.where([digest in among for digest, _ in self._rows], scores, -1.0)
        best = self._np.argsort(-scores, kind="stable")[:most]
        return [(*self._rows[at], round(float(scores[at]), 4)) for at in best if scores[at] > 0]

    def _arrange(self) -> None:
        """One matrix of all vectors, of which each content's are a part."""
        if self._matrix is not None or not self.chunks:
            self._rows = self._rows if self.chunks else []
            return
        self._matrix = self._np.concatenate([vectors for _, vectors in self._found.values()])
        self._rows, at = [], 0
        for digest, (chunks, _) in self._found.items():
            self._rows += [(digest, chunk) for chunk in chunks]
            self._found[digest] = chunks, self._matrix[at : at + len(chunks)]
            at += len(chunks)
