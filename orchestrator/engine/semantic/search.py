"""search_content, also by meaning: the passages near a question and the places where its text stands, in one ranking.

The index only proposes: each hit is shown of the file as it is, through the gate, if it still has that content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

import anyio
import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.errors import Denied, EmbeddingFailed, ParameterInvalid, PathError
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.rank_fusion import fused
from orchestrator.core.text.chunks import Chunk
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.search import Found, Match, Pattern, search
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.names import Names
from orchestrator.engine.reads.search import Searcher
from orchestrator.engine.reads.search_page import Page, Ranked
from orchestrator.engine.reads.search_sources import SHOWN, SHOWN_OF_MANY, Present, Shown
from orchestrator.engine.semantic.indexer import SemanticIndexer, redacted
from orchestrator.engine.services import Services
from orchestrator.ports.semantic import Near, SemanticIndex

ANSWER_S = 20.0
"""For the question; the model may be at work on files."""

LEAST_NEAR = 50
"""Passages that are asked for, or three for each hit that is wanted."""

EXACT_FILES, EXACT_IN_FILE = 10, 5
"""Places where the text itself stands that are ranked."""

SHOWN_LINES = 8
"""Of one passage; its context says where it ends."""

_NOT_BY_MEANING = (
    *("max_edits", "multiline", "case_sensitive", "smart_case", "word", "invert", "count_only", "files_only"),
    *("semantic_context", "at", "cursor"),
)


class Place(NamedTuple):
    """A passage of a file, or a line where the text stands."""

    path: WorkspacePath
    chunk: Chunk


class SemanticSearcher:
    """Takes the mode `semantic`; the others are `Searcher`'s."""

    def __init__(
        self, services: Services, observer: Observer, names: Names, searcher: Searcher, indexer: SemanticIndexer
    ) -> None:
        self._s, self._searcher, self._indexer = services, searcher, indexer
        self._present = Present(services, observer, names)

    async def search_content(self, caller: Caller, call: Call, params: p.SearchContent) -> r.SearchResult:
        if params.mode != "semantic":
            return await self._searcher.search_content(caller, call, params)
        _refuse_others(params)
        start = self._s.paths.either(params.path)
        named: ContentAccess | None = None
        if await self._present.is_one(start):
            named = self._s.access.content(caller, call, start, SHOWN)
            (await self._present.shown(named))  # a person may be asked
            allowed, left_out = [start], 0
        else:
            await self._s.access.names(caller, call, start, directory=True)
            allowed, left_out, _ = await self._present.files(caller, start, params.globs)
        index = await self._indexer.settled()
        behind = self._indexer.behind
        held = self._indexer.holding(allowed)
        among = None if len(held) == self._indexer.held else held.keys()
        near = await self._near(index, params, among)
        by_meaning = {Place(held[one.digest], one.chunk): one for one in near if one.digest in held}
        exact = await self._exact(caller, start, named, params, list(by_meaning))
        places = fused(list(by_meaning), list(exact))
        page = Page(call.room.framed(), params, "semantic")
        of_file, stale = Counter[WorkspacePath](), 0
        for place in places:
            if page.left <= 0:
                break
            if params.max_per_file is not None and of_file[place.path] >= params.max_per_file:
                continue
            one = by_meaning.get(place)
            hit = await self._take(caller, page, place, exact.get(place), one.digest if one else None, params, named)
            if hit is None:
                stale += 1
                continue
            if not hit:
                break
            of_file[place.path] += 1
            score = one.score if one is not None else 1.0
            kind = "exact" if place in exact else "semantic"
            page.hits[-1] = msgspec.structs.replace(page.hits[-1], match_type=kind, score=score)
        event = page.event(start, total=len(places) - stale, searched=len(held), left_out=left_out)
        await self._s.notes.note_shown(caller, call, event)
        if behind:
            page.warnings.append(f"not all files are in the index yet: {self._indexer.health}")
        page.more, page.warnings = None, list(dict.fromkeys(page.warnings))  # no page by meaning follows another
        return page.answer(event, partial=behind or stale > 0, truncated=len(page.hits) < event.total)

    async def _near(
        self, index: SemanticIndex, params: p.SearchContent, among: Collection[Digest] | None
    ) -> list[Near]:
        """Raises EmbeddingFailed."""
        question = " ".join(redacted(params.pattern.split("\n")))
        with anyio.move_on_after(ANSWER_S):
            return await index.nearest(question, among, max(LEAST_NEAR, 3 * params.max_results))
        raise EmbeddingFailed(f"no answer in {ANSWER_S:g} s: {self._indexer.health}")

    async def _exact(
        self,
        caller: Caller,
        start: WorkspacePath,
        named: ContentAccess | None,
        params: p.SearchContent,
        near: list[Place],
    ) -> dict[Place, int]:
        """The lines where the text itself stands, each by the near passage that holds it or alone."""
        if "\n" in params.pattern or "\r" in params.pattern:
            return {}
        matcher, found = Pattern(params.pattern, case_sensitive=False), dict[Place, int]()
        if named is not None:
            paths = [start]
        else:
            swept = await self._searcher.sweep(caller, start, params.globs, matcher)
            paths = [file.path for file in swept.files[:EXACT_FILES]]
        for path in paths:
            access = named or self._s.access.content_of_many(caller, path, SHOWN_OF_MANY)
            text = await self._text(access) if access is not None else None
            if text is None:
                continue
            for hit in search(text[1].lines, matcher, context_lines=0, max_hits=EXACT_IN_FILE).hits:
                around = (one for one in near if one.path == path and one.chunk.start <= hit.line <= one.chunk.end)
                found.setdefault(next(around, Place(path, Chunk(hit.line, hit.line))), hit.line)
        return found

    async def _text(self, access: ContentAccess) -> tuple[Shown, Document] | None:
        """A file as it is; None where it is gone or no text in memory."""
        try:
            shown = await self._present.shown(access)
        except (PathError, Denied):
            return None
        if shown.data is None or shown.digest is None:
            return None
        document = await self._s.contents.text(shown.digest, shown.data)
        return (shown, document) if document is not None else None

    async def _take(  # of one hit all that decides how it is shown
        self,
        caller: Caller,
        page: Page,
        place: Place,
        line: int | None,
        digest: Digest | None,
        params: p.SearchContent,
        named: ContentAccess | None,
    ) -> bool | None:
        """Show one place, if there is room; None: the file is another by now, or is not shown."""
        path, chunk = place
        access = named or self._s.access.content_of_many(caller, path, SHOWN_OF_MANY)
        text = await self._text(access) if access is not None else None
        if text is None or (digest is not None and text[0].digest != digest):
            return None
        shown, document = text
        assert shown.digest is not None
        lines, first = document.lines, line or chunk.start
        last = min(chunk.end, first + SHOWN_LINES - 1, len(lines))
        if last < first:
            return None
        wider = chunk.name or chunk.end > last or chunk.start < first
        within = f"{f'{chunk.name}, ' if chunk.name else ''}lines {chunk.start}-{chunk.end}" if wider else None
        match = Match(
            line=first,
            text="\n".join(lines[first - 1 : last]),
            submatches=(),
            before=tuple(lines[max(0, first - 1 - params.context_lines) : first - 1]),
            after=tuple(lines[last : last + params.context_lines]),
            rows=last - first + 1,
            context=within,
        )
        hidden = await self._s.redaction.of(caller, path, shown.digest, document)
        found = self._s.redaction.matches(hidden, Found((match,), 1, len(lines)))
        before = len(page.hits)
        page.takes(Ranked(path, 1), shown, found, hidden, last=True)
        return len(page.hits) > before


def _refuse_others(params: p.SearchContent) -> None:
    """Raises ParameterInvalid for a parameter that says how a text is matched, or which page is wanted."""
    fields = {field.name: field.default for field in msgspec.structs.fields(p.SearchContent)}
    for name in _NOT_BY_MEANING:
        if getattr(params, name) != fields[name]:
            raise ParameterInvalid(name, "does not go with mode='semantic'")
