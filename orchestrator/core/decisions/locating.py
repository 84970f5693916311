"""Where a change's passages stand: in what the file holds, or in the version that its author saw."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from orchestrator.core.decisions.decision import Facts, Held, Need
from orchestrator.core.errors import BinaryFile, CallerError, FileNotFound, SearchAmbiguous, SearchNotFound
from orchestrator.core.ids import WorkspacePath, show
from orchestrator.core.text.encoding import Document, Edit, decode
from orchestrator.core.text.excerpt import render

Locate = Callable[[Document], list[Edit]]
"""Where a change goes in a document; raises the search errors."""

SHOWN_AROUND = 3
"""Lines shown around each place that a refusal points to."""

SHOWN_MOST = 60
"""Lines of one such place that are shown."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a change goes: edits of the file as it is now, or of the base, from which they are yet to be carried."""

    document: Document
    edits: list[Edit]
    on_current: bool
    warnings: tuple[str, ...] = ()


def located(locate: Locate, facts: Facts) -> Place | Need:
    """Find a change's passages. Raises FileNotFound, BinaryFile, and the search errors with the lines around."""
    held, base = facts.held, facts.base
    if held is None:
        if base is None:
            raise FileNotFound(facts.path, "there is no such file")
        return _onto_nothing(locate, facts)
    current = text_of(held, facts.path)
    if base is None or base.digest == held.digest:
        return Place(document=current, edits=_found(locate, current, current, facts.path), on_current=True)
    if base.digest not in facts.contents:
        return Need((base.digest,))
    old = decode(facts.contents[base.digest])
    if old is None:
        raise BinaryFile(facts.path, f"its content at {show(base.version)} is not text")
    try:
        edits = locate(old)
    except SearchNotFound as error:
        if base.implied:
            return _on_current(locate, facts, current)
        raise _not_in_base(locate, error, current, facts) from None
    except SearchAmbiguous as error:
        error.message = f"at {show(base.version)}, the base: {error.message}"
        error.details.setdefault("path", facts.path)
        error.details["base"] = show(base.version)
        raise
    return Place(document=old, edits=edits, on_current=False)


def text_of(held: Held, path: WorkspacePath) -> Document:
    """What a path holds, as text. Raises BinaryFile."""
    document = held.document or decode(held.data)
    if document is None:
        raise BinaryFile(
            path, "it is not text, so it has no lines to change", hint="Binary files can be moved or deleted."
        )
    return document


def _on_current(locate: Locate, facts: Facts, current: Document) -> Place:
    """The implied base lacks the text; take the file as it is, if the text stands there."""
    edits = _found(locate, current, current, facts.path)
    warning = (
        f"the text is not in {show(facts.base.version) if facts.base else '?'}, the version this session saw last; "
        f"it was found in the present one, {show(facts.version or 0)}"
    )
    return Place(document=current, edits=edits, on_current=True, warnings=(warning,))


def _not_in_base(locate: Locate, error: SearchNotFound, current: Document, facts: Facts) -> CallerError:
    """The named base lacks the text: show where the present file comes near it."""
    base = show(facts.base.version) if facts.base else "?"
    try:
        locate(current)
    except (SearchNotFound, SearchAmbiguous) as present:
        error = SearchNotFound(f"at {base}, the base: {error.message}", details={**present.details, "base": base})
    except CallerError:
        pass
    else:
        error.message = f"the text is not in {base}, the base, but it stands in the file as it is now"
        error.hint = "Send the change again without base, or with the present version as base."
    return _with_lines(error, current, facts.path)


def _onto_nothing(locate: Locate, facts: Facts) -> Place | Need:
    """The file is gone since the base: keep what would have become of it."""
    base = facts.base
    if base is None or base.implied:
        raise FileNotFound(facts.path, "the file was deleted or moved since this session saw it")
    if base.digest not in facts.contents:
        return Need((base.digest,))
    old = decode(facts.contents[base.digest])
    if old is None:
        raise BinaryFile(facts.path, f"its content at {show(base.version)} is not text")
    return Place(document=old, edits=locate(old), on_current=False)


def _found(locate: Locate, document: Document, current: Document, path: WorkspacePath) -> list[Edit]:
    try:
        return locate(document)
    except (SearchNotFound, SearchAmbiguous) as error:
        raise _with_lines(error, current, path) from None


def _with_lines(error: CallerError, current: Document, path: WorkspacePath) -> CallerError:
    """Add the lines that the next try needs: around the nearest places, or around each of several."""
    error.details.setdefault("path", path)
    spans: list[tuple[int, int]] = []
    for place in error.details.get("nearest", ())[:3]:
        spans.append((place["line"], place["end_line"]))
    if isinstance(error, SearchAmbiguous):
        spans = [(line, line) for line in error.details.get("lines", ())[:5]]
    if not spans and "line" in error.details:
        spans = [(error.details["line"], error.details["line"])]
    blocks: list[str] = []
    shown: list[tuple[int, int]] = []
    for start, end in _windows(spans, current.line_count):
        text, cut = render(current.lines[start - 1 : end], start)
        blocks.append(text)
        if not cut:
            shown.append((start, end))
    if blocks:
        error.shown = f"{path}, as it is now:\n" + "…\n".join(blocks)
        error.shown_lines = tuple(shown)
    return error


def _windows(spans: Sequence[tuple[int, int]], line_count: int) -> list[tuple[int, int]]:
    """The spans with some lines around each, joined where they touch, none longer than a screen."""
    windows: list[tuple[int, int]] = []
    for a, b in sorted(spans):
        start, end = max(1, a - SHOWN_AROUND), min(line_count, b + SHOWN_AROUND, a + SHOWN_MOST)
        if windows and start <= windows[-1][1] + 1:
            windows[-1] = (windows[-1][0], max(end, windows[-1][1]))
        elif start <= end:
            windows.append((start, end))
    return windows
