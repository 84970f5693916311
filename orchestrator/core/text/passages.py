"""Where a passage of whole lines stands: exactly, equal but for blanks, or by likeness, and never a guess."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from rapidfuzz.distance import Indel

from orchestrator.core.errors import SearchAmbiguous, SearchNotFound, shown_lines
from orchestrator.core.text.carrying import carried
from orchestrator.core.text.encoding import Edit
from orchestrator.core.text.fuzzy import MOST_BLANK, Candidates, Text, but_for_blanks, likely, text_of
from orchestrator.core.text.nearest import differences, far, near_of, nearest
from orchestrator.core.text.pairing import COMPARED_CHARS, Pairing, squeezed
from orchestrator.core.text.sameness import same, same_shape, stands_there

BLANKS = 0.1
"""What blanks count for in the score of a place that differs in nothing else."""


class Likeness(msgspec.Struct, frozen=True, kw_only=True):
    """How like a place must be to be taken, 0.0–1.0, and by how much liker than any other.

    A place that differs in blanks only scores at least 0.9: there they count a tenth, elsewhere nothing. What may
    differ besides, however like it is, `sameness` says.
    """

    min_score: float = 0.9
    min_margin: float = 0.05


class Match(msgspec.Struct, frozen=True):
    """A place: which lines of the passage stand at which of the text, and how."""

    place: Pairing
    score: float
    how: Literal["exact", "blanks", "like"]

    @property
    def start(self) -> int:
        """0-based."""
        return self.place.start

    @property
    def stop(self) -> int:
        return self.place.stop

    def edits(self, lines: Sequence[str], passage: Sequence[str], new: Sequence[str]) -> list[Edit]:
        """What passage → new does, done here. Raises NotCarried, never for an exact match."""
        return carried(lines, passage, new, self.place)


USUAL: Final = Likeness()


def find_passage(
    lines: Sequence[str],
    passage: Sequence[str],
    *,
    near: int | None = None,
    anchor: str | None = None,
    lenient: bool = True,
    likeness: Likeness = USUAL,
) -> Match:
    """The one place of a passage.

    `near`: the 0-based line at which it is said to stand; it is taken if it stands there exactly. `anchor`: a
    line, or part of one, that stands above it or heads it; only what stands from there on counts, and of
    several exact places the first below an anchor that stands once. `lenient`: also by likeness, as `find_alike`.
    Raises SearchNotFound (`details`: `nearest`) and SearchAmbiguous (`details`: 1-based `lines`); ValueError
    for an empty passage. Cost: O(len(lines)), and that of `likely`.
    """
    if not passage:
        raise ValueError("an empty passage stands everywhere")
    wanted = tuple(passage)
    if near is not None and anchor is None and near >= 0 and tuple(lines[near : near + len(wanted)]) == wanted:
        return _exactly(near, len(wanted))
    first, once = _anchored(lines, anchor) if anchor is not None else (0, False)
    found = [at for at in _exact(lines, wanted) if at >= first]
    if len(found) == 1 or (found and once):
        return _exactly(found[0], len(wanted))
    if found:
        raise ambiguous(found, "the passage", len(wanted))
    if lenient:
        return find_alike(lines, wanted, likeness, first=first)
    raise not_found(lines, wanted, "the passage")


def find_alike(
    lines: Sequence[str],
    passage: Sequence[str],
    likeness: Likeness = USUAL,
    *,
    first: int = 0,
    name: str = "the passage",
) -> Match:
    """The one place from 0-based `first` on where a passage stands but for blanks, else the one most like it.

    By likeness only where the score is high enough, no other place comes near it, and all lines say the same
    (`stands_there`). Raises as `find_passage`; `name` is what the messages call the passage.
    """
    text = text_of(lines)
    short = tuple(map(squeezed, passage))
    blank = [at for at in but_for_blanks(text, short) if at >= first]
    if len(blank) < MOST_BLANK:
        blank = [at for at in blank if all(map(same, passage, lines[at : at + len(passage)]))]
        blank = [at for at in blank if same_shape(passage, lines, tuple((i, at + i) for i in range(len(passage))))]
    if len(blank) > 1:
        raise ambiguous(blank, f"{name}, blanks left aside,", len(short))
    if blank:
        pairs = tuple((i, blank[0] + i) for i in range(len(short)))
        return Match(Pairing(pairs, 1.0), _closeness(lines, passage, blank[0]), "blanks")
    floor = likeness.min_score - likeness.min_margin
    candidates = likely(text, short, floor=floor)
    places = [place for place in candidates.places if place.start >= first]
    enough = (place for place in places if place.score >= likeness.min_score)
    best = next((place for place in enough if stands_there(passage, lines, place.pairs)), None)
    if best is None:
        raise not_found(lines, passage, name, seen=(text, candidates))
    rivals = [place for place in places if best.score - place.score < likeness.min_margin]
    rivals = [place for place in rivals if not _set_apart(text, lines, passage, best, place)]
    if rivals:
        raise ambiguous([best.start, *(place.start for place in rivals)], f"{name}, which is not there as it is,", 0)
    if candidates.missed > best.score - likeness.min_margin + 1e-9:
        raise not_found(lines, passage, name, seen=(text, candidates))
    return Match(best, best.score, "like")


def not_found(
    lines: Sequence[str], passage: Sequence[str], name: str, *, seen: tuple[Text, Candidates] | None = None
) -> SearchNotFound:
    """The refusal, with the nearest places and what is other there."""
    if seen is None:
        near = nearest(lines, passage)
    else:
        text, candidates = seen
        near = near_of(candidates.places) or far(text, tuple(map(squeezed, passage)))
    error = SearchNotFound(f"{name} does not stand in the file.", details={"nearest": near})
    error.differences = tuple(differences(lines, passage, place) for place in near)
    return error


def ambiguous(found: Sequence[int], name: str, length: int) -> SearchAmbiguous:
    """The refusal where several places would do; `length` 0: they are like it, not equal."""
    lines = sorted(at + 1 for at in found)
    how = "stands" if length else "is about equally like what stands"
    times = f"{len(lines)} times in the file: lines" if length else "at lines"
    return SearchAmbiguous(f"{name} {how} {times} {shown_lines(lines)}.", details={"count": len(lines), "lines": lines})


def _set_apart(text: Text, lines: Sequence[str], passage: Sequence[str], best: Pairing, rival: Pairing) -> bool:
    """Whether the rival is the best place itself, or lacks what a line says that the best place has exactly."""
    if set(rival.pairs) <= set(best.pairs):
        return True
    there = dict(rival.pairs)
    return any(
        i in there and squeezed(passage[i]) == text.lines[j] and not same(passage[i], lines[there[i]])
        for i, j in best.pairs
    )


def _closeness(lines: Sequence[str], passage: Sequence[str], at: int) -> float:
    """The mean likeness of lines that differ in blanks only, 0.9–1.0: blanks count a tenth."""
    pairs = zip(passage, lines[at : at + len(passage)], strict=True)
    total = sum(Indel.normalized_similarity(a[:COMPARED_CHARS], b[:COMPARED_CHARS]) for a, b in pairs)
    return 1 - BLANKS * (1 - total / len(passage))


def _exactly(at: int, length: int) -> Match:
    return Match(Pairing(tuple((i, at + i) for i in range(length)), 1.0), 1.0, "exact")


def _exact(lines: Sequence[str], passage: tuple[str, ...]) -> list[int]:
    probe = max(range(len(passage)), key=lambda at: len(passage[at]))
    starts = (at - probe for at, line in enumerate(lines) if line == passage[probe] and at >= probe)
    return [at for at in starts if tuple(lines[at : at + len(passage)]) == passage]


def _anchored(lines: Sequence[str], anchor: str) -> tuple[int, bool]:
    """The first line with an anchor, and whether it is the only one. Raises SearchNotFound."""
    wanted = squeezed(anchor)
    short = [squeezed(line) for line in lines]
    found = [at for at, line in enumerate(short) if line == wanted]
    found = found or [at for at, line in enumerate(short) if wanted and wanted in line]
    if not found:
        raise not_found(lines, (anchor,), "the anchor")
    return found[0], len(found) == 1
