"""get_excerpt: some lines of a file, as many as there is room for, and what was left out."""

from __future__ import annotations

from orchestrator.api import context as c
from orchestrator.core.content import LineRange
from orchestrator.core.errors import ParameterInvalid, SearchNotFound, escaped
from orchestrator.core.events.files import FileRead, HiddenSecret, SeenLines
from orchestrator.core.ids import WorkspacePath, show
from orchestrator.core.text.answer_space import MAX_LINE, AnswerSpace, estimate_tokens, render
from orchestrator.core.text.excerpts import Budget, gaps, order, outwards, taken
from orchestrator.core.text.locate_symbol import only_symbol
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import NO_VERSION, Observer
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.outlined_files import OutlinedFile, outlined_file
from orchestrator.engine.services import Services

MOST_MATCHES = 20

MIN_LINE = 50


class Excerpter:
    """Shows lines as a read does: by number, without secrets, noted as seen."""

    def __init__(self, services: Services, observer: Observer) -> None:
        self._s, self._observer = services, observer

    async def get_excerpt(self, caller: Caller, call: Call, params: c.GetExcerpt) -> c.Excerpt:
        given = [name for name in ("line", "pattern", "symbol") if getattr(params, name) is not None]
        if len(given) > 1:
            raise ParameterInvalid(given[1], f"send one of {' and '.join(given)}")
        path = self._s.paths.file(params.path)
        return await self.excerpt(self._s.access.content(caller, call, path), call, params)

    async def excerpt(self, access: ContentAccess, call: Call, params: c.GetExcerpt) -> c.Excerpt:
        """The same of a path that the caller need not have named."""
        async with self._s.locks.shared(access.path):
            found = await outlined_file(self._s, self._observer, access)
            return await self._excerpt(access, call, params, found)

    async def _excerpt(self, access: ContentAccess, call: Call, params: c.GetExcerpt, found: OutlinedFile) -> c.Excerpt:
        path, total, lines = access.path, found.document.line_count, found.hidden.over(found.document.lines)
        part, name, matches = LineRange(1, total), None, list[int]()
        if params.symbol is not None:
            name, symbol = only_symbol(found.outline, params.symbol)
            part = LineRange(symbol.line, symbol.end_line)
        center = params.line
        if center is not None and center > max(total, 1):
            raise ParameterInvalid("line", f"{center} is after the last line, {total}, of {path}")
        if params.pattern is not None:
            matches = [number for number, line in enumerate(lines, 1) if params.pattern in line]
            if not matches:
                hint = "search_content finds texts by regular expression, with typos, and in other files."
                raise SearchNotFound(f"the text occurs in no line of {escaped(path)}", hint=hint)
            center = matches[0]
        room = call.room.framed(escaped(path), escaped(path), escaped(path), *found.shown.warnings)
        widest = max(MIN_LINE, min(MAX_LINE, room.bytes // 8))
        numbers = order(part, params.leave_out) if center is None else outwards(center, total)
        budget = self._budget(access.caller, room, params)
        shown = taken(numbers, lambda number: lines[number - 1][: widest + 50], budget) if total else ()
        if center is not None:
            part = LineRange(shown[0].start, shown[-1].end) if shown else part
        rendered = [render(lines[it.start - 1 : it.end], it.start, max_line=widest) for it in shown]
        parts = tuple(
            c.ExcerptPart(start=it.start, end=it.end, text=text) for it, (text, _) in zip(shown, rendered, strict=True)
        )
        cut = any(shortened for _, shortened in rendered)
        secrets = tuple(one for one in found.hidden.found if any(it.start <= one.line <= it.end for it in shown))
        await note_lines(self._s, access, call, found, shown, "".join(text for text, _ in rendered), secrets, cut=cut)
        missing = gaps(shown, part)
        return c.Excerpt(
            path=path,
            version_id=show(found.shown.version),
            total_lines=total,
            parts=parts,
            left_out=tuple(c.LinesLeftOut(start=it.start, end=it.end, next=_reading(path, it)) for it in missing),
            symbol=found.told(name) if name is not None else None,
            matches=tuple(matches[:MOST_MATCHES]),
            total_matches=len(matches),
            truncated=bool(missing) or cut,
            redactions=tuple(f"line {one.line}: {one.kind}" for one in secrets),
            warnings=found.shown.warnings,
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
    found: OutlinedFile,
    shown: tuple[LineRange, ...],
    text: str,
    secrets: tuple[HiddenSecret, ...],
    *,
    cut: bool,
) -> None:
    """Journal that the session saw these lines."""
    version = found.shown.version
    if version == NO_VERSION:
        await services.notes.note_metadata(access.caller, call, access.path)  # no version has these lines
        return
    seen = SeenLines(
        path=access.path,
        version=version,
        ranges=tuple(span for it in shown for span in found.hidden.without(it)),
        total_lines=found.document.line_count,
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


def _reading(path: WorkspacePath, lines: LineRange) -> str:
    return f"read_file(path={quoted(path)}, start={lines.start}, end={lines.end})"
