"""Its answers are JSON in one text; its errors begin with what failed and end with a suggestion."""

from __future__ import annotations

from typing import Any

import msgspec

from orchestrator.core.errors import OrchestratorError
from orchestrator.core.text.answer_space import AnswerSpace
from orchestrator.servers.toolsets.tool import Calls, ToolAnswer, sentence

_ENCODER = msgspec.json.Encoder()

_EDITS = ("search_not_found", "search_ambiguous", "changes_overlap", "nothing_to_change", "stale_base")


def answer(said: dict[str, Any], *notes: str, shown: str | None = None) -> ToolAnswer:
    """A document as the model reads it."""
    return ToolAnswer(_ENCODER.encode(said).decode(), notes=notes, shown=shown)


def half(calls: Calls) -> AnswerSpace:
    """Room for the text of a file inside of a document: quotes and line ends take twice their bytes there."""
    return AnswerSpace(calls.room.bytes // 2, calls.room.lines, calls.room.typed)


def refused(error: OrchestratorError, root: str) -> str:
    """A refusal in its form."""
    path = str(error.details.get("path", ""))
    absolute = path if path.startswith("/") else f"{root.rstrip('/')}/{path}"
    if error.code in _EDITS:
        return f"Edit failed: {error.message}\n\nSuggestion: {error.hint}"
    if error.code == "not_found":
        return f"File access failed: File does not exist: {absolute}\n\nSuggestion: Check file path and permissions"
    if path:
        return f"File access failed: {error.message}\n\nSuggestion: {error.hint or 'Check file path and permissions'}"
    return sentence(error)
