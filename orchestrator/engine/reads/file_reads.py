"""Reads of one file: lines of the present or an earlier state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.content import LargeContent, LineRange, SeenLines, Signature
from orchestrator.core.errors import BinaryFile, ChangedWhileRead, ParameterInvalid, escaped
from orchestrator.core.events.files import FileRead
from orchestrator.core.ids import Digest, Seq, WorkspacePath, show
from orchestrator.core.images import IMAGE_TOKENS, MOST_IMAGE_BYTES, image_type
from orchestrator.core.policy.profiles import OverLimit, size_of
from orchestrator.core.policy.rules import NeedApproval
from orchestrator.core.projections.versions import VersionRow
from orchestrator.core.text.answer_space import MAX_LINE, MIN_LINE, fit, narrowed, render, size
from orchestrator.core.text.encoding import Document
from orchestrator.engine.access import Asks, ContentAccess
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import NO_VERSION, CurrentFile, Observer, required, warnings
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.deltas import Deltas, Present
from orchestrator.engine.reads.large_texts import TRIES, LargeTexts
from orchestrator.engine.reads.windows import Asked, Window, Windows, first_part, rest_of_line
from orchestrator.engine.services import Services

MOST_TOKENS = 1_000_000
"""Of one answer, whatever is asked for: about 4 MB of text."""

ROW_BYTES, CUT_BYTES = 12, 45
"""A line's number and its end; the note where it was cut."""

SEARCH_INSTEAD = " search_content finds lines by what they hold."


class Shown(NamedTuple):
    """A version of a file that an answer is made of; no document: it is binary, or read by pieces."""

    path: WorkspacePath
    version: Seq
    digest: Digest | None  # None: of a large file, which was not hashed
    document: Document | None
    warnings: tuple[str, ...] = ()


class Reader:
    """Shows content, and notes what was shown to whom."""

    def __init__(self, services: Services, observer: Observer) -> None:
        self._s, self._observer = services, observer
        self._deltas = Deltas(services)
        self.large = LargeTexts(services)
        self._windows = Windows(services.redaction, self.large)

    async def read_lines(self, caller: Caller, call: Call, params: p.ReadLines) -> r.FileText:
        _check_ends(params)
        start, end = params.start, params.end
        if end is None:
            end = start + 199 if start > 0 else min(-1, start + 199)
        if end < start and (start > 0) == (end > 0):
            raise ParameterInvalid("end", f"{end} is before start, {start}")
        wanted = p.ReadFile(
            path=params.path,
            start=max(1, start - params.context) if start > 0 else start - params.context,
            end=end + params.context if end > 0 else min(-1, end + params.context),
            max_tokens=MOST_TOKENS,
            line_numbers=params.line_numbers,
            at=params.at,
            delta=False,
        )
        return await self.read_file(caller, call, wanted)

    async def read_file(self, caller: Caller, call: Call, params: p.ReadFile) -> r.FileText:
        path = self._s.paths.file(params.path)
        _check_ends(params)
        access = self._s.access.content(caller, call, path)
        async with self._s.locks.shared(path):
            if params.at is not None:
                row = await self._s.past.at(path, self._s.past.position(params.at, parameter="at", least=1))
                if not await self._is_large_and_present(access, row):
                    digest, data = await self._s.past.content_of_any_size(access, row)
                    if isinstance(data, LargeContent):
                        return await self._by_pieces(access, call, params, Shown(path, row.seq, digest, None), data)
                    document = await self._s.contents.text(digest, data)
                    return await self._show_or_compare(access, call, params, Shown(path, row.seq, digest, document))
            for attempt in range(TRIES):
                present = await self._observer.refresh_for_display(access)
                if not present.large:
                    break
                try:
                    return await self._of_large(access, call, params, present)
                except ChangedWhileRead:
                    if attempt == TRIES - 1:
                        raise
            entry, digest, data = required(present)
            document = await self._s.contents.text(digest, data)
            shown = Shown(path, entry.version, digest, document, warnings(present))
            return await self._show_or_compare(access, call, params, shown)

    async def _is_large_and_present(self, access: ContentAccess, row: VersionRow) -> bool:
        """Whether a version is the present one, of a file that is read by pieces."""
        if not self._s.past.is_current(row) or not self._observer.known_large(access.path):
            return False
        present = await self._observer.refresh_for_display(access)
        return present.large and self._s.past.is_current(row)

    async def _show_or_compare(self, access: ContentAccess, call: Call, params: p.ReadFile, shown: Shown) -> r.FileText:
        """What changed since the session saw it, where that is asked for; else as `show`."""
        path, version, digest, document, warned = shown
        if (
            document is not None
            and digest is not None
            and params.column is None
            and self._deltas.wanted(access.caller, params)
        ):
            span = LineRange(*Asked(path, params.start, params.end).resolved(document.line_count))
            present = Present(version, digest, document, span, warned)
            tokens = self._tokens(access.caller, params)
            if (changed := await self._deltas.read(access, call, params, present, tokens)) is not None:
                return changed
        return await self.show(access, call, params, shown)

    async def show(self, access: ContentAccess, call: Call, params: p.ReadFile, shown: Shown) -> r.FileText:
        """Lines of a version that was looked up, as far as the profile allows; noted as read."""
        path, _, digest, document, _ = shown
        caller, profile = access.caller, self._s.permissions.profile(access.caller)
        if document is None or digest is None:
            return await self._image(access, call, shown)
        asked = Asked(path, params.start, params.end, params.column)
        if profile.limits_reads and asked.column is None:
            start, last = asked.resolved(document.line_count)
            await self._within_limit(params, access, shown, document.lines[start - 1 : last], start)
        window = await self._windows.of_document(caller, asked, digest, document, self._tokens(caller, params))
        return await self._show(access, call, params, shown, window)

    async def _image(self, access: ContentAccess, call: Call, shown: Shown) -> r.FileText:
        """A file that is not text, where it is an image that models take. Raises BinaryFile."""
        path, version, digest, _, warned = shown
        data = (await self._s.contents.get(digest) if digest is not None else None) or b""
        kind, most = image_type(data), self._s.permissions.profile(access.caller).max_read_bytes or MOST_IMAGE_BYTES
        if kind is None:
            raise BinaryFile(path, "it is not text")
        most = min(most, MOST_IMAGE_BYTES)
        if len(data) > most:
            why = f"it is an image of {len(data):,} bytes, and the limit for an image is {most:,} bytes"
            raise BinaryFile(path, why)
        if version == NO_VERSION:
            await self._s.notes.note_metadata(access.caller, call, path)
        else:  # it has no lines, so none counts as seen
            seen = SeenLines(path=path, version=version, ranges=(), total_lines=1, cut=True)
            name, size = call.operation.name, len(data)
            event = FileRead(operation=name, seen=seen, bytes=size, tokens=IMAGE_TOKENS, approval=access.approval)
            await self._s.notes.note_read(access.caller, call, event)
        return r.FileText(
            path=path,
            version_id=show(version),
            start=0,
            end=0,
            encoding="binary",
            eol="none",
            content_hash=digest,
            image=r.ImageContent(media_type=kind, size=len(data), data=data),
            warnings=warned,
        )

    async def _of_large(
        self, access: ContentAccess, call: Call, params: p.ReadFile, present: CurrentFile
    ) -> r.FileText:
        """Lines of a file that is read by pieces: of the version that the journal has by its stat signature."""
        path, entry = access.path, present.entry
        if entry is None or entry.signature is None:
            raise ChangedWhileRead(path, "it was replaced while it was read")
        shown = Shown(path, entry.version, entry.digest, None, warnings(present))
        answer = await self._by_pieces(access, call, params, shown, entry.signature)
        if answer.total_lines is None:
            self._s.background.start(partial(self.large.count, path, entry.signature))
        return answer

    async def _by_pieces(
        self, access: ContentAccess, call: Call, params: p.ReadFile, shown: Shown, content: Signature | LargeContent
    ) -> r.FileText:
        """Lines of a version that is not in memory."""
        caller, asked = access.caller, Asked(access.path, params.start, params.end, params.column)
        window = await self._windows.of_large(caller, asked, content, self._tokens(caller, params))
        if self._s.permissions.profile(caller).limits_reads and asked.column is None:
            await self._within_limit(params, access, shown, window.lines, window.first)
        return await self._show(access, call, params, shown, window)

    def _tokens(self, caller: Caller, params: p.ReadFile) -> int:
        return self._s.permissions.answer_tokens(caller, params.max_tokens)

    async def _within_limit(
        self, params: p.ReadFile, access: ContentAccess, shown: Shown, lines: Sequence[str], start: int
    ) -> None:
        """Of a read that asks for more than the caller's profile lets it read at once. Raises OverLimit, and asks."""
        caller, path = access.caller, access.path
        profile = self._s.permissions.profile(caller)
        fits = profile.first_lines(lines)
        if fits >= len(lines):
            return
        by_lines = profile.max_read_lines is not None and len(lines) > profile.max_read_lines
        most = (profile.max_read_lines if by_lines else profile.max_read_bytes) or 0
        asked = len(lines) if by_lines else size_of(lines)
        what, name = ("lines", "max_read_lines") if by_lines else ("bytes", "max_read_bytes")
        at = f', at="{params.at}"' if params.at is not None else ""
        follow = f"read_file(path={quoted(path)}, start={start}, end={start + fits - 1}{at})"
        over = OverLimit(
            f"{escaped(path)}: {asked} {what} are asked for, and {caller.agent} may read {most} at once",
            hint=f"Read a part: {follow}.{'' if 'search_content' in (profile.tools_off or ()) else SEARCH_INSTEAD}",
            limit=f"profile.{profile.name}.{name}",
            most=most,
            asked=asked,
            part=follow,
        )
        if profile.over_limit == "refuse" or (profile.over_limit == "summary" and params.end is None):
            raise over
        asks: Asks = {"read": NeedApproval(over.details["rule"], over.message)}
        await access.confirm(shown.version, shown.digest, asks=asks)

    async def _show(
        self, access: ContentAccess, call: Call, params: p.ReadFile, shown: Shown, window: Window
    ) -> r.FileText:
        path, version, digest, _, warned = shown
        caller, numbers, first, total = access.caller, params.line_numbers, window.first, window.total
        profile = self._s.permissions.profile(caller)
        room = call.room.framed(escaped(path), escaped(path), escaped(path))  # in the head and in the next calls
        rows = window.lines
        if window.column is None:
            tokens = self._tokens(caller, params)
            rows = rows[: fit(rows, 1, len(rows), tokens, numbers=numbers)]
            widest = max(MIN_LINE, min(MAX_LINE, room.bytes // 8))
            if len(rows) == 1:  # which is shown however long it is
                row, beyond = rows[:1], window.beyond_of(1)
                widest = narrowed(
                    lambda most: render(row, first, numbers=numbers, max_line=most, beyond=beyond)[0], tokens, widest
                )
            costs = ((size(row[:widest]) + ROW_BYTES + (CUT_BYTES if len(row) > widest else 0), 1) for row in rows)
            rows = rows[: room.first(costs)]
        else:
            rows = tuple(first_part(row, self._tokens(caller, params), room) for row in rows)
            widest = max(map(len, rows), default=0)
        last = first + len(rows) - 1
        text, cut = render(rows, first, numbers=numbers, max_line=widest, beyond=window.beyond_of(len(rows)))
        if not numbers and last == total and not window.final_newline:
            text = text.removesuffix("\n")
        at = f', at="{show(version)}"' if params.at is not None else ""
        within = window.part_goes_on(rows)
        ends = total == 0 or (window.last is not None and last >= window.last)
        more = window.more or len(rows) < len(window.lines) or not ends
        follow = in_line = None
        if window.column is not None and within:
            follow = f"read_file(path={quoted(path)}, start={first}, column={window.column + len(rows[0])}{at})"
        elif more and last not in (-1, total) and (params.end is None or not ends):
            limit = ""
            if profile.limits_reads:
                limit = f", end={last + max(1, profile.first_lines(window.lines[len(rows) :]))}"
            elif params.end is not None:
                limit = f", end={window.last if window.last is not None else params.end}"
            follow = f"read_file(path={quoted(path)}, start={last + 1}{limit}{at})"
        if cut:
            in_line = rest_of_line(path, cut[0], min(widest, len(rows[cut[0] - first])), window.hidden.found, at)
        found = [secret for secret in window.hidden.found if first <= secret.line <= last]
        shows, counted = LineRange(first, last), first >= 0
        seen = SeenLines(
            path=path,
            version=version,
            ranges=window.hidden.without(shows) if total != 0 and counted else (),
            total_lines=total if total is not None else max(0, last) + 1,
            cut=bool(cut) or window.column is not None,
        )
        from_end = None if counted else shows
        await self._s.notes.note_lines(
            caller, call, seen, text, approval=access.approval, hidden=found, from_end=from_end
        )
        return r.FileText(
            path=path,
            version_id=show(version),
            start=first,
            end=last if total != 0 else 0,
            total_lines=total,
            column=window.column,
            text=text,
            encoding=window.encoding,
            eol=window.eol,
            content_hash=digest,
            truncated=not ends or bool(cut) or within,
            next=follow,
            next_in_line=in_line,
            redactions=tuple(map(str, found)),
            warnings=warned,
        )


def _check_ends(params: p.ReadFile | p.ReadLines) -> None:
    """Raises ParameterInvalid for a line 0."""
    for name in ("start", "end"):
        if getattr(params, name) == 0:
            raise ParameterInvalid(name, "lines count from 1, and from the end -1 is the last")
