"""Searches files that are too large for memory: ripgrep says where something may match, and what is there is matched.

Without it, and for what it can't look for, all of the file is matched, piece by piece.
"""

from __future__ import annotations

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
from orchestrator.core.text.line_index import BEYOND_BYTES, after_ends
from orchestrator.core.text.long_lines import NEAR
from orchestrator.core.text.search import Found, Match, Matcher, NotAll, Pattern, Spot
from orchestrator.core.text.secrets import MOST_KEY_LINES
from orchestrator.core.text.sweep_expressions import RETURN
from orchestrator.engine.caller import Caller
from orchestrator.engine.reads.large_texts import Known, LargeTexts, Wanted
from orchestrator.engine.reads.line_scan import grew
from orchestrator.engine.services import Services
from orchestrator.ports.workspace import FilePieces, Offsets

MOST_SWEPT = 1 << 32
"""A larger file is most likely full of holes, over which ripgrep does not go."""

MOST_PLACES = 20_000
"""Where something may match that is looked at; of more places the first."""

PIECE_BYTES = 1024 * 1024
"""Matched at once where it is all of a file."""

BATCH_BYTES = 4 * 1024 * 1024
"""That go to a worker together."""

NEAR_BYTES, MOST_NEAR = 2 * 1024, 64 * 1024
"""Around a place, read at first, and at most, to find where its line begins and ends."""

SEVERAL_BYTES = 16 * 1024
"""After a place, where a match may go over several lines."""

SEARCH_S = 20.0
"""How long all of a file is matched."""


class Place(NamedTuple):
    """Lines of a file; a long line may be cut on either side. What begins at `end` or later belongs to the next one."""

    begin: int
    raw: bytes
    end: int


class Spotted(NamedTuple):
    """A match: where its first line begins (or what of it was read) and its last ends, the lines, its place in them.

    Of a long line a part, and before and after that what is looked through for secrets as well.
    """

    begin: int
    end: int
    lines: tuple[str, ...]
    spot: Spot
    part: slice = slice(None)
    before: int = 0  # characters of what was read of the line that stand before the part


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
                raise BinaryFile(path, "it is not text, or was changed while it was searched")
            first = None if after else most
            spotted, total, partial_ = await self._spotted(pieces, path, version, known, matcher, first, invert=invert)
            numbers = await self._large.numbers(path, version, [one.begin for one in spotted], after, most)
            hits, hidden = list[Match](), NOTHING_HIDDEN
            for at, number in numbers:
                match, its = await self._shown(caller, path, version, number, spotted[at], context_lines, pieces, known)
                hits.append(match)
                hidden = Hidden({**hidden.lines, **its.lines}, (*hidden.found, *its.found))
            _check(path, version, pieces.stat_now().signature)
        finally:
            pieces.close()
        lines = known.total or 0
        best = max((one.spot.score for one in spotted), default=0.0) if matcher.kind == "fuzzy" else 0.0
        return Found(tuple(hits), total, lines, partial_, best), hidden

    async def _spotted(
        self,
        pieces: FilePieces,
        path: WorkspacePath,
        version: Signature,
        known: Known,
        matcher: Matcher,
        first: int | None,
        *,
        invert: bool,
    ) -> tuple[list[Spotted], int, bool]:
        """The matches, how many there are, and whether not all was looked at.

        Of very many only the `first` may come.
        """
        size = version.size
        offsets = None if invert or size >= MOST_SWEPT else await self._offsets(pieces, path, version, known, matcher)
        more = SEVERAL_BYTES if matcher.multiline else 0
        if offsets is None:
            places = _all_places(pieces, size, known.index.encoding, 2 * more)
        else:
            places = _places(pieces, size, offsets.at, more)
        plain = isinstance(matcher, Pattern) and matcher.plain and matcher.text.isascii()
        too_many = plain and offsets is not None and not offsets.all
        if too_many:
            places = islice(places, first)  # each is a match
        spotted, until = list[Spotted](), anyio.current_time() + SEARCH_S
        partial_ = offsets is not None and not offsets.all
        while batch := await to_thread.run_sync(_batch, places):
            work = partial(matched, batch, matcher, known.index.encoding, invert=invert)
            cheap = matcher.cheap and offsets is not None
            try:
                found, not_all = await (to_thread.run_sync(work) if cheap else self._s.workers.run(work))
            except TextTooCostly:
                return spotted, len(spotted), True
            spotted += found
            partial_ = partial_ or not_all
            if anyio.current_time() > until:
                return spotted, len(spotted), True
        if matcher.multiline:
            spotted = _apart(spotted)
        if too_many and self._s.sweep is not None:
            lines = await self._s.sweep.count(matcher.sweep or (), pieces)
            return spotted, max(lines or 0, len(spotted)), lines is None
        return spotted, len(spotted), partial_

    async def _offsets(
        self, pieces: FilePieces, path: WorkspacePath, version: Signature, known: Known, matcher: Matcher
    ) -> Offsets | None:
        """Where ripgrep says that something may match; None where it does not see the lines that we see."""
        index, sweep, expressions = known.index, self._s.sweep, matcher.sweep
        if sweep is None or expressions is None or index.encoding in ("utf-16-le", "utf-16-be"):
            return None
        if matcher.multiline:
            await self._large.count(path, version)
            if index.returns:
                return None
            expressions = tuple(one for one in expressions if one != RETURN)
        offsets = await sweep.offsets(expressions, pieces, multiline=matcher.multiline, most=MOST_PLACES)
        if offsets is not None and offsets.at and not matcher.multiline:
            await self._large.count(path, version)
            if index.lone:  # what it takes for one line may be many
                return None
        if offsets is not None and index.encoding in MARKS:
            return Offsets([0, *offsets.at], all=offsets.all)  # to it the first line begins with the mark
        return offsets

    async def _shown(
        self,
        caller: Caller,
        path: WorkspacePath,
        version: Signature,
        number: int,
        one: Spotted,
        context: int,
        pieces: FilePieces,
        known: Known,
    ) -> tuple[Match, Hidden]:
        """A match with what is around it, as the caller is shown it."""
        level = self._s.redaction.level(caller)
        first = max(1, number - context)
        rows = one.spot.rows
        most = number - first + rows + context
        around = 0 if level is None else MOST_KEY_LINES
        wanted = Wanted(first, most, most * MAX_LINE * 4, around=around)
        passage = await self._large.passage(path, version, wanted)
        lines = list(passage.lines)
        at = number - passage.first
        lines[at : at + rows] = one.lines  # a long one as a part around the match
        hidden = (await self._s.redaction.of_lines(caller, path, lines)).moved(passage.first - 1)
        begin, text = first - passage.first, one.lines[0]
        above = await to_thread.run_sync(_above, pieces, one.begin, known.index.encoding)
        if level is not None and (above or one.part != slice(None)):
            cut = bool(above) or one.part.start == NEAR
            its = await self._s.redaction.of_lines(caller, path, [above + text], begun=cut)
            rest = {line: shown for line, shown in hidden.lines.items() if line != number}
            if its.found:
                text = self._s.redaction.covered(caller, above + text, its)[len(above) :]
                hidden = Hidden({**hidden.lines, number: text}, hidden.found)
            elif number in hidden.lines:  # of a key that has lines above or below it
                text = COVER * len(text)
        else:
            rest = hidden.lines
        match = Match(
            number,
            "\n".join((text[one.part], *one.lines[1:])),
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
    for begin, raw, end in places:
        starts, lines = _lines(begin, raw, encoding)
        spots, at = list[Spot](), set[int]()
        try:
            for spot in matcher.spots(lines):
                spots.append(spot)
                at.update(range(spot.line, spot.line + spot.rows))
        except NotAll:
            partial_ = True
        if invert:
            spots = [Spot(line, 1, ()) for line in range(len(lines)) if line not in at]
        for spot in spots:
            if starts[spot.line] >= end:
                break
            last = spot.line + spot.rows
            found.append(_around(starts[spot.line], starts[last], lines[spot.line : last], spot))
    return found, partial_


def _around(begin: int, end: int, lines: Sequence[str], spot: Spot) -> Spotted:
    """A match with its lines; one that is long as a part around it."""
    if len(lines) != 1 or len(lines[0]) <= 4 * MAX_LINE:
        return Spotted(begin, end, tuple(lines), spot)
    first = max(0, (spot.spans[0][0] if spot.spans else 0) - MAX_LINE)
    size = min(len(lines[0]) - first, 4 * MAX_LINE)
    spans = tuple((a - first, min(b - first, size)) for a, b in spot.spans if a - first < size)
    lead = min(first, NEAR)
    text = lines[0][first - lead : first + size + NEAR]
    return Spotted(begin, end, (text,), spot._replace(spans=spans), slice(lead, lead + size), first)


def _above(pieces: FilePieces, at: int, encoding: Encoding) -> str:
    """Of a line that is read from an offset on the characters right before that; none where it begins there."""
    codec, wide = codec_of(encoding), encoding in ("utf-16-le", "utf-16-be")
    for most in (BEYOND_BYTES, NEAR * (2 if wide else 1)):  # most often it begins there
        begin = max(0, at - most)
        raw = pieces.read(begin, at - begin)
        text = raw[0 if wide else _character(raw, 0) :].decode(codec, "replace")
        if not text or text[-1] in "\r\n":
            return ""
    return text[max(text.rfind("\n"), text.rfind("\r")) + 1 :]


def _apart(spotted: list[Spotted]) -> list[Spotted]:
    """Each match once; what lies within an earlier one was found where that one's begin was not seen."""
    apart = list[Spotted]()
    for one in sorted(spotted, key=lambda one: (one.begin, -one.end)):
        if not apart or one.begin >= apart[-1].end:
            apart.append(one)
    return apart


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


def _batch(places: Iterator[Place]) -> list[Place]:
    """The next places."""
    batch, taken = list[Place](), 0
    for place in places:
        batch.append(place)
        taken += len(place.raw) + 100
        if taken >= BATCH_BYTES:
            break
    return batch


def _places(pieces: FilePieces, size: int, offsets: Sequence[int], more: int) -> Iterator[Place]:
    """The lines around offsets, each line once; with `more`, as many bytes before and twice as many after them."""
    done = 0
    for offset in offsets:
        if offset + more < done or offset >= size:
            continue
        begin, end = _line_around(pieces, size, max(0, offset - more), 3 * more)
        begin = begin if more else max(begin, done)
        yield Place(begin, pieces.read(begin, end - begin), end)
        done = end


def _line_around(pieces: FilePieces, size: int, offset: int, more: int) -> tuple[int, int]:
    """Where the line of an offset begins, and where the one so many bytes later ends; a long line is cut."""
    near = NEAR_BYTES
    while True:
        first = max(0, offset - near)
        raw = pieces.read(first, min(size - first, offset - first + more + near))
        here = offset - first
        begin = max(raw.rfind(b"\n", 0, here), raw.rfind(b"\r", 0, here)) + 1
        feed = raw.find(b"\n", here + more)
        end = feed + 1 if feed >= 0 else len(raw)
        whole = (begin > 0 or first == 0) and (feed >= 0 or first + len(raw) >= size)
        if whole or near >= MOST_NEAR:
            begin = begin if begin > 0 or first == 0 else _character(raw, max(0, here - near // 2))
            return first + begin, first + end
        near *= 8


def _character(raw: bytes, at: int) -> int:
    """Where a character of UTF-8 begins, at this byte or up to three later."""
    return next((n for n in range(at, min(at + 4, len(raw))) if raw[n] & 0xC0 != 0x80), at)


def _all_places(pieces: FilePieces, size: int, encoding: Encoding, more: int) -> Iterator[Place]:
    """All lines, piece by piece, each with bytes of the next; holes are left out, a line longer than a piece is cut."""
    at = 0
    while at < size:
        data = pieces.data_from(at)
        if data - at > PIECE_BYTES:  # zeros are no text
            at = min(size, data // PIECE_BYTES * PIECE_BYTES)
            continue
        raw = pieces.read(at, min(PIECE_BYTES + more, size - at))
        end = len(raw)
        if at + end < size:  # a line that ends just there may end in a pair of which half is read
            end = max(after_ends(raw, max(0, end - more - 1), encoding), default=max(1, end - more))
        yield Place(at, raw, at + end)
        at += end
