"""Where a passage stands that is not quoted exactly: equal but for blanks, or nearly equal.

Candidates are found first, by the rarest pieces and the longest lines; only those are scored. So a
refusal costs what a landing costs, and a file of lines all alike no more than any other.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rapidfuzz import process
from rapidfuzz.distance import Indel

from orchestrator.core.text.pairing import COMPARED_CHARS, Pairing, pair, squeezed, weight

PROBE_LEAST = 0.7
"""How like it a line must be to be found by a line of the passage."""

MOST_BLANK = 20
"""Places equal but for blanks that are looked for."""

_MOST_PROBES = 100  # a passage of some 300 lines
_FEW_PROBES = 5
_PROBED_CHARS = 50_000_000  # of the text, times probes: some 150 ms
_MOST_STANDINGS = 400
"""Of one probe; a line that stands more often tells nothing, and the search is not sure then."""
_MOST_KINDS = 400
_SCORED_CELLS = 30_000
_MOST_PLACES = 40
_CODES = range(0x10000, 0x110000)


class Text(msgspec.Struct, frozen=True):
    """Lines made ready for looking: squeezed, where each stands, and one character for each."""

    lines: tuple[str, ...]
    standing: dict[str, list[int]]
    codes: dict[str, str]
    coded: str


class Candidates(msgspec.Struct, frozen=True):
    """Places that were scored, best first. No other place scores more than `missed`."""

    places: tuple[Pairing, ...]
    missed: float


def text_of(lines: Sequence[str]) -> Text:
    """Make lines ready. Cost: O(characters), about 20 ms for 20,000 lines."""
    short = tuple(map(squeezed, lines))
    standing: dict[str, list[int]] = {}
    for at, line in enumerate(short):
        standing.setdefault(line, []).append(at)
    codes = dict(zip(standing, map(chr, _CODES), strict=False))  # lines beyond a million kinds are not found so
    return Text(short, standing, codes, "".join(codes.get(line, "\0") for line in short))


def but_for_blanks(text: Text, passage: Sequence[str], *, most: int = MOST_BLANK) -> list[int]:
    """Where a squeezed passage stands line for line, 0-based, ascending; `most` at most."""
    codes = [text.codes.get(line) for line in passage]
    if not any(passage) or None in codes:
        return []
    wanted = "".join(code for code in codes if code)
    found: list[int] = []
    at = -1
    while len(found) < most and (at := text.coded.find(wanted, at + 1)) >= 0:
        found.append(at)
    return found


def likely(text: Text, passage: Sequence[str], *, floor: float = 0.85, least: float = PROBE_LEAST) -> Candidates:
    """The places most like a squeezed passage, whatever their score, best first; of equal ones the upper first.

    The longest lines are looked for everywhere, so many that a place where none of them is found, `least`
    alike, can't score over `floor`; only of a very long passage, or one of very common lines, can more be
    missed. Cost: O(lines) for each line that is looked for, about 1 ms for 20,000.
    """
    total = sum(map(weight, passage))
    votes: dict[int, float] = {}
    keys = list(text.standing)
    short = [key[:COMPARED_CHARS] for key in keys]
    most = min(_MOST_PROBES, max(_FEW_PROBES, _PROBED_CHARS // (sum(map(len, short)) + 1)))
    probes, probed = _probes(passage, min(total, (1 - floor) / (1 - least) * total), most)
    for probe in probes:
        own = weight(passage[probe])
        common = False
        likest = process.extract(
            passage[probe][:COMPARED_CHARS],
            short,
            scorer=Indel.normalized_similarity,
            score_cutoff=least,
            limit=_MOST_KINDS,
        )
        for _, like, at in likest:
            standings = text.standing[keys[at]]
            common = common or len(standings) > _MOST_STANDINGS
            for line in standings[:_MOST_STANDINGS]:
                votes[line - probe] = votes.get(line - probe, 0.0) + like * own
        if common or len(likest) == _MOST_KINDS:
            probed -= own
    slack = min(8, 2 + len(passage) // 4) if len(passage) > 1 else 0
    room = max(4, min(_MOST_PLACES, _SCORED_CELLS // (len(passage) * (2 * slack + 1) or 1)))
    ranked = sorted(votes, key=lambda at: (-votes[at], at))
    missed = 1 - probed / (total or 1) * (1 - least)
    if len(ranked) > room:
        missed = max(missed, (votes[ranked[room]] + total - probed) / total)
    # without slack too, or a place would hide the like of it next door
    tried = [pair(passage, text.lines, at, by) for at in ranked[:room] for by in {0, slack}]
    found = {place.pairs: place for place in tried if place is not None}
    places = sorted(found.values(), key=lambda place: (-place.score, place.start))
    return Candidates(tuple(places), min(missed, 1.0))


def _probes(passage: Sequence[str], wanted: float, most: int) -> tuple[list[int], int]:
    """The longest lines of a passage that weigh so much together, and what they weigh."""
    probes: list[int] = []
    probed = 0
    for at in sorted((at for at, line in enumerate(passage) if line), key=lambda at: -len(passage[at])):
        if probed >= wanted or len(probes) == most:
            break
        probes.append(at)
        probed += weight(passage[at])
    if probed < wanted:  # not to be sure of; then a few are enough to say what is near
        probes = probes[:_FEW_PROBES]
        probed = sum(weight(passage[at]) for at in probes)
    return probes, probed
