"""Events about files as OCSF File System Activity (class 1001), for whoever collects security events.

Source: ocsf/ocsf-schema, events/system/file_activity.json (main, after the ai_operation profile), its CHANGELOG
for 1.9.0 and the newer part of 1.8.0, and the published pages of the objects for 1.1.0 and 1.2.0. The objects
were not compared with 1.9.0 field by field.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from orchestrator.api import results as r
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.files import (
    ChangeAborted,
    ChangeApplied,
    ChangeDiverged,
    ChangeRefused,
    ContentSearched,
    DiffShown,
    DirectoryListed,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    FileRead,
    MetadataRead,
    ReadRefused,
)
from orchestrator.engine.services import Services
from orchestrator.version import VERSION

SCHEMA = "1.9.0"
CLASS, CATEGORY = 1001, 1
CREATE, READ, UPDATE, DELETE, RENAME, GET_ATTRIBUTES = 1, 2, 3, 4, 5, 8
NAMES = {1: "Create", 2: "Read", 3: "Update", 4: "Delete", 5: "Rename", 8: "Get Attributes"}
REGULAR, FOLDER = 1, 2
SUCCESS, FAILURE = 1, 2
INFORMATIONAL, LOW = 1, 2
SHA_256 = 3
USER, SERVICE = 1, 4

_CHANGES = {"create_directory": CREATE, "delete_file": DELETE, "move_file": RENAME}
_LOOKS = {"file_info": GET_ATTRIBUTES, "file_history": GET_ATTRIBUTES}
_FOLDERS = ("list_files", "find_files", "create_directory")
_ENCODER = msgspec.json.Encoder()


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to one file."""

    activity: int
    path: str
    folder: bool = False
    done: bool = True
    code: str | None = None
    before: str | None = None  # hashes, of what may be shown
    after: str | None = None
    version: str | None = None
    result: str | None = None  # the path where the file is now, if another


class Ocsf:
    """One line for each file that an event is about; none for an event that is about no file."""

    header = ""

    def __init__(self, services: Services, *, root: str, host: str) -> None:
        self._s, self._root, self._host = services, root, host

    def lines(self, item: Recorded, entry: r.JournalEntry) -> str:
        told = (self._told(item, entry, one, number) for number, one in enumerate(activities(item, entry)))
        return "".join(_ENCODER.encode(one).decode() + "\n" for one in told)

    def _told(self, item: Recorded, entry: r.JournalEntry, one: Activity, number: int) -> dict[str, Any]:
        extra = {
            "kind": entry.kind,
            "outcome": entry.outcome,
            "operation": entry.operation,
            "arguments": entry.arguments,
            "tokens": entry.tokens,
            "approval": entry.approval,
            "cause": entry.cause,
            "took_us": entry.took_us,
        }
        told: dict[str, Any] = {
            "activity_id": one.activity,
            "activity_name": NAMES[one.activity],
            "category_uid": CATEGORY,
            "category_name": "System Activity",
            "class_uid": CLASS,
            "class_name": "File System Activity",
            "type_uid": CLASS * 100 + one.activity,
            "type_name": f"File System Activity: {NAMES[one.activity]}",
            "time": item.at,
            "severity_id": INFORMATIONAL if one.done else LOW,
            "status_id": SUCCESS if one.done else FAILURE,
            "actor": self._actor(item),
            "device": {"hostname": self._host, "type_id": 0},
            "file": self._file(one.path, one.folder, one.before if one.before is not None else one.after, one),
            "metadata": {
                "version": SCHEMA,
                "product": {"name": "orchestrator", "vendor_name": "orchestrator", "version": VERSION},
                "uid": entry.seq if number == 0 else f"{entry.seq}.{number}",
                "sequence": item.seq,
                "event_code": entry.kind,
                "log_name": "journal",
            },
            "unmapped": {name: value for name, value in extra.items() if value is not None},
        }
        if one.code is not None:
            told["status_code"] = one.code
        if entry.took_us is not None:
            told["duration"] = entry.took_us // 1000
        if one.done and one.activity in (CREATE, UPDATE, RENAME):
            told["file_result"] = self._file(one.result or one.path, one.folder, one.after, one)
        return told

    def _actor(self, item: Recorded) -> dict[str, Any]:
        """The agent as the user; OCSF wants some actor of every activity, so a stranger is named as one."""
        if item.agent is None:
            return {"user": {"name": "outside", "type_id": 0}}
        session = self._s.state.sessions.get(item.session) if item.session is not None else None
        user: dict[str, Any] = {"name": item.agent, "type_id": 0}
        if session is not None:
            user["type_id"] = USER if session.agent_class == "person" else SERVICE
        actor: dict[str, Any] = {"user": user}
        if item.session is not None:
            actor["session"] = {"uid": item.session}
        return actor

    def _file(self, path: str, folder: bool, digest: str | None, one: Activity) -> dict[str, Any]:
        told: dict[str, Any] = {
            "name": path.rpartition("/")[2] or path,
            "path": self._root if path == "." else f"{self._root}/{path}",
            "type_id": FOLDER if folder else REGULAR,
        }
        if digest is not None:
            told["hashes"] = [{"algorithm_id": SHA_256, "algorithm": "SHA-256", "value": digest.partition(":")[2]}]
        if one.version is not None:
            told["version"] = one.version
        return told


def activities(item: Recorded, entry: r.JournalEntry) -> Iterator[Activity]:
    """What an event says of files, one by one."""
    match item.event:
        case FileRead(seen=seen):
            yield Activity(activity=READ, path=seen.path, version=f"@{seen.version}")
        case ContentSearched(seen=shown):
            for seen in shown:
                yield Activity(activity=READ, path=seen.path, version=f"@{seen.version}")
        case DiffShown(path=path, to_version=version):
            yield Activity(activity=READ, path=path, version=f"@{version}")
        case MetadataRead(path=path):
            yield Activity(activity=GET_ATTRIBUTES, path=path)
        case DirectoryListed(path=path):
            yield Activity(activity=READ, path=path, folder=True)
        case ReadRefused(operation=operation, path=path, code=code):
            activity, folder = _LOOKS.get(operation, READ), operation in _FOLDERS
            yield Activity(activity=activity, path=path, folder=folder, done=False, code=code)
        case ChangeRefused(operation=operation, paths=paths, code=code):
            activity, folder = _CHANGES.get(operation, UPDATE), operation in _FOLDERS
            for path in paths[:1]:
                yield Activity(activity=activity, path=path, folder=folder, done=False, code=code)
        case ChangeAborted(cause=cause):
            yield Activity(activity=UPDATE, path=item.stream.partition(":")[2], done=False, code=cause)
        case ChangeDiverged(paths=met):
            for each in met:
                yield Activity(activity=UPDATE, path=each.path, done=False, code="diverged")
        case ChangeApplied():
            yield from _applied(item.event, entry)
        case ExternalFileChanged() | ExternalFileCreated() | ExternalFileRemoved():
            yield _moved(entry.paths[0], removed=isinstance(item.event, ExternalFileRemoved))
        case _:
            return


def _applied(event: ChangeApplied, entry: r.JournalEntry) -> Iterator[Activity]:
    """A move is one activity, though it changes two paths."""
    left = {change.moved_from for change in event.paths if change.moved_from is not None}
    for change, shown in zip(event.paths, entry.paths, strict=True):
        if change.path in left and change.after is None:
            continue
        if change.directory:
            yield Activity(activity=CREATE, path=change.path, folder=True)
            continue
        activity = RENAME if change.moved_from else DELETE if change.after is None else UPDATE
        if activity == UPDATE and change.before is None:
            activity = CREATE
        yield msgspec.structs.replace(_moved(shown, removed=change.after is None), activity=activity)


def _moved(shown: r.EntryPath, *, removed: bool) -> Activity:
    """By what stood and what stands at a path."""
    if shown.moved_from is not None:
        return Activity(
            activity=RENAME, path=shown.moved_from, result=shown.path, after=shown.after_hash, version=shown.after
        )
    activity = DELETE if removed else CREATE if shown.before is None else UPDATE
    return Activity(
        activity=activity,
        path=shown.path,
        before=shown.before_hash,
        after=shown.after_hash,
        version=shown.before if removed else shown.after,
    )
