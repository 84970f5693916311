"""Stored forms of earlier releases, lifted one step at a time to the present one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

Upcast = Callable[[dict[str, Any]], dict[str, Any]]
"""From the plain data of an old tag to those of a newer one, the new tag in `event`. Pure."""

UPCASTS: Mapping[str, Upcast] = {}
"""By the old tag, which no present event has; none so far. A sample of each is in tests/golden/retired."""


def upcast(tag: str, payload: bytes, steps: Mapping[str, Upcast] = UPCASTS) -> bytes:
    """Apply the steps that lead from `tag` to a present one; the payload itself if there are none.

    Raises ValueError where a step does not name a tag, or steps lead in a circle.
    """
    if tag not in steps:
        return payload
    data = msgspec.json.decode(payload, type=dict[str, Any])
    passed: set[str] = set()
    while tag in steps:
        if tag in passed:
            raise ValueError(f"the upcast of {tag!r} leads back to it")
        passed.add(tag)
        data = steps[tag](data)
        tag = data["event"] if isinstance(data.get("event"), str) else ""
        if not tag:
            raise ValueError("an upcast gave no tag")
    return msgspec.json.encode(data)
