"""Searches files that are too large for memory: ripgrep says where something may match, and what is there is matched.

Without it, and for what it can't look for, all of the file is matched, piece by piece.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import anyio
from anyio import to_thread

from orchestrator.core.content import Signature
from orchestrator.core.errors import BinaryFile, ChangedWhileRead, TextTooCostly
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.shown_text import COVER, NOTHING_HIDDEN, Hidden
from orchestrator.core.text.answer_space import MAX_LINE
from orchestrator.core.text.charsets import MARKS, Encoding, codec_of
from orchestrator.core.text.line_index import BEYOND_BYTES, after_ends, is_ended
from orchestrator.core.text.long_lines import NEAR, near
from orchestrator.core.text.regex import RegexPattern
from orchestrator.core.text.search import Found, Match, Matcher, NotAll, Pattern, Spot
from orchestrator.core.text.secrets import MOST_KEY_BYTES, MOST_KEY_LINES
from orchestrator.core.text.sweep_expressions import RETURN
from orchestrator.engine.caller import Caller
from orchestrator.engine.reads.large_texts import Known, LargeTexts, Wanted
from orchestrator.engine.reads.line_scan import grew
from orchestrator.engine.reads.search_places import LONGEST_LINE, PIECE_BYTES, Place, Places, batch
from orchestrator.engine.services import Services
from orchestrator.ports.workspace import FilePieces, Offsets

MOST_SWEPT = 1 << 32
"""A larger file is most likely full of holes, over which ripgrep does not go."""

MOST_PLACES = 20_000
"""Where something may match that is looked at by itself."""

SEVERAL_BYTES = 16 * 1024
"""After a place, where a match may go over several lines."""

LONG_BYTES = 2 * 1024 * 1024
"""The same where the lines so near hold no match."""

MANY_S = 0.9
"""How long a search of so many places may take before it stops behind the last of them."""

REST_S = 0.1
"""How long what is behind the last of them is matched in any case: some megabytes."""

IN_PARTS = (
    f"a line of over {LONGEST_LINE >> 20} MiB is matched in parts of {PIECE_BYTES >> 20} MiB: "
    "what goes over several of them may be missed"
)
TOO_LONG = f"a match that goes over more than {LONG_BYTES >> 19} MiB of lines is not found"
"""Why not all of a file was searched."""

SEARCH_S = 20.0
"""How long all of a file is matched."""


class Spotted(NamedTuple):
    """A match: where its first line begins (or what of it was read) and its last ends, the lines, its place in them."""

    begin: int
    end: int
    lines: tuple[str, ...]
    spot: Spot
    before: int = 0  # of a long line, of which `lines` has a part: characters of what was read that stand before that
    is_part: bool = False
    one_of_many: bool = False  # in a part of a line, of which there may be others
    is_hit: bool = True  # not in a part of a line with what the lines are to be without


class _Spotted(NamedTuple):
    """The matches, how many there are, whether not all was looked at, and why not where that is told."""

    spotted: list[Spotted]
    total: int
    not_all: bool = False
    reason: str | None = None


class _Opened(NamedTuple):
    """The file that is searched: the version that has this signature, and what is known of its lines."""

    path: WorkspacePath
    version: Signature
    pieces: FilePieces
    known: Known

    @property
    def encoding(self) -> Encoding:
        return self.known.index.encoding


class LargeSearch:
    """Searches one large file at a time."""

    def __init__(self, services: Services, large: LargeTexts) -> None:
        self._s, self._large = services, large

    async def search(  # one search, by its parts
        self,
        caller: Caller,
        path: WorkspacePath,
        version: Signature,
        matcher: Matcher,
        *,
        invert: bool,
        after: int = 0,
        most: int = 0,
        context_lines: int = 0,
    ) -> tuple[Found, Hidden]:
        """The matches in the version of a file that has this signature, the first `most` beyond a line in full.

        Raises BinaryFile, ChangedWhileRead, LinesNotCounted and the PathError family.
        """
        pieces = self._s.workspace.pieces(path)
        try:
            _check(path, version, pieces.stat.signature)
            known = await self._large.known(path, version)
            if known is None:
                _check(path, version, pieces.stat_now().signature)
                raise BinaryFile(path, "it is not text")
            file, first = _Opened(path, version, pieces, known), None if after else most
            spotted, total, not_all, reason = await self._spotted(file, matcher, first, invert=invert)
            whole = await self._one_a_line(file, spotted)
            total += len(whole) - len(spotted)
            numbers = await self._large.numbers(path, version, [one.begin for one in whole], after, most)
            hits, hidden = list[Match](), NOTHING_HIDDEN
            for at, number in numbers:
                match, its = await self._shown(caller, file, number, whole[at], context_lines)
                hits.append(match)
                hidden = Hidden({**hidden.lines, **its.lines}, (*hidden.found, *its.found))
            _check(path, version, pieces.stat_now().signature)
        finally:
            pieces.close()
        lines = known.total or 0
        best = max((one.spot.score for one in whole), default=0.0) if matcher.kind == "fuzzy" else 0.0
        return Found(tuple(hits), total, lines, not_all or reason is not None, best, reason), hidden

    async def _spotted(self, file: _Opened, matcher: Matcher, first: int | None, *, invert: bool) -> _Spotted:
        """The matches. Of very many only the `first` may come."""
        size, until = file.version.size, anyio.current_time() + MANY_S
        offsets = None if invert or size >= MOST_SWEPT else await self._offsets(file, matcher)
        there = Places(file.pieces, size, file.encoding, SEVERAL_BYTES if matcher.multiline else 0)
        places = there.all() if offsets is None else there.around(offsets.at)
        plain = isinstance(matcher, Pattern) and matcher.plain and matcher.text.isascii()
        too_many = plain and offsets is not None and not offsets.all
        if too_many:
            places = islice(places, first)  # each is a match
        match_at = partial(self._match_at, file, matcher, invert=invert, beside=offsets is None or not matcher.cheap)
        met = await match_at(places, SEARCH_S)
        if matcher.multiline:
            spotted = _apart(met.spotted)
            if isinstance(matcher, RegexPattern) and offsets is not None and not met.not_all:
                missing = _uncovered(spotted, [at for at in offsets.at if at or file.encoding not in MARKS])
                more = Places(file.pieces, size, file.encoding, LONG_BYTES).around(missing)
                found = await match_at(more, SEARCH_S)
                spotted = _apart(spotted + found.spotted)
                too_long = TOO_LONG if not matcher.word and _uncovered(spotted, missing) else None
                met = found._replace(reason=met.reason or found.reason or too_long)
            met = met._replace(spotted=spotted, total=len(spotted))
        if too_many and self._s.sweep is not None:
            lines = await self._s.sweep.count(matcher.sweep or (), file.pieces)
            return met._replace(total=max(lines or 0, met.total), not_all=lines is None)
        if offsets is not None and not offsets.all:
            if matcher.multiline or met.not_all:
                return met._replace(not_all=True)
            rest_s = max(REST_S, until - anyio.current_time())
            rest = await match_at(there.behind(offsets.at[-1]), rest_s)
            spotted = met.spotted + rest.spotted
            return _Spotted(spotted, len(spotted), rest.not_all, met.reason or rest.reason)
        return met

    async def _match_at(
        self, file: _Opened, matcher: Matcher, places: Iterator[Place], most_s: float, *, invert: bool, beside: bool
    ) -> _Spotted:
        """The matches at these places, as far as there is time; `beside`: in a worker."""
        spotted, partial_, until = list[Spotted](), False, anyio.current_time() + most_s
        reason: str | None = None
        whole = matcher.kind == "regex" or matcher.multiline
        while some := await to_thread.run_sync(batch, places):
            reason = IN_PARTS if whole and any(place.is_part for place in some) else reason
            if anyio.current_time() > until:
                return _Spotted(spotted, len(spotted), not_all=True, reason=reason)
            work = partial(matched, some, matcher, file.encoding, invert=invert)
            try:
                found, not_all = await (self._s.workers.run(work) if beside else to_thread.run_sync(work))
            except TextTooCostly:
                return _Spotted(spotted, len(spotted), not_all=True, reason=reason)
            spotted += found
            partial_ = partial_ or not_all
        return _Spotted(spotted, len(spotted), partial_, reason)

    async def _one_a_line(self, file: _Opened, spotted: list[Spotted]) -> list[Spotted]:
        """Of the matches in parts of the same line the first; none of one that is to have no match."""
        parts = [at for at, one in enumerate(spotted) if one.one_of_many]
        if not parts:
            return spotted
        begins, lines = [spotted[at].begin for at in parts], defaultdict[int, list[int]](list)
        for at, number in await self._large.numbers(file.path, file.version, begins, 0, len(begins)):
            lines[number].append(parts[at])
        left_out = {at for its in lines.values() for at in its[all(spotted[at].is_hit for at in its) :]}
        return [one for at, one in enumerate(spotted) if at not in left_out]

    async def _offsets(self, file: _Opened, matcher: Matcher) -> Offsets | None:
        """Where ripgrep says that something may match; None where it does not see the lines that we see."""
        index, sweep, expressions = file.known.index, self._s.sweep, matcher.sweep
        if sweep is None or expressions is None or index.encoding in ("utf-16-le", "utf-16-be"):
            return None
        if matcher.multiline:
            await self._large.count(file.path, file.version)
            if index.returns:
                return None
            expressions = tuple(one for one in expressions if one != RETURN)
        offsets = await sweep.offsets(expressions, file.pieces, multiline=matcher.multiline, most=MOST_PLACES)
        if offsets is not None and offsets.at and not matcher.multiline:
            await self._large.count(file.path, file.version)
            if index.lone:  # what it takes for one line may be many
                return None
        if offsets is not None and index.encoding in MARKS:
            return Offsets([0, *offsets.at], all=offsets.all)  # to it the first line begins with the mark
        return offsets

    async def _shown(
        self, caller: Caller, file: _Opened, number: int, one: Spotted, context: int
    ) -> tuple[Match, Hidden]:
        """A match with what is around it, as the caller is shown it."""
        level = self._s.redaction.level(caller)
        first = max(1, number - context)
        rows = one.spot.rows
        most = number - first + rows + context
        around = 0 if level is None else MOST_KEY_LINES
        wanted = Wanted(first, most, most * MAX_LINE * 4, around=around)
        passage = await self._large.passage(file.path, file.version, wanted)
        lines = list(passage.lines)
        at = number - passage.first
        lines[at : at + rows] = one.lines  # a long one as a part around the match
        hidden = (await self._s.redaction.of_lines(caller, file.path, lines)).moved(passage.first - 1)
        begin, text = first - passage.first, one.lines[0]
        above, before, after = await to_thread.run_sync(_beside, file.pieces, one, file.encoding)
        if level is not None and (before or after):
            line, last = before + text + after, len(before) + len(text)
            start, end = near(line, len(before), last)
            cut = above or start > 0 or len(before) < one.before
            its = await self._s.redaction.of_lines(caller, file.path, [line[start:end]], begun=cut)
            rest = {at_: shown for at_, shown in hidden.lines.items() if at_ != number}
            if its.found:
                shown = self._s.redaction.covered(caller, line[start:end], its)
                text = shown[len(before) - start : last - start]
                others = (secret for secret in hidden.found if secret.line != number)
                hidden = Hidden({**hidden.lines, number: text}, (*others, *its.moved(number - 1).found))
            elif number in hidden.lines:  # of a key that has lines above or below it
                text = COVER * len(text)
        else:
            rest = hidden.lines
        match = Match(
            number,
            "\n".join((text, *one.lines[1:])),
            one.spot.spans,
            tuple(lines[begin:at]),
            tuple(lines[at + rows : at + rows + context]),
            rows,
            one.spot.score,
            before_text=None if above else one.before,
        )
        found = self._s.redaction.matches(hidden._replace(lines=rest), Found((match,), 1, 0))
        return found.hits[0], hidden


def _check(path: WorkspacePath, version: Signature, now: Signature) -> None:
    """A file may only grow. Raises ChangedWhileRead."""
    if now != version and not grew(version, now):
        raise ChangedWhileRead(path, "it was changed while it was searched")


def matched(
    places: Sequence[Place], matcher: Matcher, encoding: Encoding, *, invert: bool
) -> tuple[list[Spotted], bool]:
    """The matches at some places, and whether not all was looked at."""
    found, partial_ = list[Spotted](), False
    for place in places:
        starts, lines = _lines(place.begin, place.raw, encoding)
        spots, at = list[Spot](), set[int]()
        try:
            for spot in matcher.spots(lines):
                sure = _sure(spot, place, lines[0], matcher) if place.is_part else spot
                if sure is not None:
                    spots.append(sure)
                    at.update(range(sure.line, sure.line + sure.rows))
        except NotAll:
            partial_ = True
        is_hit = not (invert and place.is_part and at)
        if invert and is_hit:
            spots = [Spot(line, 1, ()) for line in range(len(lines)) if line not in at]
        for spot in spots:
            if starts[spot.line] >= place.end:
                break
            last = spot.line + spot.rows
            one = _around(starts[spot.line], starts[last], lines[spot.line : last], spot)
            found.append(one._replace(one_of_many=place.is_part, is_hit=is_hit))
    return found, partial_


def _sure(spot: Spot, place: Place, part: str, matcher: Matcher) -> Spot | None:
    """A match in a part of a line, without what may be none in the whole: the ends of the part are none of the line."""
    if not matcher.looks_beside:
        return spot
    first, last = int(place.begun), len(part) - place.goes_on
    spans = tuple(span for span in spot.spans if first <= span[0] and span[1] <= last)
    return spot._replace(spans=spans) if spans else None


def _around(begin: int, end: int, lines: Sequence[str], spot: Spot) -> Spotted:
    """A match with its lines; one that is long as a part around it."""
    if len(lines) != 1 or len(lines[0]) <= 4 * MAX_LINE:
        return Spotted(begin, end, tuple(lines), spot)
    first = max(0, (spot.spans[0][0] if spot.spans else 0) - MAX_LINE)
    size = min(len(lines[0]) - first, 4 * MAX_LINE)
    spans = tuple((a - first, min(b - first, size)) for a, b in spot.spans if a - first < size)
    return Spotted(begin, end, (lines[0][first : first + size],), spot._replace(spans=spans), first, is_part=True)


def _beside(pieces: FilePieces, one: Spotted, encoding: Encoding) -> tuple[bool, str, str]:
    """Whether the line of a match begins before what was read of it; and what of it is near, before and after."""
    before = after = ""
    if one.is_part:
        line = _lines(one.begin, pieces.read(one.begin, one.end - one.begin), encoding)[1][0]
        end = one.before + len(one.lines[0])
        before, after = line[max(0, one.before - MOST_KEY_BYTES) : one.before], line[end : end + NEAR]
    above = _above(pieces, one.begin, encoding)
    below = _below(pieces, one.end, encoding) if len(after) < NEAR and one.spot.rows == 1 else ""
    return bool(above), above + before if one.before < MOST_KEY_BYTES else before, after + below


def _above(pieces: FilePieces, at: int, encoding: Encoding) -> str:
    """Of a line that is read from an offset on the characters right before that; none where it begins there."""
    codec, wide = codec_of(encoding), encoding in ("utf-16-le", "utf-16-be")
    for most in (BEYOND_BYTES, MOST_KEY_BYTES * (2 if wide else 1)):  # most often it begins there
        begin = max(0, at - most)
        raw = pieces.read(begin, at - begin)
        text = raw[0 if wide else _character(raw, 0) :].decode(codec, "replace")
        if not text or text[-1] in "\r\n":
            return ""
    return text[max(text.rfind("\n"), text.rfind("\r")) + 1 :]


def _below(pieces: FilePieces, at: int, encoding: Encoding) -> str:
    """Of a line that is read up to an offset the characters right behind that; none where it ends there."""
    first = max(0, at - BEYOND_BYTES)
    if is_ended(pieces.read(first, at - first), encoding):
        return ""
    raw = pieces.read(at, 4 * NEAR)
    return (
        raw[: next(after_ends(raw, len(raw), encoding), len(raw))].decode(codec_of(encoding), "replace").rstrip("\r\n")
    )


def _apart(spotted: list[Spotted]) -> list[Spotted]:
    """Each match once; what lies within an earlier one was found where that one's begin was not seen."""
    apart = list[Spotted]()
    for one in sorted(spotted, key=lambda one: (one.begin, -one.end)):
        if not apart or one.begin >= apart[-1].end or one.one_of_many:
            apart.append(one)
    return apart


def _uncovered(spotted: list[Spotted], offsets: list[int]) -> list[int]:
    """The places that are in none of the matches, which are apart."""
    begins = [one.begin for one in spotted]
    nearest = ((offset, bisect_right(begins, offset) - 1) for offset in offsets)
    return [offset for offset, at in nearest if at < 0 or spotted[at].end <= offset]


def _lines(begin: int, raw: bytes, encoding: Encoding) -> tuple[list[int], list[str]]:
    """The lines of a piece, without their ends, and where each begins; and the last one ends."""
    codec, mark = codec_of(encoding), MARKS.get(encoding, b"") if begin == 0 else b""
    ends = [*after_ends(raw, len(raw), encoding)]
    if not ends or ends[-1] < len(raw):
        ends.append(len(raw))
    starts, lines = list[int](), list[str]()
    at = 0
    for end in ends:
        line = raw[at:end]
        starts.append(begin + at)
        lines.append(line.removeprefix(mark if at == 0 else b"").decode(codec, "replace").rstrip("\r\n"))
        at = end
    return [*starts, begin + at], lines


def _character(raw: bytes, at: int) -> int:
    """Where a character of UTF-8 begins, at this byte or up to three later."""
    return next((n for n in range(at, min(at + 4, len(raw))) if raw[n] & 0xC0 != 0x80), at)
