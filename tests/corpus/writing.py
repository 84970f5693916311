"""Good patches, written by other means than ours: difflib's hunks, in every form."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import msgspec

from tests.corpus.bases import Change


class Hunk(msgspec.Struct, frozen=True):
    """Rows with their signs, without line ends; starts are 1-based, as in a header."""

    old_start: int
    new_start: int
    rows: tuple[str, ...]

    @property
    def old(self) -> tuple[str, ...]:
        return tuple(row[1:] for row in self.rows if row[:1] in " -")

    @property
    def new(self) -> tuple[str, ...]:
        return tuple(row[1:] for row in self.rows if row[:1] in " +")

    def header(self, *, more: int = 0, shift: int = 0) -> str:
        old, new = len(self.old) + more, len(self.new) + more
        return f"@@ -{self.old_start + shift},{old} +{self.new_start + shift},{new} @@"


def hunks_of(change: Change, context: int = 3) -> list[Hunk]:
    """Rows of a missing newline (`\\ No …`) are left out; see `marked`."""
    before, after = change.before.splitlines(keepends=True), change.after.splitlines(keepends=True)
    hunks = []
    for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(context):
        rows: list[str] = []
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                rows += [f" {row}" for row in before[i1:i2]]
            else:
                rows += [f"-{row}" for row in before[i1:i2]]
                rows += [f"+{row}" for row in after[j1:j2]]
        hunks.append(Hunk(group[0][1] + 1, group[0][3] + 1, tuple(row.rstrip("\n") for row in rows)))
    return hunks


def marked(change: Change, hunk: Hunk, *, always: bool = False) -> list[str]:
    """The rows, with a mark behind each side's last line where that ends the file without a newline."""
    before, after = change.before.splitlines(), change.after.splitlines()
    mark = "\\ No newline at end of file"
    ends_old = hunk.old_start - 1 + len(hunk.old) == len(before)
    ends_new = hunk.new_start - 1 + len(hunk.new) == len(after)
    old = ends_old and (always or not change.before.endswith("\n"))
    new = ends_new and (always or not change.after.endswith("\n"))
    rows: list[str] = []
    last_old = max((at for at, row in enumerate(hunk.rows) if row[:1] in " -"), default=-1)
    last_new = max((at for at, row in enumerate(hunk.rows) if row[:1] in " +"), default=-1)
    for at, row in enumerate(hunk.rows):
        rows.append(row)
        if (at == last_old and old and row[0] != "+") or (at == last_new and new and row[0] == "+"):
            rows.append(mark)
    return rows


def unified(change: Change, *, head: Sequence[str] | None = None, context: int = 3) -> list[str]:
    """A good unified diff, as rows."""
    rows = list(head if head is not None else (f"--- a/{change.path}", f"+++ b/{change.path}"))
    for hunk in hunks_of(change, context):
        rows += [hunk.header(), *marked(change, hunk)]
    return rows


def heading_of(change: Change, hunk: Hunk) -> str | None:
    """The line of the definition around a hunk's first changed line, as a model quotes it."""
    lines = change.before.splitlines()
    first = hunk.old_start - 1 + next(at for at, row in enumerate(hunk.rows) if row[:1] in "-+")
    words = ("def ", "class ", "func ", "export function ", "export async function ", "if __name__", "[", "## ")
    for at in range(min(first, len(lines)) - 1, -1, -1):
        if lines[at].strip().startswith(words):
            return lines[at].strip()
    return None


def blocks(change: Change, context: int = 3) -> list[str]:
    """Search and replace blocks, as rows."""
    rows: list[str] = []
    for hunk in hunks_of(change, context):
        rows += ["<<<<<<< SEARCH", *hunk.old, "=======", *hunk.new, ">>>>>>> REPLACE"]
    return rows


def begin_patch(change: Change, *, headings: bool = False, end: bool = True) -> list[str]:
    rows = ["*** Begin Patch", f"*** Update File: {change.path}"]
    for hunk in hunks_of(change):
        heading = heading_of(change, hunk) if headings else None
        rows += [f"@@ {heading}" if heading else "@@", *hunk.rows]
    return [*rows, "*** End Patch"] if end else rows


def occurrences(before: str, passage: Sequence[str]) -> int:
    """How often a passage stands in a text; counted in the plainest way."""
    lines = before.splitlines()
    return sum(lines[at : at + len(passage)] == list(passage) for at in range(len(lines) - len(passage) + 1))
