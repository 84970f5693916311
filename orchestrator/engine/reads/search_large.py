"""Searches files that are too large for memory: ripgrep says where something may match, and what is there is matched.

Without it, and for what it can't look for, all of the file is matched, piece by piece.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
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
from orchestrator.core.text.charsets import MARKS, Encoding
from orchestrator.core.text.long_lines import near
from orchestrator.core.text.regex import RegexPattern
from orchestrator.core.text.search import TOO_COSTLY, TOO_MANY, Found, Match, Matcher, Pattern
from orchestrator.core.text.secrets import MOST_KEY_LINES
from orchestrator.core.text.sweep_expressions import RETURN
from orchestrator.engine.caller import Caller
from orchestrator.engine.reads.large_texts import Known, LargeTexts, Wanted
from orchestrator.engine.reads.line_scan import grew
from orchestrator.engine.reads.search_matches import Spotted, apart, matched, near_match, uncovered
from orchestrator.engine.reads.search_places import LONGEST_LINE, PIECE_BYTES, Place, Places, Reach, batch
from orchestrator.engine.reads.search_sources import MOST_SWEPT
from orchestrator.engine.services import Services
from orchestrator.ports.workspace import FilePieces, Offsets

MOST_PLACES = 20_000
"""Where something may match that is looked at by itself."""

SEVERAL_BYTES = 48 * 1024
"""Beside a place, where a match may go over several lines; no passage like the longest text is longer."""

LONG_BYTES = 2 * 1024 * 1024
"""The same where the lines so near hold no match, or where no place is known."""

MANY_S = 0.9
"""How long a search of so many places may take before it stops behind the last of them."""

REST_S = 0.1
"""How long what is behind the last of them is matched in any case: some megabytes."""

IN_PARTS = (
    f"a line of over {LONGEST_LINE >> 20} MiB is matched in parts of {PIECE_BYTES >> 20} MiB: "
    "what goes over several of them may be missed"
)
TOO_LONG = f"a match that goes over more than {LONG_BYTES >> 20} MiB of lines may be missed"
MORE_PLACES = (
    f"it may match at more than {MOST_PLACES} places, of which the first were looked at: send more of the text"
)
NO_TIME = "there was no time to match all of it: send a pattern that is found at fewer places"
"""Why not all of a file was searched."""

NOWHERE = Offsets([], all=True)

SEARCH_S = 20.0
"""How long all of a file is matched."""


class _Spotted(NamedTuple):
    """The matches, how many there are, whether not all was looked at, and why not where that is told."""

    spotted: list[Spotted]
    total: int
    not_all: bool = False
    reason: str | None = None
    short: bool = False  # a match may go on in lines that were not read


_MatchAt = Callable[[Iterator[Place], float], Awaitable[_Spotted]]


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
            spotted, total, not_all, reason, _ = await self._spotted(file, matcher, first, invert=invert)
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
        reach = _reach(matcher, LONG_BYTES if offsets is None else SEVERAL_BYTES)
        there = Places(file.pieces, size, file.encoding, reach)
        places = there.all() if offsets is None else there.around(offsets.at)
        plain = isinstance(matcher, Pattern) and matcher.plain and matcher.text.isascii()
        too_many = plain and offsets is not None and not offsets.all
        if too_many:
            places = islice(places, first)  # each is a match
        match_at = partial(self._match_at, file, matcher, invert=invert, beside=offsets is None or not matcher.cheap)
        met = await match_at(places, SEARCH_S)
        if matcher.multiline:
            met = await self._over_lines(file, matcher, met, offsets, match_at)
        if too_many and self._s.sweep is not None:
            lines = await self._s.sweep.count(matcher.sweep or (), file.pieces)
            return met._replace(total=max(lines or 0, met.total), not_all=lines is None)
        if offsets is not None and not offsets.all:
            if matcher.multiline or met.not_all:
                return met._replace(not_all=True, reason=met.reason or MORE_PLACES)
            rest_s = max(REST_S, until - anyio.current_time())
            rest = await match_at(there.behind(offsets.at[-1]), rest_s)
            spotted = met.spotted + rest.spotted
            return _Spotted(spotted, len(spotted), rest.not_all, met.reason or rest.reason)
        return met

    async def _over_lines(
        self, file: _Opened, matcher: Matcher, met: _Spotted, offsets: Offsets | None, match_at: _MatchAt
    ) -> _Spotted:
        """Each match over several lines once, the long ones too, and whether one may be missed."""
        spotted, short = apart(met.spotted), met.short
        if isinstance(matcher, RegexPattern) and matcher.most_breaks is None and offsets is not None:
            missing = uncovered(spotted, offsets) if offsets.all and not met.not_all else NOWHERE
            longer = Places(file.pieces, file.version.size, file.encoding, _reach(matcher, LONG_BYTES))
            found = await match_at(longer.around(missing.at), SEARCH_S)
            spotted = apart(spotted + found.spotted)
            short = found.short and bool(uncovered(spotted, missing).at)
            met = met._replace(not_all=met.not_all or found.not_all, reason=met.reason or found.reason)
        reason = met.reason or (TOO_LONG if short else None)
        return met._replace(spotted=spotted, total=len(spotted), reason=reason)

    async def _match_at(
        self, file: _Opened, matcher: Matcher, places: Iterator[Place], most_s: float, *, invert: bool, beside: bool
    ) -> _Spotted:
        """The matches at these places, as far as there is time; `beside`: in a worker."""
        spotted, partial_, until = list[Spotted](), False, anyio.current_time() + most_s
        reason: str | None = None
        short, done = False, 0
        whole = matcher.kind == "regex" or matcher.multiline
        while some := await to_thread.run_sync(batch, places):
            reason = IN_PARTS if whole and any(place.is_part for place in some) else reason
            if anyio.current_time() > until:
                return _Spotted(spotted, len(spotted), not_all=True, reason=reason or NO_TIME)
            short = short or any(place.short for place in some)
            work = partial(matched, some, matcher, file.encoding, invert=invert, done=done)
            try:
                found, not_all, done = await (self._s.workers.run(work) if beside else to_thread.run_sync(work))
            except TextTooCostly:
                return _Spotted(spotted, len(spotted), not_all=True, reason=TOO_COSTLY)
            spotted += found
            partial_, reason = partial_ or not_all, reason or (TOO_MANY if not_all else None)
        return _Spotted(spotted, len(spotted), partial_, reason, short)

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
            lines = [0, *offsets.lines] if matcher.multiline else []
            return Offsets([0, *offsets.at], all=offsets.all, lines=lines)  # to it the first line begins with the mark
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
        above, before, after = await to_thread.run_sync(near_match, file.pieces, one, file.encoding)
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


def _reach(matcher: Matcher, most_bytes: int) -> Reach:
    if isinstance(matcher, RegexPattern):
        return Reach(matcher.most_breaks, most_bytes)
    return Reach(None, SEVERAL_BYTES, SEVERAL_BYTES) if matcher.multiline else Reach()


def _check(path: WorkspacePath, version: Signature, now: Signature) -> None:
    """A file may only grow. Raises ChangedWhileRead."""
    if now != version and not grew(version, now):
        raise ChangedWhileRead(path, "it was changed while it was searched")
