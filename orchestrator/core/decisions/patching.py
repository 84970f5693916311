"""How a change comes to fit the file as it is now: on its base, moved, merged, or not at all.

The ladder: `current` (the base is what the file holds), `shifted` (others changed other lines,
and every line that it replaces stands unchanged), `merged` (three-way, as `git
merge-file` does it), else a clash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.core.content import LineHunk, Rung, digest_of
from orchestrator.core.decisions import structure
from orchestrator.core.decisions.decision import Apply, Clash, Facts, Held, Need, Outcome, Part
from orchestrator.core.decisions.permissions import with_bits
from orchestrator.core.errors import (
    BaseRequired,
    BinaryFile,
    CallerError,
    CharacterNotEncodable,
    FileExists,
    FileNotFound,
    NothingToChange,
    PatchInvalid,
    SearchAmbiguous,
    SearchNotFound,
    StaleBase,
)
from orchestrator.core.events.conflicts import ClashRegion
from orchestrator.core.ids import WorkspacePath, show
from orchestrator.core.text.diff import diff
from orchestrator.core.text.encoding import (
    SNIFFED_BYTES,
    Document,
    Edit,
    NotEncodable,
    decode,
    edits_between,
    encode,
    new_document,
    replace_text,
    splice,
)
from orchestrator.core.text.excerpt import render
from orchestrator.core.text.merge import Merged, merge3
from orchestrator.core.text.patch import FilePatch, locate_patch

EMPTY = Document((), ())
"""The text of a file without lines."""

Locate = Callable[[Document], list[Edit]]
"""Where a change goes in a document; raises the search errors."""

_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")

SHOWN_AROUND = 3
"""Lines shown around each place that a refusal points to."""

SHOWN_MOST = 60
"""Lines of one such place that are shown."""


def edit(changes: Sequence[structure.Change], facts: Facts) -> Outcome:
    """Search and replace, and symbols' new contents. Raises FileNotFound, BinaryFile, and what `locate_all` raises."""
    if (needed := structure.lacking(changes, facts)) is not None:
        return needed
    return _located(lambda document: structure.locate_all(document, changes, facts), facts)


def patch(parsed: FilePatch, facts: Facts) -> Outcome:
    """A unified diff. Raises as `edit`, and PatchInvalid, FileExists, BaseRequired."""
    if parsed.headed and parsed.old_path is None:
        if facts.held is not None:
            raise FileExists(facts.path, "the patch creates it, but it is there", hint="Send a patch of what is there.")
        added = [text for hunk in parsed.hunks for tag, text in hunk.lines if tag == "+"]
        last = parsed.hunks[-1].new_no_newline if parsed.hunks else False
        return with_bits(create("\n".join(added) + ("" if last or not added else "\n"), facts), parsed, None)
    if facts.held is None:
        raise FileNotFound(facts.path, "there is no such file")
    if facts.base is None:
        raise base_required(facts.path, "a patch is read against the version that it was made from")
    outcome = _located(lambda document: locate_patch(parsed, document), facts)
    if parsed.headed and parsed.new_path is None:
        return _emptied(outcome, facts)
    return with_bits(outcome, parsed, facts.held)


def create(content: str, facts: Facts) -> Apply:
    """A file that is not there yet."""
    document = new_document(content)
    data = _encoded(document, facts.path)
    part = Part(
        path=facts.path,
        before=None,
        after=digest_of(data),
        data=data,
        hunks=(LineHunk(0, 0, 0, document.line_count),) if document.lines else (),
    )
    return Apply(parts=(part,), on_seen_whole=True)


def append(content: str, facts: Facts) -> Apply:
    """More text at the end of what is there now, whatever that is."""
    if facts.held is None:
        return create(content, facts)
    document = _text_of(facts.held, facts.path)
    whole = replace_text(document, document.text + content)
    return _applied(facts, facts.held, document, whole, "current", seen_whole=False)


def truncate(content: str, facts: Facts) -> Outcome:
    """A whole new text. Raises BaseRequired, unless it is known which version it replaces."""
    base, held = facts.base, facts.held
    if base is None:
        if held is None:
            return create(content, facts)
        raise base_required(
            facts.path,
            "the file exists, and this session has not seen all of it",
            unreadable=facts.blind or decode(held.data) is None,
        )
    if held is None:
        return Clash(
            path=facts.path,
            base=base.digest,
            base_version=base.version,
            proposed=_encoded(new_document(content), facts.path),
        )
    if base.digest == held.digest:
        before = held.document or decode(held.data)
        after = replace_text(before, content) if before else new_document(content)
        return _applied(facts, held, before, after, "current", seen_whole=True)
    if facts.blind:
        raise StaleBase(
            f"{facts.path} has changed since {show(base.version)}",
            hint="file_info tells the version that stands there now.",
            details={"path": facts.path, "base": show(base.version)},
        )
    if base.digest not in facts.contents:
        return Need((base.digest,))
    old = decode(facts.contents[base.digest])
    if old is None:
        return Clash(
            path=facts.path,
            base=base.digest,
            base_version=base.version,
            proposed=_encoded(new_document(content), facts.path),
        )
    return rebase(old, replace_text(old, content), facts, anchors=())


def rebase(old: Document, new: Document, facts: Facts, *, anchors: Sequence[tuple[int, int]]) -> Outcome:
    """Carry a change old → new onto what the file holds.

    `anchors` are (start, length) of the lines of `old` that the change looks at; if all stand
    unchanged the rung is `shifted`, else `merged`. `facts.held` must be there. Needs the outlines
    of both sides and of what comes out, where there is a grammar: it must still parse.
    """
    held = facts.held
    if held is None:
        raise ValueError("nothing to rebase onto")
    current = held.document or decode(held.data)
    if current is None:
        return _clash(facts, new, ())
    merged = merge3(old.lines, current.lines, new.lines)
    if not isinstance(merged, Merged):
        regions = tuple(
            ClashRegion(r.base_start, r.base_len, r.current_start, r.current_len, r.proposed_start, r.proposed_len)
            for r in merged.regions
        )
        return _clash(facts, new, regions)
    final = new.final_newline if new.final_newline != old.final_newline else current.final_newline
    after = splice(current, edits_between(current, merged.lines, final or not current.lines))
    rung: Rung = "shifted" if anchors and _untouched(old, current, anchors) else "merged"
    if after == current:
        raise NothingToChange(
            f"{facts.path} holds this change already",
            hint="Nothing is left to do here.",
        )
    fitted = _applied(facts, held, current, after, rung, seen_whole=False)
    return structure.checked(fitted, facts, old=old, new=new, current=current)


def base_required(path: WorkspacePath, why: str, *, unreadable: bool = False) -> BaseRequired:
    """The refusal of a change that could undo what its author never saw. It names no version on purpose."""
    hint = "It can't be read as text; to replace it all the same, send the version_id of file_info as base."
    return BaseRequired(f"{path}: {why}", details={"path": path}, hint=hint if unreadable else None)


def _located(locate: Locate, facts: Facts) -> Outcome:
    held, base = facts.held, facts.base
    if held is None:
        if base is None:
            raise FileNotFound(facts.path, "there is no such file")
        return _onto_nothing(locate, facts)
    current = _text_of(held, facts.path)
    if base is None or base.digest == held.digest:
        edits = _found(locate, current, current, facts.path)
        seen_whole = bool(base and base.seen_whole)
        return _edited(facts, held, current, edits, seen_whole=seen_whole)
    if base.digest not in facts.contents:
        return Need((base.digest,))
    old = decode(facts.contents[base.digest])
    if old is None:
        raise BinaryFile(facts.path, f"its content at {show(base.version)} is not text")
    try:
        edits = locate(old)
    except SearchNotFound as error:
        if base.implied:
            return _on_current(locate, facts, held, current)
        raise _not_in_base(locate, error, current, facts) from None
    except SearchAmbiguous as error:
        error.message = f"at {show(base.version)}, the base: {error.message}"
        error.details.setdefault("path", facts.path)
        error.details["base"] = show(base.version)
        raise
    return rebase(old, splice(old, edits), facts, anchors=[(e.start, e.length) for e in edits])


def _on_current(locate: Locate, facts: Facts, held: Held, current: Document) -> Apply:
    """The implied base lacks the text; take the file as it is, if the text stands there."""
    edits = _found(locate, current, current, facts.path)
    applied = _edited(facts, held, current, edits, seen_whole=False)
    warning = (
        f"the text is not in {show(facts.base.version) if facts.base else '?'}, the version this session saw last; "
        f"it was found in the present one, {show(facts.version or 0)}"
    )
    return Apply(parts=applied.parts, rung=applied.rung, base=facts.version, warnings=(warning,))


def _not_in_base(locate: Locate, error: SearchNotFound, current: Document, facts: Facts) -> CallerError:
    """The named base lacks the text: show where the present file comes near it."""
    base = show(facts.base.version) if facts.base else "?"
    try:
        locate(current)
    except (SearchNotFound, SearchAmbiguous) as present:
        error = type(error)(f"at {base}, the base: {error.message}", details={**present.details, "base": base})
    except CallerError:
        pass
    else:
        error.message = f"the text is not in {base}, the base, but it stands in the file as it is now"
        error.hint = "Send the change again without base, or with the present version as base."
    return _with_lines(error, current, facts.path)


def _onto_nothing(locate: Locate, facts: Facts) -> Outcome:
    """The file is gone since the base: keep what would have become of it."""
    base = facts.base
    if base is None or base.implied:
        raise FileNotFound(facts.path, "the file was deleted or moved since this session saw it")
    if base.digest not in facts.contents:
        return Need((base.digest,))
    old = decode(facts.contents[base.digest])
    if old is None:
        raise BinaryFile(facts.path, f"its content at {show(base.version)} is not text")
    return _clash(facts, splice(old, locate(old)), ())


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


def _edited(facts: Facts, held: Held, document: Document, edits: list[Edit], *, seen_whole: bool) -> Apply:
    hunks: list[LineHunk] = []
    shift = 0
    for change in edits:
        hunks.append(LineHunk(change.start, change.length, change.start + shift, len(change.lines)))
        shift += len(change.lines) - change.length
    after = splice(document, edits)
    return _applied(facts, held, document, after, "current", seen_whole=seen_whole, hunks=tuple(hunks))


def _applied(
    facts: Facts,
    held: Held,
    before: Document | None,
    after: Document,
    rung: Rung,
    *,
    seen_whole: bool,
    hunks: tuple[LineHunk, ...] | None = None,
) -> Apply:
    data = _encoded(after, facts.path)
    digest = digest_of(data)
    if digest == held.digest and not facts.blind:
        raise NothingToChange(f"{facts.path} would stay as it is", hint="Nothing is left to do here.")
    if hunks is None:
        hunks = line_hunks(before, after) if before else ()
    part = Part(
        path=facts.path,
        before=held.digest,
        after=digest,
        data=data,
        document=after if _reads_back(after, data) else None,
        hunks=hunks,
        binary=before is None,
    )
    base = facts.base.version if facts.base else facts.version
    return Apply(parts=(part,), rung=rung, base=base, on_seen_whole=seen_whole and rung == "current")


def _reads_back(document: Document, data: bytes) -> bool:
    """Whether decoding these bytes gives the document again; not so where new text looks like a mark, or is binary."""
    return document.encoding == "utf-8" and b"\0" not in data[:SNIFFED_BYTES] and not data.startswith(_MARKS)


def _emptied(outcome: Outcome, facts: Facts) -> Outcome:
    """A patch to /dev/null: it must take every line, and then the file goes."""
    if not isinstance(outcome, Apply):
        return outcome
    part = outcome.parts[0]
    if part.data:
        raise PatchInvalid(
            f"the patch deletes {facts.path}, but leaves lines in it", hint="Send a fresh patch, or use delete_file."
        )
    mode = facts.held.mode if facts.held else None
    gone = Part(path=facts.path, before=part.before, after=None, mode=mode, hunks=part.hunks)
    return Apply(parts=(gone,), rung=outcome.rung, base=outcome.base)


def _clash(facts: Facts, proposed: Document, regions: tuple[ClashRegion, ...]) -> Clash:
    return Clash(
        path=facts.path,
        base=facts.base.digest if facts.base else None,
        base_version=facts.base.version if facts.base else None,
        proposed=_encoded(proposed, facts.path),
        regions=regions,
    )


def line_hunks(before: Document, after: Document) -> tuple[LineHunk, ...]:
    """The changed lines, as `ChangeApplied` keeps them."""
    return tuple(LineHunk(h.old_start, h.old_len, h.new_start, h.new_len) for h in diff(before.lines, after.lines))


def _untouched(old: Document, current: Document, anchors: Sequence[tuple[int, int]]) -> bool:
    moved = diff(old.lines, current.lines)
    return not any(
        hunk.old_start < start + length and start < hunk.old_start + hunk.old_len
        for start, length in anchors
        for hunk in moved
    )


def _text_of(held: Held, path: WorkspacePath) -> Document:
    document = held.document or decode(held.data)
    if document is None:
        raise BinaryFile(
            path, "it is not text, so it has no lines to change", hint="Binary files can be moved or deleted."
        )
    return document


def _encoded(document: Document, path: WorkspacePath) -> bytes:
    try:
        return encode(document)
    except NotEncodable as error:
        raise CharacterNotEncodable(
            path,
            f"line {error.line}: its encoding, {error.encoding}, cannot hold U+{ord(error.character):04X}",
            hint="Write that character another way, for example as an escape.",
        ) from error
