"""What the operations that hints name are called on the command line: a hint is written for whoever calls a tool."""

from __future__ import annotations

import re

COMMANDS = {
    "list_files": "files",
    "find_files": "files --recursive --glob",
    "read_file": "open",
    "search_content": "search",
    "apply_patch": "patch",
    "edit_file": "edit",
    "write_file": "write",
    "get_diff": "diff",
    "file_history": "log",
    "changes_since": "since",
    "session_status": "session",
    "list_conflicts": "conflicts list",
    "resolve_conflict": "conflicts resolve",
}
"""Operation → command. `file_info` has none."""

_NAMED = re.compile(rf"\b({'|'.join(COMMANDS)})\b(?:\([^)\n]*\))?")


def for_people(hint: str) -> str:
    """A hint with the commands that a person runs in place of the operations that an agent calls."""
    return _NAMED.sub(lambda named: f"`orchestrator {COMMANDS[named[1]]}`", hint)
