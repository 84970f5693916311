"""What of a file a session has not seen as it is: a re-read that costs what has changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.content import LineHunk, LineRange
from orchestrator.core.errors import escaped
from orchestrator.core.events.files import FileRead, SeenLines
from orchestrator.core.ids import Digest, Seq, WorkspacePath, show
from orchestrator.core.text.answer_space import MAX_LINE, PER_TOKEN, AnswerSpace, estimate_tokens, render, size, weight
from orchestrator.core.text.deltas import Delta, delta
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.regions import merged
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import NO_VERSION
from orchestrator.engine.paths import quoted
from orchestrator.engine.redaction import Hidden
from orchestrator.engine.services import Services

ROW_BYTES = 60
"""Of a line besides its text: its number, its end, a note where it was cut, a head above it."""

MIN_LINE = 50


class Present(NamedTuple):
    """The version of a file that is asked for, and which lines of it; it has been permitted."""

    version: Seq
    digest: Digest
    document: Document
    wanted: LineRange
    warnings: tuple[str, ...]


class _Known(NamedTuple):
    """What the session has seen of a version, and what makes the present one of it."""

    version: Seq
    lines: tuple[LineRange, ...]
    total: int
    hunks: Sequence[LineHunk]
    same: bool


class _Part(NamedTuple):
    """As much of a delta as there is room for."""

    text: str
    shown: tuple[LineRange, ...]
    end: int  # the last line of which it tells
    cut: bool


class Deltas:
    """Compares with what the session was shown since it was opened or resumed, by content."""

    def __init__(self, services: Services) -> None:
        self._s = services

    def wanted(self, caller: Caller, params: p.ReadFile) -> bool:
        """Whether the caller, or else its profile, asks for no more than what changed."""
        return self._s.permissions.profile(caller).delta_reads if params.delta is None else params.delta

    async def read(
        self, access: ContentAccess, call: Call, params: p.ReadFile, present: Present, tokens: int
    ) -> r.FileText | None:
        """What changed of the lines that are wanted; None where the session knows none of them, so all are to be shown.

        Notes that the session knows them by now.
        """
        caller, path, document = access.caller, access.path, present.document
        known = await self._known(caller, path, present) if present.version != NO_VERSION else None
        if known is None:
            return None
        found = delta(known.lines, known.total, known.hunks, present.wanted, document.line_count)
        if not found.known or (not found.regions and not known.same):  # other bytes, as line ends, and the same lines
            return None
        hidden = await self._s.redaction.of(caller, path, present.digest, document)
        part = self._part(
            caller, call.room.framed(escaped(path), escaped(path)), params, found, hidden, present, tokens
        )
        await self._note(access, call, present, found, part, hidden, known)
        total = document.line_count
        follow = None
        if part.end < present.wanted.end:
            end = f", end={present.wanted.end}" if present.wanted.end < total else ""
            at = f', at="{show(present.version)}"' if params.at is not None else ""
            follow = f"read_file(path={quoted(path)}, start={part.end + 1}{end}{at}, delta=true)"
        secrets = (secret for secret in hidden.found if any(it.start <= secret.line <= it.end for it in part.shown))
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
            truncated=follow is not None or part.cut,
            next=follow,
            redactions=tuple(f"line {secret.line}: {secret.kind}" for secret in secrets),
            unchanged_since=None if part.text else show(known.version),
            changed_since=show(known.version) if part.text else None,
            warnings=present.warnings,
        )

    async def _known(self, caller: Caller, path: WorkspacePath, present: Present) -> _Known | None:
        """The version of which the session has seen most, as far as its content is kept."""
        session = self._s.state.sessions.get(caller.session)
        seen = session.seen.get(path) if session is not None else None
        versions = [(seq, coverage.recent) for seq, coverage in seen.versions.items()] if seen is not None else []
        by_lines = ((sum(span.end - span.start + 1 for span in lines), seq, lines) for seq, lines in versions if lines)
        for _, seq, lines in sorted(by_lines, reverse=True):
            row = await self._s.journal.version_at(path, seq)
            if row is None or row.seq != seq or row.digest is None:
                continue
            if row.digest == present.digest:
                return _Known(seq, lines, present.document.line_count, (), same=True)
            hunks = await self._s.contents.differences(row.digest, present.digest)
            before = await self._s.contents.kept_text(row.digest)
            if hunks is not None and before is not None:
                return _Known(seq, lines, before.line_count, hunks, same=False)
        return None

    def _part(
        self,
        caller: Caller,
        room: AnswerSpace,
        params: p.ReadFile,
        found: Delta,
        hidden: Hidden,
        present: Present,
        tokens: int,
    ) -> _Part:
        """The regions from the first on; one line at least, so that a reader gets on."""
        widest = max(MIN_LINE, min(MAX_LINE, room.bytes // 8))
        lines, profile = hidden.over(present.document.lines), self._s.permissions.profile(caller)
        every = [
            line for it in found.regions for line in present.document.lines[it.start - 1 : it.start - 1 + it.length]
        ]
        most, budget, bytes_left, rows_left = profile.first_lines(every), tokens * PER_TOKEN, room.bytes, room.lines
        text, shown, cut = "", list[LineRange](), False
        for region in found.regions:
            taken = 0
            for row in lines[region.start - 1 : region.start - 1 + region.length] or ("",):
                budget -= weight(row[:widest]) + 2 * (ROW_BYTES if not taken or len(row) > widest else 8)
                bytes_left, rows_left = bytes_left - size(row[:widest]) - ROW_BYTES, rows_left - 1 - (not taken)
                if (text or taken) and (min(budget, bytes_left, rows_left) < 0 or taken >= most):
                    break
                taken += 1
            if not taken:
                return _Part(text, tuple(shown), region.start - 1, cut)
            taken = min(taken, region.length)
            rows = lines[region.start - 1 : region.start - 1 + taken]
            written, shortened = render(rows, region.start, numbers=params.line_numbers, max_line=widest)
            text, cut, most = f"{text}{region.head}\n{written}", cut or bool(shortened), most - taken
            if taken:
                shown.append(LineRange(region.start, region.start + taken - 1))
            if taken < region.length:
                return _Part(text, tuple(shown), region.start + taken - 1, cut)
        return _Part(text, tuple(shown), present.wanted.end, cut)

    async def _note(
        self,
        access: ContentAccess,
        call: Call,
        present: Present,
        found: Delta,
        part: _Part,
        hidden: Hidden,
        known: _Known,
    ) -> None:
        """Journal it: the session knows all of these lines now, of this version."""
        told = (LineRange(span.start, min(span.end, part.end)) for span in found.known if span.start <= part.end)
        ranges = (span for it in merged((*told, *part.shown)) for span in hidden.without(it))
        seen = SeenLines(
            path=access.path,
            version=present.version,
            ranges=tuple(ranges),
            total_lines=present.document.line_count,
            cut=part.cut,
        )
        event = FileRead(
            operation=call.operation.name,
            seen=seen,
            bytes=len(part.text),
            tokens=estimate_tokens(part.text),
            approval=access.approval,
            hidden=tuple(s for s in hidden.found if any(it.start <= s.line <= it.end for it in part.shown)),
            known_from=known.version,
        )
        await self._s.notes.note_read(access.caller, call, event)
