"""What answers show of a change: unified diffs, the places of a merge, conflicting lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from anyio import to_thread

from orchestrator.api import results as r
from orchestrator.core.change import PathChange
from orchestrator.core.conflicts.sides import Sides
from orchestrator.core.content import LineHunk, Region, ResolvedRegion, Span
from orchestrator.core.decisions.decision import NewContent
from orchestrator.core.errors import TextTooCostly, plural
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.shown_text import ShownText
from orchestrator.core.text.answer_space import MAX_LINE, AnswerSpace, size
from orchestrator.core.text.encoding import EMPTY, Document, decode
from orchestrator.core.text.unified_diff import document_diff
from orchestrator.engine.caller import Caller
from orchestrator.engine.contents import LARGE_BYTES, Contents
from orchestrator.engine.paths import within_call
from orchestrator.engine.redaction import Redaction
from orchestrator.engine.services import Services

SHOWN_DIFF = AnswerSpace(bytes=16_000, lines=121)
"""Of an answer: `get_diff` shows the rest."""

MOST_SHOWN = 40
"""Places of one merge that an answer shows."""

NOTHING: Mapping[Digest, NewContent] = {}


class ShownDiff(NamedTuple):
    """A diff, None for one created or binary file; `cut` says how much of it is shown, "" where it is whole."""

    text: str | None
    cut: str = ""


class Shows:
    """Who gets an answer: of which paths content `may` be shown, and what of a text."""

    def __init__(self, redaction: Redaction, caller: Caller, may: Callable[[WorkspacePath], bool]) -> None:
        self._redaction, self._caller, self._may = redaction, caller, may

    @classmethod
    def readable(cls, services: Services, caller: Caller) -> Shows:
        """What policy lets a caller read."""
        return cls(services.redaction, caller, partial(services.permissions.readable, caller))

    def __call__(self, path: WorkspacePath) -> bool:
        return self._may(path)

    async def text(self, path: WorkspacePath, digest: Digest | None, document: Document) -> ShownText:
        """A text of this path, without what is hidden from whoever gets the answer."""
        return await self._redaction.shown(self._caller, path, digest, document)


class Diffs:
    """Builds diffs from kept contents."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    async def between(
        self,
        path: WorkspacePath,
        before: ShownText,
        after: ShownText,
        *,
        gone: bool = False,
        hunks: tuple[LineHunk, ...] = (),
        room: AnswerSpace = SHOWN_DIFF,
        widest: int | None = MAX_LINE,
    ) -> ShownDiff:
        """Of two documents; None, and cut, where comparing them takes too long. `hunks`: where they are known.

        Of lines over `widest` the parts that differ.
        """
        paths, old, new = (path, None if gone else path), before.document, after.document
        work = partial(document_diff, paths, old, new, hunks=hunks or None, room=room, widest=widest)
        known = hunks and old.final_newline == new.final_newline
        try:
            shown = work() if known else await self._contents.computed(work, old, new)
        except TextTooCostly:
            return ShownDiff(None, "the files are too long and too different to be compared")
        cut = [_cut(shown.text, shown.added + shown.removed)] if shown.goes_on else []
        if shown.within is not None:
            cut.append("of long lines a part; " + within_call(path, *shown.within))
        return ShownDiff(shown.text, ", ".join(cut))

    async def of(
        self,
        paths: Iterable[PathChange],
        shows: Shows,
        contents: Mapping[Digest, NewContent] = NOTHING,
    ) -> ShownDiff:
        """One diff of a change, of as many lines as an answer shows; None for one created or binary file.

        `contents`: of a change that is only planned, what is not kept yet.
        """
        changes = befores(paths)
        if len(changes) == 1:
            return await self.of_one(*changes[0], shows, contents)
        texts: list[str] = []
        room, truncated = SHOWN_DIFF, False
        for item, before in changes:
            text, partly = await self.of_one(item, before, shows, contents, room=room)
            if text is None:
                kind = "binary" if item.binary else "new" if before is None else "changed"
                text = f"{kind} file {item.path}\n"
            if not room.holds(text):
                break
            truncated = truncated or bool(partly)
            texts.append(text)
            room = room.less(size(text), text.count("\n"))
        text = "".join(texts)
        if len(texts) == len(changes) and not truncated:
            return ShownDiff(text)
        changed = sum(hunk.old_len + hunk.new_len for item, _ in changes for hunk in item.hunks)
        return ShownDiff(text, f"{_cut(text, changed)} of {plural(len(changes), 'file')}")

    async def of_conflict(
        self, conflict: Conflict, shows: Shows, *, room: AnswerSpace = SHOWN_DIFF, widest: int | None = MAX_LINE
    ) -> ShownDiff:
        """What choosing the proposed side would change."""
        found = conflict.found
        current = await self._contents.kept_text(found.sides.current)
        try:
            proposed = await self.proposed(conflict)
        except TextTooCostly:
            return ShownDiff(None, "the files are too long and too different to be merged")
        if current is None or (proposed is None and found.sides.proposed is not None):
            return ShownDiff(None)
        gone = found.sides.proposed is None
        before = await shows.text(found.path, found.sides.current, current)
        after = await shows.text(found.path, None, proposed or EMPTY)
        return await self.between(found.path, before, after, gone=gone, room=room, widest=widest)

    async def proposed(self, conflict: Conflict) -> Document | None:
        """As `Sides.with_proposed`. Raises TextTooCostly."""
        sides = conflict.found.sides
        base, current, proposed = [await self._contents.kept_text(digest) for digest in sides]
        if base is None or current is None or proposed is None:
            return proposed
        texts = Sides(base, current, proposed, sides.regions)
        return await self._contents.computed(texts.with_proposed, current, proposed)

    async def of_one(
        self,
        item: PathChange,
        before: Digest | None,
        shows: Shows,
        contents: Mapping[Digest, NewContent] = NOTHING,
        *,
        room: AnswerSpace = SHOWN_DIFF,
    ) -> ShownDiff:
        """As `of`, of one path of a change, with what its file held `before`, under whichever path."""
        renamed = f"rename from {item.moved_from}\nrename to {item.path}\n" if item.moved_from is not None else None
        if before is None or before == item.after or item.binary:
            return ShownDiff(renamed)
        old, new = await self._contents.kept_text(before), await self._new(item, contents)
        if old is None or new is None:
            return ShownDiff(renamed)
        room = room.less(size(renamed or ""), (renamed or "").count("\n"))
        shown = (
            await shows.text(item.moved_from or item.path, before, old),
            await shows.text(item.path, item.after, new),
        )
        body = await self.between(item.path, *shown, gone=item.after is None, hunks=item.hunks, room=room)
        return ShownDiff(renamed, body.cut) if body.text is None else ShownDiff(f"{renamed or ''}{body.text}", body.cut)

    async def _new(self, item: PathChange, contents: Mapping[Digest, NewContent]) -> Document | None:
        if item.after is None:
            return EMPTY
        planned = contents.get(item.after)
        if planned is None:
            return await self._contents.kept_text(item.after)
        if planned.document is not None:
            return planned.document
        work = partial(decode, planned.data, written=item.encoding)
        return await to_thread.run_sync(work) if len(planned.data) > LARGE_BYTES else work()


def _cut(text: str, changed: int) -> str:
    """How much of a diff a part of it shows."""
    rows = [row for row in text.split("\n") if row.startswith(("+", "-")) and not row.startswith(("+++ ", "--- "))]
    return f"shown: {len(rows)} of {plural(changed, 'changed line')}"


def befores(paths: Iterable[PathChange]) -> list[tuple[PathChange, Digest | None]]:
    """The files that a change touches, each with what it held before; of a move, the destination."""
    items = {item.path: item for item in paths if not item.directory}
    left = {item.moved_from for item in items.values()}
    touched = [item for item in items.values() if item.path not in left or item.after is not None]
    sources = [items.get(item.moved_from or item.path) for item in touched]
    return [(item, source.before if source else None) for item, source in zip(touched, sources, strict=True)]


def line_counts(*changes: tuple[PathChange, Digest | None]) -> tuple[int | None, int | None]:
    """Lines that files gain and lose, each with what it held before; None where those of one were not compared."""
    counts = [item.counts(before) for item, before in changes]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return None, None
    return sum(added for added, _ in known), sum(removed for _, removed in known)


def merge_texts(merged: Sequence[ResolvedRegion]) -> tuple[r.MergeText, ...]:
    """The places, those that git would have left to a person first."""
    chosen = sorted(merged, key=lambda region: region.rule == "clean")[:MOST_SHOWN]
    return tuple(
        r.MergeText(path=item.path, lines=_lines(item.merged), rule=item.rule, why=item.why, **_sides(item.region))
        for item in chosen
    )


def rules(merged: Sequence[ResolvedRegion]) -> str:
    """The rules that merged what git would not; "" if none had to."""
    return ", ".join(dict.fromkeys(region.rule for region in merged if region.rule != "clean"))


def regions(conflicting: Sequence[Region]) -> tuple[r.RegionLines, ...]:
    """Conflicting lines as callers count them."""
    return tuple(r.RegionLines(**_sides(region)) for region in conflicting)


def _sides(region: Region) -> dict[str, tuple[int, int]]:
    sides = region.map(_lines)
    return {"base": sides.base, "current": sides.current, "proposed": sides.proposed}


def _lines(span: Span) -> tuple[int, int]:
    return span.start + 1, span.end
