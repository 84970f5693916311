"""Entries of the journal as OCSF File System Activity (class 1001), for whoever collects security events.

    orchestrator journal export | orchestrator-ocsf --root /path/of/the/workspace > events.ocsf

One line for each file that an event is about; none for an event that is about no file.
Source: ocsf/ocsf-schema, events/system/file_activity.json (main, after the ai_operation profile), its CHANGELOG
for 1.9.0 and the newer part of 1.8.0, and the published pages of the objects for 1.1.0 and 1.2.0. The objects
were not compared with 1.9.0 field by field.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

SCHEMA = "1.9.0"
CLASS, CATEGORY = 1001, 1
CREATE, READ, UPDATE, DELETE, RENAME, GET_ATTRIBUTES = 1, 2, 3, 4, 5, 8
NAMES = {1: "Create", 2: "Read", 3: "Update", 4: "Delete", 5: "Rename", 8: "Get Attributes"}
REGULAR, FOLDER = 1, 2
SUCCESS, FAILURE = 1, 2
INFORMATIONAL, LOW = 1, 2
SHA_256 = 3
USER, SERVICE = 1, 4

_ACTIVITIES = {
    "create_directory": CREATE,
    "delete_file": DELETE,
    "move_file": RENAME,
    "file_info": GET_ATTRIBUTES,
    "file_history": GET_ATTRIBUTES,
}
_FOLDERS = ("list_files", "find_files", "create_directory")
_UNMAPPED = ("kind", "outcome", "operation", "arguments", "tokens", "approval", "cause", "took_us")

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Activity:
    """What happened to one file."""

    activity: int
    path: str
    folder: bool = False
    code: str | None = None  # why it was not done
    before: str | None = None  # hashes, of what may be shown
    after: str | None = None
    version: str | None = None
    result: str | None = None  # the path where the file is now, if another


def main() -> int:
    """Read entries from standard input, write activities to standard output; the exit code."""
    parser = argparse.ArgumentParser(prog="orchestrator-ocsf", description="JSON Lines of the journal as OCSF.")
    parser.add_argument("--root", required=True, help="the workspace's folder: OCSF wants whole paths")
    parser.add_argument("--host", default=platform.node() or "localhost")
    given = parser.parse_args()
    for line in sys.stdin:
        entry = json.loads(line)
        for number, one in enumerate(activities(entry)):
            print(json.dumps(written(entry, one, number, given.root.rstrip("/"), given.host)))
    return 0


def activities(entry: Json) -> Iterator[Activity]:  # noqa: C901, PLR0912  # one case for each class of the schema
    """What an entry says of files, one by one."""
    event, operation = entry["event"], entry.get("operation") or ""
    activity, folder = _ACTIVITIES.get(operation, READ), operation in _FOLDERS
    match entry["kind"]:
        case "file_read":
            yield _shown(event["seen"])
        case "content_searched":
            yield from map(_shown, event.get("seen", ()))
        case "diff_shown":
            yield Activity(activity=READ, path=event["path"], version=f"@{event['to_version']}")
        case "metadata_read":
            yield Activity(activity=GET_ATTRIBUTES, path=event["path"])
        case "directory_listed":
            yield Activity(activity=READ, path=event["path"], folder=True)
        case "read_refused":
            yield Activity(activity=activity, path=event["path"], folder=folder, code=event["code"])
        case "change_refused":
            activity = _ACTIVITIES.get(operation, UPDATE)
            for path in event["paths"][:1]:
                yield Activity(activity=activity, path=path, folder=folder, code=event["code"])
        case "change_aborted":
            yield Activity(activity=UPDATE, path=entry["stream"].partition(":")[2], code=event["cause"])
        case "change_diverged":
            for each in event["paths"]:
                yield Activity(activity=UPDATE, path=each["path"], code="diverged")
        case "change_applied":
            yield from _applied(entry)
        case "external_file_changed" | "external_file_created" | "external_file_removed":
            yield _changed(entry["paths"][0], removed=entry["kind"] == "external_file_removed")


def _shown(seen: Json) -> Activity:
    return Activity(activity=READ, path=seen["path"], version=f"@{seen['version']}")


def _applied(entry: Json) -> Iterator[Activity]:
    """A move is one activity, though it changes two paths."""
    changes = entry["event"]["paths"]
    left = {change["moved_from"] for change in changes if change.get("moved_from")}
    for change, shown in zip(changes, entry["paths"], strict=True):
        removed = change.get("after") is None
        if change["path"] in left and removed:
            continue
        if change.get("directory"):
            yield Activity(activity=CREATE, path=change["path"], folder=True)
            continue
        activity = RENAME if change.get("moved_from") else DELETE if removed else UPDATE
        if activity == UPDATE and change.get("before") is None:
            activity = CREATE
        yield replace(_changed(shown, removed=removed), activity=activity)


def _changed(shown: Json, *, removed: bool) -> Activity:
    """By what stood and what stands at a path."""
    path, before, after = shown["path"], shown.get("before"), shown.get("after")
    if shown.get("moved_from"):
        return Activity(
            activity=RENAME, path=shown["moved_from"], result=path, after=shown.get("after_hash"), version=after
        )
    return Activity(
        activity=DELETE if removed else CREATE if before is None else UPDATE,
        path=path,
        before=shown.get("before_hash"),
        after=shown.get("after_hash"),
        version=before if removed else after,
    )


def written(entry: Json, one: Activity, number: int, root: str, host: str) -> Json:
    """One activity as OCSF has it; `number` is its place among those of the entry."""
    seq = entry["seq"]
    told: Json = {
        "activity_id": one.activity,
        "activity_name": NAMES[one.activity],
        "category_uid": CATEGORY,
        "category_name": "System Activity",
        "class_uid": CLASS,
        "class_name": "File System Activity",
        "type_uid": CLASS * 100 + one.activity,
        "type_name": f"File System Activity: {NAMES[one.activity]}",
        "time": entry["at"],
        "severity_id": LOW if one.code else INFORMATIONAL,
        "status_id": FAILURE if one.code else SUCCESS,
        "actor": _actor(entry),
        "device": {"hostname": host, "type_id": 0},
        "file": _file(one.path, one.before if one.before is not None else one.after, one, root),
        "metadata": {
            "version": SCHEMA,
            "product": {
                "name": "orchestrator",
                "vendor_name": "orchestrator",
                "version": version("workspace-orchestrator"),
            },
            "uid": seq if number == 0 else f"{seq}.{number}",
            "sequence": int(seq.removeprefix("@")),
            "event_code": entry["kind"],
            "log_name": "journal",
        },
        "unmapped": {name: entry[name] for name in _UNMAPPED if entry.get(name) is not None},
    }
    if one.code is not None:
        told["status_code"] = one.code
    if entry.get("took_us") is not None:
        told["duration"] = entry["took_us"] // 1000
    if one.code is None and one.activity in (CREATE, UPDATE, RENAME):
        told["file_result"] = _file(one.result or one.path, one.after, one, root)
    return told


def _actor(entry: Json) -> Json:
    """The agent as the user; OCSF wants some actor of every activity, so a stranger is named as one."""
    agent, session = entry.get("agent"), entry.get("session")
    if agent in (None, "outside"):
        return {"user": {"name": "outside", "type_id": 0}}
    kind = USER if agent.startswith("person:") else SERVICE
    return {"user": {"name": agent, "type_id": kind}, **({"session": {"uid": session}} if session else {})}


def _file(path: str, digest: str | None, one: Activity, root: str) -> Json:
    told: Json = {
        "name": path.rpartition("/")[2] or path,
        "path": root if path == "." else f"{root}/{path}",
        "type_id": FOLDER if one.folder else REGULAR,
    }
    if digest is not None:
        told["hashes"] = [{"algorithm_id": SHA_256, "algorithm": "SHA-256", "value": digest.partition(":")[2]}]
    if one.version is not None:
        told["version"] = one.version
    return told


if __name__ == "__main__":
    sys.exit(main())
