"""The journal's events, its checks and its maintenance, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from orchestrator.api import journal as m
from orchestrator.api import results as r
from orchestrator.api import time_travel as t
from orchestrator.api.journal import Redacted, SignedCheckpoint
from orchestrator.clients.render.answers import rendered
from orchestrator.clients.render.text import facts, go_on, some, table, verdict, when
from orchestrator.core.errors import escaped, plural


@rendered.register
def _page(page: r.JournalPage) -> Iterator[str]:
    yield from table((e.seq, when(e.at), e.agent or "", e.kind, _about(e.event)) for e in page.entries)
    if page.partial:
        yield "(only a part of the journal was searched)"
    yield from go_on(len(page.entries), None, page.cursor)


def _about(event: dict[str, object]) -> str:
    fit = event.get("fit")
    merge = fit.get("merge") if isinstance(fit, dict) else None
    if merge:
        rules = ", ".join(dict.fromkeys(str(place.get("rule")) for place in merge if isinstance(place, dict)))
        return f"{_about({**event, 'fit': None})} (merged: {rules})"
    path = event.get("path")
    if isinstance(path, str):
        return path
    paths = event.get("paths")
    if isinstance(paths, list):
        return some([str(p["path"]) if isinstance(p, dict) and "path" in p else str(p) for p in paths])
    return ""


@rendered.register
def _verified(answer: r.VerifyAnswer) -> Iterator[str]:
    colour = ("yellow" if answer.unread else "green") if answer.ok else "red"
    found = f"{plural(answer.events, 'event')}, {plural(answer.blobs, 'blob')}, head {answer.head}"
    yield f"{click.style(answer.verdict, fg=colour)}: {found}"
    yield from (f"  {escaped(problem)}" for problem in answer.problems)
    yield from (f"  proven: {escaped(what)}" for what in answer.proven)
    yield from (f"  not checked: {escaped(what)}" for what in answer.unchecked)


@rendered.register
def _rebuilt(answer: r.RebuildAnswer) -> Iterator[str]:
    yield verdict(answer.ok, f"{plural(answer.events, 'event')} replayed into {', '.join(answer.projections)}")
    if answer.first_difference:
        yield f"  first difference: {escaped(answer.first_difference)}"


@rendered.register
def _compared(report: r.WorkspaceReport) -> Iterator[str]:
    yield verdict(report.ok, f"{plural(report.files, 'file')} compared")
    yield from _differences((d.path, d.journal, d.disk) for d in report.differences)


@rendered.register
def _replay_checked(report: t.ReplayReport) -> Iterator[str]:
    """Whether the disk is what the journal says, and where it is not."""
    replayed = f"{plural(report.events, 'event')} replayed into {plural(report.files, 'file')}"
    yield verdict(report.ok, f"{replayed} and compared with the disk")
    yield from _differences((f"  {d.path}", d.kind, d.journal, d.disk) for d in report.differences)
    yield from (f"  not checked, its content was never hashed: {escaped(path)}" for path in report.unchecked)


def _differences(rows: Iterable[tuple[str | None, ...]]) -> Iterator[str]:
    return table(
        (*(part or "" for part in first), f"journal {journal or 'absent'}", f"disk {disk or 'absent'}")
        for *first, journal, disk in rows
    )


@rendered.register
def _exported(result: t.Replayed) -> Iterator[str]:
    """What was written, and each file that was not."""
    wrote = f"{plural(result.files, 'file')} of {result.at}, {plural(result.bytes, 'byte')}, in {escaped(result.into)}"
    yield verdict(result.complete, wrote, bad="incomplete")
    yield from table((f"  {item.path}", item.reason, item.message) for item in result.left_out)
    if result.unlisted:
        yield f"  policy keeps the names of {plural(result.unlisted, 'more file')} from you"


@rendered.register
def _checkpoint(made: SignedCheckpoint) -> Iterator[str]:
    yield made.text.rstrip()


@rendered.register
def _redacted(done: Redacted) -> Iterator[str]:
    what = f"{done.digest}, {plural(done.size or 0, 'byte')}"
    if done.event is not None:
        what = f"{', '.join(done.fields)} of {done.event}"
    yield f"Redacted {what} ({done.redaction})."
    yield from (f"  {escaped(warning)}" for warning in done.warnings)


@rendered.register
def _backed_up(answer: m.BackupAnswer) -> Iterator[str]:
    yield f"the journal up to {answer.head} is in {escaped(answer.directory)}, verified"
    sizes = f"{answer.files}, {plural(answer.size, 'byte')}, {plural(answer.contents, 'content')}"
    yield from facts(("journal", answer.journal), ("head hash", answer.head_hash), ("files", sizes))
    yield from (f"not checked: {escaped(what)}" for what in answer.unchecked)


@rendered.register
def _restored(answer: m.RestoreAnswer | m.ResetAnswer | m.AdoptAnswer) -> Iterator[str]:
    yield escaped(answer.message)
    if not isinstance(answer, m.ResetAnswer):  # its message says so
        what = "moved aside" if isinstance(answer, m.RestoreAnswer) else "contents moved aside"
        yield from facts((what, answer.set_aside))


@rendered.register
def _archived(answer: m.ArchiveAnswer) -> Iterator[str]:
    yield answer.message
    yield from table((f"{line.first} to {line.last}", line.file, plural(line.size, "byte")) for line in answer.archived)


@rendered.register
def _collected(answer: m.CollectAnswer) -> Iterator[str]:
    yield f"{escaped(answer.message)}, {plural(answer.size, 'byte')}"
    if answer.young:
        yield f"kept for now: {plural(answer.young, 'content')} that events named within the days of --grace"
