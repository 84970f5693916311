"""Decisions that look at what a text defines: symbols replaced, and merges that must still parse."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from orchestrator.core.conflicts.sides import spanned
from orchestrator.core.content import digest_of
from orchestrator.core.decisions.decision import Apply, Facts, Need, Outcome
from orchestrator.core.errors import ChangesOverlap, SearchNotFound
from orchestrator.core.ids import show
from orchestrator.core.text.diff import diff
from orchestrator.core.text.edits import splice
from orchestrator.core.text.encoding import Document, NotEncodable, encode
from orchestrator.core.text.locate import Found, LineReplacement, Replacement, locate_changes
from orchestrator.core.text.locate_symbol import SymbolChange, find_symbols, locate_symbol
from orchestrator.core.text.matching import Passage
from orchestrator.core.text.symbols import language_of, new_errors, touched

CHECKED_BYTES = 1024 * 1024
"""Larger files are not parsed for a check: it would keep the caller waiting for seconds."""

MOST_NAMED = 20

Change = Replacement | LineReplacement | SymbolChange


def lacking(changes: Sequence[Change], facts: Facts) -> Need | None:
    """The outlines that replacing symbols needs, unless they are there."""
    if facts.held is None or not any(isinstance(change, SymbolChange) for change in changes):
        return None
    texts = {facts.held.digest: facts.held.data}
    if facts.base is not None and facts.base.digest in facts.contents:
        texts[facts.base.digest] = facts.contents[facts.base.digest]
    return facts.need_outlines(texts)


def locate_all(document: Document, changes: Sequence[Change], facts: Facts, *, lenient: bool) -> Found:
    """Where changes of all forms go. Raises as `locate_changes` and `locate_symbol`."""
    passages = [change for change in changes if not isinstance(change, SymbolChange)]
    if len(passages) == len(changes):
        return locate_changes(document, passages, lenient=lenient)
    outline = facts.outlines.get(digest_of(encode(document)))
    found = locate_changes(document, passages, lenient=lenient) if passages else Found(())
    symbols = [
        Passage(edit.start, edit.start + edit.length, (edit,))
        for index, change in enumerate(changes)
        if isinstance(change, SymbolChange)
        for edit in locate_symbol(document, outline, change, index=index)
    ]
    named = tuple(change.symbol for change in changes if isinstance(change, SymbolChange))
    found = msgspec.structs.replace(found, passages=(*found.passages, *symbols), symbols=named, named_only=not passages)
    for one, other in pairwise(found.edits):
        if other.start < one.start + one.length:
            raise ChangesOverlap(f"two changes both replace line {other.start + 1}.", details={"line": other.start + 1})
    return found


def still_parses(document: Document, found: Found, facts: Facts) -> Need | None:
    """Raise SearchNotFound where a change that misquotes a text which parses makes one of it that does not."""
    if language_of(facts.path) is None or facts.content_hidden:
        return None
    texts = [encode(text) for text in (document, splice(document, found.edits))]
    if max(map(len, texts)) > CHECKED_BYTES:
        return None
    digests = [digest_of(data) for data in texts]
    if (needed := facts.need_outlines(dict(zip(digests, texts, strict=True)))) is not None:
        return needed
    before, after = (facts.outlines[digest] for digest in digests)
    if before is None or after is None or not new_errors(before, before, after):
        return None
    line = found.passages[0].start + 1
    raise SearchNotFound(
        f"the search text is at line {line} except for typography or indentation, and with its replacement the file "
        f"would not parse as {after.language} any more.",
        hint="Send it again, quoted as the lines are there.",
        details={
            "path": facts.path,
            "line": line,
            "nearest": [{"line": p.start + 1, "end_line": p.stop, "score": found.score} for p in found.passages],
        },
    )


def misplaced(fitted: Apply, facts: Facts, found: Found) -> str:
    """Why a change that names its symbols may not go where it was rebased to, as they are elsewhere; "" if it may."""
    outline = facts.outlines.get(facts.held.digest) if facts.held else None
    if not found.symbols or outline is None:
        return ""
    hunks = fitted.paths[0].hunks
    spans: list[tuple[int, int]] = []
    for name in found.symbols:
        known = find_symbols(outline, name)
        if len(known) != 1:
            return f"where {name} occurs {len(known)} times by now"
        symbol = known[0][1]
        spans.append((symbol.line - 1, symbol.end_line))
        if not any(symbol.line - 1 <= hunk.old_start <= symbol.end_line for hunk in hunks):
            return f"and what was {name} is elsewhere by now"
    inside = (any(a <= hunk.old_start <= hunk.old_end <= b for a, b in spans) for hunk in hunks)
    if found.named_only and not all(inside):
        return f"and what was {', '.join(found.symbols[:MOST_NAMED])} is elsewhere by now"
    return ""


def checked(fitted: Apply, facts: Facts, *, old: Document, new: Document, current: Document) -> Outcome:  # noqa: PLR0911  # one return for each check
    """A change that was rebased from `old` onto `current`, looked at as code.

    A conflict where both sides parsed without errors and the result does not; else with the names of what both
    sides touched. As it was where there is no grammar, or more than 1 MB.
    """
    held, digest, written = facts.held, fitted.paths[0].after, fitted.content(fitted.paths[0])
    if held is None or written is None or digest is None or facts.content_hidden or language_of(facts.path) is None:
        return fitted
    try:
        proposed = encode(new)
    except NotEncodable:
        return fitted
    if max(len(held.data), len(proposed), len(written.data)) > CHECKED_BYTES:
        return fitted
    texts = {digest_of(proposed): proposed, held.digest: held.data, digest: written.data}
    if (needed := facts.need_outlines(texts)) is not None:
        return needed
    ours, theirs, both = (facts.outlines[key] for key in (digest_of(proposed), held.digest, digest))
    if ours is None or theirs is None or both is None or not (ours.parsed and theirs.parsed):
        return fitted
    if new_errors(theirs, ours, both):
        why = f"merged with what was changed since, it would not parse as {both.language} any more"
        return facts.conflict(proposed, (spanned(old.lines, current.lines, new.lines),), why)
    if facts.only_own_changes:
        return fitted
    same = sorted(touched(ours, diff(old.lines, new.lines)) & touched(theirs, diff(old.lines, current.lines)))
    if not same:
        return fitted
    since = f" since {show(facts.base.version)}" if facts.base else ""
    warning = (
        f"{', '.join(same[:MOST_NAMED])}: somebody else changed it too{since}; check that both changes fit together"
    )
    return fitted.fitted(same_symbol=tuple(same), warnings=(*fitted.fit.warnings, warning))
