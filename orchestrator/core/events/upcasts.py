"""Stored forms of earlier releases, lifted one step at a time to the present one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

Upcast = Callable[[dict[str, Any]], dict[str, Any]]

UPCASTS: dict[str, Upcast] = {}
"""Old tag → a pure function from its plain data to the plain data of a newer tag. None so far."""


def upcast(tag: str, payload: bytes) -> bytes:
    """Apply the steps that lead from `tag` to a present one; the payload itself if there are none."""
    if tag not in UPCASTS:
        return payload
    data = msgspec.json.decode(payload, type=dict[str, Any])
    while tag in UPCASTS:
        data = UPCASTS[tag](data)
        tag = data["event"]
    return msgspec.json.encode(data)
