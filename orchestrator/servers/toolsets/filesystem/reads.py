"""Reads of text files and images."""

from __future__ import annotations

from base64 import b64encode

import mcp_types as types

from orchestrator.api.operations import READ_FILE
from orchestrator.core.errors import NotAFile, NotAvailable, OrchestratorError, ParameterInvalid
from orchestrator.core.text.answer_space import size
from orchestrator.servers.toolsets import texts
from orchestrator.servers.toolsets.filesystem import params as p
from orchestrator.servers.toolsets.filesystem.answers import refused, said
from orchestrator.servers.toolsets.tool import Calls, ToolAnswer


async def read(calls: Calls, params: p.ReadText) -> ToolAnswer:
    """A file, its first lines or its last ones."""
    path, start, end = calls.absolute(params.path), params.start, params.head or None
    if end and params.tail:
        raise ParameterInvalid("head", "cannot be given together with tail")
    if params.tail:
        start = -params.tail
    elif end is not None:
        end += start - 1
    shown = await texts.text_of(calls, path, start, end)
    text = shown.text.removesuffix("\n") if end is not None and shown.end == end else shown.text
    follow = f"; read_text_file with start={shown.end + 1} goes on"
    return said(text, *texts.cut_note(shown, end=end, how=follow))


async def read_many(calls: Calls, params: p.ReadMany) -> ToolAnswer:
    """Several files; one that can't be read says so in its place."""
    parts, notes = list[str](), list[str]()
    whole = calls.room
    for place, raw in enumerate(params.paths):
        calls.room = whole.less(sum(size(part) + 10 for part in parts))
        if not calls.room.holds(" " * texts.CUT_BYTES * 2):
            notes.append(f"[cut: the last {len(params.paths) - place} of {len(params.paths)} files are not shown]")
            break
        try:
            shown = await texts.text_of(calls, calls.absolute(raw))
        except OrchestratorError as error:
            parts.append(f"{raw}: Error - {refused(error, calls.root)}")
        else:
            parts.append(f"{raw}:\n{shown.text}\n")
            notes += [f"{raw}: {note}" for note in texts.cut_note(shown)]
    calls.room = whole
    return said("\n---\n".join(parts), *notes)


async def read_media(calls: Calls, params: p.OnePath) -> ToolAnswer:
    """An image."""
    path = calls.absolute(params.path)
    known = await texts.facts(calls, path)
    if known.type == "DirectoryEntry":
        raise NotAFile(path, "it is a directory")
    text = known.exists and not known.is_binary  # nothing of it is read: its lines would count as seen
    shown = None if text else await calls.make(READ_FILE, path=path, line_numbers=False, delta=False)
    if shown is None or shown.image is None:
        raise NotAvailable("read_media_file shows PNG, JPEG, GIF and WebP", hint="read_text_file reads text.")
    data, kind = b64encode(shown.image.data).decode(), shown.image.media_type
    typed = {"content": [{"type": "image", "data": data, "mimeType": kind}]}
    return ToolAnswer(None, typed, blocks=(types.ImageContent(data=data, mime_type=kind),), notes=shown.warnings)
