"""What a change of passages does to a large content, as a unified diff of the lines around them. Blocking."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from orchestrator.core.content import LargeContent, LineHunk
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.line_index import LineIndex
from orchestrator.engine.reads.content_pieces import KeptPieces
from orchestrator.engine.reads.large_texts import sniffed
from orchestrator.engine.reads.line_scan import LineScan

CONTEXT = 3
MOST_BYTES = 4 * 1024 * 1024
"""Of the lines of one side."""

Blocks = Callable[[LargeContent], Iterator[bytes]]


def large_diff(
    path: WorkspacePath, blocks: Blocks, before: LargeContent, after: LargeContent, hunks: Sequence[LineHunk]
) -> str | None:
    """The hunks, with context; None where their lines are too many bytes, or no text."""
    old, new = (_Side(path, blocks, content) for content in (before, after))
    rows: list[str] = []
    for group in _groups(hunks):
        first, last = group[0], group[-1]
        start, end = max(0, first.old_start - CONTEXT), min(old.total, last.old_end + CONTEXT)
        to, until = start + first.new_start - first.old_start, end + last.new_end - last.old_end
        was, now = old.lines(start, end), new.lines(to, until)
        if was is None or now is None:
            return None
        rows.append(f"@@ -{_span(start, end)} +{_span(to, until)} @@\n")
        at = start
        for hunk in group:
            rows += (f" {line}" for line in was[at - start : hunk.old_start - start])
            rows += (f"-{line}" for line in was[hunk.old_start - start : hunk.old_end - start])
            rows += (f"+{line}" for line in now[hunk.new_start - to : hunk.new_end - to])
            at = hunk.old_end
        rows += (f" {line}" for line in was[at - start :])
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


class _Side:
    """Lines of a content of the journal."""

    def __init__(self, path: WorkspacePath, blocks: Blocks, content: LargeContent) -> None:
        self._pieces, self._room = KeptPieces(partial(blocks, content), content.size), MOST_BYTES
        self._hint = sniffed(path, self._pieces, content.size)
        index = LineIndex.empty(self._hint.encoding, content.size)
        self._scan = LineScan(self._pieces, index, content.size)
        self._scan.look_through(None, content.size)
        self.total = self._scan.total or 0

    def lines(self, start: int, end: int) -> list[str] | None:
        """From the 0-based `start` to before `end`, with their ends."""
        begin, stop = (
            self._scan.offset_of(line + 1) if line < self.total else self._scan.size for line in (start, end)
        )
        self._room -= stop - begin
        hint = self._hint.encoding_hint
        document = decode(self._pieces.read(begin, stop - begin), written=hint, like=hint) if self._room > 0 else None
        if document is None:
            return None
        ends = ["\n" if end else "" for end in document.ends]
        return [line + end for line, end in zip(document.lines, ends, strict=True)]


def _groups(hunks: Sequence[LineHunk]) -> list[list[LineHunk]]:
    """Those whose context would meet are shown as one."""
    groups: list[list[LineHunk]] = []
    for hunk in hunks:
        if groups and hunk.old_start - groups[-1][-1].old_end <= 2 * CONTEXT:
            groups[-1].append(hunk)
        else:
            groups.append([hunk])
    return groups


def _span(start: int, end: int) -> str:
    return f"{start + 1 if end > start else start},{end - start}"
