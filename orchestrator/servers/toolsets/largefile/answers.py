"""Its answers are JSON in one text; its errors begin with what failed and end with a suggestion."""

from __future__ import annotations

from typing import Any

import msgspec

from orchestrator.core.errors import NotADirectory, OrchestratorError, ParameterInvalid
from orchestrator.core.text.answer_space import AnswerSpace
from orchestrator.servers.toolsets import texts
from orchestrator.servers.toolsets.tool import Calls, ToolAnswer, sentence

_ENCODER = msgspec.json.Encoder()

_EDITS = ("search_not_found", "search_ambiguous", "changes_overlap", "nothing_to_change", "stale_base")


def answer(said: dict[str, Any], *notes: str, shown: str | None = None) -> ToolAnswer:
    """A document as the model reads it."""
    return ToolAnswer(_ENCODER.encode(said).decode(), notes=notes, shown=shown)


def half(calls: Calls) -> AnswerSpace:
    """Room for the text of a file inside of a document: quotes and line ends take twice their bytes there."""
    return AnswerSpace(calls.room.bytes // 2, calls.room.lines, calls.room.typed)


async def directory(calls: Calls, raw: str) -> str:
    """The path of a directory. Raises NotADirectory, also where there is nothing."""
    path = calls.absolute(raw)
    if (await texts.facts(calls, path)).type != "DirectoryEntry":
        raise NotADirectory(path, "it is not a directory, or not there")
    return path


def refused(error: OrchestratorError, root: str) -> str:
    """A refusal in its form."""
    path = str(error.details.get("path", ""))
    absolute = path if path.startswith("/") else f"{root.rstrip('/')}/{path}"
    if error.code in _EDITS:
        return f"Edit failed: {error.message}\n\nSuggestion: {error.hint}"
    if isinstance(error, ParameterInvalid):
        return _of_parameter(*error.message.split(": ", 1))
    if error.code == "not_a_directory":
        return f"File access failed: Not a directory or does not exist: {absolute}\n\nSuggestion: Check file path"
    if error.code == "not_found":
        return f"File access failed: File does not exist: {absolute}\n\nSuggestion: Check file path and permissions"
    if path:
        return f"File access failed: {error.message}\n\nSuggestion: {error.hint or 'Check file path and permissions'}"
    return sentence(error)


def _of_parameter(name: str, why: str) -> str:
    """Words of its own begin with a capital."""
    if why == "is required" and name in ("search", "replace"):
        return f"A change is missing required '{name}' field. Each change needs 'search' and 'replace'."
    if why.endswith(">= 1"):
        return f"{name} must be >= 1."
    if name == "pattern" and why.startswith("it is"):
        return f"Search failed: {why}\n\nSuggestion: Try different search terms"
    if "after the last line" in why:
        return f"{name} is beyond end of file: {why}"
    return why if why[:1].isupper() and not why.startswith("Expected") else f"Invalid {name}: {why}"
