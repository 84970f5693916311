"""Parsing: from a text to its outline, within limits of time and size."""

from __future__ import annotations

from typing import Protocol

from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.outline.plain import plain_outline
from orchestrator.core.text.symbols import Outline


class Parser(Protocol):
    """Outlines texts; remembers them by content."""

    async def outline(self, path: WorkspacePath, digest: Digest, data: bytes) -> Outline | None:
        """What a content defines; the path's name says in which language.

        None where the bytes are no text. Without a grammar, or past the limits, an outline by
        indentation and headings with `parsed` False. Raises nothing: a parser that dies is replaced.
        """


class PlainParser:
    """A parser without grammars, for where nothing is to be parsed."""

    async def outline(self, path: WorkspacePath, digest: Digest, data: bytes) -> Outline | None:
        document = decode(data)
        return plain_outline(document.lines) if document is not None else None
