"""What of a file a session has not seen as it is: a re-read that costs what has changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.content import LineHunk, LineRange, SeenLines
from orchestrator.core.errors import escaped
from orchestrator.core.events.files import HiddenSecret
from orchestrator.core.ids import Digest, Seq, WorkspacePath, show
from orchestrator.core.shown_text import Hidden
from orchestrator.core.text.answer_space import (
    MAX_LINE,
    MIN_LINE,
    PER_TOKEN,
    AnswerSpace,
    narrowed,
    render,
    size,
    weight,
)
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.regions import Region, delta, merged, survivors
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import NO_VERSION
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.windows import rest_of_line
from orchestrator.engine.services import Services

ROW_BYTES = 60
"""Of a line besides its text: its number, its end, a note where it was cut, a head above it."""


class Present(NamedTuple):
    """The version of a file that is asked for, and which lines of it; it has been permitted."""

    version: Seq
    digest: Digest
    document: Document
    wanted: LineRange
    warnings: tuple[str, ...]


class _Base(NamedTuple):
    """A version that the session has seen, and what of the lines that are wanted is not as it was seen there."""

    version: Seq
    regions: Sequence[Region]


class _Part(NamedTuple):
    """As much of a delta as there is room for."""

    text: str
    shown: tuple[LineRange, ...]
    end: int  # the last line of which it tells
    cut: tuple[int, ...]  # of these lines `widest` characters are shown
    widest: int


class Deltas:
    """Compares with the newest version that the session was shown whole since it was opened or resumed.

    Of one with the same bytes a part is enough: then the lines that it was not shown are what is left to show.
    """

    def __init__(self, services: Services) -> None:
        self._s = services

    def wanted(self, caller: Caller, params: p.ReadFile) -> bool:
        """Whether the caller, or else its profile, asks for no more than what changed."""
        return self._s.permissions.profile(caller).delta_reads if params.delta is None else params.delta

    async def read(
        self, access: ContentAccess, call: Call, params: p.ReadFile, present: Present, tokens: int
    ) -> r.FileText | None:
        """What changed of the lines that are wanted; None where they are to be shown, because no version is known.

        Notes that the session knows them by now.
        """
        caller, path, document = access.caller, access.path, present.document
        hidden = await self._s.redaction.of(caller, path, present.digest, document)
        known = present.version != NO_VERSION and document.lines
        base = await self._base(caller, path, present, hidden) if known else None
        if base is None:
            return None
        part = self._part(
            caller, call.room.framed(escaped(path), escaped(path)), params, base.regions, hidden, present, tokens
        )
        secrets = [one for one in hidden.found if any(it.start <= one.line <= it.end for it in part.shown)]
        await self._note(access, call, present, part, hidden, secrets, base)
        total = document.line_count
        follow, at = None, f', at="{show(present.version)}"' if params.at is not None else ""
        if part.end < present.wanted.end:
            end = f", end={present.wanted.end}" if present.wanted.end < total else ""
            follow = f"read_file(path={quoted(path)}, start={part.end + 1}{end}{at}, delta=true)"
        return r.FileText(
            path=path,
            version_id=show(present.version),
            start=present.wanted.start,
            end=part.end,
            total_lines=total,
            text=part.text,
            encoding=document.encoding,
            eol=document.eol,
            content_hash=present.digest,
            truncated=follow is not None or bool(part.cut),
            next=follow,
            next_in_line=rest_of_line(path, part.cut[0], part.widest, secrets, at) if part.cut else None,
            redactions=tuple(map(str, secrets)),
            unchanged_since=None if part.text else show(base.version),
            changed_since=show(base.version) if part.text else None,
            warnings=present.warnings,
        )

    async def _base(self, caller: Caller, path: WorkspacePath, present: Present, hidden: Hidden) -> _Base | None:
        """The newest version that the session has seen whole, or that has all that is wanted and the same bytes.

        Else the newest that has some of it and the same bytes.
        """
        session = self._s.state.sessions.get(caller.session)
        seen = session.seen.get(path) if session is not None else None
        partial: _Base | None = None
        for seq, coverage in sorted(seen.versions.items(), reverse=True) if seen is not None else ():
            row = await self._s.journal.version_at(path, seq) if coverage.recent else None
            if row is None or row.seq != seq or row.digest is None:
                continue
            if row.digest == present.digest:
                unseen = _unseen(coverage.recent, hidden, present.wanted)
                if not unseen:
                    return _Base(seq, ())
                if partial is None and self._in_part(caller, unseen, present):
                    partial = _Base(seq, unseen)
                continue
            before = await self._s.contents.kept_text(row.digest)
            if before is None:
                continue
            was_hidden = await self._s.redaction.of(caller, path, row.digest, before)
            if not _knows(coverage.recent, was_hidden.without(LineRange(1, before.line_count))):
                continue
            hunks = await self._s.contents.differences(row.digest, present.digest)
            if not hunks or not _hidden_alike(was_hidden, hidden, hunks):  # none: other line ends, and the same lines
                return None
            regions = delta(hunks, present.wanted)
            above = (hunk for hunk in hunks if hunk.new_start < present.wanted.start)
            if not regions and sum(hunk.new_len - hunk.old_len for hunk in above) != 0:
                return None  # the same lines under other numbers, which nothing in a delta would say
            return _Base(seq, regions)
        return partial

    def _in_part(self, caller: Caller, unseen: Sequence[Region], present: Present) -> bool:
        """Whether some of the lines were seen, and the caller's profile lets it read the others at once."""
        lines = [row for it in unseen for row in present.document.lines[it.start - 1 : it.start - 1 + it.length]]
        wanted = present.wanted.end - present.wanted.start + 1
        return len(lines) < wanted and self._s.permissions.profile(caller).first_lines(lines) >= len(lines)

    def _part(
        self,
        caller: Caller,
        room: AnswerSpace,
        params: p.ReadFile,
        regions: Sequence[Region],
        hidden: Hidden,
        present: Present,
        tokens: int,
    ) -> _Part:
        """The regions from the first on; one line at least, so that a reader gets on."""
        widest = max(MIN_LINE, min(MAX_LINE, room.bytes // 8))
        lines, profile = hidden.over(present.document.lines), self._s.permissions.profile(caller)
        if regions:  # the first line is shown however long it is
            begin, head = regions[0].start, f"{regions[0].head}\n"
            first = lines[begin - 1 : begin - 1 + min(regions[0].length, 1)]
            widest = narrowed(
                lambda count: head + render(first, begin, numbers=params.line_numbers, max_line=count)[0],
                tokens,
                widest,
            )
        every = [line for it in regions for line in present.document.lines[it.start - 1 : it.start - 1 + it.length]]
        most, budget, bytes_left, rows_left = profile.first_lines(every), tokens * PER_TOKEN, room.bytes, room.lines
        text, shown, cut = "", list[LineRange](), tuple[int, ...]()
        for region in regions:
            taken = 0
            for row in lines[region.start - 1 : region.start - 1 + region.length] or ("",):
                budget -= weight(row[:widest]) + 2 * (ROW_BYTES if not taken or len(row) > widest else 8)
                bytes_left, rows_left = bytes_left - size(row[:widest]) - ROW_BYTES, rows_left - 1 - (not taken)
                full = min(budget, bytes_left, rows_left) < 0 or (region.length and taken >= most)
                if full and (text or taken) and region.start <= len(lines):  # no further read gives what is behind all
                    break
                taken += 1
            if not taken:
                return _Part(text, tuple(shown), region.start - 1, cut, widest)
            taken = min(taken, region.length)
            rows = lines[region.start - 1 : region.start - 1 + taken]
            written, shortened = render(rows, region.start, numbers=params.line_numbers, max_line=widest)
            text, cut, most = f"{text}{region.head}\n{written}", (*cut, *shortened), most - taken
            if taken:
                shown.append(LineRange(region.start, region.start + taken - 1))
            if taken < region.length:
                return _Part(text, tuple(shown), region.start + taken - 1, cut, widest)
        return _Part(text, tuple(shown), present.wanted.end, cut, widest)

    async def _note(
        self,
        access: ContentAccess,
        call: Call,
        present: Present,
        part: _Part,
        hidden: Hidden,
        secrets: Sequence[HiddenSecret],
        base: _Base,
    ) -> None:
        """Journal it: the session knows all of these lines now, of this version."""
        seen = SeenLines(
            path=access.path,
            version=present.version,
            ranges=hidden.without(LineRange(present.wanted.start, part.end)),
            total_lines=present.document.line_count,
            cut=bool(part.cut),
        )
        await self._s.notes.note_lines(
            access.caller, call, seen, part.text, approval=access.approval, hidden=secrets, known_from=base.version
        )


def _knows(ranges: tuple[LineRange, ...], needed: tuple[LineRange, ...]) -> bool:
    return merged((*ranges, *needed)) == ranges


def _unseen(seen: Sequence[LineRange], hidden: Hidden, wanted: LineRange) -> list[Region]:
    """The lines between those that were seen; not a place of which every line is hidden, since none is ever seen."""
    regions, at = list[Region](), wanted.start
    for span in (*seen, LineRange(wanted.end + 1, wanted.end + 1)):
        end = min(span.start - 1, wanted.end)
        if at <= end and hidden.without(LineRange(at, end)):
            regions.append(Region(at, end - at + 1, at, end - at + 1))
        at = max(at, span.end + 1)
    return regions


def _hidden_alike(before: Hidden, now: Hidden, hunks: Sequence[LineHunk]) -> bool:
    """Whether a line that stayed, of which the session was not shown all, is shown in the same way now."""
    return all(
        now.lines.get(kept.start) == shown
        for number, shown in before.lines.items()
        for kept in survivors((LineRange(number, number),), hunks)
    )
