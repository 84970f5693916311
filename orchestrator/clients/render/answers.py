"""Answers as lines for a terminal, by the type of the result."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from functools import singledispatch

import click
import msgspec

from orchestrator.api import results as r
from orchestrator.api.blame import Changes
from orchestrator.api.framing import Refusal
from orchestrator.api.leases import LeaseAnswer
from orchestrator.api.operations import OPERATIONS
from orchestrator.api.stale_readers import StaleReadersAnswer, seen_span, told
from orchestrator.clients.render.text import content, diff_lines, facts, go_on, table, when
from orchestrator.core.errors import escaped, plural

COMMANDS = {operation.name: operation.words for operation in OPERATIONS if operation.words}
"""Operation → command."""

_NAMED = re.compile(rf"\b({'|'.join(name for name in COMMANDS if '_' in name)})\b(?:\([^)\n]*\))?")
_STATUS_COLOURS = {"applied": "green", "preview": "cyan", "waiting": "yellow", "conflict": "yellow"}
_SIGNS = {"FileEntry": "", "DirectoryEntry": "/", "SymbolicLinkEntry": "@", "OtherEntry": "?"}
_TIMES = ("last_modified", "signed_at")
_WHY = {
    "policy": "policy keeps its lines from you",
    "not_kept": "its content was not kept",
    "too_large": "its diff is too large for one answer",
}


@singledispatch
def rendered(result: r.Result) -> Iterator[str]:
    """The lines of an answer."""
    values = {name: getattr(result, name) for name in result.__struct_fields__}
    yield from facts(
        *(
            (name.replace("_", " "), when(value) if name in _TIMES else _plain(value))
            for name, value in values.items()
            if value not in (None, "", ())
        )
    )


def _plain(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ", ".join(map(str, value))
        case msgspec.Struct():
            return msgspec.json.encode(value).decode()
        case _:
            return str(value)


def for_people(hint: str) -> str:
    """A hint with the commands that a person runs in place of the operations that an agent calls."""
    return _NAMED.sub(lambda named: f"`orchestrator {COMMANDS[named[1]]}`", hint)


def refused(refusal: Refusal) -> Iterator[str]:
    """The lines of a refusal."""
    yield click.style(f"{refusal.code}: ", fg="red") + escaped(refusal.message)
    if refusal.hint:
        yield f"  {escaped(for_people(refusal.hint))}"
    yield from content(refusal.shown or "")


def noticed(notice: r.Notice) -> Iterator[str]:
    """What others did to what the caller has read."""
    yield f"notice: {for_people(told(notice))}"
    if notice.diff:
        yield from (f"  {line}" for line in notice.diff.splitlines())
    if notice.diff_truncated:
        yield "  …"


@rendered.register
def _done(result: r.Done) -> Iterator[str]:
    yield escaped(result.message)


@rendered.register
def _change(answer: r.ChangeAnswer) -> Iterator[str]:
    status = answer.status if answer.would_be is None else f"{answer.status}, would be {answer.would_be}"
    named = answer.version_id or answer.approval or answer.conflict or answer.change or ""
    colour = _STATUS_COLOURS.get(answer.status, "red")
    lines = f" (+{answer.added} -{answer.removed})" if answer.status == "applied" and answer.diff is None else ""
    yield click.style(status, fg=colour) + (f" {named}" if named else "") + f": {escaped(answer.message)}{lines}"
    yield from diff_lines(answer.diff or "")
    if answer.diff_truncated:
        yield "… the diff goes on; `orchestrator diff` shows all of it"
    yield from content(answer.shown or "")
    yield from _merged(answer.merge)
    yield from (f"warning: {escaped(for_people(warning))}" for warning in answer.warnings)
    if answer.status == "waiting" and answer.approval:
        yield f"  A person decides: orchestrator approvals show {answer.approval}"
    if answer.status == "conflict" and answer.conflict:
        yield f"  Look at it: orchestrator conflicts show {answer.conflict}"


def _merged(places: Iterable[r.MergeText]) -> Iterator[str]:
    """A line for each place where a change met what others had done."""
    for place in places:
        first, last = place.lines
        lines = f"{first}-{last}" if last > first else f"{first}"
        yield f"merged: {escaped(place.path)}:{lines} {place.rule}: {escaped(place.why)}"


@rendered.register
def _listing(result: r.Listing) -> Iterator[str]:
    yield from table(
        (
            escaped(entry.path) + _SIGNS[entry.type],
            "" if entry.size is None else str(entry.size),
            when(entry.last_modified),
        )
        for entry in result.entries
    )
    yield from go_on(len(result.entries), result.total, result.cursor)


@rendered.register
def _hits(found: r.SearchResult) -> Iterator[str]:
    if found.total and not found.hits and found.cursor is None:
        yield plural(found.total, "matching line")
    last: tuple[str, int] | None = None
    for hit in found.hits:
        first = hit.line - len(hit.before)
        if last is not None and (last[0] != hit.path or last[1] + 1 < first) and (hit.before or hit.after):
            yield "--"
        lines = [*hit.before, hit.text, *hit.after]
        for number, text in enumerate(lines, first):
            if last is not None and last[0] == hit.path and number <= last[1]:
                continue
            mark = ":" if number == hit.line else "-"
            where = click.style(escaped(hit.path), fg="magenta") + mark + click.style(str(number), fg="green")
            yield f"{where}{mark}{next(content(text), '')}"
        last = hit.path, first + len(lines) - 1
    yield from go_on(len(found.hits), found.total, found.cursor)
    if found.files_left_out:
        yield f"(policy left out {plural(found.files_left_out, 'file')})"
    if found.partial:
        yield "(some files could not be searched)"


@rendered.register
def _diff(diff: r.Diff) -> Iterator[str]:
    """Of one file, or of the tree: the patch, then what it can't say, then the sum."""
    yield from diff_lines(diff.diff)
    yield from _merged(diff.merge)
    yield from diff_notes(diff)
    if diff.total_files is not None:
        differ = f"{plural(diff.total_files, 'file')} {'differs' if diff.total_files == 1 else 'differ'}"
        yield f"{differ}: {plural(diff.added, 'line')} added, {diff.removed} removed"


def diff_notes(diff: r.Diff) -> Iterator[str]:
    """What the patch of a tree leaves out."""
    for file in diff.files:
        if file.left_out is not None:
            path, span = escaped(file.path), f"--from {diff.from_version} --to {diff.to_version}"
            more = f": orchestrator diff {shlex.quote(path)} {span}" if file.next else ""
            yield f"{path} ({file.status}): {_WHY[file.left_out]}{more}"
        elif file.mode_before and file.mode_after:
            yield f"{escaped(file.path)}: mode {file.mode_before} became {file.mode_after}"
    if diff.unlisted:
        yield f"policy keeps the names of {plural(diff.unlisted, 'more file')} that differ from you"


@rendered.register
def _history(result: r.History) -> Iterator[str]:
    yield from table(
        (v.version_id, when(v.at), v.agent or "outside", v.operation or v.kind, v.reason or "") for v in result.versions
    )
    yield from go_on(len(result.versions), None, result.cursor)


@rendered.register
def _changes(changes: Changes) -> Iterator[str]:
    yield from table(
        (
            change.version,
            when(change.at),
            change.agent or "",
            change.kind,
            "" if change.added is None else f"+{change.added} -{change.removed}",
            change.path if change.moved_from is None else f"{change.moved_from} → {change.path}",
        )
        for change in changes.changes
    )
    if changes.left_out:
        yield f"policy left out {plural(changes.left_out, 'path')}"
    if changes.more:
        yield f"… go on with: orchestrator since {changes.head}"


@rendered.register
def _readers(answer: StaleReadersAnswer) -> Iterator[str]:
    if not answer.readers:
        yield f"nobody has a stale view of {escaped(answer.path)}"
    yield from table(
        (
            reader.agent or "-",
            reader.session,
            reader.version_id,
            f"lines {', '.join(map(seen_span, reader.lines))}" if reader.lines else "all of it",
            f"{plural(reader.changes, 'change')} by {', '.join(reader.by)} since {reader.since}",
        )
        for reader in answer.readers
    )
    if answer.total > len(answer.readers) > 0:
        yield f"and {plural(answer.total - len(answer.readers), 'more session')}"


@rendered.register
def _lease(answer: LeaseAnswer) -> Iterator[str]:
    yield f"{answer.status}: {escaped(answer.message)}"
    if answer.expires_at is not None:
        yield f"  until {when(answer.expires_at)}"
    yield from (f"  {line}" for line in leases(answer.clashes))


def leases(found: Iterable[r.LeaseInfo]) -> Iterator[str]:
    """A line for each lease."""
    return table((x.lease, x.agent, x.mode, " ".join(x.globs), when(x.expires_at), x.reason) for x in found)
