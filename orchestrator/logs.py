"""The daemon's own log: one JSON object a line on stderr, which `up` sends to `daemon.log`. No content, no secret."""

from __future__ import annotations

import sys
from typing import Any

import structlog


def start_logging() -> None:
    """Set structlog up for this process; called by the composition root alone."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def logger(room: str) -> Any:
    """A logger that names the room it speaks for."""
    return structlog.get_logger(room=room)
