"""Changes of passages of large files: decided on the lines around them, and made as splices of the content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain

import msgspec
from anyio import to_thread

from orchestrator.core import errors as e
from orchestrator.core.change import PathChange
from orchestrator.core.content import (
    RUNGS,
    Content,
    LargeContent,
    LineHunk,
    Rung,
    Splice,
    SplicedContent,
    digest_of,
)
from orchestrator.core.decisions.commands import Command, Edit, Write
from orchestrator.core.decisions.decision import Apply, Base, Facts, Held, NewContent
from orchestrator.core.decisions.patches import FilePart, Patch
from orchestrator.core.decisions.rebase import base_required
from orchestrator.core.decisions.structure import Change
from orchestrator.core.errors import MOST_PLACES, shown_lines
from orchestrator.core.ids import Digest, WorkspacePath, show
from orchestrator.core.splices import ToSplice, are_few, composed, root_of, size_after, spliced
from orchestrator.core.text.charsets import codec_of
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.forms.hunks import FilePatch, PatchHunk
from orchestrator.core.text.line_index import LineIndex
from orchestrator.core.text.lines import plain
from orchestrator.core.text.locate import LineReplacement, Replacement, strip_line_numbers
from orchestrator.engine.changes.large_excerpts import MOST_PLACES as MOST_FOUND
from orchestrator.engine.changes.large_excerpts import Excerpt, cut_excerpt, find_all
from orchestrator.engine.reads.large_texts import sniffed
from orchestrator.engine.reads.line_scan import LineScan, Shrunk
from orchestrator.engine.services import Services
from orchestrator.ports.workspace import ChangedMeanwhile, FilePieces, blocks_of

ENDS = ("\n", "\r\n", "\r")

Places = list[tuple[int, int]]
"""Offset and length."""


class Sought(msgspec.Struct, frozen=True):
    """A passage that a change quotes. `number` counts the changes or hunks from 0."""

    text: str
    name: str
    number: int
    of_patch: bool = False
    once: bool = False  # as it is known by its line alone, it must be at one place

    def forms(self, codec: str, *, bare: bool = False) -> tuple[bytes, ...]:
        """Its bytes, with each kind of line end; none where the encoding has not all of its characters.

        `bare`: without the line numbers with which it was pasted. Of a patch with the ends of the lines around it.
        """
        text = plain((strip_line_numbers(self.text) if bare and not self.of_patch else None) or self.text)
        if bare and text == plain(self.text):
            return ()
        forms = [text.replace("\n", end) for end in ENDS] if text else []
        if self.of_patch:
            forms = [
                form
                for end in ENDS
                for before in (end[-1], "\n")
                for after in (end[0], "\n")
                if "\r\n" not in (form := before + text.replace("\n", end) + after) or len(end) == 2
            ]
        try:
            return tuple(dict.fromkeys(form.encode(codec) for form in forms))
        except UnicodeEncodeError:
            return ()


class Excerpted(msgspec.Struct, frozen=True):
    """A command and its facts, with excerpts in the place of large contents."""

    command: Command
    facts: dict[WorkspacePath, Facts]
    excerpts: Mapping[WorkspacePath, Excerpt]
    held: Mapping[WorkspacePath, LargeContent]
    rung: Rung = "current"
    warnings: tuple[str, ...] = ()

    def of_file(self, error: e.CallerError) -> e.CallerError:
        """A refusal about an excerpt, as one about the file."""
        if len(self.excerpts) == 1:
            next(iter(self.excerpts.values())).of_file(error)
        return error

    def renumbered(self, plan: Apply) -> tuple[str, ...]:
        """The warnings of a plan for an excerpt, as for the file."""
        (excerpt, *more) = self.excerpts.values()
        return plan.fit.warnings if more else tuple(map(excerpt.renumbered, plan.fit.warnings))


class LargeEdits:
    """Has changes of large files decided as those of small ones are."""

    def __init__(self, services: Services) -> None:
        self._s = services

    async def excerpted(self, command: Command, facts: dict[WorkspacePath, Facts]) -> Excerpted | None:
        """None where no passage of a large file is to be changed.

        Raises FileTooLarge, BinaryFile, SearchNotFound, SearchAmbiguous, StaleBase; ChangedMeanwhile.
        """
        large = [path for path in _passages_in(command) if _is_large(facts[path])]
        if not large:
            return None
        excerpts: dict[WorkspacePath, Excerpt] = {}
        held: dict[WorkspacePath, LargeContent] = {}
        facts, warnings = dict(facts), list[str]()
        rung: Rung = "current"
        for path in large:
            here = facts[path]
            sought, lines = _sought(command, path)
            old = await self._base(here)
            looking = partial(self._looked, here, sought, lines, old, at_end=_at_end(command))
            try:
                found = await to_thread.run_sync(looking)
            except Shrunk:
                raise ChangedMeanwhile(path) from None
            excerpt, moved, warning, like = found
            content, digest = here.required().data, digest_of(excerpt.data)
            document = decode(excerpt.data, written=like, like=like)
            if document is None or not isinstance(content, LargeContent):
                raise e.BinaryFile(path, "it is not text, so it has no lines to change")
            base = here.base and Base(here.base.version, digest, here.base.implied)
            shown = Held(excerpt.data, digest, here.required().mode, document)
            facts[path] = msgspec.structs.replace(here, held=shown, base=base, edits=None)
            excerpts[path], held[path] = excerpt, content
            command = _in_excerpt(command, path, excerpt, moved)
            rung = "shifted" if old is not None else rung
            warnings += [warning] if warning else []
        return Excerpted(command, facts, excerpts, held, rung, tuple(warnings))

    async def _base(self, here: Facts) -> Content | None:
        """The content that the change was made against, where that is another one. Raises VersionNotKept."""
        base = here.base
        if base is None or base.digest == here.required().digest:
            return None
        if base.implied:
            return await self._s.contents.find(base.digest)
        return await self._s.contents.need(base.digest, f"{here.path} at {show(base.version)}")

    # --- in a thread --------------------------------------------------------------------

    def _looked(
        self,
        here: Facts,
        sought: Sequence[Sought],
        lines: Sequence[LineReplacement],
        old: Content | None,
        *,
        at_end: bool,
    ) -> tuple[Excerpt, dict[LineReplacement, int], str, str]:
        """The excerpt; where lines that were named by number are now; a warning; and the encoding."""
        path = here.path
        with closing(self._opened(here)) as pieces:
            size = pieces.stat.signature.size
            sample = sniffed(path, pieces, size)
            if sample.encoding in ("utf-16-le", "utf-16-be"):
                raise e.FileTooLarge(
                    path,
                    f"it is {sample.encoding} and has {size} bytes; passages of such a file can't be changed",
                    hint="Replace the file: write_file with mode 'truncate', all of its content, and as `base` its "
                    "newest @N in file_history. A person can raise limits.in_memory_bytes in the policy.",
                )
            codec = codec_of(sample.encoding)
            moved = (
                [Sought(one.expect.removesuffix("\n"), "", 0, once=True) for one in lines] if old is not None else []
            )
            found = _places(blocks_of(pieces), size, [*sought, *moved], codec)
            scan = LineScan(pieces, LineIndex.empty(sample.encoding, size), size)
            scan.look_through(None, size)
            warning = self._compared(here, old, [*sought, *moved], codec, found)
            for one, places in zip(sought, found, strict=False):
                _check_places(here, one, places, scan)
            _check_lines(lines, scan.total or 0)
            now = dict[LineReplacement, int]()
            for named, places in zip(lines, found[len(sought) :], strict=False):
                now[named] = scan.number_of(places[0][0])
            ranges = [(start := now.get(named, named.start), start + named.end - named.start) for named in lines]
            everything = [place for places in found for place in places]
            if at_end or not (everything or ranges):
                ranges.append((max(1, scan.total or 1), max(1, scan.total or 1)))
            excerpt = cut_excerpt(path, scan, pieces.read, everything, ranges)
            self._check_unmoved(here, pieces)
        return excerpt, now, warning, sample.encoding_hint

    def _opened(self, here: Facts) -> FilePieces:
        """Raises ChangedMeanwhile where it is not what was hashed."""
        pieces = self._s.workspace.pieces(here.path)
        try:
            self._check_unmoved(here, pieces)
        except ChangedMeanwhile:
            pieces.close()
            raise
        return pieces

    def _check_unmoved(self, here: Facts, pieces: FilePieces) -> None:
        entry = self._s.state.registry.get(here.path)
        if entry is None or pieces.stat_now().signature != entry.signature:
            raise ChangedMeanwhile(here.path)

    def _compared(
        self,
        here: Facts,
        old: Content | None,
        sought: Sequence[Sought],
        codec: str,
        found: Sequence[Places],
    ) -> str:
        """Whether every passage is as often in the base as in the present file; a warning, or StaleBase."""
        base = here.base
        if old is None or base is None:
            return ""
        blocks: Iterable[bytes] = [old] if isinstance(old, bytes) else self._s.journal.blocks(old)
        missing = False
        for one, before, now in zip(sought, _places(blocks, len(old), sought, codec), found, strict=True):
            lacks = not before and len(now) == 1 and base.implied
            missing = missing or lacks
            if (len(before) != len(now) and not lacks) or (one.once and len(now) != 1):
                raise e.StaleBase(
                    f"{here.path} has changed since {show(base.version)}, and so has what this change replaces",
                    hint="search_content finds the lines as they are now; read them, and send the change again, "
                    "with the @N of that answer where it has a base. No conflict waits in a file of this size.",
                    details={"path": here.path, "base": show(base.version), "current": show(here.version or 0)},
                )
        then, now_at = show(base.version), show(here.version or 0)
        return (
            f"the text is not in {then}, the version this session saw last; it was found in the present one, {now_at}"
            if missing
            else ""
        )

    # --- what it makes --------------------------------------------------------------------

    async def applied(self, looked: Excerpted, plan: Apply) -> Apply:
        """The plan for the excerpts, as one for the files. Raises ChangedMeanwhile."""
        by_digest = {looked.facts[path].required().digest: path for path in looked.excerpts}
        contents = dict(plan.contents)
        changes: list[PathChange] = []
        for change in plan.paths:
            path = by_digest.get(change.before) if change.before else change.moved_from
            if path is None or path not in looked.excerpts:
                changes.append(change)
                continue
            before = looked.held[path].digest if change.before else None
            if change.after is None or change.after not in plan.contents:
                changes.append(msgspec.structs.replace(change, before=before))
                continue
            excerpt, content = looked.excerpts[path], plan.contents[change.after]
            new = content.data
            if not isinstance(new, bytes):
                raise TypeError("an excerpt is in memory")
            hunks = [(hunk.old_start, hunk.old_end, hunk.new_start, hunk.new_end) for hunk in change.hunks]
            splices = excerpt.splices(new, hunks)
            if splices is None:
                raise e.ChangesOverlap(f"the changes of {path} can't be told apart.", hint="Send them one by one.")
            whole = await to_thread.run_sync(self._spliced, looked.facts[path], looked.held[path], splices)
            contents.pop(change.after, None)
            contents[whole.digest] = NewContent(whole)
            changes.append(
                msgspec.structs.replace(change, before=before, after=whole.digest, hunks=_hunks(excerpt, change.hunks))
            )
        fit = msgspec.structs.replace(
            plan.fit,
            rung=max(plan.fit.rung, looked.rung, key=RUNGS.index),
            on_seen_whole=False,
            warnings=(*looked.warnings, *looked.renumbered(plan)),
        )
        return msgspec.structs.replace(plan, paths=tuple(changes), contents=contents, fit=fit)

    async def made(self, wanted: ToSplice) -> SplicedContent:
        """A content that is yet to be kept."""
        base, splices = wanted
        digest = await to_thread.run_sync(lambda: _hashed(spliced(self._s.journal.blocks(base), splices)))
        return SplicedContent(digest, size_after(base.size, splices), base, splices)

    def _spliced(self, here: Facts, held: LargeContent, splices: Sequence[Splice]) -> SplicedContent:
        """Blocking. The content that the file gets, hashed; where it has many splices, stored."""
        base, known = root_of(held)
        all_of = composed(known, splices, base.size)
        size = size_after(held.size, splices)
        with closing(self._opened(here)) as pieces:
            blocks = spliced(blocks_of(pieces), splices)
            if not are_few(all_of):
                staged = self._s.journal.stage(blocks, size)
                if staged is None:
                    raise ChangedMeanwhile(here.path)
                digest, draft = staged.digest, staged.draft
            else:
                digest, draft = _hashed(blocks), ""
            self._check_unmoved(here, pieces)
        return SplicedContent(digest, size, base, all_of, draft)


def _hashed(blocks: Iterator[bytes]) -> Digest:
    hashed = hashlib.sha256()
    for block in blocks:
        hashed.update(block)
    return Digest("sha256:" + hashed.hexdigest())


def _places(blocks: Iterable[bytes], size: int, sought: Sequence[Sought], codec: str) -> list[Places]:
    """Where passages are; those of a patch as whole lines."""
    needles = [one.forms(codec, bare=bare) for bare in (False, True) for one in sought]
    found = find_all(chain((b"\n",), blocks, (b"\n",)), needles)  # so that every line has an end before and behind it
    result = list[Places]()
    for one, exact, bare in zip(sought, found[: len(sought)], found[len(sought) :], strict=True):
        if one.of_patch:
            beyond = not one.text or one.text.endswith("\n")  # an empty line behind the last line end is none
            result.append([(at, length - 2) for at, length in exact if at + length - 2 + beyond <= size])
        else:
            result.append([(at - 1, length) for at, length in exact or bare if 0 < at <= size + 1 - length])
    return result


def _is_large(here: Facts) -> bool:
    return here.held is not None and isinstance(here.held.data, LargeContent)


def _passages_in(command: Command) -> tuple[WorkspacePath, ...]:
    """The paths in which a command changes passages."""
    match command:
        case Edit(path=path) | Write(path=path, mode="append"):
            return (path,)
        case Patch(files=files):
            return tuple(dict.fromkeys(item.path for item in files if item.patch.hunks and item.exists))
        case _:
            return ()


def _at_end(command: Command) -> bool:
    """Whether it may write behind the last line."""
    match command:
        case Patch(files=files):
            return any(hunk.at_end for item in files for hunk in _hunks_of(item.patch))
        case _:
            return isinstance(command, Write)


def _hunks_of(patch: FilePatch) -> list[PatchHunk]:
    return [hunk for hunks in (patch.hunks, *patch.then) for hunk in hunks]


def _sought(command: Command, path: WorkspacePath) -> tuple[list[Sought], list[LineReplacement]]:
    """The passages that a command quotes, and those that it names by their lines. Raises FileTooLarge."""
    sought, lines = list[Sought](), list[LineReplacement]()
    match command:
        case Edit(changes=changes):
            for number, change in enumerate(changes):
                match change:
                    case Replacement(search=search):
                        sought.append(Sought(search, f"change {number + 1}: its search text", number))
                    case LineReplacement():
                        lines.append(change)
                    case _:
                        raise e.FileTooLarge(
                            path,
                            "it is too large for its symbols to be known",
                            hint="Quote the passage: {search, replace}, or {start, end, expect, replace}.",
                        )
        case Patch(files=files):
            for item in files:
                if item.path != path:
                    continue
                if item.deletes:
                    raise e.FileTooLarge(path, "it is too large to be removed by its lines", hint="Use delete_file.")
                quoted = [(number, hunk.old) for number, hunk in enumerate(_hunks_of(item.patch))]
                sought += [
                    Sought("\n".join(old), f"hunk {n + 1}: its text", n, of_patch=True) for n, old in quoted if old
                ]
        case _:
            pass
    return sought, lines


def _in_excerpt(
    command: Command, path: WorkspacePath, excerpt: Excerpt, moved: Mapping[LineReplacement, int]
) -> Command:
    """The command, with the excerpt's line numbers in the place of the file's; hunks without any."""
    match command:
        case Edit(changes=changes):
            numbered = list[Change]()
            for change in changes:
                if isinstance(change, LineReplacement):
                    start = excerpt.row(moved.get(change, change.start) - 1) + 1
                    end = start + change.end - change.start
                    numbered.append(msgspec.structs.replace(change, start=start, end=end))
                else:
                    numbered.append(change)
            return msgspec.structs.replace(command, changes=tuple(numbered))
        case Patch(files=files):
            parts = [_without_numbers(item) if item.path == path else item for item in files]
            return msgspec.structs.replace(command, files=tuple(parts))
        case _:
            return command


def _without_numbers(item: FilePart) -> FilePart:
    def bare(hunks: Iterable[PatchHunk]) -> tuple[PatchHunk, ...]:
        return tuple(msgspec.structs.replace(hunk, old_start=None, anchors=()) for hunk in hunks)

    patch = msgspec.structs.replace(item.patch, hunks=bare(item.patch.hunks), then=tuple(map(bare, item.patch.then)))
    return msgspec.structs.replace(item, patch=patch)


def _check_lines(lines: Iterable[LineReplacement], total: int) -> None:
    """Raises ParameterInvalid."""
    for one in lines:
        if one.start < 1 or one.end < one.start:
            raise e.ParameterInvalid("start", f"lines {one.start} to {one.end} are not a range")
        if one.end > total:
            raise e.ParameterInvalid("end", f"line {one.end} is beyond the end of the file, which has {total} lines")


def _check_places(here: Facts, sought: Sought, places: Places, scan: LineScan) -> None:
    """Raises SearchNotFound, SearchAmbiguous where it is at more places than are looked at."""
    details = {"path": here.path, "change": sought.number}
    unread = sought.of_patch and here.base is None and len(places) != 1
    if unread:
        why = "this session has not seen it, and the patch's passages are not all in it exactly once"
        raise base_required(here.path, why)
    if not places and sought.text:
        mixed = plain(sought.text).count("\n") > 1
        ends = (
            " Where line ends are of several kinds, use edit_file with {start, end, expect, replace}." if mixed else ""
        )
        raise e.SearchNotFound(
            f"{sought.name} is not in the file. In a file of this size it is looked for as it is quoted"
            f"{', with one kind of line end' if mixed else ''}.",
            hint=f"search_content with mode fuzzy finds the lines that are like it; quote them as they are.{ends}",
            details=details,
        )
    if len(places) > MOST_FOUND:
        lines = [scan.number_of(at) for at, _ in places[: MOST_PLACES + 1]]
        raise e.SearchAmbiguous(
            f"{sought.name} is at more than {MOST_FOUND} places in the file: lines {shown_lines(lines)}.",
            hint="Add a neighbouring line to it.",
            details={**details, "lines": lines[:MOST_PLACES]},
        )


def _hunks(excerpt: Excerpt, hunks: Sequence[LineHunk]) -> tuple[LineHunk, ...]:
    """Hunks of the excerpt, by lines of the file."""
    moved: list[LineHunk] = []
    grown = 0
    for hunk in hunks:
        start = excerpt.line(hunk.old_start)
        moved.append(LineHunk(start, hunk.old_len, start + grown, hunk.new_len))
        grown += hunk.new_len - hunk.old_len
    return tuple(moved)
