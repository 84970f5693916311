"""A tiny tiktoken vocabulary: every byte, and the pieces of one word."""

from __future__ import annotations

import base64
from pathlib import Path

PIECES = (*(bytes((byte,)) for byte in range(256)), b"li", b"ne", b"line")


def vocabulary(folder: Path, pieces: tuple[bytes, ...] = PIECES, pattern: str | None = r"\S+|\s+") -> str:
    """The folder, with its files in it."""
    folder.mkdir(exist_ok=True)
    rows = (base64.b64encode(piece) + f" {rank}\n".encode() for rank, piece in enumerate(pieces))
    (folder / "tiny.tiktoken").write_bytes(b"".join(rows))
    if pattern is not None:
        (folder / "pattern.txt").write_text(pattern)
    return str(folder)
