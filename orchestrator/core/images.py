"""Images that models take, known by their first bytes."""

from __future__ import annotations

MOST_IMAGE_BYTES = 1_000_000
"""Of one that is shown; in an answer it takes a third more."""

IMAGE_TOKENS = 1600
"""About what a model takes an image for, whatever its size in bytes."""

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def image_type(data: bytes) -> str | None:
    """The media type of a PNG, JPEG, GIF or WebP; None of anything else, whatever its name."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS if data.startswith(beginning)), None)
