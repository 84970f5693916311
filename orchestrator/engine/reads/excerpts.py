"""get_excerpt: some lines of a file, as many as there is room for, and what was left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from orchestrator.api import context as c
from orchestrator.api import parameters as p
from orchestrator.core.content import LineRange
from orchestrator.core.errors import FileTooLarge, ParameterInvalid, SearchNotFound, escaped
from orchestrator.core.events.files import FileRead, HiddenSecret, SeenLines
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.shown_text import Hidden
from orchestrator.core.text.answer_space import MAX_LINE, NOTHING_BEYOND, AnswerSpace, estimate_tokens, render
from orchestrator.core.text.excerpts import Budget, gaps, order, outwards, taken
from orchestrator.core.text.locate_symbol import only_symbol
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import NO_VERSION, Observer
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.large_passages import LargePassages
from orchestrator.engine.reads.large_texts import LargeTexts
from orchestrator.engine.reads.outlined_files import OutlinedFile, outlined_file
from orchestrator.engine.reads.search import matcher_of
from orchestrator.engine.reads.search_large import LargeSearch
from orchestrator.engine.services import Services

MOST_MATCHES = 20

MIN_LINE = 50


class ShownText(NamedTuple):
    """What lines are taken from: a line as it is shown, by its number."""

    version: Seq
    total: int
    line: Callable[[int], str]
    hidden: Hidden
    warnings: tuple[str, ...]
    beyond: Mapping[int, int] = NOTHING_BEYOND  # by number, how much of a line is not at hand


class Excerpter:
    """Shows lines as a read does: by number, without secrets, noted as seen."""

    def __init__(self, services: Services, observer: Observer, large: LargeTexts) -> None:
        self._s, self._observer = services, observer
        self._passages, self._search = LargePassages(services, observer, large), LargeSearch(services, large)

    async def get_excerpt(self, caller: Caller, call: Call, params: c.GetExcerpt) -> c.Excerpt:
        given = [name for name in ("line", "pattern", "symbol") if getattr(params, name) is not None]
        if len(given) > 1:
            raise ParameterInvalid(given[1], f"send one of {' and '.join(given)}")
        path = self._s.paths.file(params.path)
        return await self.excerpt(self._s.access.content(caller, call, path), call, params)

    async def excerpt(self, access: ContentAccess, call: Call, params: c.GetExcerpt) -> c.Excerpt:
        """The same of a path that the caller need not have named."""
        async with self._s.locks.shared(access.path):
            try:
                found = await outlined_file(self._s, self._observer, access)
            except FileTooLarge as error:
                return await self._of_large(access, call, params, error)
            return await self._excerpt(access, call, params, found)

    async def _excerpt(self, access: ContentAccess, call: Call, params: c.GetExcerpt, found: OutlinedFile) -> c.Excerpt:
        path, total, lines = access.path, found.document.line_count, found.hidden.over(found.document.lines)
        part, name, matches = LineRange(1, total), None, list[int]()
        if params.symbol is not None:
            name, symbol = only_symbol(found.outline, params.symbol)
            part = LineRange(symbol.line, symbol.end_line)
        if params.pattern is not None:
            matches = [number for number, line in enumerate(lines, 1) if params.pattern in line]
        center = _center(path, params, total, matches)
        text = ShownText(
            found.shown.version, total, lambda number: lines[number - 1], found.hidden, found.shown.warnings
        )
        answer = await self._shown(access, call, params, text, part, center, matches, len(matches))
        return msgspec.structs.replace(answer, symbol=found.told(name)) if name is not None else answer

    async def _of_large(
        self, access: ContentAccess, call: Call, params: c.GetExcerpt, error: FileTooLarge
    ) -> c.Excerpt:
        """Of a file that is read by pieces, which has no outline. Raises as `LargePassages.counted`."""
        caller, path = access.caller, access.path
        file = await self._passages.counted(access, error)
        if params.symbol is not None:
            error.hint = f"Find it with search_content(path={quoted(path)}), then send its line."
            raise error
        matches, hits = list[int](), 0
        if params.pattern is not None:
            matcher = matcher_of(p.SearchContent(pattern=params.pattern))
            found, _ = await self._search.search(caller, path, file.signature, matcher, invert=False, most=MOST_MATCHES)
            matches, hits = [hit.line for hit in found.hits], found.total
        center, most = _center(path, params, file.total, matches), params.max_lines
        if center is not None:
            spans = [LineRange(max(1, center - most), min(file.total, center + most))]
        else:
            head = min(file.total, most)
            spans = [LineRange(1, head), LineRange(max(head, file.total - most) + 1, file.total)]
        rows, hidden, beyond = await self._passages.lines(caller, path, file, *spans)
        text = ShownText(file.version, file.total, rows.__getitem__, hidden, file.warnings, beyond)
        return await self._shown(access, call, params, text, LineRange(1, file.total), center, matches, hits)

    async def _shown(  # one excerpt, by what it is made of
        self,
        access: ContentAccess,
        call: Call,
        params: c.GetExcerpt,
        found: ShownText,
        part: LineRange,
        center: int | None,
        matches: list[int],
        hits: int,
    ) -> c.Excerpt:
        path, total = access.path, found.total
        room = call.room.framed(escaped(path), escaped(path), escaped(path), *found.warnings)
        widest = max(MIN_LINE, min(MAX_LINE, room.bytes // 8))
        numbers = order(part, params.leave_out) if center is None else outwards(center, total)
        budget = self._budget(access.caller, room, params)
        shown = taken(numbers, lambda number: found.line(number)[: widest + 50], budget) if total else ()
        if center is not None:
            part = LineRange(shown[0].start, shown[-1].end) if shown else part
        rendered = [
            render(
                [found.line(number) for number in range(it.start, it.end + 1)],
                it.start,
                max_line=widest,
                beyond={n - it.start: more for n, more in found.beyond.items() if it.start <= n <= it.end},
            )
            for it in shown
        ]
        parts = tuple(
            c.ExcerptPart(start=it.start, end=it.end, text=text) for it, (text, _) in zip(shown, rendered, strict=True)
        )
        cut = any(shortened for _, shortened in rendered)
        secrets = tuple(one for one in found.hidden.found if any(it.start <= one.line <= it.end for it in shown))
        told = "".join(text for text, _ in rendered)
        await note_lines(self._s, access, call, found, shown, told, secrets, cut=cut)
        missing = gaps(shown, part)
        return c.Excerpt(
            path=path,
            version_id=show(found.version),
            total_lines=total,
            parts=parts,
            left_out=tuple(c.LinesLeftOut(start=it.start, end=it.end, next=_reading(path, it)) for it in missing),
            matches=tuple(matches[:MOST_MATCHES]),
            total_matches=hits,
            truncated=bool(missing) or cut,
            redactions=tuple(f"line {one.line}: {one.kind}" for one in secrets),
            warnings=found.warnings,
        )

    def _budget(self, caller: Caller, room: AnswerSpace, params: c.GetExcerpt) -> Budget:
        """Of the call, the caller's profile and its client."""
        profile = self._s.permissions.profile(caller)
        tokens = min(params.max_tokens, profile.max_answer_tokens or params.max_tokens)
        most = min(params.max_lines, profile.max_read_lines or params.max_lines, room.lines)
        bytes_left = room.bytes // 2 if room.typed else room.bytes
        return Budget.of(tokens, min(bytes_left, profile.max_read_bytes or bytes_left), most)


async def note_lines(
    services: Services,
    access: ContentAccess,
    call: Call,
    found: ShownText,
    shown: tuple[LineRange, ...],
    text: str,
    secrets: tuple[HiddenSecret, ...],
    *,
    cut: bool,
) -> None:
    """Journal that the session saw these lines."""
    if found.version == NO_VERSION:
        await services.notes.note_metadata(access.caller, call, access.path)  # no version has these lines
        return
    seen = SeenLines(
        path=access.path,
        version=found.version,
        ranges=tuple(span for it in shown for span in found.hidden.without(it)),
        total_lines=found.total,
        cut=cut,
    )
    event = FileRead(
        operation=call.operation.name,
        seen=seen,
        bytes=len(text),
        tokens=estimate_tokens(text),
        approval=access.approval,
        hidden=secrets,
    )
    await services.notes.note_read(access.caller, call, event)


def _center(path: WorkspacePath, params: c.GetExcerpt, total: int, matches: list[int]) -> int | None:
    """The line around which lines are shown. Raises ParameterInvalid, SearchNotFound."""
    if params.line is not None and params.line > max(total, 1):
        raise ParameterInvalid("line", f"{params.line} is after the last line, {total}, of {path}")
    if params.pattern is not None and not matches:
        hint = "search_content finds texts by regular expression, with typos, and in other files."
        raise SearchNotFound(f"the text occurs in no line of {escaped(path)}", hint=hint)
    return matches[0] if matches else params.line


def _reading(path: WorkspacePath, lines: LineRange) -> str:
    return f"read_file(path={quoted(path)}, start={lines.start}, end={lines.end})"
