"""The lines that a read may show, of a text in memory or of a file that is read by pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from orchestrator.core.content import LargeContent, LineRange, Signature
from orchestrator.core.errors import BinaryFile, ChangedWhileRead, FileTooLarge, ParameterInvalid, plural
from orchestrator.core.events.files import HiddenSecret
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.shown_text import Hidden, ShownText
from orchestrator.core.text.answer_space import MAX_LINE, PER_TOKEN, AnswerSpace, size, weight
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.long_lines import NEAR
from orchestrator.core.text.secrets import MOST_KEY_BYTES, MOST_KEY_LINES
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.caller import Caller
from orchestrator.engine.external.observer import Observer, warnings
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.large_texts import LargeTexts, Passage, Wanted
from orchestrator.engine.redaction import Redaction
from orchestrator.engine.services import Services

BYTES_OF_TOKEN = 4


class Asked(msgspec.Struct, frozen=True):
    """Which lines of which path; both ends may count from the end of the file. `column`: of the line `start` alone."""

    path: WorkspacePath
    start: int
    end: int | None
    column: int | None = None

    def resolved(self, total: int) -> tuple[int, int]:
        """The first and the last line, of so many. Raises ParameterInvalid."""
        start = self.start if self.start > 0 else max(1, total + 1 + self.start)
        end = total if self.end is None else self.end if self.end > 0 else total + 1 + self.end
        if end < start and (self.end is not None or start > 1):
            if self.end is not None:
                raise ParameterInvalid("end", f"{self.end} is before start, {self.start}, of {plural(total, 'line')}")
            raise ParameterInvalid("start", f"{start} is after the last line, {total}, of {self.path}")
        if start > max(total, 1):
            raise ParameterInvalid("start", f"{start} is after the last line, {total}, of {self.path}")
        return start, min(end, total)


class Window(msgspec.Struct, frozen=True):
    """Lines, of which an answer shows as many as it has room for.

    `first` is the number of the first, negative where they are counted from the end, as `last` is then. `beyond`: by
    place in `lines`, what of a line is not in its text. `hidden`: by number, as of Hidden.
    """

    first: int
    last: int | None  # that is wanted, and there; None where that is not known
    lines: Sequence[str]
    hidden: Hidden
    encoding: str
    eol: str
    total: int | None
    beyond: Mapping[int, int] = {}
    more: bool = False  # after `lines`, in the file
    final_newline: bool = True
    column: int | None = None  # the first that is shown, of the only line
    line_goes_on: bool = False

    def beyond_of(self, count: int) -> Mapping[int, int]:
        """Of the first so many lines."""
        return {at: more for at, more in self.beyond.items() if at < count}

    def part_goes_on(self, shown: Sequence[str]) -> bool:
        """Whether the line, a part of which was shown, has more."""
        return self.column is not None and (self.line_goes_on or list(shown) != list(self.lines))


def most_lines(tokens: int) -> int:
    """As many lines as so many tokens can show at most: an empty line without a number is a quarter of one."""
    return tokens * BYTES_OF_TOKEN + 1


class Windows:
    """Cuts windows, without the secrets that the caller is not shown."""

    def __init__(self, redaction: Redaction, large: LargeTexts) -> None:
        self._redaction, self._large = redaction, large

    async def of_document(
        self, caller: Caller, asked: Asked, digest: Digest, document: Document, tokens: int
    ) -> Window:
        """Of a text in memory. Raises ParameterInvalid."""
        total = document.line_count
        start, last = asked.resolved(total)
        hidden = await self._redaction.of(caller, asked.path, digest, document)
        lines = document.lines[start - 1 : min(last, start - 1 + most_lines(tokens))]
        if hidden.lines:
            lines = tuple(hidden.lines.get(number, line) for number, line in enumerate(lines, start))
        window = Window(
            start if total else 0,
            last,
            lines,
            hidden,
            document.encoding,
            document.eol,
            total,
            more=start - 1 + len(lines) < total,
            final_newline=document.final_newline,
        )
        if asked.column is None:
            return window
        return _part(window, ShownText(document, hidden).in_place(start) if lines else "", asked.column, tokens)

    async def of_large(self, caller: Caller, asked: Asked, version: Signature | LargeContent, tokens: int) -> Window:
        """Of a file that is read by pieces, or of a version of it that is kept. Raises as `LargeTexts.passage`."""
        start, end = asked.start, asked.end
        if end is not None and (start > 0) == (end > 0) and end < start:
            raise ParameterInvalid("end", f"{end} is before start, {start}")
        if asked.column is not None:
            return await self._part_of_large(caller, asked, version, tokens)
        most = most_lines(tokens)
        if end is not None and (start > 0) == (end > 0):
            most = min(most, end - start + 1)
        wanted = Wanted(
            start,
            most,
            tokens * BYTES_OF_TOKEN,
            around=MOST_KEY_LINES if self._redaction.level(caller) is not None else 0,
            counted=end is not None and (start > 0) != (end > 0),
        )
        found = await self._large.passage(asked.path, version, wanted)
        lines = found.lines[found.lead : found.lead + most]
        first = found.first + found.lead
        hidden = (await self._redaction.of_lines(caller, asked.path, found.lines)).moved(found.first - 1)
        shown = [hidden.lines.get(number, line) for number, line in enumerate(lines, first)]
        more = found.goes_on or found.lead + most < len(found.lines)
        last = _last(asked, found)
        if last is not None and last < first:
            raise ParameterInvalid("end", f"{end} is before start, {start}, of {plural(found.total or 0, 'line')}")
        if last is not None:
            shown = shown[: last - first + 1]
        return Window(
            first,
            last,
            shown,
            hidden,
            found.known.index.encoding,
            found.known.eol,
            found.total,
            {at - found.lead: count for at, count in found.beyond.items() if at >= found.lead},
            more or len(shown) < len(lines),
            final_newline=found.total is None or found.known.index.last_ended,
        )

    async def _part_of_large(
        self, caller: Caller, asked: Asked, version: Signature | LargeContent, tokens: int
    ) -> Window:
        column = asked.column or 1
        near = min(MOST_KEY_BYTES, column - 1)
        most = tokens * BYTES_OF_TOKEN + MAX_LINE
        wanted = Wanted(asked.start, 1, near + most + NEAR, column=column - near)
        found = await self._large.passage(asked.path, version, wanted)
        text, ends = found.lines[0], not found.goes_on
        hidden = await self._redaction.of_lines(caller, asked.path, [text], begun=column - near > 1)
        if self._redaction.level(caller) is not None:
            keys = await self._keys(caller, asked.path, version, found.first, column - near - 1, len(text))
            hidden = Hidden(hidden.lines or ({1: text} if keys else {}), (*hidden.found, *keys))
        shown = self._redaction.covered(caller, text, hidden)
        if len(text) <= near and column > 1:
            raise ParameterInvalid("column", f"{column} is after the end of line {asked.start} of {asked.path}")
        window = Window(
            found.first,
            found.first,
            (),
            hidden.moved(found.first - 1),
            found.known.index.encoding,
            found.known.eol,
            found.total,
            more=found.total is not None and found.first < found.total,
        )
        part = _part(window, shown[near : near + most], 1, tokens)
        return msgspec.structs.replace(
            part, column=column, line_goes_on=part.line_goes_on or not ends or len(text) > near + most
        )

    async def _keys(
        self,
        caller: Caller,
        path: WorkspacePath,
        version: Signature | LargeContent,
        line: int,
        first: int,
        length: int,
    ) -> list[HiddenSecret]:
        """What of a part of a line, of characters from `first` on, is of a key that has lines above or below it."""
        around = await self._large.passage(path, version, Wanted(line, 1, MAX_LINE, around=MOST_KEY_LINES))
        hidden = await self._redaction.of_lines(caller, path, around.lines)
        at_hand = len(around.lines[around.lead])  # of a long line its beginning alone, beyond which a key may go on
        more = MOST_KEY_BYTES if around.lead in around.beyond else 0
        spans = (
            (it, it.start - first, it.end - first + (more if it.end == at_hand else 0))
            for it in hidden.found
            if it.line == around.lead + 1
        )
        return [
            msgspec.structs.replace(it, line=1, start=max(0, start), end=min(end, length))
            for it, start, end in spans
            if start < length and end > 0
        ]


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


def _last(asked: Asked, found: Passage) -> int | None:
    """The last line that is wanted and there, numbered as the passage is; None where that is not known."""
    end = asked.end
    if found.first < 0:
        return -1 if end is None else end
    if found.total is not None:
        return found.total if end is None else min(found.total, end if end > 0 else found.total + 1 + end)
    return end


def _part(window: Window, line: str, column: int, tokens: int) -> Window:
    """A window on a part of one line. Raises ParameterInvalid."""
    if column > max(1, len(line)):
        raise ParameterInvalid("column", f"{column} is after the end of line {window.first}, which has {len(line)}")
    part = line[column - 1 :]
    shown = part[: tokens * BYTES_OF_TOKEN]
    return msgspec.structs.replace(
        window,
        last=window.first,
        lines=(shown,),
        column=column,
        more=window.total is not None and window.first < window.total,
        line_goes_on=len(shown) < len(part),
    )


def rest_of_line(path: WorkspacePath, line: int, shown: int, secrets: Iterable[HiddenSecret], at: str = "") -> str:
    """The call that goes on in a line of which so many characters were shown.

    It begins with the first secret that is in them: a marker may be longer or shorter than what it stands for.
    """
    covered = (secret.start for secret in secrets if secret.line == line)
    return f"read_file(path={quoted(path)}, start={line}, column={min((shown, *covered)) + 1}{at})"


def first_part(text: str, tokens: int, room: AnswerSpace) -> str:
    """As many characters of a line as there is room for; at least one."""
    part = text[: tokens * BYTES_OF_TOKEN]
    while len(part) > 1 and (weight(part) > tokens * PER_TOKEN or size(part) > room.bytes):
        part = part[: max(1, len(part) * 3 // 4)]
    return part
