"""get_excerpt: some lines of a file, as many as there is room for, and what was left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import NamedTuple

import msgspec

from orchestrator.api import context as c
from orchestrator.api import parameters as p
from orchestrator.api.results import from_character
from orchestrator.core.content import LineRange, SeenLines
from orchestrator.core.errors import FileTooLarge, ParameterInvalid, SearchNotFound, escaped
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.policy.profiles import Profile
from orchestrator.core.shown_text import NOTHING_HIDDEN, Hidden
from orchestrator.core.text.answer_space import (
    MAX_LINE,
    MIN_LINE,
    NOTHING_BEYOND,
    PER_TOKEN,
    AnswerSpace,
    narrowed,
    render,
)
from orchestrator.core.text.excerpts import Budget, gaps, order, outwards, taken
from orchestrator.core.text.long_lines import window
from orchestrator.core.text.search import Match
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.large_texts import LargeTexts
from orchestrator.engine.reads.outlined_files import OutlinedFile, outlined_file
from orchestrator.engine.reads.search import matcher_of
from orchestrator.engine.reads.search_large import LargeSearch
from orchestrator.engine.reads.search_page import hit_of
from orchestrator.engine.reads.symbol_reads import named_symbol
from orchestrator.engine.reads.windows import LargePassages, rest_of_line
from orchestrator.engine.services import Services

MOST_MATCHES = 20


class ShownText(NamedTuple):
    """What lines are taken from: a line as it is shown, by its number."""

    version: Seq
    total: int
    line: Callable[[int], str]
    hidden: Hidden
    warnings: tuple[str, ...]
    beyond: Mapping[int, int] = NOTHING_BEYOND  # by number, how much of a line is not at hand
    hits: Mapping[int, Match] = {}  # by number, what is at hand of such a line around the pattern


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
            name, symbol = named_symbol(access.path, found.outline, params.symbol)
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
        matches, total, hits, of_hits = list[int](), 0, dict[int, Match](), NOTHING_HIDDEN
        if params.pattern is not None:
            matcher, most = matcher_of(p.SearchContent(pattern=params.pattern)), MOST_MATCHES
            found, of_hits = await self._search.search(caller, path, file.signature, matcher, invert=False, most=most)
            matches, total = [hit.line for hit in found.hits], found.total
            hits = {hit.line: hit for hit in found.hits}
        center, most = _center(path, params, file.total, matches), params.max_lines
        if center is not None:
            spans = [LineRange(max(1, center - most), min(file.total, center + most))]
        else:
            head = min(file.total, most)
            spans = [LineRange(1, head), LineRange(max(head, file.total - most) + 1, file.total)]
        rows, hidden, beyond = await self._passages.lines(caller, path, file, *spans)
        around = beyond.keys() & hits.keys()  # of these what is around the match is shown
        secrets = [*(one for one in hidden.found if one.line not in around)]
        secrets += (one for one in of_hits.found if one.line in around)
        hidden = Hidden({**of_hits.lines, **hidden.lines}, tuple(sorted(secrets, key=lambda one: one.line)))
        text = ShownText(
            file.version, file.total, lambda number: rows.get(number, ""), hidden, file.warnings, beyond, hits
        )
        return await self._shown(access, call, params, text, LineRange(1, file.total), center, matches, total)

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
        if total:  # the first line is shown however long it is
            numbers = chain([first := next(numbers)], numbers)
            tokens = budget.weight // PER_TOKEN
            widest = narrowed(
                lambda most: _numbered(first, _row(path, found, params.pattern, most, first)[0]), tokens, widest
            )
        row = partial(_row, path, found, params.pattern, widest)
        shown = taken(numbers, lambda number: row(number)[0], budget) if total else ()
        if center is not None:
            part = LineRange(shown[0].start, shown[-1].end) if shown else part
        rows = {number: row(number) for it in shown for number in range(it.start, it.end + 1)}
        texts = {number: _numbered(number, text) for number, (text, _) in rows.items()}
        parts = tuple(
            c.ExcerptPart(
                start=it.start, end=it.end, text="".join(texts[number] for number in range(it.start, it.end + 1))
            )
            for it in shown
        )
        cut = [(number, shown_to) for number, (_, shown_to) in rows.items() if shown_to is not None]
        secrets = tuple(one for one in found.hidden.found if one.line in rows)
        told = "".join(texts.values())
        seen = seen_lines(path, found, shown, cut=bool(cut))
        await self._s.notes.note_lines(access.caller, call, seen, told, approval=access.approval, hidden=secrets)
        missing, profile = gaps(shown, part), self._s.permissions.profile(access.caller)
        ways = [_way(path, found, profile, it) for it in missing]
        return c.Excerpt(
            path=path,
            version_id=show(found.version),
            total_lines=total,
            parts=parts,
            left_out=tuple(
                c.LinesLeftOut(start=it.start, end=it.end, next=way) for it, way in zip(missing, ways, strict=True)
            ),
            matches=tuple(matches[:MOST_MATCHES]),
            total_matches=hits,
            truncated=bool(missing or cut),
            next_in_line=rest_of_line(path, *cut[0], secrets) if cut else None,
            redactions=tuple(map(str, secrets)),
            warnings=found.warnings,
        )

    def _budget(self, caller: Caller, room: AnswerSpace, params: c.GetExcerpt) -> Budget:
        """Of the call, the caller's profile and its client."""
        profile, tokens = (
            self._s.permissions.profile(caller),
            self._s.permissions.answer_tokens(caller, params.max_tokens),
        )
        most = min(params.max_lines, profile.max_read_lines or params.max_lines, room.lines)
        bytes_left = room.bytes // 2 if room.typed else room.bytes
        return Budget.of(tokens, min(bytes_left, profile.max_read_bytes or bytes_left), most)


def _row(
    path: WorkspacePath, found: ShownText, pattern: str | None, widest: int, number: int
) -> tuple[str, int | None]:
    """A line as it is shown, a long one around the pattern or from its beginning.

    And of a part how many characters from the beginning of the line it shows; None of the whole line.
    """
    line, more, hit = found.line(number), found.beyond.get(number), found.hits.get(number)
    if more is not None and hit is not None:
        part = hit_of(path, hit, widest, "exact")
        end = "" if hit.text.endswith(part.text) else " …"
        return f"{from_character(part.column)}{part.text}{end}", 0
    if pattern is not None and more is None and len(line) > widest and pattern in line:
        return window(line, line.index(pattern), widest), 0
    text, cut = render(
        [line], number, numbers=False, max_line=widest, beyond=NOTHING_BEYOND if more is None else {0: more}
    )
    return text.removesuffix("\n"), min(widest, len(line)) if cut else None


def _numbered(number: int, row: str) -> str:
    return render([row], number, max_line=len(row))[0]


def seen_lines(path: WorkspacePath, found: ShownText, shown: tuple[LineRange, ...], *, cut: bool) -> SeenLines:
    """What the session has seen by these lines."""
    ranges = tuple(span for it in shown for span in found.hidden.without(it))
    return SeenLines(path=path, version=found.version, ranges=ranges, total_lines=found.total, cut=cut)


def _center(path: WorkspacePath, params: c.GetExcerpt, total: int, matches: list[int]) -> int | None:
    """The line around which lines are shown. Raises ParameterInvalid, SearchNotFound."""
    if params.line is not None and params.line > max(total, 1):
        raise ParameterInvalid("line", f"{params.line} is after the last line, {total}, of {path}")
    if params.pattern is not None and not matches:
        hint = "search_content finds texts by regular expression, with typos, and in other files."
        raise SearchNotFound(f"the text occurs in no line of {escaped(path)}", hint=hint)
    return matches[0] if matches else params.line


def _way(path: WorkspacePath, found: ShownText, profile: Profile, lines: LineRange) -> str:
    """The call that shows lines that were left out, as many as one read may ask for."""
    end = lines.end
    if profile.limits_reads:
        most = profile.max_read_lines or profile.max_read_bytes or 0
        first = [found.line(number) for number in range(lines.start, min(end + 1, lines.start + most))]
        end = lines.start - 1 + profile.first_lines(first)
    return f"read_file(path={quoted(path)}, start={lines.start}, end={end})"
