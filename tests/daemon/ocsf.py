"""What OCSF asks of a File System Activity, as far as this program writes it.

Encoded by hand from ocsf/ocsf-schema files of several ages: file_activity.json (main), system.json, and
objects/{actor,user,device,fingerprint}.json as of about 1.2, with file and product as published for 1.1.0 and
metadata for 1.2.0. The choices for a device and the ranges in ALLOWED are wider guesses. No run of an OCSF validator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

REQUIRED: dict[str, tuple[str, ...]] = {
    "": (
        *("activity_id", "actor", "category_uid", "class_uid", "device", "file", "metadata"),
        *("severity_id", "time", "type_uid"),
    ),
    "file": ("name", "type_id"),
    "file_result": ("name", "type_id"),
    "metadata": ("product", "version"),
    "device": ("type_id",),
    "hashes": ("algorithm_id", "value"),
}
AT_LEAST_ONE: dict[str, tuple[str, ...]] = {
    "actor": ("process", "user", "session", "application"),
    "user": ("account", "name", "uid"),
    "product": ("name", "uid"),
    "device": ("hostname", "ip", "uid", "name"),
}
ALLOWED: dict[str, frozenset[int]] = {
    "activity_id": frozenset((*range(15), 99)),
    "severity_id": frozenset((*range(7), 99)),
    "status_id": frozenset((0, 1, 2, 99)),
    "type_id": frozenset((*range(16), 99)),
    "algorithm_id": frozenset((*range(19), 99)),
}
KNOWN = frozenset(
    (
        *REQUIRED[""],
        *("activity_name", "category_name", "class_name", "type_name", "status_id", "status_code", "duration"),
        *("file_result", "unmapped"),
    )
)


def problems(event: dict[str, Any]) -> Iterator[str]:
    """What is wrong with one event."""
    yield from (f"unknown attribute {name}" for name in event if name not in KNOWN)
    yield from _object("", {name: value for name, value in event.items() if name != "unmapped"})
    if event["class_uid"] != 1001 or event["category_uid"] != 1:
        yield "not a File System Activity"
    if event["type_uid"] != 1001 * 100 + event["activity_id"]:
        yield f"type_uid {event['type_uid']} of activity {event['activity_id']}"
    if not isinstance(event["time"], int):
        yield "time is not in milliseconds"


def _object(name: str, value: dict[str, Any]) -> Iterator[str]:
    yield from (f"{name}.{field} is missing" for field in REQUIRED.get(name, ()) if field not in value)
    choices = AT_LEAST_ONE.get(name)
    if choices and not any(choice in value for choice in choices):
        yield f"{name} has none of {choices}"
    for field, inner in value.items():
        if field in ALLOWED and inner not in ALLOWED[field]:
            yield f"{name}.{field} is {inner}"
        if isinstance(inner, dict):
            yield from _object(field, inner)
        elif isinstance(inner, list):
            for item in inner:
                yield from _object(field, item)
