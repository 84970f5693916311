"""The daemon's own log: one JSON object a line on stderr, which `up` sends to `daemon.log`. No content, no secret."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any, TextIO, cast

import structlog


class Lines:
    """A stream that loses what it can't write: a full disk must not end the daemon by its own log."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()


def start_logging() -> None:
    """Set structlog up for this process; called by the composition root alone."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, Lines(sys.stderr))),
        cache_logger_on_first_use=True,
    )


def logger(room: str) -> Any:
    """A logger that names the room it speaks for."""
    return structlog.get_logger(room=room)
