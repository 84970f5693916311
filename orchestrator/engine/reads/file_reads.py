"""Reads of one file: lines of the present or an earlier state, and facts about it."""

from __future__ import annotations

from typing import NamedTuple

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.content import LineRange
from orchestrator.core.errors import (
    BinaryFile,
    OrchestratorError,
    ParameterInvalid,
    escaped,
)
from orchestrator.core.events.base import Event
from orchestrator.core.events.files import FileRead, MetadataRead, SeenLines
from orchestrator.core.ids import Digest, EscapedPath, Seq, WorkspacePath, show
from orchestrator.core.paths import tags_of
from orchestrator.core.policy.profiles import OverLimit, size_of
from orchestrator.core.policy.rules import NeedApproval
from orchestrator.core.text.answer_space import MAX_LINE, estimate_tokens, fit, render, size
from orchestrator.core.text.encoding import Document
from orchestrator.engine.access import Asks, ContentAccess
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import NO_VERSION, Observer, required, warnings
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.deltas import Deltas, Present
from orchestrator.engine.services import MAX_FILE_BYTES, Services

TYPES = {
    "file": "FileEntry",
    "directory": "DirectoryEntry",
    "symlink": "SymbolicLinkEntry",
    "other": "OtherEntry",
}

MOST_TOKENS = 1_000_000
"""Of one answer, whatever is asked for: about 4 MB of text."""

ROW_BYTES, CUT_BYTES = 12, 45
"""A line's number and its end; the note where it was cut."""

MIN_LINE = 50


class Shown(NamedTuple):
    """A version of a file that an answer is made of; no document: it is binary."""

    path: WorkspacePath
    version: Seq
    digest: Digest
    document: Document | None
    warnings: tuple[str, ...] = ()


class Reader:
    """Shows content, and notes what was shown to whom."""

    def __init__(self, services: Services, observer: Observer) -> None:
        self._s, self._observer = services, observer
        self._deltas = Deltas(services)

    def size_at(self, raw_path: str) -> int | None:
        """The size of a file, in bytes, as far as it is known; None where there is none, or the path is refused."""
        try:
            path = self._s.paths.either(raw_path)
            known = self._s.state.registry.get(path)
            if known is not None and known.signature is not None:
                return known.signature.size
            stat = self._s.workspace.stat(path)
        except (OrchestratorError, OSError):
            return None
        return stat.signature.size if stat is not None and stat.kind == "file" else None

    async def read_lines(self, caller: Caller, call: Call, params: p.ReadLines) -> r.FileText:
        end = params.end if params.end is not None else params.start + 199
        if end < params.start:
            raise ParameterInvalid("end", f"{end} is before start, {params.start}")
        wanted = p.ReadFile(
            path=params.path,
            start=max(1, params.start - params.context),
            end=end + params.context,
            max_tokens=MOST_TOKENS,
            line_numbers=params.line_numbers,
            at=params.at,
            delta=False,
        )
        return await self.read_file(caller, call, wanted)

    async def read_file(self, caller: Caller, call: Call, params: p.ReadFile) -> r.FileText:
        path = self._s.paths.file(params.path)
        access = self._s.access.content(caller, call, path)
        async with self._s.locks.shared(path):
            warned: tuple[str, ...] = ()
            if params.at is not None:
                row = await self._s.past.at(path, self._s.past.position(params.at, parameter="at", least=1))
                version, (digest, data) = row.seq, await self._s.past.content(access, row)
            else:
                present = await self._observer.refresh_for_display(access)
                entry, digest, data = required(present)
                version, warned = entry.version, warnings(present)
            shown = Shown(path, version, digest, await self._s.contents.text(digest, data), warned)
            if shown.document is not None and self._deltas.wanted(caller, params):
                asked = Present(version, digest, shown.document, _span(params, shown.document.line_count), warned)
                changed = await self._deltas.read(access, call, params, asked, self._tokens(caller, params))
                if changed is not None:
                    return changed
            return await self.show(access, call, params, shown)

    async def show(self, access: ContentAccess, call: Call, params: p.ReadFile, shown: Shown) -> r.FileText:
        """Lines of a version that was looked up, as far as the profile allows; noted as read."""
        if over := self._over_limit(access.caller, params, shown):
            if self._s.permissions.profile(access.caller).over_limit == "refuse":
                raise over
            asks: Asks = {"read": NeedApproval(over.details["rule"], over.message)}
            await access.confirm(shown.version, shown.digest, asks=asks)
        return await self._show(access.caller, call, params, shown, access.approval)

    async def file_info(self, caller: Caller, call: Call, params: p.FileInfo) -> r.FileFacts:
        path = self._s.paths.either(params.path)
        names, content = await self._s.access.names(caller, call, path), self._s.access.content_of_many(caller, path)
        readable = content is not None
        async with self._s.locks.shared(path):
            stat = self._s.workspace.stat(path)
            small = stat is not None and stat.kind == "file" and stat.signature.size <= MAX_FILE_BYTES
            present = await self._observer.refresh_for_display(content if content is not None and small else names)
            stat, entry, data = present.stat, present.entry, present.data if readable else None
            digest = entry.digest if entry is not None else None
            document = None
            if data is not None and digest is not None:
                document = await self._s.contents.text(digest, data)
            await self._s.notes.note_metadata(caller, call, path)
        if stat is None:
            return r.FileFacts(path=path, exists=False)
        return r.FileFacts(
            path=path,
            exists=True,
            type=TYPES[stat.kind],
            name=path.rpartition("/")[2],
            size=stat.signature.size if readable or stat.kind != "file" else None,
            last_modified=stat.signature.mtime_ns // 1_000_000,
            target=stat.target,
            mode=f"{stat.mode:04o}",
            encoding=document.encoding if document else None,
            eol=document.eol if document else None,
            line_count=document.line_count if document else None,
            is_binary=data is not None and document is None,
            content_hash=digest if readable else None,
            tags=tags_of(path) if stat.kind == "file" else (),
            sensitivity=self.sensitivity(caller, path),
            version_id=show(entry.version) if entry and entry.version != NO_VERSION else None,
            last_change=show(entry.change) if entry and entry.change else None,
            reads=entry.reads if entry else 0,
        )

    def sensitivity(self, caller: Caller, path: WorkspacePath) -> str:
        """`secret`: its content is not shown. `guarded`: changing it needs a person. Else `normal`."""
        if not self._s.permissions.readable(caller, path):
            return "secret"
        return "guarded" if isinstance(self._s.permissions.verdict(caller, "write", path), NeedApproval) else "normal"

    def _tokens(self, caller: Caller, params: p.ReadFile) -> int:
        return min(params.max_tokens, self._s.permissions.profile(caller).max_answer_tokens or params.max_tokens)

    def _over_limit(self, caller: Caller, params: p.ReadFile, shown: Shown) -> OverLimit | None:
        """The refusal of a read that asks for more than the caller's profile lets it read at once."""
        profile, document = self._s.permissions.profile(caller), shown.document
        if not profile.limits_reads or document is None:
            return None
        start, total = params.start, document.line_count
        lines = document.lines[start - 1 : total if params.end is None else params.end]
        fits = profile.first_lines(lines)
        if fits >= len(lines):
            return None
        by_lines = profile.max_read_lines is not None and len(lines) > profile.max_read_lines
        most = (profile.max_read_lines if by_lines else profile.max_read_bytes) or 0
        asked = len(lines) if by_lines else size_of(lines)
        what, name = ("lines", "max_read_lines") if by_lines else ("bytes", "max_read_bytes")
        at = f', at="{params.at}"' if params.at is not None else ""
        follow = f"read_file(path={quoted(shown.path)}, start={start}, end={start + fits - 1}{at})"
        return OverLimit(
            f"{escaped(shown.path)}: {asked} {what} are asked for, and {caller.agent} may read {most} at once",
            hint=f"Read a part: {follow}. search_content finds lines by what they hold.",
            limit=f"profile.{profile.name}.{name}",
            most=most,
            asked=asked,
        )

    async def _show(
        self, caller: Caller, call: Call, params: p.ReadFile, shown: Shown, approval: Seq | None
    ) -> r.FileText:
        path, version, digest, document, warned = shown
        start, end, numbers = params.start, params.end, params.line_numbers
        if document is None:
            raise BinaryFile(path, "it is not text")
        total = document.line_count
        wanted = _span(params, total).end
        hidden = await self._s.redaction.of(caller, path, digest, document)
        lines = hidden.over(document.lines)
        profile = self._s.permissions.profile(caller)
        last = fit(lines, start, wanted, self._tokens(caller, params), numbers=numbers)
        room = call.room.framed(escaped(path), escaped(path))  # in the head and in the next call
        widest = max(MIN_LINE, min(MAX_LINE, room.bytes // 8))
        rows = lines[start - 1 : last]
        costs = ((size(row[:widest]) + ROW_BYTES + (CUT_BYTES if len(row) > widest else 0), 1) for row in rows)
        last = start - 1 + room.first(costs)
        text, cut = render(rows[: last - start + 1], start, numbers=numbers, max_line=widest)
        if not numbers and last == total and not document.final_newline:
            text = text.removesuffix("\n")
        truncated = last < wanted or bool(cut)
        seen = SeenLines(
            path=path,
            version=version,
            ranges=hidden.without(LineRange(start, last)) if total else (),
            total_lines=total,
            cut=bool(cut),
        )
        name, estimate = call.operation.name, estimate_tokens(text)
        found = tuple(secret for secret in hidden.found if start <= secret.line <= last)
        event: Event = FileRead(
            operation=name, seen=seen, bytes=len(text), tokens=estimate, approval=approval, hidden=found
        )
        if version == NO_VERSION:
            event = MetadataRead(operation=name, path=EscapedPath(escaped(path)))  # no version has these lines
        if approval is None:
            await self._s.notes.note_shown(caller, call, event)
        else:  # what a person let it see must be on record
            await self._s.notes.append(caller.origin(call), (f"session:{caller.session}", event))
        follow = None
        if last < total and (end is None or last < wanted):
            asked = f', at="{show(version)}"' if params.at is not None else ""
            if profile.limits_reads:
                asked = f", end={last + profile.first_lines(document.lines[last:wanted])}{asked}"
            elif end is not None:
                asked = f", end={wanted}{asked}"
            follow = f"read_file(path={quoted(path)}, start={last + 1}{asked})"
        return r.FileText(
            path=path,
            version_id=show(version),
            start=start if total else 0,
            end=last if total else 0,
            total_lines=total,
            text=text,
            encoding=document.encoding,
            eol=document.eol,
            content_hash=digest,
            truncated=truncated,
            next=follow,
            redactions=tuple(f"line {secret.line}: {secret.kind}" for secret in found),
            warnings=warned,
        )


def _span(params: p.ReadFile, total: int) -> LineRange:
    """The lines that are asked for, of so many. Raises ParameterInvalid."""
    if params.end is not None and params.end < params.start:
        raise ParameterInvalid("end", f"{params.end} is before start, {params.start}")
    if params.start > max(total, 1):
        raise ParameterInvalid("start", f"{params.start} is after the last line, {total}, of {params.path}")
    return LineRange(params.start, total if params.end is None else min(params.end, total))
