"""Passages of a file that is read by pieces, by line numbers, as a caller is shown them."""

from __future__ import annotations

from typing import NamedTuple

from orchestrator.core.content import LineRange, Signature
from orchestrator.core.errors import BinaryFile, ChangedWhileRead, FileTooLarge
from orchestrator.core.ids import Seq, WorkspacePath
from orchestrator.core.shown_text import Hidden
from orchestrator.core.text.answer_space import MAX_LINE
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.caller import Caller
from orchestrator.engine.external.observer import Observer, warnings
from orchestrator.engine.reads.large_texts import LargeTexts
from orchestrator.engine.reads.windows import Asked, Windows
from orchestrator.engine.services import Services


class CountedFile(NamedTuple):
    """The present version of a large file, whose lines were counted."""

    version: Seq
    signature: Signature
    total: int
    encoding: str
    eol: str
    warnings: tuple[str, ...]


class LargePassages:
    """What of a large file answers show that are not made of all of it."""

    def __init__(self, services: Services, observer: Observer, large: LargeTexts) -> None:
        self._observer, self._large, self._windows = observer, large, Windows(services.redaction, large)

    async def counted(self, access: ContentAccess, refused: FileTooLarge) -> CountedFile:
        """The file, whose lock the caller holds; `refused` is raised where it is not read by pieces.

        Raises BinaryFile, ChangedWhileRead, LinesNotCounted.
        """
        path, present = access.path, await self._observer.refresh_for_display(access)
        if not present.large:
            raise refused
        if present.entry is None or present.entry.signature is None:
            raise ChangedWhileRead(path, "it was replaced while it was read")
        signature = present.entry.signature
        known = await self._large.known(path, signature)
        if known is None:
            raise BinaryFile(path, "it is not text, or was changed while it was read")
        await self._large.numbers(path, signature, (), 0, 0)
        total = known.index.total(signature.size) or 0
        return CountedFile(present.entry.version, signature, total, known.index.encoding, known.eol, warnings(present))

    async def lines(
        self, caller: Caller, path: WorkspacePath, file: CountedFile, *spans: LineRange
    ) -> tuple[dict[int, str], Hidden, dict[int, int]]:
        """Lines by number, of spans that share none; what of them is hidden; and by number what is not at hand."""
        rows, hidden, beyond = dict[int, str](), Hidden({}, ()), dict[int, int]()
        for span in spans:
            if span.end < span.start:
                continue
            tokens = (span.end - span.start + 1) * MAX_LINE
            window = await self._windows.of_large(caller, Asked(path, span.start, span.end), file.signature, tokens)
            rows |= enumerate(window.lines, window.first)
            beyond |= {at + window.first: more for at, more in window.beyond.items()}
            hidden = Hidden({**hidden.lines, **window.hidden.lines}, (*hidden.found, *window.hidden.found))
        return rows, hidden, beyond
