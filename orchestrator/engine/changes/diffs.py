"""Unified diffs of changes: of those in the journal, of those that wait, of those that are only planned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from orchestrator.core.change import PathChange
from orchestrator.core.decisions.costs import LARGE_LINES
from orchestrator.core.decisions.decision import NewContent
from orchestrator.core.errors import TextTooCostly
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.text.diff import cut
from orchestrator.core.text.document_diff import diff_text
from orchestrator.core.text.encoding import EMPTY, Document, decode
from orchestrator.engine.contents import Contents
from orchestrator.ports.workers import Effort

SHOWN_DIFF_LINES = 120
"""`get_diff` shows the rest."""


NOTHING: Mapping[Digest, NewContent] = {}

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

    async def of(self, paths: Iterable[PathChange], contents: Mapping[Digest, NewContent] = NOTHING) -> Shown:
        """One diff of a change, cut to 120 lines; None for one created or binary file.

        `contents`: of a change that is only planned, what is not kept yet.
        """
        items = [item for item in paths if not item.directory]
        sources = {item.path: item for item in items}
        left = {item.moved_from for item in items if item.moved_from is not None}
        touched = [item for item in items if item.path not in left or item.after is not None]
        texts: list[str] = []
        for item in touched:
            source = sources.get(item.moved_from) if item.moved_from is not None else item
            before = source.before if source is not None else None
            text = await self._text(item, before, contents)
            if text is not None:
                texts.append(text)
            elif len(touched) > 1:
                kind = "binary" if item.binary else "new" if before is None else "changed"
                texts.append(f"{kind} file {item.path}\n")
            if sum(text.count("\n") for text in texts) > SHOWN_DIFF_LINES:
                break
        return cut("".join(texts), SHOWN_DIFF_LINES) if texts else (None, False)

    async def of_one(
        self, item: PathChange, before: Digest | None, contents: Mapping[Digest, NewContent]
    ) -> str | None:
        """Of one path of a plan; `before` is what its file holds now, wherever that stands."""
        text = await self._text(item, before, contents)
        return cut(text, SHOWN_DIFF_LINES)[0] if text is not None else None

    async def _text(self, item: PathChange, before: Digest | None, contents: Mapping[Digest, NewContent]) -> str | None:
        """Where the file comes from, and how its lines change."""
        renamed = f"rename from {item.moved_from}\nrename to {item.path}\n" if item.moved_from is not None else None
        if before is None or before == item.after or item.binary:
            return renamed
        body, _ = await self._body(item, before, contents)
        return f"{renamed or ''}{body}" if body is not None else renamed

    async def _body(self, item: PathChange, before: Digest, contents: Mapping[Digest, NewContent]) -> Shown:
        old_data = await self._contents.get(before)
        old = await self._contents.text(before, old_data) if old_data is not None else None
        new = await self._new(item, contents)
        if old is None or new is None:
            return None, False
        work = partial(diff_text, item.path, old, new, gone=item.after is None, hunks=item.hunks)
        return work() if item.hunks else await self._compared(work, old, new)

    async def _new(self, item: PathChange, contents: Mapping[Digest, NewContent]) -> Document | None:
        if item.after is None:
            return EMPTY
        if (planned := contents.get(item.after)) is not None:
            return planned.document or decode(planned.data, written=item.encoding)
        data = await self._contents.get(item.after)
        return await self._contents.text(item.after, data) if data is not None else None
