"""Matches at places of a large file: what of its lines is read, what is near them, and each match once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from orchestrator.core.text.answer_space import MAX_LINE
from orchestrator.core.text.charsets import MARKS, Encoding, codec_of
from orchestrator.core.text.line_index import BEYOND_BYTES, after_ends, is_ended
from orchestrator.core.text.long_lines import NEAR
from orchestrator.core.text.search import Matcher, NotAll, Spot
from orchestrator.core.text.secrets import MOST_KEY_BYTES
from orchestrator.engine.reads.search_places import Place
from orchestrator.ports.workspace import FilePieces, Offsets


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


class Matched(NamedTuple):
    """The matches, whether not all was looked at, and where the last line ends that a match over several has."""

    spotted: list[Spotted]
    not_all: bool
    done: int


def matched(places: Sequence[Place], matcher: Matcher, encoding: Encoding, *, invert: bool, done: int = 0) -> Matched:
    """The matches at some places; in lines before `done` is one of an earlier place."""
    found, not_all = list[Spotted](), False
    for place in places:
        starts, lines = _lines(place.begin, place.raw, encoding)
        if matcher.multiline and not place.is_part:
            first = min(bisect_left(starts, done), len(lines))
            starts, lines = starts[first:], lines[first:]
        spots, at = list[Spot](), set[int]()
        try:
            for spot in matcher.spots(lines):
                sure = _sure(spot, place, lines[0], matcher) if place.is_part else spot
                if sure is not None and starts[sure.line] < place.end:
                    spots.append(sure)
                    at.update(range(sure.line, sure.line + sure.rows))
        except NotAll:
            not_all = True
        if spots and not place.is_part:
            done = starts[spots[-1].line + spots[-1].rows]
        is_hit = not (invert and place.is_part and at)
        if invert and is_hit:
            spots = [Spot(line, 1, ()) for line in range(len(lines)) if line not in at and starts[line] < place.end]
        for spot in spots:
            last = spot.line + spot.rows
            one = _around(starts[spot.line], starts[last], lines[spot.line : last], spot)
            found.append(one._replace(one_of_many=place.is_part, is_hit=is_hit))
    return Matched(found, not_all, done)


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
    spans = tuple((a - first, b - first) for a, b in spot.spans)  # those behind it, too
    return Spotted(begin, end, (lines[0][first : first + size],), spot._replace(spans=spans), first, is_part=True)


def near_match(pieces: FilePieces, one: Spotted, encoding: Encoding) -> tuple[bool, str, str]:
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


def apart(spotted: list[Spotted]) -> list[Spotted]:
    """Each match once; what lies within an earlier one was found where that one's begin was not seen."""
    apart = list[Spotted]()
    for one in sorted(spotted, key=lambda one: (one.begin, -one.end)):
        if not apart or one.begin >= apart[-1].end or one.one_of_many:
            apart.append(one)
    return apart


def uncovered(spotted: list[Spotted], offsets: Offsets) -> Offsets:
    """The places of what has lines that are in none of the matches, which are apart, or in one of fewer lines."""
    begins, missing = [one.begin for one in spotted], Offsets([], all=True, lines=[])
    for offset, lines in zip(offsets.at, offsets.lines, strict=True):
        at = bisect_right(begins, offset) - 1
        if lines and (at < 0 or spotted[at].end <= offset or spotted[at].spot.rows < lines):
            missing.at.append(offset)
            missing.lines.append(lines)
    return missing


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
