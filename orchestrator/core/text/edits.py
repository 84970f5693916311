"""Edits of a document: the lines that they name are replaced, and no other line loses a byte."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from orchestrator.core.text.diff import diff
from orchestrator.core.text.encoding import DAMAGE, Document
from orchestrator.core.text.lines import split


class Edit(msgspec.Struct, frozen=True):
    """Lines to be in the place of `length` lines from the 0-based `start` on.

    The new lines are without endings. `final_newline` says whether the text shall end with one;
    it counts only in an edit that reaches the end of the document, and None leaves it as it was.
    """

    start: int
    length: int
    lines: tuple[str, ...]
    final_newline: bool | None = None


def splice(doc: Document, edits: Sequence[Edit], *others: Document) -> Document:
    r"""Put edits in place. They are in the document's coordinates, ascending, and do not overlap.

    Untouched lines keep their endings. A new line takes the ending of the line that it replaces,
    position by position; one beyond those takes that of the line before it, else of the line
    after it, else the document's commonest, else `\n`. Where an edit writes the last line, it has an
    ending if the old last line had one, or as the edit says; an empty document counts as ended.
    One byte outside the edits may change: where a removal would join a line ended by `\r` to an
    empty one ended by `\n`, the former gets `\r\n`, or the two would be read as one.
    `others`: versions of the same file, whose damaged lines may come back.
    Raises ValueError for edits out of order, out of range, or with a line ending in a line.
    """
    _check(doc, edits)
    kinds = doc.kinds - {""}
    tally = Counter(filter(None, doc.ends) if len(kinds) > 1 else kinds)  # to count takes long: only where it must be
    common = next((end for end, _ in tally.most_common(1)), "\n")
    lines: list[str] = []
    ends: list[str] = []
    at = 0
    final: bool | None = None
    for edit in edits:
        lines += doc.lines[at : edit.start]
        ends += doc.ends[at : edit.start]
        at = edit.start + edit.length
        lines += edit.lines
        ends += doc.ends[edit.start : at][: len(edit.lines)]
        after = doc.ends[at] if at < len(doc.ends) else ""
        ends += [_near(ends, after or common)] * (len(lines) - len(ends))
        if at == len(doc.lines):
            if edit.final_newline is not None:
                final = edit.final_newline
            elif edit.lines and final is None:
                final = doc.final_newline or not doc.lines
    lines += doc.lines[at:]
    ends += doc.ends[at:]
    if "" in doc.kinds and "" in ends[:-1]:
        at = ends.index("")  # once in the old document, so at most once here
        ends[at] = _near(ends[:at], ends[at + 1] or common)
    if final is True and ends and not ends[-1]:
        ends[-1] = _near(ends, common)
    elif final is False and ends:
        ends[-1] = ""
        if not lines[-1]:  # an empty line without an ending is no line
            lines.pop()
            ends.pop()
    if "\r" in doc.kinds:
        for at, (end, following) in enumerate(pairwise(ends)):
            if end == "\r" and following == "\n" and not lines[at + 1]:
                ends[at] = "\r\n"
    return Document(tuple(lines), tuple(ends), doc.encoding, _kept(doc, edits, others), doc.runs)


def replace_text(doc: Document, text: str) -> Document:
    r"""The document with a whole new text.

    Lines that are equal keep their endings and the others take them as in `splice`, so a document
    with one kind of ending keeps that; encoding and byte order mark stay. A text that itself
    holds a `\r` is taken as it is. Cost: that of `diff`.
    """
    lines, ends = split(text)
    if "\r" in text:
        kept = splice(doc, edits_between(doc, lines, True)).kept if doc.kept else {}
        return Document(tuple(lines), tuple(ends), doc.encoding, kept, doc.runs)
    final = not ends or ends[-1] != ""
    return splice(doc, edits_between(doc, lines, final))


def edits_between(
    doc: Document, lines: Sequence[str], final_newline: bool, *, start: int = 0, stop: int | None = None
) -> list[Edit]:
    """The fewest edits that put these lines in the place of those from `start` to before `stop`.

    `final_newline` says whether the last of the lines is ended; it counts where `stop` is the
    document's end (the default).
    """
    stop = len(doc.lines) if stop is None else stop
    edits = [
        Edit(start + hunk.old_start, hunk.old_len, tuple(lines[hunk.new_start : hunk.new_end]))
        for hunk in diff(doc.lines[start:stop], lines)
    ]
    if not lines or stop < len(doc.lines):
        return edits
    if edits and edits[-1].start + edits[-1].length == stop:
        edits[-1] = msgspec.structs.replace(edits[-1], final_newline=final_newline)
    elif final_newline != doc.final_newline:
        edits.append(Edit(stop, 0, (), final_newline))
    return edits


def _check(doc: Document, edits: Sequence[Edit]) -> None:
    at = 0
    for edit in edits:
        if edit.start < at or edit.length < 0 or edit.start + edit.length > len(doc.lines):
            raise ValueError(f"edit at {edit.start}, {edit.length} lines: out of order or out of range")
        if any("\n" in line or "\r" in line for line in edit.lines):
            raise ValueError(f"edit at {edit.start}: a line ending inside a line")
        at = edit.start + edit.length


def _near(ends: Sequence[str], otherwise: str) -> str:
    """The ending of the last line, or of the one before it where the last has none."""
    return next((end for end in reversed(ends[-2:]) if end), otherwise)


def _kept(doc: Document, edits: Sequence[Edit], others: Sequence[Document]) -> dict[int, bytes]:
    """The bytes of damaged lines beside the edits, and of new lines that read as damaged ones do.

    Those that the edits take away come first. A new line that is like two different ones, or where damaged ones go
    like none, gets bytes that it does not read as, so that it can't be encoded.
    """
    versions = [other for other in (doc, *others) if other.kept and other.encoding == doc.encoding]
    if not versions:
        return {}
    known, lost = defaultdict[str, set[bytes]](set), defaultdict[str, set[bytes]](set)
    for version in versions:
        for line, raw in version.kept.items():
            known[version.lines[line]].add(raw)
    for edit in edits:
        for line in doc.kept.keys() & range(edit.start, edit.start + edit.length):
            lost[doc.lines[line]].add(doc.kept[line])
    kept: dict[int, bytes] = {}
    at = shift = 0
    for edit in (*edits, Edit(len(doc.lines), 0, ())):
        kept |= {line + shift: doc.kept[line] for line in range(at, edit.start) if line in doc.kept}
        at = edit.start + edit.length
        for line, new in enumerate(edit.lines, edit.start + shift):
            if DAMAGE in new and (lost or new in known):
                raws = lost.get(new) or known.get(new) or set()
                kept[line] = min(raws) if len(raws) == 1 else b""
        shift += len(edit.lines) - edit.length
    return kept
