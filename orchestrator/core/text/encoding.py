"""Decodes a file's bytes to lines and encodes them back without losing a byte.

A document remembers encoding, byte order mark and the ending of each line, so that a change
touches the bytes of the lines that it names and no others. Some files hold bytes that are no character: such a line
of UTF-8 is shown with U+FFFD for each piece that can't be read, and its bytes are kept beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Literal

import msgspec

from orchestrator.core.content import Content, LargeContent
from orchestrator.core.text.charsets import (
    DOUBT,
    LEGACY,
    MARKS,
    RUN,
    Encoding,
    Legacy,
    codec_of,
    decoded,
    guess,
    holds,
    legacy,
    marked,
    named,
    slightly_damaged,
)
from orchestrator.core.text.lines import join, split

Eol = Literal["lf", "crlf", "cr", "mixed", "none"]

SNIFFED_BYTES = 8_000
"""A NUL within these makes a file binary, as in git, unless it begins as UTF-16 does."""
MOST_DAMAGES = 1_000
"""Pieces that are no character, in a file that counts as text; of a large one, one in 10,000 bytes."""
MOST_DOUBTED_BYTES = 4 * 1024 * 1024
"""A larger file of which nobody can say in which encoding it is counts as binary: to read one as text takes a second
for each 8 MiB, and gives what nobody wrote."""
DAMAGE = "\ufffd"
"""Stands for bytes that are no character."""
_END = re.compile(rb"(\r\n|\n|\r)")
_EOLS: dict[str, Eol] = {"\n": "lf", "\r\n": "crlf", "\r": "cr", "": "none"}


class NotEncodable(ValueError):
    """The encoding has no bytes for a character; `line` is 1-based.

    `uncertain`: little speaks for the encoding, so the file may write the character in another way.
    """

    def __init__(self, character: str, line: int, encoding: str, *, uncertain: bool = False) -> None:
        why = "it is not certain that {} is how the file writes {}" if uncertain else "{} cannot hold {}"
        super().__init__(f"line {line}: {why.format(encoding, named(character))}")
        self.character, self.line, self.encoding, self.uncertain = character, line, encoding, uncertain


PACKED_LINES = 4096
"""Of a text that is packed or encoded, in one piece: one call for all of it would hold the interpreter lock."""


class Document(msgspec.Struct, frozen=True, dict=True):
    """A text file: its lines, what ends each, and how they become bytes.

    `ends` is as long as `lines`; each is a newline, a carriage return, or both, and only the last
    may be empty. A line holds neither character. `kept` has, by 0-based line, the bytes of lines
    of UTF-8 that are damaged; nearly always none. `runs`, where the encoding is in doubt, are the
    runs of characters beyond ASCII that its bytes gave; no others can be written.
    """

    lines: tuple[str, ...]
    ends: tuple[str, ...]
    encoding: Encoding = "utf-8"
    kept: dict[int, bytes] = {}
    runs: frozenset[str] | None = None

    def __reduce__(self) -> tuple[Callable[..., Document], tuple[object, ...]]:
        """Packed piece by piece: in one go, the lines of a large text would keep the interpreter for 0.1 s."""
        starts = range(0, len(self.lines), PACKED_LINES)
        pieces = tuple(join(self.lines[at : at + PACKED_LINES], self.ends[at : at + PACKED_LINES]) for at in starts)
        return _unpacked, (pieces, self.encoding, self.kept, self.runs)

    @property
    def encoding_hint(self) -> str:
        """The encoding as `decode` takes it of another version."""
        return self.encoding if self.runs is None else self.encoding + DOUBT

    @property
    def text(self) -> str:
        """The text as callers see it: every ending is a newline. Built anew on each use."""
        return "\n".join(self.lines) + "\n" if self.final_newline else "\n".join(self.lines)

    @cached_property
    def eol(self) -> Eol:
        """The one ending that all lines have, `mixed`, or `none` where no line has any. Found out on the first use."""
        kinds = self.kinds - {""}
        return "mixed" if len(kinds) > 1 else _EOLS["".join(kinds)]

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The endings that its lines have; `""` where the last has none."""
        return frozenset(self.ends)

    @property
    def final_newline(self) -> bool:
        return bool(self.ends) and self.ends[-1] != ""

    @property
    def line_count(self) -> int:
        return len(self.lines)


def _unpacked(
    pieces: tuple[str, ...], encoding: Encoding, kept: dict[int, bytes], runs: frozenset[str] | None
) -> Document:
    lines, ends = split("".join(pieces))
    return Document(tuple(lines), tuple(ends), encoding, kept, runs)


def decode(data: Content, *, written: str | None = None, like: str | None = None) -> Document | None:  # noqa: PLR0911  # one return for each way that a text may be encoded
    """Read a file's bytes; None for a binary file, and for one that stays out of memory.

    A byte order mark says it, and then no byte of UTF-16 may be damaged; a NUL in the first `SNIFFED_BYTES` makes it
    binary; then `written`, the encoding in which we wrote these very bytes; strict UTF-8; `like`, that of an
    earlier version (if it is one that must be remembered), also where all is ASCII; UTF-8 with a few damages; a
    guess, which ends with latin-1.
    A guess for which little speaks leaves the document in doubt, and so does an encoding that is given with one;
    bytes of over `MOST_DOUBTED_BYTES` that would be in doubt are binary.
    Line ends are at the same bytes in every one of these. Cost: O(len(data)); of UTF-8 one strict decoding.
    """
    if isinstance(data, LargeContent):
        return None
    mark = marked(data)
    if mark in ("utf-16-le", "utf-16-be"):
        wide = holds(data[2:], mark)
        return None if wide is None or "\0" in wide[:SNIFFED_BYTES] else new_document(wide, mark)
    if b"\0" in data[:SNIFFED_BYTES]:
        return None
    if (known := _legacy(data, *legacy(written))) is not None:
        return known
    body = data.removeprefix(MARKS["utf-8-sig"])
    encoding: Encoding = mark or "utf-8"
    try:
        text = decoded(body, "utf-8")
    except UnicodeDecodeError:
        if (known := _legacy(data, *legacy(like))) is not None:
            return known
        if encoding == written or slightly_damaged(body, most=max(MOST_DAMAGES, len(body) // 10_000)):
            return _with_kept(body, encoding)
        guessed, certain = guess(data)
        if not certain and len(data) > MOST_DOUBTED_BYTES:
            return None
        return _legacy(data, guessed, not certain)
    if mark is None and data.isascii() and (known := _legacy(data, *legacy(like))) is not None:
        return known
    return new_document(text, encoding)


def encode(doc: Document) -> bytes:
    """The document's bytes; of what `decode` gave, exactly the bytes that it was given.

    Raises NotEncodable for the first character that the encoding lacks, or that a document in doubt has not had
    before, and for a damaged line that was changed in part, or may be one of two: its bytes are not known then.
    """
    _check_runs(doc)
    codec, step = codec_of(doc.encoding), 1 if doc.kept else PACKED_LINES
    pieces = [MARKS.get(doc.encoding, b"")]
    for at in range(0, len(doc.lines), step):
        try:
            if at in doc.kept:
                if doc.kept[at].decode(codec, "replace") != doc.lines[at]:
                    raise NotEncodable(DAMAGE, at + 1, doc.encoding)
                pieces.append(doc.kept[at] + doc.ends[at].encode(codec))
            else:
                pieces.append(join(doc.lines[at : at + step], doc.ends[at : at + step]).encode(codec))
        except UnicodeEncodeError as error:
            ends = split(error.object[: error.start])[1]
            line = at + len(ends) - ends.count("") + 1
            raise NotEncodable(error.object[error.start], line, doc.encoding) from None
    return b"".join(pieces)


def with_runs_of(doc: Document, *others: Document) -> Document:
    """A document in doubt that may be given what is in these, other versions of the same file."""
    if doc.runs is None:
        return doc
    more = (other.runs for other in others if other.runs is not None and other.encoding == doc.encoding)
    return msgspec.structs.replace(doc, runs=doc.runs.union(*more))


def _check_runs(doc: Document) -> None:
    if doc.runs is None:
        return
    text = doc.text
    for run in RUN.finditer(text):
        if run[0] not in doc.runs:
            raise NotEncodable(run[0][0], text.count("\n", 0, run.start()) + 1, doc.encoding, uncertain=True)


EMPTY = Document((), ())
"""The text of a file without lines."""


def remembered(doc: Document | None) -> str | None:
    """The document's encoding, as `decode` takes it, where the bytes alone do not say it for certain."""
    return doc.encoding_hint if doc is not None and (doc.encoding in LEGACY or doc.kept) else None


def reads_back(doc: Document, data: bytes) -> bool:
    """Whether decoding these bytes gives the document again, knowing in what it was written.

    Not so where new text looks like a mark, or is binary, or has a character that the encoding reads as another.
    """
    if doc.encoding == "utf-8" and not doc.kept:
        return b"\0" not in data[:SNIFFED_BYTES] and marked(data) is None
    return decode(data, written=doc.encoding_hint) == doc


def _legacy(data: bytes, encoding: Legacy | None, in_doubt: bool) -> Document | None:
    """Text in an encoding that must be remembered; None unless one is given that holds all of the bytes."""
    text = holds(data, encoding) if encoding is not None else None
    if encoding is None or text is None:
        return None
    doc = new_document(text, encoding)
    return msgspec.structs.replace(doc, runs=frozenset(RUN.findall(doc.text))) if in_doubt else doc


def _with_kept(body: bytes, encoding: Encoding) -> Document:
    """UTF-8 with bytes that are no character. No byte of a longer character is a line feed or a carriage return."""
    pieces = _END.split(body)
    raw, ends = pieces[::2], [end.decode("ascii") for end in pieces[1::2]]
    if raw[-1]:
        ends.append("")
    else:
        raw.pop()
    lines = [line.decode("utf-8", "replace") for line in raw]
    kept = {at: line for at, line in enumerate(raw) if lines[at].encode() != line}
    return Document(tuple(lines), tuple(ends), encoding, kept)


def new_document(text: str, encoding: Encoding = "utf-8") -> Document:
    """A document with the endings that the text has; as UTF-8 for a file that is yet to be."""
    lines, ends = split(text)
    return Document(tuple(lines), tuple(ends), encoding)
