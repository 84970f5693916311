"""Which files match, and how often: each counted on its content, read through the confined open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

import anyio
import msgspec
from anyio import to_thread

from orchestrator.core.errors import TextTooCostly, plural
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.projections.registry import NOTHING, Known
from orchestrator.core.text.encoding import Document, decode
from orchestrator.core.text.search import TOO_COSTLY, Found, Matcher, search
from orchestrator.engine.caller import Caller
from orchestrator.engine.reads.search_page import Ranked
from orchestrator.engine.reads.search_sources import Source, Text
from orchestrator.ports.machine import Workers

LARGE_BYTES = 512 * 1024
"""Larger texts are searched in a worker."""

BATCH_BYTES = 4 * 1024 * 1024
"""Of contents that are read, and go to a worker, together."""

COSTLY_S = 20.0
"""How long files are searched in a way that may be costly; what is left then was not searched."""


class Counted(NamedTuple):
    """What was found in one content."""

    total: int = 0
    best: float = 0.0
    partial: bool = False
    reason: str | None = None


class Sweep(msgspec.Struct):
    """The files that match, and how many others there are."""

    files: list[Ranked] = []
    total: int = 0  # of matches
    searched: int = 0
    left_out: int = 0  # files that policy keeps out
    unusable: int = 0  # names that are no paths
    partial: bool = False  # not all was searched
    reasons: dict[WorkspacePath, str] = {}  # why not, where that is told

    def leaves_out(self, text: Text) -> None:
        """A content can't be read."""
        self.partial = True
        if text.reason is not None:
            self.reasons[text.path] = text.reason

    def add(self, path: WorkspacePath, counted: Counted) -> None:
        """A file was searched."""
        self.searched += 1
        self.total += counted.total
        self.partial = self.partial or counted.partial
        if counted.reason is not None:
            self.reasons[path] = counted.reason
        if counted.total:
            self.files.append(Ranked(path, counted.total, counted.best or 1.0))


async def sweep(
    source: Source,
    workers: Workers,
    caller: Caller,
    matcher: Matcher,
    allowed: list[WorkspacePath],
    large: Callable[[WorkspacePath], Awaitable[Found | None]],
    *,
    invert: bool,
) -> Sweep:
    """Count the matches of each file, of long ones and costly matchers in a worker; `large` searches the large ones."""
    rest = allowed if invert else await source.fitting(matcher, allowed)
    found, at = Sweep(searched=len(allowed) - len(rest)), 0
    until = anyio.current_time() + COSTLY_S
    while at < len(rest):
        texts = await source.texts(caller, rest[at:], BATCH_BYTES)
        at += len(texts)
        quick, slow = list[Text](), list[Text]()
        for text in texts:
            if text.large and (one := await large(text.path)) is not None:
                found.add(text.path, Counted(one.total, one.best, one.partial, one.reason))
            elif text.data is None:
                found.leaves_out(text)
            elif not invert and text.known is NOTHING and not matcher.maybe(text.data):
                found.add(text.path, Counted())
            else:
                (quick if matcher.cheap and len(text.data) <= LARGE_BYTES else slow).append(text)
        counts = await to_thread.run_sync(_counted, quick, matcher, invert) if quick else []
        try:
            counts += await workers.run(partial(_counted, slow, matcher, invert)) if slow else []
        except TextTooCostly:
            found.leaves_out(slow[0]._replace(reason=TOO_COSTLY))
            at = len(rest)
        for text, counted in zip((*quick, *slow), counts, strict=False):
            found.add(text.path, counted)
        if slow and anyio.current_time() > until and at < len(rest):
            found.leaves_out(
                Text(rest[at], None, reason=f"{plural(len(rest) - at, 'file')} from this one on: {TOO_COSTLY}")
            )
            at = len(rest)
    found.files.sort(key=lambda file: file.rank)
    return found


def _counted(texts: Sequence[Text], matcher: Matcher, invert: bool) -> list[Counted]:
    """What is found in each; nothing in what is no text."""
    found = [found_in(text.data or b"", text.known, matcher=matcher, invert=invert) for text in texts]
    return [Counted(one.total, one.best, one.partial, one.reason) if one is not None else Counted() for one in found]


def found_in(
    text: bytes | Document,
    known: Known = NOTHING,
    *,
    matcher: Matcher,
    context_lines: int = 0,
    invert: bool = False,
    max_hits: int = 0,
    after: int = 0,
) -> Found | None:
    """Search a text; None if the bytes are none."""
    document = decode(text, like=known.written or known.like) if isinstance(text, bytes) else text
    if document is None:
        return None
    return search(document.lines, matcher, context_lines=context_lines, invert=invert, max_hits=max_hits, beyond=after)
