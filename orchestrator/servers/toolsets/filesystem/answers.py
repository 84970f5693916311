"""Its answers are one text, which stands in their structured content, too; its errors are those of Node.js."""

from __future__ import annotations

from orchestrator.core.errors import OrchestratorError
from orchestrator.servers.toolsets.tool import ToolAnswer, sentence


def said(text: str, *notes: str) -> ToolAnswer:
    """The text as both forms of the answer, and notes of our own behind it."""
    return ToolAnswer(text, {"content": text}, notes=notes)


def refused(error: OrchestratorError, root: str) -> str:
    """A refusal in its words."""
    path = str(error.details.get("path", ""))
    absolute = path if path.startswith("/") else f"{root.rstrip('/')}/{path}"
    match error.code:
        case "path_absolute" | "outside_workspace":
            return f"Access denied - path outside allowed directories: {absolute} not in {root}"
        case "symlink_refused":
            return f"Access denied - {sentence(error)}"
        case "not_found":
            return f"ENOENT: no such file or directory, open '{absolute}'"
        case "not_a_file":
            return "EISDIR: illegal operation on a directory, read"
        case "not_a_directory":
            return f"ENOTDIR: not a directory, scandir '{absolute}'"
        case "already_exists":
            return f"Destination already exists: {absolute}"
        case _:
            return sentence(error)
