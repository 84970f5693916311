"""Finds a change's passages in what the file holds, or in the version that its author saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from orchestrator.core import errors as e
from orchestrator.core.content import LargeContent, LineRange, SeenLines
from orchestrator.core.decisions.decision import Base, Facts, Held, Need
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.shown_text import ShownText
from orchestrator.core.text.answer_space import estimate_tokens, fit, render
from orchestrator.core.text.encoding import Document, decode
from orchestrator.core.text.locate import Found
from orchestrator.core.text.long_lines import window
from orchestrator.core.text.regions import merged


class Locate(Protocol):
    """Where a change goes in a document, exactly or with `lenient` but for typography too; raises the search errors."""

    def __call__(self, document: Document, *, lenient: bool) -> Found: ...


SHOWN_AROUND = 3
"""Lines shown around each place that a refusal points to."""

SHOWN_MOST = 60
"""Lines of one such place that are shown."""

SHOWN_TOKENS = 1_200
"""Of all places together, estimated."""

SHOWN_PLACES, PART_CHARACTERS = 5, 100
"""Of several places; and of a long line around one."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a change goes: edits of the file as it is now, or of the base, from which they are yet to be rebased."""

    document: Document
    found: Found
    on_current: bool
    warnings: tuple[str, ...] = ()


def located(locate: Locate, facts: Facts) -> Place | Need:
    """Find a change's passages. Raises FileNotFound, BinaryFile, and the search errors with the lines around."""
    held, base = facts.held, facts.base
    if held is None and (base is None or base.implied):
        why = "there is no such file" if base is None else "the file was deleted or moved since this session saw it"
        raise e.FileNotFound(facts.path, why)
    current = text_of(held, facts.path) if held is not None else None
    if current is not None and (base is None or held is None or base.digest == held.digest):
        return Place(document=current, found=_found(locate, current, facts), on_current=True)
    if base is None or base.digest not in facts.contents:
        return Need((base.digest,) if base is not None else ())
    old = decode(facts.contents[base.digest], like=current.encoding_hint if current is not None else None)
    if old is None:
        raise e.BinaryFile(facts.path, f"its content at {show(base.version)} is not text")
    if current is None:  # keep what would have become of it
        return Place(document=old, found=locate(old, lenient=True), on_current=False)
    try:
        return _before(locate, old, current, facts, base)
    except e.SearchAmbiguous as error:
        error.message = f"at {show(base.version)}, the base: {error.message}"
        error.details.setdefault("path", facts.path)
        error.details["base"] = show(base.version)
        raise


def _before(locate: Locate, old: Document, current: Document, facts: Facts, base: Base) -> Place:
    """In the base; where that is implied, in the present file rather than with other typography."""
    try:
        return Place(document=old, found=locate(old, lenient=False), on_current=False)
    except e.SearchNotFound:
        pass
    if base.implied:
        try:
            return _on_current(locate, facts, current, lenient=False)
        except (e.SearchNotFound, e.SearchAmbiguous):
            pass
    try:
        return Place(document=old, found=locate(old, lenient=True), on_current=False)
    except e.SearchNotFound as error:
        if base.implied:
            return _on_current(locate, facts, current, lenient=True)
        raise _not_in_base(locate, error, current, facts) from None


def text_of(held: Held, path: WorkspacePath) -> Document:
    """What a path holds, as text. Raises BinaryFile, FileTooLarge."""
    if isinstance(held.data, LargeContent):
        raise e.FileTooLarge(
            path,
            f"it has {held.data.size} bytes, too many to change passages of it",
            hint="It can be read in parts, searched, moved, deleted, and replaced as a whole, with its base. A person "
            "can raise limits.in_memory_bytes in the policy.",
        )
    document = held.document or decode(held.data)
    if document is None:
        raise e.BinaryFile(
            path, "it is not text, so it has no lines to change", hint="Binary files can be moved or deleted."
        )
    return document


def _on_current(locate: Locate, facts: Facts, current: Document, *, lenient: bool) -> Place:
    """The implied base lacks the text; take the file as it is, if it has the text."""
    found = _found(locate, current, facts, lenient=lenient)
    warning = (
        f"the text is not in {show(facts.base.version) if facts.base else '?'}, the version this session saw last; "
        f"it was found in the present one, {show(facts.version or 0)}"
    )
    return Place(document=current, found=found, on_current=True, warnings=(warning,))


def _not_in_base(locate: Locate, error: e.SearchNotFound, current: Document, facts: Facts) -> e.CallerError:
    """The named base lacks the text: show where the present file comes near it."""
    base = show(facts.base.version) if facts.base else "?"
    try:
        locate(current, lenient=False)
    except (e.SearchNotFound, e.SearchAmbiguous) as present:
        based = type(error)(f"at {base}, the base: {error.message}", details={**present.details, "base": base})
        if isinstance(present, e.SearchNotFound):
            based.differences = present.differences
        error = based
    except e.CallerError:
        pass
    else:
        error.message = f"the text is not in {base}, the base, but it is in the file as it is now"
        error.hint = "Send the change again without base, or with the present version as base."
    return _with_lines(error, facts)


def _found(locate: Locate, current: Document, facts: Facts, *, lenient: bool = True) -> Found:
    try:
        return locate(current, lenient=lenient)
    except (e.SearchNotFound, e.SearchAmbiguous) as error:
        raise _with_lines(error, facts) from None


def _with_lines(error: e.CallerError, facts: Facts) -> e.CallerError:
    """Of this file the next try needs lines: `quote` adds them, once secrets in it are hidden."""
    error.details.setdefault("path", facts.path)
    error.quotes = facts.path
    return error


def quote(error: e.OrchestratorError, path: WorkspacePath, version: Seq | None, shown: ShownText) -> None:
    """Add the lines that the next try needs: around the nearest places, or around each of several."""
    details = error.details
    spans = [(place["line"], place["end_line"]) for place in details.get("nearest", ())[:3]]
    if isinstance(error, e.SearchAmbiguous):
        spans = [(line, line) for line in details.get("lines", ())[:SHOWN_PLACES]]
    if isinstance(error, e.ExpectMismatch) and "start" in details:
        spans = [(details["start"], details["end"])]
    if not spans and "line" in details:
        spans = [(details["line"], details["line"])]
    blocks, whole = _shown(spans, shown.lines)
    if "columns" in details:
        blocks, whole = _parts(details, shown), []
    if blocks:
        differences = zip(spans, error.differences, strict=False) if isinstance(error, e.SearchNotFound) else ()
        notes = "".join(
            f"{_differing(*span)} from the search (-):\n{text}\n"
            for span, text in differences
            if text and shown.hidden.without(LineRange(*span)) == (LineRange(*span),)
        )
        error.shown = f"{path}, as it is now:\n" + "…\n".join(blocks) + notes
        ranges = tuple(part for span in whole for part in shown.hidden.without(span))
        if ranges and version is not None:
            error.seen = SeenLines(path=path, version=version, ranges=ranges, total_lines=len(shown.lines))


def _differing(start: int, end: int) -> str:
    return f"line {start} differs" if start == end else f"lines {start}–{end} differ"


def _parts(details: Mapping[str, Any], shown: ShownText) -> list[str]:
    """The first of several places, each as a part of its long line."""
    places = [*zip(details["lines"], details["columns"], strict=True)][:SHOWN_PLACES]
    parts = [(line, window(shown.in_place(line), column - 1, PART_CHARACTERS)) for line, column in places]
    return [render([part], line, max_line=2 * PART_CHARACTERS)[0] for line, part in parts]


def _shown(spans: Sequence[tuple[int, int]], lines: Sequence[str]) -> tuple[list[str], list[LineRange]]:
    """Blocks of lines, and which of them are shown whole. The first places have the first claim on the tokens."""
    room = SHOWN_TOKENS
    kept: list[LineRange] = []
    for first, final in spans:
        start, end = max(1, first - SHOWN_AROUND), min(len(lines), final + SHOWN_AROUND, first + SHOWN_MOST)
        if start > end:
            continue
        last = fit(lines, start, end, room)
        room -= estimate_tokens("".join(lines[start - 1 : last])) + 2 * (last + 1 - start)
        kept.append(LineRange(start, last))
        if room < 50:
            break
    blocks: list[str] = []
    shown: list[LineRange] = []
    for span in merged(tuple(kept)):
        text, cut = render(lines[span.start - 1 : span.end], span.start)
        blocks.append(text)
        if not cut:
            shown.append(span)
    return blocks, shown
