"""The rows of a patch as sent, and the refusals that name one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from orchestrator.core.errors import PatchAmbiguous, PatchInvalid

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`]*)\Z")
_DECORATED = re.compile(r"\A(?:#{1,6} +|[-*] +|//+ *|# *)?(?:(?:file|path|filename)\s*[:=] *)?", re.IGNORECASE)
_PATH = re.compile(r"[\w.@+~\-/\\()\[\]]+\Z")
_NAMES = re.compile(r"(?:Makefile|Dockerfile|LICENSE|README|Gemfile|Rakefile|Procfile|Justfile|CHANGELOG)\Z")
_OF_A_PATCH = re.compile(
    r"\+(?! \S)|-(?! \S|--? *\Z)|@@|\*\*\* (?:Add|Update|Delete|Move|End)|diff --git |<{5,9} ?SEARCH"
)

MAX_BYTES, MAX_ROWS, MAX_FILES = 4 * 1024 * 1024, 100_000, 1000
"""Of one patch; reading it takes a fraction of a second then."""

_SPLIT = "Send it as several patches, each of files or hunks that belong together; write_file takes a long new file."


class Rows:
    """The rows, and the next one to read; rows are numbered from 0 here and from 1 in refusals."""

    def __init__(self, text: str) -> None:
        """Raises PatchInvalid for a patch over the limits and for a carriage return that ends no row."""
        rows, size = text.count("\n"), len(text.encode("utf-8", "surrogatepass"))
        if rows > MAX_ROWS or size > MAX_BYTES:
            raise PatchInvalid(
                f"the patch has {rows:,} rows and {size:,} bytes; at most {MAX_ROWS:,} and {MAX_BYTES:,} are read.",
                hint=_SPLIT,
                details={"rows": rows, "max_rows": MAX_ROWS, "bytes": size, "max_bytes": MAX_BYTES},
            )
        self.rows: Sequence[str] = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
        self.at = 0
        for at, row in enumerate(self.rows):
            if "\r" in row:
                raise self.refused("a carriage return is within the line", at)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def row(self) -> str:
        return self.rows[self.at] if self.at < len(self.rows) else ""

    @cached_property
    def last_of_a_patch(self) -> int:
        """The last row that may be of a patch: behind it is only prose."""
        return max((at for at, row in enumerate(self.rows) if not only_prose((row,))), default=-1)

    @cached_property
    def last_but_one(self) -> int:
        """The last row but one that is not blank."""
        return [-1, -1, *(at for at, row in enumerate(self.rows) if row.strip())][-2]

    @cached_property
    def closings(self) -> frozenset[int]:
        """The rows that close a fence which a row before them opened."""
        found: set[int] = set()
        marks = ""
        for at, row in enumerate(self.rows):
            if not plain_fence(row):
                continue
            if not marks:
                marks = (fence_of(row) or ("", ""))[0]
            elif closes(row, marks):
                marks = ""
                found.add(at)
        return frozenset(found)

    def refused(self, why: str, at: int | None = None, *, hint: str | None = None) -> PatchInvalid:
        """The refusal of a row: the next one, or that at `at`."""
        line = min(self.at if at is None else at, len(self.rows) - 1) + 1
        return PatchInvalid(
            f"line {line} of the patch: {why}.",
            hint=hint or "Correct it there, or use edit_file.",
            details={"line": line},
        )

    def ambiguous(self, why: str, at: int, *, hint: str | None = None) -> PatchAmbiguous:
        line = at + 1
        return PatchAmbiguous(f"line {line} of the patch: {why}.", hint=hint, details={"line": line})


def fence_of(row: str) -> tuple[str, str] | None:
    """The marks of a Markdown fence, and what is written behind them."""
    found = _FENCE.match(row)
    return (found[1], found[2].strip()) if found else None


def plain_fence(row: str) -> bool:
    """Whether a row that begins with a fence is one, and not a line of a hunk: those begin with a sign or a blank."""
    return row[:1] in {"`", "~"} and fence_of(row) is not None


def closes(row: str, marks: str) -> bool:
    """Whether a row closes the fence that these marks opened."""
    fence = fence_of(row)
    return fence is not None and not fence[1] and fence[0].startswith(marks)


def path_in(row: str) -> str | None:
    """The path that a row names and does nothing else: bare, or as a heading, in quotes, in bold, with a colon."""
    text = _DECORATED.sub("", row.strip(), count=1).strip()
    marked = text[:1] in "`*\"'" and text[:1] != ""
    text = text.rstrip(":").strip("*").strip().rstrip(":").strip("`\"'")
    if not _PATH.match(text) or text.endswith(".") or not any(c.isalnum() for c in text):
        return None
    return text if marked or "/" in text or "." in text or _NAMES.match(text) else None


def too_many(files: int) -> PatchInvalid:
    """The refusal of a patch of more files than are changed together."""
    return PatchInvalid(
        f"the patch changes {files:,} files; at most {MAX_FILES:,} are changed together.",
        hint=_SPLIT,
        details={"files": files, "max_files": MAX_FILES},
    )


def only_prose(rows: Sequence[str]) -> bool:
    """Whether no row may be a changed line or a header of a patch; lists in Markdown ("- so") are prose."""
    return not any(_OF_A_PATCH.match(row) for row in rows)
