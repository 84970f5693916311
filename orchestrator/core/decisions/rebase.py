"""How a change comes to fit the file as it is now: on its base, moved, merged, or not at all.

The ladder: `current` (the base is what the file holds), `shifted` (others changed other lines,
and every line that it replaces is unchanged), `merged` (three-way, as `git merge-file` does it);
only where that conflicts `anchored` (the passage was moved or indented with its symbol, or
indented in place), else a conflict; so is what would come below another heading, item or block than in the base.
`fuzzy`: the passage is there but for typography.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from orchestrator.core.change import Fit
from orchestrator.core.conflicts.sides import spanned
from orchestrator.core.content import RUNGS, Content, LargeContent, LineHunk, Rung, ThreeWay, digest_of
from orchestrator.core.decisions import structure
from orchestrator.core.decisions.anchored import found_again, untouched
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts, Held, Need, Outcome, written
from orchestrator.core.decisions.passages import Locate, Place, located, text_of
from orchestrator.core.errors import BaseRequired, CharacterNotEncodable, FileTooLarge, NothingToChange, StaleBase
from orchestrator.core.ids import WorkspacePath, show
from orchestrator.core.text.charsets import named
from orchestrator.core.text.edits import Edit, replace_text, splice
from orchestrator.core.text.encoding import (
    DAMAGE,
    EMPTY,
    Document,
    NotEncodable,
    decode,
    encode,
    new_document,
    reads_back,
    with_runs_of,
)
from orchestrator.core.text.merge import LineMerge, MergeConflict
from orchestrator.core.text.merging.ambiguous_hunks import ambiguous_hunks
from orchestrator.core.text.merging.automatic_merge import AutomaticMerge, merge_automatically
from orchestrator.core.text.merging.doubts import STRAYED, removed_already
from orchestrator.core.text.merging.merged_document import merged_document
from orchestrator.core.text.symbols import language_of

CONTINUED = "the file's last line had no line end, so the text continues that line"
"""What an append warns of that glued two lines."""

EQUAL_PASSAGES = "there are two equal passages, and it is not certain which one is meant"
"""Why a change waits that would go to one of them."""

STILL_THERE = "lines that the change removes are elsewhere by now"
"""Why a change waits that would leave the file as it is."""


def edit(changes: Sequence[structure.Change], facts: Facts) -> Outcome:
    """Search and replace, and symbols' new contents. Raises FileNotFound, BinaryFile, and what `locate_all` raises."""
    if (needed := structure.lacking(changes, facts)) is not None:
        return needed
    return located_change(partial(structure.locate_all, changes=changes, facts=facts), facts)


def create(content: str, facts: Facts) -> Apply:
    """A file that is not there yet."""
    document = new_document(content)
    hunks = (LineHunk(0, 0, 0, document.line_count),) if document.lines else ()
    data = _encoded(document, facts.path)
    return written(facts.path, None, data, EMPTY, document, hunks=hunks, fit=Fit(on_seen_whole=True))


def append(content: str, facts: Facts) -> Apply:
    """More text at the end of what is there now, whatever that is."""
    if facts.held is None:
        return create(content, facts)
    if facts.content_hidden:
        return _unseen(content, facts, facts.held, at_end=True)
    document = text_of(facts.held, facts.path)
    whole = replace_text(document, document.text + content)
    applied = _applied(facts, facts.held, document, whole, "current", seen_whole=False)
    if not document.text or document.text.endswith("\n") or content.startswith(("\n", "\r")):
        return applied
    return applied.fitted(warnings=(*applied.fit.warnings, CONTINUED))


def truncate(content: str, facts: Facts) -> Outcome:
    """A whole new text. Raises BaseRequired, unless it is known which version it replaces."""
    base, held = facts.base, facts.held
    if base is None:
        if held is None:
            return create(content, facts)
        raise base_required(
            facts.path,
            "the file exists, and this session has not seen all of it",
            unreadable=facts.content_hidden or held.text is None,
        )
    if facts.content_hidden and not facts.base_is_current:
        raise StaleBase(
            f"{facts.path} has changed since {show(base.version)}",
            hint="file_history shows the present version.",
            details={"path": facts.path, "base": show(base.version)},
        )
    if held is None:
        return facts.conflict(_encoded(new_document(content), facts.path))
    if facts.content_hidden:
        return _unseen(content, facts, held, at_end=False)
    if base.digest == held.digest:
        before = held.text
        after = replace_text(before, content) if before else new_document(content)
        return _applied(facts, held, before, after, "current", seen_whole=True)
    if base.digest not in facts.contents:
        return Need((base.digest,))
    old = decode(facts.contents[base.digest], like=held.document.encoding_hint if held.document else None)
    if old is None:
        return facts.conflict(_encoded(new_document(content), facts.path))
    return rebase(old, replace_text(old, content), facts, anchors=())


def _unseen(content: str, facts: Facts, held: Held, *, at_end: bool) -> Apply:
    """A text for a file that its author may not read. It fits whatever the file holds, so that no outcome tells what.

    It takes the file's encoding where that can hold it, else UTF-8; to a binary file its bytes are added.
    """
    before = held.text
    whole = before.text + content if before is not None and at_end else content
    after = new_document(whole) if before is None else replace_text(before, whole)
    try:
        data = encode(after)
    except NotEncodable:
        after = new_document(whole)
        data = encode(after)
    known = reads_back(after, data)
    if before is None and at_end:
        if isinstance(held.data, LargeContent):
            raise FileTooLarge(facts.path, f"it has {held.data.size} bytes, too many to add to it")
        data, known = held.data + data, False
    fit = Fit(base=facts.base_version, on_seen_whole=not at_end)
    return written(facts.path, held, data, before, after, document=after if known else None, fit=fit)


def rebase(old: Document, new: Document, facts: Facts, *, anchors: Sequence[tuple[int, int]]) -> Outcome:
    """Rebase a change old → new onto what the file holds.

    `anchors` are (start, length) of the lines of `old` that the change looks at; if all are
    unchanged the rung is `shifted`, else `merged`. `facts.held` must be there. Needs the outlines
    of both sides and of what comes out, where there is a grammar: it must still parse.
    """
    held = facts.held
    if held is None:
        raise ValueError("nothing to rebase onto")
    current = held.text
    if current is None:
        return facts.conflict(_encoded(new, facts.path))
    current = with_runs_of(current, old, new)
    texts = LineMerge(old.lines, current.lines, new.lines)
    merged = _merged(texts, old, new, facts, held)
    if isinstance(merged, Need):
        return merged
    if isinstance(merged, MergeConflict):
        return facts.conflict(_encoded(new, facts.path), merged.regions, merged.why)
    final = new.final_newline if new.final_newline != old.final_newline else current.final_newline
    after = merged_document(ThreeWay(old, current, new), current, merged.lines, ended=final or not current.lines)
    rung: Rung = "shifted" if anchors and merged.beyond is None and untouched(old, current, anchors) else "merged"
    if after == current:
        if not removed_already(texts):
            return _whole_conflict(facts, old, current, new, STILL_THERE)
        raise NothingToChange(
            f"{facts.path} holds this change already",
            hint="Nothing is left to do here.",
        )
    if regions := ambiguous_hunks(texts):
        return facts.conflict(_encoded(new, facts.path), regions, EQUAL_PASSAGES)
    applied = _applied(facts, held, current, after, rung, seen_whole=False)
    fitted = applied.fitted(merge=merged.report) if rung == "merged" else applied
    return structure.checked(fitted, facts, old=old, new=new, current=current)


def _merged(
    lines: LineMerge, old: Document, new: Document, facts: Facts, held: Held
) -> AutomaticMerge | MergeConflict | Need:
    """The change old → new merged into what is held; outlines are asked for only where git sees a conflict.

    Where `facts.edits` is None this is git's merge alone: what undoes a change, or was approved to the letter, is
    merged by no rule.
    """
    rules = facts.edits.merge_rules if facts.edits is not None else ()
    merged = merge_automatically(lines, path=facts.path, rules=rules)
    if not rules or (isinstance(merged, AutomaticMerge) and merged.beyond is None) or language_of(facts.path) is None:
        return merged
    texts: list[Content] = [_encoded(old, facts.path), held.data, _encoded(new, facts.path)]
    digests = [digest_of(data) for data in texts]
    if (needed := facts.need_outlines(dict(zip(digests, texts, strict=True)))) is not None:
        return needed
    outlines = ThreeWay(*(facts.outlines[digest] for digest in digests))
    return merge_automatically(lines, outlines, path=facts.path, rules=rules)


def base_required(path: WorkspacePath, why: str, *, unreadable: bool = False) -> BaseRequired:
    """The refusal of a change that could undo what its author never saw. It names no version on purpose."""
    hint = "Its content can't be shown to you; to replace it all the same, send its newest @N in file_history as base."
    return BaseRequired(f"{path}: {why}", details={"path": path}, hint=hint if unreadable else None)


def located_change(locate: Locate, facts: Facts) -> Outcome:
    """The outcome of a change that names passages: found first, then rebased onto what the file holds."""
    place = located(locate, facts)
    if isinstance(place, Need):
        return place
    held, found, edits = facts.held, place.found, place.found.edits
    if held is None:
        return facts.conflict(_encoded(splice(place.document, edits), facts.path))
    if found.alike and isinstance(broken := structure.still_parses(place.document, found, facts), Need):
        return broken
    if not place.on_current:
        return _onto_current(place, facts, held)
    seen_whole = bool(facts.base and facts.base.seen_whole) and not place.warnings
    rung: Rung = "fuzzy" if found.alike else "current"
    applied = _edited(facts, held, place.document, edits, rung, seen_whole=seen_whole)
    if place.warnings:
        applied = applied.fitted(base=facts.version)
    warnings = (*applied.fit.warnings, *place.warnings, *found.warnings)
    return applied.fitted(score=found.score, warnings=warnings)


def _onto_current(place: Place, facts: Facts, held: Held) -> Outcome:
    """From the base to what the file holds: moved with its lines, or merged; else found again; else a conflict."""
    old, found, current = place.document, place.found, held.text
    anchors = [(edit.start, edit.length) for edit in found.edits]
    new = splice(old, found.edits)
    outcome = rebase(old, new, facts, anchors=anchors)
    if isinstance(outcome, ConflictOutcome) and current is not None and outcome.why != STRAYED:
        again = found_again(old, current, found, facts)
        if again is None or isinstance(again, Need):
            return again or outcome
        applied = _edited(facts, held, current, again, "anchored", seen_whole=False)
        outcome = structure.checked(applied, facts, old=old, new=new, current=current)
    if not isinstance(outcome, Apply):
        return outcome
    if current is not None and (why := structure.misplaced(outcome, facts, found)):
        return _whole_conflict(facts, old, current, new, why)
    rung = max(outcome.fit.rung, "fuzzy" if found.alike else "current", key=RUNGS.index)
    warnings = (*outcome.fit.warnings, *found.warnings)
    return outcome.fitted(rung=rung, score=min(outcome.fit.score, found.score), warnings=warnings)


def _edited(facts: Facts, held: Held, document: Document, edits: list[Edit], rung: Rung, *, seen_whole: bool) -> Apply:
    hunks: list[LineHunk] = []
    shift = 0
    for change in edits:
        hunks.append(LineHunk(change.start, change.length, change.start + shift, len(change.lines)))
        shift += len(change.lines) - change.length
    after = splice(document, edits)
    return _applied(facts, held, document, after, rung, seen_whole=seen_whole, hunks=tuple(hunks))


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
    if digest_of(data) == held.digest and not facts.content_hidden:
        raise NothingToChange(f"{facts.path} would stay as it is", hint="Nothing is left to do here.")
    known = after if reads_back(after, data) else None
    fit = Fit(rung=rung, base=facts.base_version, on_seen_whole=seen_whole and rung == "current")
    return written(facts.path, held, data, before, after, hunks=hunks, document=known, fit=fit)


def _whole_conflict(facts: Facts, old: Document, current: Document, new: Document, why: str) -> ConflictOutcome:
    """A conflict that no line shows, from the first line that either side changed to the last."""
    return facts.conflict(_encoded(new, facts.path), (spanned(old.lines, current.lines, new.lines),), why)


def _encoded(document: Document, path: WorkspacePath) -> bytes:
    try:
        return encode(document)
    except NotEncodable as error:
        raise not_encodable(error, path) from error


def not_encodable(error: NotEncodable, path: WorkspacePath) -> CharacterNotEncodable:
    """The refusal of a text that the file's encoding cannot hold, or may hold in another way than it seems."""
    character = named(error.character)
    if error.uncertain:
        why = f"{character} can't be written, for it is not certain that the file's encoding is {error.encoding}"
        hint = "Write it in ASCII, for example as an escape, or save the file as UTF-8 first."
    elif error.character == DAMAGE:
        why = "U+FFFD stands for bytes that are no character, and which these are in the changed line is not certain"
        hint = f"Replace line {error.line} by one without U+FFFD, or leave it as it is."
    else:
        why = f"its encoding, {error.encoding}, cannot hold {character}"
        hint = f"Write that character another way in line {error.line}, for example as an escape."
    refused = CharacterNotEncodable(path, f"line {error.line}: {why}", hint=hint)
    refused.details |= {
        "line": error.line,
        "character": f"U+{ord(error.character):04X}",
        "encoding": error.encoding,
        **({"uncertain": True} if error.uncertain else {}),
    }
    return refused
