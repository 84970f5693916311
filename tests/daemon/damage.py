"""Damages of a stopped daemon's journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from orchestrator.core.events import chain


def alter(statement: str, *values: object) -> Callable[[Path], None]:
    def run(state_dir: Path) -> None:
        with closing(sqlite3.connect(state_dir / "journal.db")) as journal:
            assert journal.execute(statement, values).rowcount != 0
            journal.commit()

    return run


def append_of_the_future(state_dir: Path) -> None:
    """An event of a kind that only a newer program knows, in an unbroken chain."""
    with closing(sqlite3.connect(state_dir / "journal.db")) as journal:
        seq, tip = journal.execute("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1").fetchone()
        payload, salt, at = b'{"event":"wished_for"}', bytes(16), 1_800_000_000_000
        digest = chain.payload_hash(salt, payload)
        header = chain.header((seq + 1, at, "x", 1, "wished_for", *[None] * 8))
        journal.execute(
            "INSERT INTO events (seq, at, stream, stream_version, tag, payload, salt, payload_hash, prev_hash, hash) "
            "VALUES (?, ?, 'x', 1, 'wished_for', ?, ?, ?, ?, ?)",
            (seq + 1, at, payload, salt, digest, tip, chain.link(tip, header, digest)),
        )
        journal.commit()
