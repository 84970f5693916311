"""Unified diffs of one file: read them, and find where they go."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from orchestrator.core.errors import (
    ChangesOverlap,
    NothingToChange,
    PatchInvalid,
    SearchAmbiguous,
    SearchNotFound,
    shown_lines,
)
from orchestrator.core.text.encoding import Document, Edit
from orchestrator.core.text.nearest import nearest

Tag = Literal[" ", "-", "+"]

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(?: .*)?\Z")
_PREAMBLE = re.compile(r"(?:index |new file mode |deleted file mode |old mode |new mode |similarity index )")
_OTHER = re.compile(r"(?:rename |copy |GIT binary patch|Binary files )")
_ESCAPE = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
_UNESCAPED = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}


class PatchHunk(msgspec.Struct, frozen=True):
    """Consecutive lines of a patch.

    `old_start` is the 0-based line of the base at which the hunk says it stands. `lines` are
    (tag, text without ending) in order: `" "` context, `"-"` removed, `"+"` added. The flags say
    that a side's last line is marked as having no newline.
    """

    old_start: int
    lines: tuple[tuple[Tag, str], ...]
    old_no_newline: bool = False
    new_no_newline: bool = False

    @property
    def old(self) -> tuple[str, ...]:
        """Context and removed lines: what must stand in the base."""
        return tuple(text for tag, text in self.lines if tag != "+")


class FilePatch(msgspec.Struct, frozen=True):
    """A patch of one file. A path is None for `/dev/null`; `headed` is False where no paths are named."""

    old_path: str | None
    new_path: str | None
    hunks: tuple[PatchHunk, ...]
    headed: bool = True


def parse_unified(text: str) -> FilePatch:
    r"""Read a unified diff of one file.

    Lines may end with `\r\n`; git's preamble (`diff --git`, `index`, modes) and the `---` and `+++`
    lines may be missing, and blank lines may follow. The prefixes `a/` and `b/` are dropped where
    both are there; a quoted path is unquoted, a time stamp after a tab is dropped. An empty line
    within a hunk is an empty context line, as in GNU diff. All else raises PatchInvalid, whose
    message names the line: no hunk, counts that do not fit, several files, renames, binary patches.
    """
    return _Reader(text.replace("\r\n", "\n").split("\n")).read()


class _Reader:
    """One pass over the lines of a patch; `at` is the next."""

    def __init__(self, rows: Sequence[str]) -> None:
        self.rows = rows
        self.at = 0

    def read(self) -> FilePatch:
        self._preamble()
        names = self._names()
        hunks: list[PatchHunk] = []
        while self.at < len(self.rows):
            row = self.rows[self.at]
            if row.startswith("@@"):
                hunks.append(self._hunk())
            elif not row.strip() and not any(rest.strip() for rest in self.rows[self.at :]):
                break
            elif row.startswith(("diff ", "--- ")) and hunks:
                raise self._refused("a second file begins here; patches of several files are not supported yet")
            elif hunks and row[:1] in {" ", "+", "-", ""}:
                raise self._refused("the hunk before has more lines than its header counts")
            else:
                raise self._refused(f"{row[:60]!r} is not a hunk header")
        if not hunks:
            raise self._refused("there is no hunk ('@@ -1,3 +1,4 @@') in the patch")
        return FilePatch(names[0], names[1], tuple(hunks)) if names else FilePatch(None, None, tuple(hunks), False)

    def _preamble(self) -> None:
        heads = 0
        while self.at < len(self.rows):
            row = self.rows[self.at]
            if row.startswith("diff "):
                heads += 1
                if heads > 1:
                    raise self._refused("a second file begins here; patches of several files are not supported yet")
            elif _OTHER.match(row):
                raise self._refused("renames, copies and binary patches are not supported; use move_file or write_file")
            elif row.strip() and not _PREAMBLE.match(row):
                return
            self.at += 1

    def _names(self) -> tuple[str | None, str | None] | None:
        if self.at >= len(self.rows) or not self.rows[self.at].startswith("--- "):
            return None
        old = self._name()
        self.at += 1
        if self.at >= len(self.rows) or not self.rows[self.at].startswith("+++ "):
            raise self._refused("a '+++' line must follow the '---' line")
        new = self._name()
        self.at += 1
        if (old is None or old.startswith("a/")) and (new is None or new.startswith("b/")):
            old, new = old and old[2:], new and new[2:]
        if old is None and new is None:
            raise self._refused("both sides are /dev/null")
        return old, new

    def _name(self) -> str | None:
        raw = self.rows[self.at][4:].split("\t")[0].rstrip()
        if raw.startswith('"') and raw.endswith('"') and len(raw) > 1:
            raw = _unquoted(raw[1:-1])
        if not raw:
            raise self._refused("the path is missing")
        return None if raw == "/dev/null" else raw

    def _hunk(self) -> PatchHunk:
        header = _HUNK.match(self.rows[self.at])
        if header is None:
            raise self._refused("the hunk header is not of the form '@@ -1,3 +1,4 @@'")
        top = self.at
        old_start = int(header[1])
        old_left, new_left = (int(n) if n is not None else 1 for n in (header[2], header[4]))
        if old_left:
            old_start -= 1  # an empty span is named by the line before it
        if old_start < 0:
            raise self._refused("lines are counted from 1")
        self.at += 1
        lines: list[tuple[Tag, str]] = []
        unended = {"-": False, "+": False}
        while old_left or new_left or self._marked():
            if self.at >= len(self.rows):
                raise self._refused(f"the patch ends within the hunk of line {top + 1}")
            row = self.rows[self.at]
            if self._marked():
                self._unend(lines, unended)
            else:
                tag = self._tag(row, top)
                old_left, new_left = old_left - (tag != "+"), new_left - (tag != "-")
                if old_left < 0 or new_left < 0 or (unended["-"] and tag != "+") or (unended["+"] and tag != "-"):
                    raise self._refused(f"the counts in the hunk header of line {top + 1} do not fit its lines")
                lines.append((tag, row[1:]))
            self.at += 1
        if not lines:
            raise self._refused("the hunk is empty")
        return PatchHunk(old_start, tuple(lines), unended["-"], unended["+"])

    def _marked(self) -> bool:
        return self.at < len(self.rows) and self.rows[self.at].startswith("\\ ")

    def _unend(self, lines: Sequence[tuple[Tag, str]], unended: dict[str, bool]) -> None:
        if not lines:
            raise self._refused("the mark of a missing newline must follow a line")
        for side in ("-", "+") if lines[-1][0] == " " else (lines[-1][0],):
            unended[side] = True

    def _tag(self, row: str, top: int) -> Tag:
        if not row and self.at == len(self.rows) - 1:
            raise self._refused(f"the patch ends within the hunk of line {top + 1}")
        match row[:1]:
            case " " | "":
                return " "
            case "-":
                return "-"
            case "+":
                return "+"
            case _:
                raise self._refused(f"a line of the hunk of line {top + 1} begins with none of ' ', '-', '+'")

    def _refused(self, why: str) -> PatchInvalid:
        line = min(self.at, len(self.rows) - 1) + 1
        return PatchInvalid(
            f"line {line} of the patch: {why}.",
            hint="Send a unified diff of one file whose hunk headers count their lines, or use edit_file.",
            details={"line": line},
        )


def locate_patch(patch: FilePatch, base: Document) -> list[Edit]:
    """Where the hunks go, as edits of the base, ascending.

    A hunk stands at its stated line if its context and removed lines are there exactly, else at
    the one place where they are. A hunk marked as ending without newline stands at the end of a
    base that has none. Raises SearchNotFound, SearchAmbiguous (`details`: `hunk`, 0-based,
    and `nearest`, or 1-based `lines`), ChangesOverlap if hunks overlap or change their order, NothingToChange.
    """
    edits: list[Edit] = []
    end = 0
    for index, hunk in enumerate(patch.hunks):
        start = _place(hunk, index, base)
        if start < end:
            raise ChangesOverlap(
                f"hunk {index + 1} stands at line {start + 1}, before the end of the hunk above it.",
                details={"hunk": index, "lines": [start + 1, end]},
            )
        edits += _edits(hunk, start)
        end = start + len(hunk.old)
    if not edits:
        raise NothingToChange("the patch removes and adds no line.")
    return edits


def _place(hunk: PatchHunk, index: int, base: Document) -> int:
    old = hunk.old
    if _stands(hunk, old, hunk.old_start, base):
        return hunk.old_start
    places = [at for at in _candidates(old, base.lines) if _stands(hunk, old, at, base)] if old else []
    if len(places) == 1:
        return places[0]
    if not places:
        raise SearchNotFound(
            f"hunk {index + 1}: its context and removed lines stand nowhere in the base.",
            details={"hunk": index, "line": hunk.old_start + 1, "nearest": nearest(base.lines, old)},
        )
    lines = [at + 1 for at in places]
    raise SearchAmbiguous(
        f"hunk {index + 1} does not fit at its line {hunk.old_start + 1}, and its lines stand {len(lines)} times in "
        f"the base: lines {shown_lines(lines)}.",
        hint="Give the hunk more context, or the right line number.",
        details={"hunk": index, "lines": lines},
    )


def _stands(hunk: PatchHunk, old: tuple[str, ...], at: int, base: Document) -> bool:
    end = at + len(old)
    if end > len(base.lines) or base.lines[at:end] != old:
        return False
    return not hunk.old_no_newline or (end == len(base.lines) and not base.final_newline)


def _candidates(old: Sequence[str], lines: Sequence[str]) -> list[int]:
    """Where the longest of the old lines stands, carried to the first; ascending."""
    probe = max(range(len(old)), key=lambda at: len(old[at]))
    return [at - probe for at, line in enumerate(lines) if line == old[probe] and at >= probe]


def _edits(hunk: PatchHunk, start: int) -> list[Edit]:
    """One edit for each run of removed and added lines."""
    edits: list[Edit] = []
    at = start
    removed, added = 0, list[str]()
    for tag, text in (*hunk.lines, (" ", "")):
        if tag == "-":
            removed += 1
        elif tag == "+":
            added.append(text)
        else:
            if removed or added:
                edits.append(Edit(at, removed, tuple(added)))
            at, removed, added = at + removed + 1, 0, []
    if edits and hunk.old_no_newline != hunk.new_no_newline:
        edits[-1] = msgspec.structs.replace(edits[-1], final_newline=hunk.old_no_newline)
    return edits


def _unquoted(text: str) -> str:
    """A path out of git's C-style quotes: the escapes are bytes of its UTF-8 form."""
    raw = bytearray()
    at = 0
    for escape in _ESCAPE.finditer(text):
        raw += text[at : escape.start()].encode("utf-8", "surrogateescape")
        code = escape[1]
        raw.append(_UNESCAPED[code] if code in _UNESCAPED else int(code, 8) & 255)
        at = escape.end()
    raw += text[at:].encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "surrogateescape")
