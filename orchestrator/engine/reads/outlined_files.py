"""Files with what they define, as a caller may be told of it."""

from __future__ import annotations

from typing import NamedTuple

import anyio

from orchestrator.core.content import SeenLines
from orchestrator.core.errors import BinaryFile, escaped
from orchestrator.core.events.files import AnswerShown, FileRead
from orchestrator.core.ids import Digest, EscapedPath, Seq
from orchestrator.core.shown_text import Hidden
from orchestrator.core.text.answer_space import estimate_tokens
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.symbols import Outline
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.caller import Call
from orchestrator.engine.external.observer import NO_VERSION, Observer, required, warnings
from orchestrator.engine.reads.file_reads import Shown
from orchestrator.engine.services import Services

LEAST_SECRET = 4
"""Characters of a piece of a secret that a name may not hold."""


class OutlinedFile(NamedTuple):
    """A version of a file, and what it defines."""

    shown: Shown
    digest: Digest
    document: Document
    outline: Outline
    hidden: Hidden
    data: bytes

    def told(self, name: str) -> str:
        """A name of the outline without what a secret says: names of a text without a grammar are whole lines."""
        for secret in self.hidden.found:
            text = self.document.lines[secret.line - 1][secret.start : secret.end]
            if len(text) >= LEAST_SECRET and (text in name or name in text):
                return f"[{secret.kind}]"
        return name


async def outlined_file(services: Services, observer: Observer, access: ContentAccess) -> OutlinedFile:
    """The file as it is; the caller holds its lock. Raises as `Observer.refresh_for_display`, and BinaryFile."""
    path = access.path
    present = await observer.refresh_for_display(access)
    entry, digest, data = required(present)
    document = await services.contents.text(digest, data)
    if document is None:
        raise BinaryFile(path, "it is not text")
    found: list[Hidden] = []

    async def look_for_secrets() -> None:
        found.append(await services.redaction.of(access.caller, path, digest, document))

    async with anyio.create_task_group() as tasks:  # beside the worker, which parses
        tasks.start_soon(look_for_secrets)
        outline = await services.parser.outline(path, digest, data)
    if outline is None:  # without what the journal knows of its encoding
        raise BinaryFile(path, "it is not text")
    [hidden] = found
    shown = Shown(path, entry.version, digest, document, warnings(present))
    return OutlinedFile(shown, digest, document, outline, hidden, data)


async def note_told(services: Services, access: ContentAccess, call: Call, version: Seq, total: int, text: str) -> None:
    """Note that a caller was told what a file holds. No line of it counts as seen: none was shown."""
    caller = access.caller
    name, tokens = call.operation.name, estimate_tokens(text)
    if access.approval is None:
        ids, paths = (version,) if version != NO_VERSION else (), (EscapedPath(escaped(access.path)),)
        await services.notes.note_shown(caller, call, AnswerShown(operation=name, ids=ids, paths=paths, tokens=tokens))
        return
    # What a person let it see must be on record.
    seen = SeenLines(path=access.path, version=version, ranges=(), total_lines=total)
    event = FileRead(operation=name, seen=seen, bytes=len(text), tokens=tokens, approval=access.approval)
    await services.notes.append(caller.origin(call), (f"session:{caller.session}", event))
