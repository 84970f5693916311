"""Unified diffs of changes: of those in the journal, of those that wait, of those that are only planned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from orchestrator.core.content import IntendedPath, LineHunk, PathChange
from orchestrator.core.decisions.costs import LARGE_LINES
from orchestrator.core.decisions.decision import Part
from orchestrator.core.decisions.rebase import EMPTY
from orchestrator.core.errors import TextTooCostly
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.text.diff import cut
from orchestrator.core.text.document_diff import diff_text
from orchestrator.core.text.encoding import Document, decode
from orchestrator.engine.contents import Contents
from orchestrator.ports.workers import Effort

SHOWN_DIFF_LINES = 120
"""`get_diff` shows the rest."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one path."""

    path: WorkspacePath
    before: Digest | None
    after: Digest | None
    hunks: tuple[LineHunk, ...] = ()
    moved_from: WorkspacePath | None = None
    binary: bool = False
    document: Document | None = None  # of `after`, where that is not kept yet


Shown = tuple[str | None, bool]
"""A diff, and whether it was cut; None for one created or binary file."""


class Diffs:
    """Builds diffs from kept contents."""

    def __init__(self, contents: Contents, effort: Effort) -> None:
        self._contents, self._effort = contents, effort

    async def between(self, path: WorkspacePath, old: Document, new: Document, *, gone: bool = False) -> Shown:
        """Of two documents; None, and cut, where comparing them takes too long. Large ones are compared apart."""
        return await self._compared(partial(diff_text, path, old, new, gone=gone), old, new)

    async def _compared(self, work: Callable[[], Shown], old: Document, new: Document) -> Shown:
        if old.line_count + new.line_count <= LARGE_LINES:
            return work()
        try:
            return await self._effort.run(work)
        except TextTooCostly:
            return None, True

    async def of_change(self, paths: Iterable[PathChange]) -> Shown:
        """Of a change that is on disk."""
        return await self._of(
            [
                Difference(
                    path=item.path,
                    before=item.before,
                    after=item.after,
                    hunks=item.hunks,
                    moved_from=item.moved_from,
                    binary=item.binary,
                )
                for item in paths
                if not item.directory
            ]
        )

    async def of_request(self, paths: Iterable[IntendedPath]) -> Shown:
        """Of a change that waits for a yes."""
        return await self._of(
            [
                Difference(
                    path=item.path,
                    before=item.before,
                    after=item.after,
                    moved_from=item.moved_from or item.renamed_from,
                )
                for item in paths
                if not item.directory
            ]
        )

    async def of_parts(self, parts: Iterable[Part]) -> Shown:
        """Of a change that is only planned."""
        return await self._of([_difference(part) for part in parts if not part.directory])

    async def of_part(self, part: Part, before: Digest | None) -> Shown:
        """Of one path of a plan; `before` is what its file holds now, wherever that stands."""
        text = await self._text(_difference(part), before)
        return cut(text, SHOWN_DIFF_LINES) if text is not None else (None, False)

    async def _of(self, items: Sequence[Difference]) -> Shown:
        """One diff of all of them, cut to 120 lines; None for one created or binary file."""
        sources = {item.path: item for item in items}
        left = {item.moved_from for item in items if item.moved_from is not None}
        touched = [item for item in items if item.path not in left or item.after is not None]
        texts: list[str] = []
        for item in touched:
            source = sources.get(item.moved_from) if item.moved_from is not None else item
            before = source.before if source is not None else None
            text = await self._text(item, before)
            if text is not None:
                texts.append(text)
            elif len(touched) > 1:
                kind = "binary" if item.binary else "new" if before is None else "changed"
                texts.append(f"{kind} file {item.path}\n")
            if sum(text.count("\n") for text in texts) > SHOWN_DIFF_LINES:
                break
        return cut("".join(texts), SHOWN_DIFF_LINES) if texts else (None, False)

    async def _text(self, item: Difference, before: Digest | None) -> str | None:
        """Where the file comes from, and how its lines change."""
        renamed = f"rename from {item.moved_from}\nrename to {item.path}\n" if item.moved_from is not None else None
        if before is None or before == item.after or item.binary:
            return renamed
        body, _ = await self._body(item, before)
        return f"{renamed or ''}{body}" if body is not None else renamed

    async def _body(self, item: Difference, before: Digest) -> Shown:
        old_data = await self._contents.get(before)
        old = await self._contents.text(before, old_data) if old_data is not None else None
        new = item.document if item.document is not None else await self._new(item.after)
        if old is None or new is None:
            return None, False
        work = partial(diff_text, item.path, old, new, gone=item.after is None, hunks=item.hunks)
        return work() if item.hunks else await self._compared(work, old, new)

    async def _new(self, after: Digest | None) -> Document | None:
        if after is None:
            return EMPTY
        data = await self._contents.get(after)
        return await self._contents.text(after, data) if data is not None else None


def _difference(part: Part) -> Difference:
    moved_from = part.moved_from or part.renamed_from
    document = part.document
    if document is None and part.data is not None:
        document = decode(part.data, written=part.encoding)
    return Difference(
        path=part.path,
        before=part.before,
        after=part.after,
        hunks=part.hunks,
        moved_from=moved_from,
        binary=part.binary,
        document=document,
    )
