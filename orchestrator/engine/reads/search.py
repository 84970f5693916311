"""search_content: a text, a regular expression or something like a text, in one file or in a tree."""

from __future__ import annotations

import re
from functools import partial

import anyio
import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.errors import (
    BinaryFile,
    ChangedWhileRead,
    Denied,
    ParameterInvalid,
    PathError,
    TextTooCostly,
    VersionNotKept,
    plural,
)
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.shown_text import NOTHING_HIDDEN, Hidden
from orchestrator.core.text.fuzzy import FuzzyPattern
from orchestrator.core.text.regex import RegexPattern, looks_like_regex
from orchestrator.core.text.search import TOO_COSTLY, Found, Match, Matcher, Pattern
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.names import Names
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.large_texts import LargeTexts
from orchestrator.engine.reads.search_large import LargeSearch
from orchestrator.engine.reads.search_page import Page, Ranked
from orchestrator.engine.reads.search_sources import (
    CHANGED,
    MOST_SWEPT,
    SHOWN,
    SHOWN_OF_MANY,
    Past,
    Present,
    Shown,
    Source,
)
from orchestrator.engine.reads.search_sweep import LARGE_BYTES, Sweep, found_in, sweep
from orchestrator.engine.services import Services

OUTLINES_S = 1.0
"""How long one answer waits for outlines; hits of which none came in time name no symbol."""

MOST_OUTLINED = 2 * 1024 * 1024
"""Bytes of a file whose symbols are named."""

MOST_IN_SECRETS = 20
"""Matches that are passed over where a text is to be found outside of secrets."""

HUGE_NO_TEXT = "it is no text, or holds a hole, so nothing of it was searched: globs=[{glob}] leaves it out"
"""Of a file so large that it is told, since somebody may have meant it to be text."""

LESS_COSTLY = (
    "Send a simpler pattern: fewer or smaller counts than {0,900}, no .* or other count before the text that is meant; "
    "or that text alone with mode='exact'. With mode='fuzzy' send a longer text or fewer max_edits."
)
"""What helps a search that took too long."""

_ESCAPES = re.compile(r"\\(?:[pP]\{[^}]*\}|.)", re.DOTALL)


class Searcher:
    """Finds lines, shows them, and notes which lines of which version were shown."""

    def __init__(self, services: Services, observer: Observer, names: Names, large: LargeTexts) -> None:
        self._s, self._present = services, Present(services, observer, names)
        self._large = LargeSearch(services, large)

    async def search_content(self, caller: Caller, call: Call, params: p.SearchContent) -> r.SearchResult:
        matcher = matcher_of(params)
        start, page = self._s.paths.either(params.path), Page(call.room.framed(), params, matcher.kind)
        source: Source = self._present
        if params.at is not None:
            at = self._s.past.position(params.at, parameter="at", least=1)
            source = Past(self._s, at)
            page.warnings += self._s.past.within_first_scan(at)
        self._s.access.refuse_hidden(caller, start)
        if await source.is_one(start):
            access = self._s.access.content(caller, call, start, SHOWN)
            swept = await self._one(source, access, matcher, params, page)
        else:
            await self._s.access.names(caller, call, start, directory=True)
            swept = await self.sweep(caller, start, params.globs, matcher, source=source, invert=params.invert)
            if swept.unusable:
                page.warn(
                    f"{plural(swept.unusable, 'name')} not searched, against the name rule: list_files shows them, "
                    "only a person can rename them"
                )
            page.tells(swept.reasons)
            if not (params.count_only or params.files_only):
                await self._fill(source, caller, matcher, params, page, swept)
        if params.files_only and not params.count_only:
            page.takes_files(swept.files)
        event = page.event(start, total=swept.total, searched=swept.searched, left_out=swept.left_out)
        await self._s.notes.note_shown(caller, call, event)
        hint = None if swept.total else _instead(params)
        return page.answer(event, partial=swept.partial, truncated=page.more is not None, hint=hint)

    async def first_line(self, caller: Caller, call: Call, path: str, pattern: str) -> int | None:
        """Where a text occurs first in what a read of a file shows, outside of secrets; none of it counts as shown."""
        params = p.SearchContent(pattern=pattern, path=path, context_lines=0, max_results=MOST_IN_SECRETS)
        matcher, access = matcher_of(params), self._s.access.content(caller, call, self._s.paths.file(path))
        page = Page(call.room.framed(), params, matcher.kind)
        _, found, _ = await self._matches(self._present, access, matcher, params, page)
        return next((hit.line for hit in found.hits if pattern in hit.text), None)

    async def sweep(  # a search of a tree, by its parts
        self,
        caller: Caller,
        start: WorkspacePath,
        globs: tuple[str, ...],
        matcher: Matcher,
        *,
        source: Source | None = None,
        invert: bool = False,
    ) -> Sweep:
        """Which files below a directory match, of those that the caller may search."""
        source = source or self._present
        allowed, left_out, unusable = await source.files(caller, start, globs)
        large = partial(self._count_large, source, caller, matcher, invert)
        swept = await sweep(source, self._s.workers, caller, matcher, allowed, large, invert=invert)
        swept.left_out, swept.unusable = left_out, unusable
        return swept

    async def _one(
        self, source: Source, access: ContentAccess, matcher: Matcher, params: p.SearchContent, page: Page
    ) -> Sweep:
        """Search the one file that was named."""
        try:
            shown, found, hidden = await self._matches(source, access, matcher, params, page)
        except TextTooCostly as error:
            error.hint = LESS_COSTLY
            raise
        file = Ranked(access.path, found.total, found.best or 1.0)
        page.tells({access.path: found.reason} if found.reason is not None else {})
        if not (params.count_only or params.files_only):
            page.takes(file, shown, found, hidden, last=True)
        return Sweep([file] if found.total else [], found.total, 1, partial=found.partial)

    async def _fill(
        self,
        source: Source,
        caller: Caller,
        matcher: Matcher,
        params: p.SearchContent,
        page: Page,
        swept: Sweep,
    ) -> None:
        """Show the hits of a tree from the cursor on, as many as go into the answer."""
        files = [file for file in swept.files if not page.cursor.path or file.rank >= page.cursor.rank]
        for file in files:
            access = self._s.access.content_of_many(caller, file.path, SHOWN_OF_MANY)
            if access is None:
                continue  # policy was changed meanwhile
            try:
                shown, found, hidden = await self._matches(source, access, matcher, params, page)
            except (PathError, VersionNotKept, Denied):
                continue  # it is gone by now, or no text
            except TextTooCostly:
                swept.partial = True
                page.tells({file.path: TOO_COSTLY})
                continue
            swept.total += found.total - file.total  # of what is there now
            if not page.takes(file, shown, found, hidden, last=file is files[-1]):
                break

    async def _count_large(
        self, source: Source, caller: Caller, matcher: Matcher, invert: bool, path: WorkspacePath
    ) -> Found | None:
        """How often a large file matches; None if it can't be searched."""
        access = self._s.access.content_of_many(caller, path, SHOWN_OF_MANY)
        try:
            signature = (await source.shown(access)).signature if access is not None else None
        except PathError:
            return None
        if signature is None:
            return None
        try:
            return (await self._large.search(caller, path, signature, matcher, invert=invert))[0]
        except BinaryFile:
            reason = (
                HUGE_NO_TEXT.format(glob=quoted("!" + path.rpartition("/")[2]))
                if signature.size >= MOST_SWEPT
                else None
            )
            return Found((), 0, 0, reason=reason)  # as what is no text in memory
        except ChangedWhileRead:
            return Found((), 0, 0, partial=True, reason=CHANGED)
        except PathError:
            return None

    async def _matches(
        self, source: Source, access: ContentAccess, matcher: Matcher, params: p.SearchContent, page: Page
    ) -> tuple[Shown, Found, Hidden]:
        """The version that is shown, its first matches beyond the cursor, and what of it is hidden.

        Raises the PathError family.
        """
        path = access.path
        shown = await source.shown(access)
        if shown.data is None or shown.digest is None:
            if shown.signature is None:
                raise ChangedWhileRead(path, "another program writes to it")
            after, most, context = page.after(path), page.left + 1, params.context_lines
            search = partial(self._large.search, access.caller, path, shown.signature, matcher, invert=params.invert)
            return shown, *await search(after=after, most=most, context_lines=context)
        wanted = partial(
            found_in,
            matcher=matcher,
            context_lines=params.context_lines,
            invert=params.invert,
            max_hits=page.left + 1,
            after=page.after(path),
        )
        if len(shown.data) > LARGE_BYTES or not matcher.cheap:
            found = await self._s.workers.run(partial(wanted, shown.data, self._s.state.encodings.of(shown.digest)))
        else:
            document = await self._s.contents.text(shown.digest, shown.data)
            found = wanted(document) if document is not None else None
        if found is None:
            raise BinaryFile(path, "it is not text")
        hidden = NOTHING_HIDDEN
        document = await self._s.contents.text(shown.digest, shown.data) if found.hits else None
        if document is not None:
            hidden = await self._s.redaction.of(access.caller, path, shown.digest, document)
        found = self._s.redaction.matches(hidden, found)
        if params.semantic_context and found.hits:
            found = msgspec.structs.replace(found, hits=await self._within(path, shown, found.hits, page))
        return shown, found, hidden

    async def _within(
        self, path: WorkspacePath, shown: Shown, hits: tuple[Match, ...], page: Page
    ) -> tuple[Match, ...]:
        """The hits with the symbols around them, as far as there is time."""
        outline, began = None, anyio.current_time()
        if shown.data is None or shown.digest is None:
            return hits
        if len(shown.data) <= MOST_OUTLINED and page.outlining_s < OUTLINES_S:
            with anyio.move_on_after(OUTLINES_S - page.outlining_s):
                outline = await self._s.parser.outline(path, shown.digest, shown.data)
        page.outlining_s += anyio.current_time() - began
        if outline is None:
            return hits
        around = (outline.enclosing(hit.line, hit.last) for hit in hits)
        names = [" > ".join(f"{symbol.kind} {symbol.name}" for symbol in symbols) for symbols in around]
        return tuple(msgspec.structs.replace(hit, context=name or None) for hit, name in zip(hits, names, strict=True))


def matcher_of(params: p.SearchContent) -> Matcher:
    """How the parameters want to match. Raises ParameterInvalid."""
    text, mode, case_sensitive = params.pattern, params.mode, params.case_sensitive
    if params.smart_case:
        case_sensitive = any(map(str.isupper, _ESCAPES.sub("", text) if mode == "regex" else text))
    only = {"multiline": "regex", "max_edits": "fuzzy"}
    for name, its in only.items():
        if getattr(params, name) and mode != its:
            raise ParameterInvalid(name, f"goes with mode={its!r}, not with {mode!r}")
    if mode == "regex":
        return RegexPattern(text, case_sensitive=case_sensitive, word=params.word, multiline=params.multiline)
    if mode == "fuzzy":
        if params.word or params.invert:
            raise ParameterInvalid("word" if params.word else "invert", "does not go with mode='fuzzy'")
        return FuzzyPattern(text, max_edits=params.max_edits, case_sensitive=case_sensitive)
    return Pattern(text, case_sensitive=case_sensitive, word=params.word)


def _instead(params: p.SearchContent) -> str | None:
    """What to send where a text that was taken as it is written was probably meant as an expression."""
    if params.mode != "exact" or params.invert or not looks_like_regex(params.pattern):
        return None
    path = "" if params.path == "." else f", path={params.path!r}"
    return (
        "The pattern was taken as plain text. It looks like a regular expression; for that send "
        f"search_content(pattern={params.pattern!r}{path}, mode='regex')"
    )
