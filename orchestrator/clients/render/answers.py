"""Answers as lines for a terminal, by the type of the result: those that have a form of their own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import singledispatch
from typing import Any

import click

from orchestrator.api import results as r
from orchestrator.api.administration import StatusInfo
from orchestrator.api.briefing import Briefing, briefing_head, briefing_rows
from orchestrator.api.conflicts import ConflictInfo, Party
from orchestrator.api.context import Excerpt, Summary, excerpt_head, excerpt_rows, summary_head
from orchestrator.api.framing import Refusal
from orchestrator.api.journal_operations import JournalEntry, JournalPage
from orchestrator.api.relations import FoundReferences, Related, reference_rows, references_head, related_rows
from orchestrator.api.session_operations import notice_text
from orchestrator.api.structure import Overview, overview_head, overview_rows
from orchestrator.clients.render.commands import for_people, without_calls_of_agents
from orchestrator.clients.render.diff_rows import diff_lines
from orchestrator.clients.render.generic import (
    DIFF_GOES_ON,
    content,
    facts,
    go_on,
    lines_of,
    rows_of,
    sized,
    some,
    table,
    when,
)
from orchestrator.core.errors import escaped, plural

_STATUS_COLOURS = {"applied": "green", "preview": "cyan", "granted": "green", "waiting": "yellow", "conflict": "yellow"}
_DECIDED = ("approval", "conflict", "review", "grant", "lease")
_TOLD = {name: f"{name} {{}}" for name in ("code", "rule", "choice", "verdict", "cause", "reviewer", "source", "pid")}
_TOLD |= {
    "exit_code": "exit code {}",
    "budget": "{}",
    "period": "per {}",
    "digest": "{:.19}",
    "by": "by {}",
    "via": "in {}'s client",
    "lease_holder": "under {}'s lease",
}
"""Members of events that `log` shows beside the files: numbers of others, and words."""
_SIGNS = {"FileEntry": "", "DirectoryEntry": "/", "SymbolicLinkEntry": "@", "OtherEntry": "?"}


@singledispatch
def rendered(result: r.Result) -> Iterator[str]:
    """The lines of an answer."""
    return lines_of(result)


def refused(refusal: Refusal) -> Iterator[str]:
    """The lines of a refusal."""
    yield click.style(f"{refusal.code}: ", fg="red") + escaped(refusal.message)
    if refusal.hint:
        yield f"  {escaped(for_people(refusal.hint).replace(', from `details`.', ':'))}"
    for place in refusal.details.get("places", ()):
        where = f"{place['path']}:{place['line']}" if "path" in place else f"line {place['line']}"
        yield f"  {escaped(place['name'])}, {escaped(where)}: {escaped(for_people(place['call']))}"
    yield from content(refusal.shown or "")


def noticed(notice: r.Notice) -> Iterator[str]:
    """What others did to what the caller has read."""
    yield f"notice: {for_people(notice_text(notice))}"
    yield from (f"  {line}" for line in diff_lines(notice.diff, "…" if notice.diff_truncated else ""))


@rendered.register
def _change(answer: r.ChangeAnswer) -> Iterator[str]:
    status = answer.status if answer.would_be is None else f"{answer.status}, would be {answer.would_be}"
    named = answer.version_id or answer.approval or answer.conflict or answer.change or ""
    colour = _STATUS_COLOURS.get(answer.status, "red")
    lines = f" (+{answer.added} -{answer.removed})" if answer.added is not None and answer.diff is None else ""
    message = escaped(without_calls_of_agents(answer.message))
    yield click.style(status, fg=colour) + (f" {named}" if named else "") + f": {message}{lines}"
    listed = f"list_conflicts(conflict='{answer.conflict}')"
    rest = for_people(answer.diff_rest.replace(listed, f"`{_show_conflict(answer)}`"))
    more = f"{DIFF_GOES_ON}: {rest}" if rest else DIFF_GOES_ON
    yield from diff_lines(answer.diff, more if answer.diff_truncated else "")
    yield from content(answer.shown or "")
    for place in answer.merge:  # where the change met what others had done
        first, last = place.lines
        span = f"{first}-{last}" if last > first else f"{first}"
        yield f"merged: {escaped(place.path)}:{span} {place.rule}: {escaped(place.why)}"
    yield from (f"warning: {escaped(for_people(warning))}" for warning in answer.warnings)
    if answer.grants:
        yield f"  By grant {', '.join(answer.grants)}: orchestrator grants list"
    if answer.status == "waiting" and answer.approval:
        yield f"  A person decides: orchestrator approvals show {answer.approval}"
    if answer.status == "conflict" and answer.conflict:
        yield f"  Look at it: {_show_conflict(answer)}"


def _show_conflict(answer: r.ChangeAnswer) -> str:
    return f"orchestrator conflicts show {answer.conflict}"


@rendered.register
def _excerpt(result: Excerpt) -> Iterator[str]:
    yield excerpt_head(result)
    for row in excerpt_rows(result):
        yield from content(row)
    ways = filter(None, (result.next_in_line, *(part.next for part in result.left_out)))
    yield from (f"… {escaped(for_people(way))}" for way in ways)


@rendered.register
def _summary(result: Summary) -> Iterator[str]:
    yield summary_head(result)
    yield from content(result.text)
    if result.next:
        yield f"… {escaped(for_people(result.next))}"


@rendered.register
def _overview(result: Overview) -> Iterator[str]:
    yield overview_head(result)
    for row in overview_rows(result):
        yield from content(row)
    if result.left_out:
        more = _skipping(result.next) or "--symbol NAME for what one holds"
        yield f"… {result.left_out} of {plural(result.symbols, 'symbol')} left out; go on with {more}"


def _skipping(call: str | None) -> str:
    """The option by which a call that an answer names goes on."""
    found = re.search(r"\bskip=(\d+)", call or "")
    return f"--skip {found[1]}" if found else ""


@rendered.register
def _briefing(result: Briefing) -> Iterator[str]:
    yield briefing_head(result)
    for row in briefing_rows(result):
        yield from content(row) if row else ("",)
    for it in result.left_out:
        yield f"… left out: {it.what}: {for_people(it.next)}"


@rendered.register
def _related(result: Related) -> Iterator[str]:
    yield from map(escaped, related_rows(result))
    if not (result.imports or result.imported_by):
        yield "no related file is known"
    if result.left_out:
        yield f"… {plural(result.left_out, 'file')} left out; go on with {_skipping(result.next)}"
    if result.partial:
        yield "(there was no time to look at every file)"


@rendered.register
def _references(result: FoundReferences) -> Iterator[str]:
    for row in reference_rows(result):
        yield from content(row)
    yield f"({references_head(result)})"
    yield from go_on(len(result.hits), result.total, result.cursor)


@rendered.register
def _listing(result: r.Listing) -> Iterator[str]:
    yield from table(
        (entry.path + _SIGNS[entry.type], sized(_size(entry)), when(entry.last_modified)) for entry in result.entries
    )
    yield from go_on(len(result.entries), result.total, result.cursor, at_least=result.at_least)
    if result.hint:
        yield f"({escaped(for_people(result.hint))})"
    if result.unlisted:
        yield f"(policy left out {plural(result.unlisted, 'name')})"


def _size(entry: r.Entry) -> int | None:
    """A directory's own says nothing."""
    return None if entry.type == "DirectoryEntry" else entry.size


@rendered.register
def _hits(found: r.SearchResult) -> Iterator[str]:
    if not found.hits and not found.files and found.cursor is None:
        count = plural(found.total, "matching line")
        yield count if found.total else f"{count} in {plural(found.files_searched, 'file')}"
    if found.hint:
        yield f"({escaped(for_people(found.hint))})"
    yield from (f"{click.style(escaped(file.path), fg='magenta')}:{file.total}" for file in found.files)
    for number, hit in enumerate(found.hits):
        if number and (hit.before or hit.after):
            yield "--"
        if hit.context is not None:
            yield f"[in {escaped(hit.context)}]"
        rows = (*hit.before, *hit.shown_rows, *hit.after)
        for line, text in enumerate(rows, hit.line - len(hit.before)):
            mark = ":" if hit.line <= line <= hit.end else "-"
            where = click.style(escaped(hit.path), fg="magenta") + mark + click.style(str(line), fg="green")
            yield f"{where}{mark}{next(content(text), '')}"
    yield from go_on(len(found.hits) or len(found.files), found.total, found.cursor)
    if found.files_left_out:
        yield f"(policy left out {plural(found.files_left_out, 'file')})"
    if found.partial:
        yield "(not all could be searched)"


@rendered.register
def _diff(diff: r.Diff) -> Iterator[str]:
    """Of one file, or of the tree: the patch, then what it can't say, then the sum."""
    yield from diff_lines(diff.diff)
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
            yield f"{path} ({file.status}): left out, {file.left_out}{more}"
        elif file.mode_before and file.mode_after:
            yield f"{escaped(file.path)}: mode {file.mode_before} became {file.mode_after}"
    if diff.unlisted:
        yield f"policy keeps the names of {plural(diff.unlisted, 'more file')} that differ from you"


@rendered.register
def _page(page: JournalPage) -> Iterator[str]:
    yield from table(
        (e.seq, when(e.at), e.agent or "", e.kind, some([*dict.fromkeys(_named(e.event))]), _about(e))
        for e in page.entries
    )
    if not page.entries and page.cursor is None:
        yield "no event fits"
    if page.partial:
        yield "(only a part of the journal was searched)"
    yield from go_on(len(page.entries), None, page.cursor)


def _about(entry: JournalEntry) -> str:
    """What an event is about besides its files: what it decides, who decided, and by which rule, grant or code."""
    event, provenance = entry.event, entry.event.get("provenance") or {}
    if entry.kind == "policy_rejected":
        return str(event["message"])
    about = [f"{name} @{event[name]}" for name in _DECIDED if isinstance(event.get(name), int)]
    if entry.approval not in (None, entry.seq) and "approval" not in event:
        about.append(f"approval {entry.approval}")
    about += [f"grant @{grant}" for grant in provenance.get("grants") or ()]
    if resolved := provenance.get("resolves"):
        about.append(f"conflict @{resolved}")
    if accepted_by := provenance.get("accepted_by"):
        about.append(f"accepted by {accepted_by}")
    if (agent := event.get("agent", event.get("name"))) not in (None, entry.agent):
        about.append(f"agent {agent}")
    if "code" in event or entry.kind == "answer_shown":
        about.append(str(event.get("operation") or ""))
    about += [name for name in ("whole", "unseen") if event.get(name)]
    about += [words.format(event[name]) for name, words in _TOLD.items() if name in event]
    about.append(_command(event))
    if entry.client_call_id is not None:
        about.append(f"call {entry.client_call_id}")
    if "code" not in event:
        about += [str(event[name]) for name in ("reason", "message") if event.get(name)]
    return ", ".join(filter(None, about))


def _command(event: Mapping[str, Any]) -> str:
    """The command that an event is about, as a shell would read it."""
    asked = (check["command"]["argv"] for check in event.get("permissions", ()) if "command" in check)
    return shlex.join(event.get("argv") or next(asked, ()))


def _named(value: object, member: str = "") -> Iterator[str]:
    """Every path in an event, however deep."""
    if isinstance(value, str) and member in ("path", "paths"):
        yield value
    if isinstance(value, dict | list):
        for name, part in value.items() if isinstance(value, dict) else ((member, part) for part in value):
            yield from _named(part, name)


@rendered.register
def _status(info: StatusInfo) -> Iterator[str]:
    health = info.health
    yield from facts(
        ("workspace", info.workspace),
        ("state", health.state + ("" if health.baseline == "done" else ", first scan running")),
        ("watching", health.watching if health.watching != "live" else ""),
        ("landlock", health.landlock if health.landlock != "on" else ""),
        ("fast search", health.search if health.search != "on" else ""),
        ("semantic", health.semantic if health.semantic != "off" else ""),
        ("head", info.head),
        ("approvals", str(info.approvals)),
        ("conflicts", str(info.conflicts)),
        ("policy", info.policy),
        ("approver", info.approver),
        ("daemon", f"pid {info.pid}, version {info.version}"),
        ("socket", info.socket),
        ("state dir", info.state_dir),
        ("journal", f"chain and pages checked: {health.checked}" if health.checked else ""),
        ("recovered", str(health.recovered) if health.recovered else ""),
        ("diverged", ", ".join(health.diverged)),
    )
    yield from (f"  {escaped(note)}" for note in health.notes)
    if info.leases:
        yield "leases:"
        yield from rows_of(info.leases, indent="  ")
    sessions = [line for line in info.sessions if line.open]
    yield f"sessions: {len(sessions)}"
    yield from rows_of(sessions, indent="  ")


@rendered.register
def _conflict(info: ConflictInfo) -> Iterator[str]:
    """All of one conflict, and what to do."""
    yield from facts(
        ("conflict", info.conflict),
        ("file", info.path),
        ("moved", f"from {info.moved_from} at {info.moved_at}" if info.moved_from else ""),
        ("deleted", f"at {info.deleted_at}: the proposed side brings it back whole" if info.deleted_at else ""),
        ("from", _party(info.proposer) or info.agent),
        ("against", "; ".join(map(_party, info.holders))),
        ("since", when(info.since)),
        ("reason", info.reason),
        ("base", info.base_version),
        ("current", info.current_version),
        ("state", info.state + (", and the sides no longer overlap" if info.fits else "")),
        ("route", info.route or "a person"),
        ("reviewer", info.reviewer),
        ("deadline", when(info.deadline)),
        ("same symbol", ", ".join(info.same_symbol)),
        ("regions", str(len(info.regions) + info.regions_left_out)),
    )
    yield from rows_of(info.reviews, indent="  ")
    yield from diff_lines(info.diff, DIFF_GOES_ON if info.diff_truncated else "")
    if info.review_diff is not None:
        yield f"  {escaped(info.reviewer or '')} proposes:"
        yield from diff_lines(info.review_diff, DIFF_GOES_ON if info.review_diff_truncated else "")
        yield f"  Accept that: orchestrator conflicts resolve {info.conflict} --accept {info.reviews[-1].review}"
    yield (
        f"  Resolve it: orchestrator conflicts resolve {info.conflict} --choose current|proposed, --edit, "
        f"or, made from what is shown here, --file FILE, with --on {info.current_version or '@0'}"
    )


def _party(party: Party | None) -> str:
    if party is None:
        return ""
    about = "; ".join(part for part in (party.task, party.reason) if part)
    return party.agent + (f" ({about})" if about else "")
