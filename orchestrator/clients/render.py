"""Answers as people read them: aligned, short, and nothing in them that moves the terminal.

Text from files and agents comes out with its control and direction characters made visible.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence

import click
import msgspec

from orchestrator.api import results as r
from orchestrator.api.framing import Refusal
from orchestrator.clients.commands import for_people
from orchestrator.clients.merges import merge_rules, merged
from orchestrator.core.errors import escaped

_STATUS_COLOURS = {"applied": "green", "preview": "cyan", "waiting": "yellow", "conflict": "yellow"}
_SIGNS = {"FileEntry": "", "DirectoryEntry": "/", "SymbolicLinkEntry": "@", "OtherEntry": "?"}

MOST_NAMES = 6
"""Of one event in its line; `--json` has all."""


def rendered(result: r.Result) -> Iterator[str]:
    """The lines of an answer."""
    match result:
        case r.ChangeAnswer():
            yield from _change(result)
        case r.Listing():
            yield from table(
                (
                    escaped(entry.path) + _SIGNS[entry.type],
                    "" if entry.size is None else str(entry.size),
                    when(entry.last_modified),
                )
                for entry in result.entries
            )
            yield from _more(len(result.entries), result.total, result.cursor)
        case r.SearchResult():
            yield from _hits(result)
        case r.Diff():
            yield from diff_lines(result.diff)
            yield from merged(result.merge)
        case r.History():
            yield from table(
                (v.version_id, when(v.at), v.agent or "outside", v.operation or v.kind, v.reason or "")
                for v in result.versions
            )
            yield from _more(len(result.versions), None, result.cursor)
        case r.JournalPage():
            yield from table((e.seq, when(e.at), e.agent or "", e.kind, _about(e.event)) for e in result.entries)
            if result.partial:
                yield "(only a part of the journal was looked through)"
            yield from _more(len(result.entries), None, result.cursor)
        case r.StatusInfo():
            yield from _status(result)
        case r.SessionInfo():
            yield from _session(result)
        case r.Approvals():
            yield from table(
                (a.approval, when(a.since), a.agent or "", a.operation, some(a.paths, a.path_count), a.reason)
                for a in result.approvals
            )
            yield from _more(len(result.approvals), result.total, result.cursor)
        case r.ApprovalInfo():
            yield from facts(
                ("approval", result.approval),
                ("what", f"{result.operation} {', '.join(result.paths)}"),
                ("asked by", result.agent or ""),
                ("since", when(result.since)),
                ("lapses", when(result.expires_at)),
                ("rule", result.rule),
                ("reason", result.reason),
            )
            yield from diff_lines(result.diff or "")
        case _:
            yield from _record(result)


def refused(refusal: Refusal) -> Iterator[str]:
    """The lines of a refusal."""
    yield click.style(f"{refusal.code}: ", fg="red") + escaped(refusal.message)
    if refusal.hint:
        yield f"  {escaped(for_people(refusal.hint))}"
    yield from content(refusal.shown or "")


def table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Rows with their columns aligned; the last one runs free."""
    cells = [[escaped(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def facts(*pairs: tuple[str, str]) -> Iterator[str]:
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


def diff_lines(diff: str) -> Iterator[str]:
    """A unified diff, coloured."""
    for line in content(diff):
        if line.startswith(("+++", "---")):
            yield click.style(line, bold=True)
        elif line.startswith("+"):
            yield click.style(line, fg="green")
        elif line.startswith("-"):
            yield click.style(line, fg="red")
        elif line.startswith("@@"):
            yield click.style(line, fg="cyan")
        else:
            yield line


def some(names: Sequence[str], count: int | None = None) -> str:
    """Names in one cell; of many the first, and how many more there are. `count`: with those that are not given."""
    more = (count or len(names)) - min(len(names), MOST_NAMES)
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def when(at_ms: int) -> str:
    """A time as the person's clock shows it."""
    return datetime.datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _record(result: r.Result) -> Iterator[str]:
    """The answers to those who keep the house; any other comes as names and values."""
    match result:
        case r.Agents():
            yield from table((agent.name, agent.agent_class, agent.token) for agent in result.agents)
        case r.PolicyReport():
            yield from _verdict(result.ok, f"{escaped(result.source)}: {result.rules} rules")
            yield from table((str(p.line), p.key, p.message) for p in result.problems)
        case r.VerifyAnswer():
            colour = ("yellow" if result.unread else "green") if result.ok else "red"
            found = f"{result.events} events, {result.blobs} blobs, head {result.head}"
            yield f"{click.style(result.verdict, fg=colour)}: {found}"
            yield from (f"  {escaped(problem)}" for problem in result.problems)
            yield from (f"  proven: {escaped(what)}" for what in result.proven)
            yield from (f"  not checked: {escaped(what)}" for what in result.unchecked)
        case r.RebuildAnswer():
            yield from _verdict(result.ok, f"{result.events} events replayed into {', '.join(result.projections)}")
            if result.first_difference:
                yield f"  first difference: {escaped(result.first_difference)}"
        case r.WorkspaceReport():
            yield from _verdict(result.ok, f"{result.files} files compared")
            yield from table(
                (d.path, f"journal {d.journal or 'absent'}", f"disk {d.disk or 'absent'}") for d in result.differences
            )
        case r.Done():
            yield escaped(result.message)
        case _:
            fields = msgspec.to_builtins(result)
            yield from facts(*((name.replace("_", " "), str(value)) for name, value in fields.items()))


def _change(answer: r.ChangeAnswer) -> Iterator[str]:
    status = answer.status if answer.would_be is None else f"{answer.status}, would be {answer.would_be}"
    named = answer.version_id or answer.approval or answer.conflict or answer.change or ""
    colour = _STATUS_COLOURS.get(answer.status, "red")
    yield click.style(status, fg=colour) + (f" {named}" if named else "") + f": {escaped(answer.message)}"
    yield from diff_lines(answer.diff or "")
    if answer.diff_truncated:
        yield "… the diff goes on; `orchestrator diff` shows all of it"
    yield from content(answer.shown or "")
    yield from merged(answer.merge)
    yield from (f"warning: {escaped(warning)}" for warning in answer.warnings)
    if answer.status == "waiting" and answer.approval:
        yield f"  A person decides: orchestrator approvals show {answer.approval}"
    if answer.status == "conflict" and answer.conflict:
        yield f"  Look at it: orchestrator conflicts show {answer.conflict}"


def _hits(found: r.SearchResult) -> Iterator[str]:
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
    yield from _more(len(found.hits), found.total, found.cursor)
    if found.files_left_out:
        yield f"({found.files_left_out} files are kept out by policy)"
    if found.partial:
        yield "(some files could not be searched)"


def _status(info: r.StatusInfo) -> Iterator[str]:
    health = info.health
    yield from facts(
        ("workspace", info.workspace),
        ("state", health.state + ("" if health.baseline == "done" else ", first scan running")),
        ("watching", health.watching if health.watching != "live" else ""),
        ("head", info.head),
        ("approvals", str(info.approvals)),
        ("conflicts", str(info.conflicts)),
        ("policy", info.policy),
        ("leases", ", ".join(f"{lease.lease} {lease.agent}" for lease in info.leases)),
        ("approver", info.approver if info.approver == "set" else "missing: run `orchestrator up` in a terminal"),
        ("daemon", f"pid {info.pid}, version {info.version}"),
        ("socket", info.socket),
        ("state dir", info.state_dir),
        ("journal", _checked(health.checked)),
        ("whole", f"`journal verify`: {health.whole}" if health.whole else ""),
        ("recovered", str(health.recovered) if health.recovered else ""),
        ("diverged", ", ".join(health.diverged)),
    )
    yield from (f"  {escaped(note)}" for note in health.notes)
    sessions = [line for line in info.sessions if line.open]
    yield f"sessions: {len(sessions)}"
    yield from table(
        ("", line.agent + (" (asserted)" if line.asserted else ""), line.agent_class, line.client, line.session)
        for line in sessions
    )


def _session(info: r.SessionInfo) -> Iterator[str]:
    yield from facts(
        ("session", info.session),
        ("agent", f"{info.agent} ({info.agent_class}{', asserted' if info.asserted else ''})"),
        ("workspace", info.workspace),
        ("head", info.head),
    )
    for title, rows in (
        ("read", [(x.path, x.version_id, x.lines, "stale" if x.stale else "") for x in info.recent_reads]),
        ("waits", [(x.id, x.kind, x.path, when(x.since)) for x in info.pending]),
        ("changed", [(x.change, x.operation, some(x.paths), when(x.at)) for x in info.uncommitted_changes]),
        ("leases", [(x.lease, x.agent, x.mode, " ".join(x.globs), when(x.expires_at)) for x in info.leases]),
        ("tasks", [(x.task, x.title, x.agent, when(x.since)) for x in info.tasks]),
    ):
        if rows:
            yield f"{title}:"
            yield from (f"  {line}" for line in table(rows))


def _checked(checked: str) -> str:
    """What this run knows of the journal, and no more."""
    match checked:
        case "":
            return ""
        case "running":
            return "checked since this start: the last events; the check of the others is running"
        case _ if checked.startswith("@"):
            return f"checked since this start: chain up to {checked}, pages; not contents and tables (`journal verify`)"
        case _:
            return f"check {checked}"


def _verdict(ok: bool, text: str) -> Iterator[str]:
    yield (click.style("ok", fg="green") if ok else click.style("not ok", fg="red")) + f": {text}"


def _about(event: dict[str, object]) -> str:
    settled = event.get("settled")
    if isinstance(settled, list) and settled:
        return f"{_about({**event, 'settled': None})} ({merge_rules(settled)})"
    path = event.get("path")
    if isinstance(path, str):
        return path
    paths = event.get("paths")
    if isinstance(paths, list):
        return some([str(p["path"]) if isinstance(p, dict) and "path" in p else str(p) for p in paths])
    return ""


def _more(shown: int, total: int | None, cursor: str | None) -> Iterator[str]:
    if cursor is not None:
        yield f"… {shown}{f' of {total}' if total is not None else ''}; go on with --cursor {cursor}"
