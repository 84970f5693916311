"""All that a change would do, for who decides on it: page by page, and nothing of it cut."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from anyio import to_thread

from orchestrator.core.change import PathChange
from orchestrator.core.commands import CommandLine, Mode
from orchestrator.core.content import Content, LargeContent
from orchestrator.core.decisions.decision import Apply, NewContent
from orchestrator.core.errors import ParameterInvalid, TextTooCostly, escaped
from orchestrator.core.events.conflicts import ApprovalRequested
from orchestrator.core.ids import Digest, WorkspacePath, show
from orchestrator.core.text.answer_space import UNBOUNDED, AnswerSpace, json_size
from orchestrator.core.text.file_patch import FileState, whole_patch
from orchestrator.core.text.unified_diff import quoted
from orchestrator.engine.changes.diffs import NOTHING, befores
from orchestrator.engine.changes.large_diffs import large_diff
from orchestrator.engine.services import OFF_LOOP_BYTES, Services

PAGE_CHARACTERS = 4 * 1024 * 1024
"""Of text on one page; JSON takes six bytes for one character at most, and a reply may have 64 MB."""

LEAST_CHARACTERS = 200
"""Of a page, however little room there is: whoever turns the pages gets on."""

DEFAULT_MODE = 0o644
"""Of a new file, and where the journal did not learn it."""

Wanted = ApprovalRequested | Apply
"""A change that waits for a yes, and one that is planned."""

_MODES: Mapping[Mode, str] = {"in_place": "in the workspace itself", "scratch": "in a copy of the workspace"}

_PLACE = re.compile(r"(\d{1,9}):(\d{1,12})\Z")


class Page(NamedTuple):
    """A part of the text; `next` is where the next one begins, "" at the end."""

    text: str
    next: str = ""
    unkept: tuple[WorkspacePath, ...] = ()  # files on it whose contents can't be shown


class Section(NamedTuple):
    """One file, or the directories, which have no path of their own."""

    path: WorkspacePath | None
    change: PathChange | None = None
    before: Digest | None = None


class WholeChanges:
    """Writes changes out: those that are asked for, and those that are only planned."""

    def __init__(self, services: Services) -> None:
        self._s = services

    async def page(self, request: Wanted, start: str = "", space: AnswerSpace = UNBOUNDED) -> Page:
        """The page that begins at a place, as an earlier one names it. Raises ParameterInvalid."""
        sections = sections_of(request)
        number, offset = place(start)
        texts: list[str] = []
        unkept: list[WorkspacePath] = []
        room = PAGE_CHARACTERS
        while number < len(sections):
            if not room:
                return Page("".join(texts), f"{number}:{offset}", tuple(unkept))
            text, kept = await self._section(request, sections[number])
            if not kept and (path := sections[number].path) is not None:
                unkept.append(path)
            part, whole = first_part(
                text[offset : offset + room], space.framed(), least=0 if texts else LEAST_CHARACTERS
            )
            texts.append(part)
            room, space = room - len(part) if whole else 0, space.less(json_size(part))
            offset += len(part)
            if offset >= len(text):
                number, offset = number + 1, 0
        return Page("".join(texts), "", tuple(unkept))

    async def _section(self, request: Wanted, section: Section) -> tuple[str, bool]:
        """Its text, and whether that shows all."""
        if section.change is None:
            return _directories(request), True
        if isinstance(request, ApprovalRequested):
            commands = [check.command for check in request.permissions if check.command is not None]
            if commands:
                return _command(commands[0]), True
            if request.read_version is not None:
                return await self._read(request, section.change), True
            if request.tool_call is not None and section.change.after is None:
                return f"{quoted(section.change.path)}, with a tool of the agent's own\n", True
            return await self.file(section.change, section.before)
        return await self.file(section.change, section.before, request.contents)

    async def _read(self, request: ApprovalRequested, item: PathChange) -> str:
        """What its author wants to see: contents of one version, or, at version 0, names and facts."""
        actions = " and ".join(dict.fromkeys(check.action for check in request.permissions))
        text = f"{actions} {quoted(item.path)}"
        if item.after is not None and request.read_version:
            data = await self._s.contents.find(item.after)
            size = f"{len(data)} bytes, " if data is not None else ""
            text += f" as it is at {show(request.read_version)}: {size}{item.after}"
        return f"{text}\n"

    async def file(
        self, item: PathChange, before: Digest | None, contents: Mapping[Digest, NewContent] = NOTHING
    ) -> tuple[str, bool]:
        """One file, which held `before`, and whether that shows all. `contents`: those that are not kept yet."""
        held = [await self._held(digest, contents) for digest in (before, item.after)]
        if any(isinstance(data, LargeContent) for data in held):
            return await self._of_large(item, before, *held), True
        source = item.moved_from or item.path
        old = self._state(source, before, held[0], item)
        new = self._state(item.path, item.after, held[1], item, item.mode)
        if (before is not None and old is None) or (item.after is not None and new is None):
            named = [f"# {name}: {digest or 'no file'}" for name, digest in (("before", before), ("after", item.after))]
            names = f"diff --git {quoted(f'a/{source}')} {quoted(f'b/{item.path}')}"
            return "\n".join((names, *named, "# the journal does not keep this content\n")), False
        if sum(len(state.data) for state in (old, new) if state is not None) <= OFF_LOOP_BYTES:
            return whole_patch(old, new), True
        try:
            return await self._s.workers.run(partial(whole_patch, old, new)), True
        except TextTooCostly:
            return await to_thread.run_sync(partial(whole_patch, old, new, compared=False)), True

    async def _held(self, digest: Digest | None, contents: Mapping[Digest, NewContent]) -> Content | None:
        """A side's content; None where there is none, or it is not kept."""
        planned = contents.get(digest) if digest is not None else None
        return planned.data if planned is not None else await self._s.contents.find(digest) if digest else None

    async def _of_large(self, item: PathChange, before: Digest | None, old: Content | None, new: Content | None) -> str:
        """The sizes and hashes of both sides, where one stays out of memory; the passages, if no more is changed."""
        sides: list[str] = []
        for name, digest, data in (("before", before, old), ("after", item.after, new)):
            size = "not kept" if data is None else f"{len(data)} bytes"
            sides.append(f"# {name}: {f'{digest}, {size}' if digest is not None else 'no file'}")
        body = None
        if item.hunks and isinstance(old, LargeContent) and isinstance(new, LargeContent):
            body = await to_thread.run_sync(large_diff, item.path, self._s.journal.blocks, old, new, item.hunks)
        source, target = quoted(f"a/{item.moved_from or item.path}"), quoted(f"b/{item.path}")
        if body is None:
            return "\n".join((f"diff --git {source} {target}", *sides, "# too large to be written out\n"))
        return "\n".join((f"diff --git {source} {target}", *sides, f"--- {source}", f"+++ {target}", body))

    def _state(
        self,
        path: WorkspacePath,
        digest: Digest | None,
        data: Content | None,
        item: PathChange,
        mode: int | None = None,
    ) -> FileState | None:
        """A side of a change, in its mode or that of the file now; None where there is none, or it is not kept."""
        if digest is None or not isinstance(data, bytes):
            return None
        entry = self._s.state.registry.get(item.moved_from or item.path)
        if mode is None:
            mode = entry.mode if entry is not None and entry.mode is not None else DEFAULT_MODE
        known = self._s.state.encodings.of(digest)
        written = item.encoding if digest == item.after and item.encoding is not None else known.written
        return FileState(path, data, mode, written, known.like)


def _command(command: CommandLine) -> str:
    """Word by word, as no shell reads it; nothing in a word can pretend to be another one."""
    rows = [f"run {shlex.join(map(escaped, command.argv))}", f"in {quoted(command.cwd)}, {_MODES[command.mode]}"]
    rows += [f"argv[{place}] = {json.dumps(word)}" for place, word in enumerate(command.argv)]
    rows += [f"with {json.dumps(variable)} in its environment" for variable in command.environment]
    return "\n".join((*rows, ""))


def sections_of(request: Wanted) -> Sequence[Section]:
    """In the order in which they are shown."""
    sections = [Section(item.path, item, before) for item, before in befores(request.paths)]
    return [*sections, Section(None)] if _directories(request) else sections


def first_part(text: str, space: AnswerSpace, *, least: int) -> tuple[str, bool]:
    """As much of a text as there is room for in an answer, and whether that is all of it."""
    part = text[: max(least, space.bytes)]  # each takes a byte at least
    while len(part) > least and json_size(part) > space.bytes:
        part = part[: max(least, len(part) * 3 // 4)]
    return part, len(part) == len(text)


def place(start: str) -> tuple[int, int]:
    """Which section, and which character of it. Raises ParameterInvalid."""
    match = _PLACE.match(start or "0:0")
    if match is None:
        raise ParameterInvalid("cursor", "it is not the cursor of an earlier answer")
    return int(match[1]), int(match[2])


def _directories(request: Wanted) -> str:
    """The directories that come and go, besides the files."""
    known = request.directories
    made = [*known.made, *(item.path for item in request.paths if item.directory == "made")]
    removed = [*known.emptied, *known.unmade, *(item.path for item in request.paths if item.directory == "removed")]
    rows = [f"new directory {quoted(path)}\n" for path in dict.fromkeys(made)]
    return "".join(rows + [f"directory {quoted(path)} is removed, if empty\n" for path in dict.fromkeys(removed)])
