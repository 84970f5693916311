"""Answers as one text block for a model: what it is, between markers that content can't forge."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from functools import singledispatch
from itertools import groupby

from orchestrator.api import results as r
from orchestrator.api.briefing import Briefing, briefing_head, briefing_rows
from orchestrator.api.context import Excerpt, FileTexts, Summary, excerpt_head, excerpt_rows, summary_head
from orchestrator.api.history import BlameAnswer
from orchestrator.api.relations import FoundReferences, Related, reference_rows, references_head, related_rows
from orchestrator.api.results import Notice
from orchestrator.api.session_operations import notice_text
from orchestrator.api.structure import Overview, overview_head, overview_rows
from orchestrator.core.errors import escaped, plural
from orchestrator.core.ids import to_the_second


def text_block(result: r.Result) -> str | None:
    """The block for a read, search, listing, history or diff, and what is to be noticed; None for other answers."""
    block = _block(result)
    warnings = getattr(result, "warnings", ())
    return block if block is None else "\n".join((block, *(f"[{warning}]" for warning in warnings)))


@singledispatch
def _block(result: r.Result) -> str | None:
    return None


ASK_TO_LIST = "file_info of a path asks; so does list_files of a folder where nothing else is."


def lines_of(text: r.FileText) -> str:
    """Which lines of a file a text is."""
    total = f"of {text.total_lines}" if text.total_lines is not None else "(not all are counted yet)"
    if text.start < 0:
        return f"lines {text.start} to {text.end} from the end {total}"
    if text.column is not None:
        return f"line {text.start} from character {text.column} on, {total}"
    return f"lines {text.start}-{text.end} {total}"


def fenced(head: str, body: str, tail: str = "") -> str:
    """A head line, content between two markers that hold the same random token, and a tail."""
    token = secrets.token_hex(6)
    if body and not body.endswith("\n"):
        body += "\n"
    end = f"\n{tail}" if tail else ""
    return f"{head}\n<content {token}>\n{body}</content {token}>{end}"


@_block.register
def _file_text(result: r.FileText) -> str:
    if result.image is not None:
        return f"{escaped(result.path)} {result.version_id}: {result.image.media_type}, {result.image.size} bytes"
    if result.summary:
        head = f"{escaped(result.path)} {result.version_id}, {result.total_lines} lines: a summary"
        return fenced(head, result.text, _more(result.next))
    head = f"{escaped(result.path)} {result.version_id}, {lines_of(result)} ({result.encoding}, {result.eol})"
    if result.symbol is not None:
        head += f", {escaped(result.symbol)}"
    if result.unchanged_since is not None:
        return f"{head}: unchanged since {result.unchanged_since}, as you have seen them (delta=false shows them)"
    if result.changed_since == result.version_id:
        head += "; only the lines that you have not seen yet"
    elif result.changed_since is not None:
        head += f"; only what is not as you have seen it at {result.changed_since}"
    rest = _shortened(result.next_in_line)
    if result.truncated and not result.next:
        rest = rest or "[some long lines were shortened]"
    tail = "\n".join(filter(None, (rest, _more(result.next))))
    return fenced(head, result.text, tail)


@_block.register
def _diff(result: r.Diff) -> str:
    """The patch; behind it, outside of the markers, what was left out and how to go on."""
    if result.total_files is None:
        head = f"{escaped(result.path)} {result.from_version} → {result.to_version}: +{result.added} -{result.removed}"
        tail = filter(None, (_more(result.next), _in_line(result.next_in_line)))
        return fenced(head, result.diff or "(no difference)\n", "\n".join(tail))
    head = (
        f"tree {result.from_version} → {result.to_version}: {plural(result.total_files, 'differing file')}; "
        f"shown here: {len(result.files)}, +{result.added} -{result.removed}"
    )
    rows = []
    for file in result.files:
        if file.left_out is not None:
            more = f": {escaped(file.next)}" if file.next else ""
            rows.append(f"[left out ({file.left_out}): {escaped(file.path)}, {file.status}{more}]")
        elif file.mode_before and file.mode_after:
            rows.append(f"[mode {file.mode_before} → {file.mode_after}: {escaped(file.path)}]")
    if result.unlisted:
        rows.append(f"[{result.unlisted} more files differ; policy keeps their names]")
    rows.append(_cursor(result.cursor))
    return fenced(head, result.diff or "(no difference in lines)\n", "\n".join(filter(None, rows)))


@_block.register
def _search_result(result: r.SearchResult) -> str:
    """Hits by file; matching lines are marked `:`, context lines `-`."""
    what = "nearest place" if any(hit.match_type == "semantic" for hit in result.hits) else "matching line"
    head = f"{plural(result.total, what)} in {plural(result.files_searched, 'file')} searched"
    if result.files_left_out:
        head += f"; policy left out {plural(result.files_left_out, 'file')}"
    if result.partial:
        head += "; not all could be searched"
    if result.hint:
        head += f"\n[{escaped(result.hint)}]"
    if result.files:
        counts = (f"{escaped(file.path)}: {file.total}" for file in result.files)
        return fenced(head, "\n".join(counts), _cursor(result.cursor))
    rows = [
        row for path, hits in groupby(result.hits, lambda hit: hit.path) for row in _hit_rows(result, path, [*hits])
    ]
    if not result.hits:
        return head
    return fenced(head, "\n".join(rows) + "\n", _cursor(result.cursor))


def _hit_rows(result: r.SearchResult, path: str, hits: list[r.Hit]) -> Iterator[str]:
    """A line that is in several hits or around them stands once, as a match if it is one of any."""
    around, inside, symbols = dict[int, str](), dict[int, str](), dict[int, str]()
    for hit in hits:
        around |= enumerate(hit.before, hit.line - len(hit.before))
        around |= enumerate(hit.after, hit.end + 1)
        rows = enumerate(hit.shown_rows, hit.line)
        inside |= {number: row for number, row in rows if number not in inside}
        if hit.context is not None:
            symbols.setdefault(hit.line, hit.context)
    yield f"{escaped(path)} {result.versions.get(path, '')}"
    last = 0
    for number, row in sorted((around | inside).items()):
        if last and number > last + 1:
            yield "   --"
        if number in symbols:
            yield f"   [in {escaped(symbols[number])}]"
        yield f"{number:>6}{':' if number in inside else '-'}\t{row}"
        last = number


@_block.register
def _overview(result: Overview) -> str:
    """The outline, a row for each symbol; behind it how much was left out."""
    left = f"[{result.left_out} of {plural(result.symbols, 'symbol')} left out]" if result.left_out else ""
    rows = "".join(f"{row}\n" for row in overview_rows(result))
    return fenced(overview_head(result), rows or "(no symbols)\n", "\n".join(filter(None, (left, _more(result.next)))))


@_block.register
def _related(result: Related) -> str:
    head = f"{escaped(result.path)} {result.version_id}: {plural(result.files_searched, 'file')} searched for importers"
    if result.partial:
        head += "; there was no time for all"
    rows = "".join(f"{escaped(row)}\n" for row in related_rows(result))
    left = f"[{plural(result.left_out, 'file')} left out]" if result.left_out else ""
    return fenced(head, rows or "(nothing is related)\n", "\n".join(filter(None, (left, _more(result.next)))))


@_block.register
def _file_texts(result: FileTexts) -> str:
    """Each file as a read of it shows it."""
    parts: list[str] = []
    for file in result.files:
        if file.text is not None:
            parts.append(text_block(file.text) or "")
        else:
            parts.append(f"{file.path}: {file.code}: {file.message}" + (f"\n[{file.hint}]" if file.hint else ""))
    if result.next is not None:
        parts.append(f"[no room for {plural(len(result.left_out), 'file')}: {result.next}]")
    return "\n\n".join(parts)


@_block.register
def _excerpt(result: Excerpt) -> str:
    rows = "".join(f"{row}\n" for row in excerpt_rows(result))
    left = [f"[left out: lines {one.start}-{one.end}: {one.next}]" for one in result.left_out]
    return fenced(excerpt_head(result), rows, "\n".join(filter(None, (_shortened(result.next_in_line), *left))))


@_block.register
def _briefing(result: Briefing) -> str:
    rows = "".join(f"{row}\n" for row in briefing_rows(result))
    return fenced(briefing_head(result), rows, "\n".join(f"[left out: {it.what}: {it.next}]" for it in result.left_out))


@_block.register
def _summary(result: Summary) -> str:
    left = f"[{result.left_out} of {plural(result.symbols, 'symbol')} left out]" if result.left_out else ""
    return fenced(summary_head(result), result.text, "\n".join(filter(None, (left, _more(result.next)))))


@_block.register
def _references(result: FoundReferences) -> str:
    rows = "".join(f"{row}\n" for row in reference_rows(result))
    return fenced(references_head(result), rows, _cursor(result.cursor)) if rows else references_head(result)


@_block.register
def _listing(result: r.Listing) -> str:
    total = f"at least {result.total}" if result.at_least else result.total
    rows = [f"{escaped(result.path)}: {len(result.entries)} of {total} entries"]
    if result.hint:
        rows.append(f"[{result.hint}]")
    if result.unlisted:
        rows.append(f"[{plural(result.unlisted, 'more name')} left out: a person decides. {ASK_TO_LIST}]")
    for entry in result.entries:
        match entry.type:
            case "DirectoryEntry":
                rows.append(f"{escaped(entry.path)}/")
            case "SymbolicLinkEntry":
                rows.append(f"{escaped(entry.path)} -> {escaped(entry.target or '?')} (link, not followed)")
            case "OtherEntry":
                rows.append(f"{escaped(entry.path)} (not a regular file)")
            case _:
                notes = [] if entry.size is None else [plural(entry.size, "byte")]
                notes += entry.tags
                if entry.version_id:
                    notes.append(entry.version_id)
                if entry.sensitivity in ("secret", "guarded"):
                    notes.append(entry.sensitivity)
                rows.append(f"{escaped(entry.path)} ({', '.join(notes)})")
    return "\n".join(filter(None, (*rows, _cursor(result.cursor))))


@_block.register
def _history(result: r.History) -> str:
    rows = [f"{escaped(result.path)}: {plural(len(result.versions), 'version')}, newest first"]
    for version in result.versions:
        more = f" and {version.more_reverts} more" if version.more_reverts else ""
        parts = (
            *(version.version_id, to_the_second(version.at), _author(version), version.operation or version.kind),
            "(removed)" if version.removed else "",
            _named("change", version.change),
            _named("reverts", " ".join(version.reverts)) + more,
            _named("from", version.moved_from),
            _named("approved by", version.approver),
            "(content not kept)" if version.not_kept else "",
            _named("-", version.reason),
        )
        rows.append(" ".join(filter(None, parts)))
    return "\n".join(filter(None, (*rows, _cursor(result.cursor))))


@_block.register
def _blamed(result: BlameAnswer) -> str:
    """A row for each range of lines that came with one version."""
    lines = f"lines {result.start}-{result.end} of {result.total_lines}"
    rows = [f"{escaped(result.path)} {result.version_id}, {lines}: who brought them in"]
    for part in result.ranges:
        parts = (
            *(f"{part.start}-{part.end}", part.version, to_the_second(part.at), _author(part)),
            "unknown: that content was not kept" if part.kind == "unknown" else part.operation or part.kind,
            *(_named(name, getattr(part, name)) for name in ("change", "task", "session")),
            _named("approved by", part.approver),
            _named("as", part.path),
        )
        rows.append(" ".join(filter(None, parts)))
    return "\n".join(filter(None, (*rows, _more(result.next))))


def _author(changed: r.Authored) -> str:
    lease = f" (under {escaped(changed.lease_holder)}'s lease)" if changed.lease_holder else ""
    return escaped(changed.agent or "-") + lease


def _named(name: str, value: str | None) -> str:
    return f"{name} {escaped(value)}" if value else ""


def _more(call: str | None) -> str:
    return f"[more follows: {call}]" if call else ""


def _in_line(call: str | None) -> str:
    return f"[of long lines the part that differs; more of the first: {call}]" if call else ""


def _shortened(call: str | None) -> str:
    return f"[long lines were shortened; the rest of the first: {call}]" if call else ""


def _cursor(cursor: str | None) -> str:
    return _more(f"the same call with cursor={cursor!r}" if cursor else None)


def notices_block(notices: Sequence[Notice]) -> str:
    """What goes behind a text answer."""
    rows = []
    for notice in notices:
        head = f"[notice: {notice_text(notice)}]"
        tail = "[the diff goes on: read the file]" if notice.diff_truncated else ""
        rows.append(fenced(head, notice.diff, tail) if notice.diff else head)
    return "\n".join(rows)
