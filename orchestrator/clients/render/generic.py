"""An answer as lines by its type alone: whether it is ok, names and values, a table for each list, a diff.

`ALONE` and `COLUMNS` say how a type differs from that. Below is what all forms consist of. Control and
direction characters of files and agents come out visible.
"""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click
import msgspec

from orchestrator.api import administration as a
from orchestrator.api import journal_checks as c
from orchestrator.api import journal_operations as m
from orchestrator.api import results as r
from orchestrator.api.commands import CommandInfo
from orchestrator.api.conflicts import ConflictInfo, Conflicts, ReviewLine
from orchestrator.api.directory_stats import SuffixCount
from orchestrator.api.grants import GrantInfo, GrantList
from orchestrator.api.history import Changes, PathChanged
from orchestrator.api.policies import ConsideredRule, FailedCase, FileLine, ProfileLine, RuleLine, SimulatedAct
from orchestrator.api.session_operations import (
    LeaseInfo,
    OwnChange,
    PendingEdit,
    RecentRead,
    StaleReader,
    StaleReadersAnswer,
    TaskInfo,
    notice_text,
    seen_span,
)
from orchestrator.api.tags import TaggedFiles
from orchestrator.clients.render.commands import for_people
from orchestrator.clients.render.diff_rows import diff_lines
from orchestrator.core.errors import escaped
from orchestrator.core.policy.tables import Problem

EMPTY: dict[type[r.Result], str] = {
    a.ClearedCaches: "nothing was remembered",
    a.Approvals: "nothing waits for an approval",
    a.Agents: "no agent is known",
    GrantList: "no grant holds",
    Conflicts: "no conflict is open",
    r.History: "no version is known",
    TaggedFiles: "no tag is set there",
    Changes: "nothing has changed",
    StaleReadersAnswer: "nobody has a stale view of it",
}
"""Answers of which only their lists are shown, and what stands in place of an empty one."""

ALONE: dict[type[r.Result], str] = {
    **dict.fromkeys((r.Done, m.ArchiveAnswer, m.JournalReplaced), "message"),
    a.AgentToken: "token",
    c.SignedCheckpoint: "text",
    **dict.fromkeys(EMPTY, ""),
}
"""Answers of which one member and the lists are shown, and no more."""

COLUMNS: dict[type[msgspec.Struct], str] = {
    a.ApprovalInfo: "approval, since, agent, operation, paths, command, reason",
    a.AgentLine: "name, agent_class, token, read_only, expires_at",
    GrantInfo: "grant, agent, actions, globs, session|any session, expires_at, by, approval",
    Problem: "line, key, message",
    FailedCase: "line, agent, action, path, command, expect, expected_rule, verdict, rule, source",
    SimulatedAct: "old, new, agent, action, path, command, times, first, rule, source",
    CommandInfo: "command, since, agent, mode, status, exit_code, cwd, argv, group",
    FileLine: "layer, source, digest",
    ProfileLine: "name, agents, limits",
    RuleLine: "verdict, name, source, agents, actions, paths",
    ConsideredRule: "decides, matches, verdict, name, source",
    c.DiskDifference: "path, kind, journal|absent, disk|absent",
    r.FileVersion: "version_id, at, agent|outside, lease_holder, operation|kind, approver, removed, moved_from, reason",
    ReviewLine: "review, reviewer, state, verdict, code, reason|message, hint",
    ConflictInfo: "conflict, since, agent, state, reviewer|a person, deadline, path, moved_from, moved_at, deleted_at"
    ", reason",
    RecentRead: "path, version_id, lines, stale",
    PendingEdit: "id, kind, path, since",
    OwnChange: "change, operation, paths, at",
    TaskInfo: "task, title, agent, since",
    LeaseInfo: "lease, agent, mode, globs, expires_at, reason",
    a.SessionLine: "agent, asserted, agent_class, client, session",
    m.ArchivedLine: "first, last, file, size",
    PathChanged: "version, at, agent, lease_holder, kind, added, removed, path, moved_from",
    SuffixCount: "suffix|(none), files, size",
    StaleReader: "agent|-, session, version_id, lines|all of it, by, since",
}
"""The columns of a table of such structs; behind `|` what is shown where there is nothing: a member, or a word."""

TITLED = (FailedCase,)
"""Tables whose columns can't be told apart by what they hold: their members, under their names."""

DIFF_GOES_ON = "… the diff goes on"
_TIMES = ("at", "since", "deadline", "expires_at", "last_modified", "signed_at")
_SIZES = ("size", "bytes")
_CALLS = ("next", "rest", "hint")
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_LABELS = {"unchecked": "not checked", "approver_code": "approver code, shown this once"}
_PHRASES = {
    "moved_from": "(moved from {})",
    "moved_at": "(at {})",
    "lease_holder": "under {}'s lease",
    "approver": "(approved by {})",
    "deleted_at": "(deleted at {})",
    "added": "+{}",
    "removed": "-{}",
    "token": "token: {}",
    "exit_code": "exit code {}",
    "group": "(changed files: {})",
}
_QUIET = {"ok", "complete", "unread", "cursor", "total", "truncated", "next", "moved", "warnings"}
_QUIET |= {"diff", "diff_truncated", "diff_rest", "shown_whole"}
"""Members that are shown in a form of their own, or that only programs need."""


def lines_of(result: r.Result) -> Iterator[str]:
    """The lines of an answer."""
    fields = msgspec.structs.fields(result)
    values = {field.name: getattr(result, field.name) for field in fields}
    empty = {each.name for each in fields if not values[each.name] and each.default is not msgspec.NODEFAULT}
    rest = {name: value for name, value in values.items() if name not in _QUIET | empty}
    lists = {name: rest.pop(name) for name, value in [*rest.items()] if _is_list(value)}
    yield from _verdict(result)
    alone = ALONE.get(type(result))
    yield from content(str(values.get("message" if alone is None else alone, "")))
    if alone is None:
        rest.pop("message", None)
        yield from facts(*((_label(name), _cell(name, item)) for name, value in rest.items() for item in _items(value)))
    for name, rows in lists.items():
        if alone is None:
            yield f"{_label(name)}:"
        yield from rows_of(rows, indent="  " if alone is None else "")
    if alone == "" and not lists:
        yield EMPTY[type(result)]
    if values.get("more"):
        yield f"… more follows; go on with {escaped(for_people(str(values['next'])))}"
    yield from diff_lines(values.get("diff"), DIFF_GOES_ON if values.get("diff_truncated") else "")
    yield from go_on(len(next(iter(lists.values()), ())), values.get("total"), values.get("cursor"))


def rows_of(rows: Iterable[Any], *, indent: str = "") -> Iterator[str]:
    """A line for each struct, by the columns of its type."""
    rows = [*rows]
    cells = [*map(_row, rows)]
    if rows and type(rows[0]) in TITLED:
        columns = zip(rows[0].__struct_fields__, zip(*cells, strict=True), strict=True)
        cells.insert(0, [_label(name) if any(column) else "" for name, column in columns])
    return (f"{indent}{line}" for line in table(cells))


def _verdict(result: r.Result) -> Iterator[str]:
    """Of a check: whether what it looked at holds."""
    ok = getattr(result, "ok", getattr(result, "complete", None))
    if ok is not None:
        word = getattr(result, "verdict", "ok") if ok else "not ok" if hasattr(result, "ok") else "incomplete"
        yield click.style(word, fg="red" if not ok else "green" if word == "ok" else "yellow")


def _is_list(value: object) -> bool:
    return isinstance(value, tuple) and isinstance(value[0], msgspec.Struct)


def _items(value: object) -> Iterable[object]:
    return value if isinstance(value, tuple) else (value,)


def _label(name: str) -> str:
    return _LABELS.get(name, name.replace("_", " "))


def _row(row: msgspec.Struct) -> Sequence[str]:
    if isinstance(row, r.Notice):
        return (notice_text(row),)
    cells = []
    for column in COLUMNS.get(type(row), ", ".join(row.__struct_fields__)).split(", "):
        name, _, other = column.partition("|")
        value = getattr(row, name)
        if isinstance(value, bool):
            cells.append(f"({name})" if value else "")
        elif value is None or value in ("", ()):
            cells.append(str(getattr(row, other, other) or ""))
        else:
            count = row.path_count if name == "paths" and isinstance(row, a.ApprovalInfo) else None
            many = isinstance(value, tuple) and name != "argv"
            text = some([_cell(name, item) for item in value], count) if many else _cell(name, value)
            cells.append(_PHRASES.get(name, "{}").format(text))
    return cells


def _cell(name: str, value: object) -> str:
    """A value as text."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() if name in _TIMES:
            return when(value)
        case int() if name in _SIZES:
            return sized(value)
        case tuple():
            return shlex.join(value) if name == "argv" else ", ".join(_cell(name, part) for part in value)
        case r.NoticeLines():
            return seen_span(value)
        case msgspec.Struct():
            return msgspec.json.encode(value).decode()
        case _:
            return for_people(str(value)) if name in _CALLS else str(value)


MOST_NAMES = 6
"""Of one event in its line; `--json` has all."""


def table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Rows with their columns aligned, without columns that are empty; the last one runs free."""
    cells = [[escaped(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width).rstrip()


def facts(*pairs: tuple[str, str | None]) -> Iterator[str]:
    """Names and values, aligned; empty values are left out."""
    return table((f"{name}:", value) for name, value in pairs if value)


def content(text: str) -> Iterator[str]:
    """File content, line by line; tabs stay."""
    for line in text.removesuffix("\n").split("\n") if text else ():
        yield "\t".join(escaped(part) for part in line.removesuffix("\r").split("\t"))


def numbered(text: str, start: int) -> Iterator[str]:
    """File content with line numbers."""
    for number, line in enumerate(content(text), max(start, 1)):
        yield click.style(f"{number:>6}  ", dim=True) + line


def some(names: Sequence[str], count: int | None = None) -> str:
    """Names in one cell; of many the first, and how many more there are: `count` in all, if `names` is only a part."""
    more = (count or len(names)) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def when(at_ms: int | None) -> str:
    """A time as the person's clock shows it; empty for none."""
    if at_ms is None:
        return ""
    return datetime.datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def sized(count: int | None) -> str:
    """Bytes as a person reads them, to three digits; empty for none."""
    if count is None:
        return ""
    if count < 1000:
        return f"{count} B"
    size, step = count / 1024, 0
    while size >= 999.5 and step < len(_UNITS) - 1:
        size, step = size / 1024, step + 1
    return f"{size:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f} {_UNITS[step]}"


def go_on(shown: int, total: int | None, cursor: str | None, *, at_least: bool = False) -> Iterator[str]:
    """How to see the rest of a list, if it goes on."""
    if cursor is not None:
        of = "" if total is None else f" of at least {total}" if at_least else f" of {total}"
        yield f"… {shown}{of}; go on with --cursor {cursor}"
