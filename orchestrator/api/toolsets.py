"""What `orchestrator mcp --toolset` may be, and the names of the tools in the sets that stand in for other servers.

Standard library only: the stdio transport reads it at each of its starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

OwnToolset = Literal["core", "full"]
Toolset = Literal["core", "full", "filesystem", "editor", "largefile", "localfiles", "filesystem-tool"]

TOOLSETS: tuple[str, ...] = get_args(Toolset)

DROP_IN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "filesystem": (
            "read_file",
            "read_text_file",
            "read_media_file",
            "read_multiple_files",
            "write_file",
            "edit_file",
            "create_directory",
            "list_directory",
            "list_directory_with_sizes",
            "directory_tree",
            "move_file",
            "search_files",
            "get_file_info",
            "list_allowed_directories",
        ),
        "editor": ("view", "create", "str_replace", "insert", "undo_edit"),
        "largefile": (
            "get_overview",
            "search_content",
            "read_content",
            "read_enclosing",
            "edit_content",
            "revert_edit",
            "list_directory",
            "search_directory",
        ),
        "localfiles": ("listDirectory", "findFiles"),
        "filesystem-tool": ("filesystem-list", "filesystem-read", "filesystem-exists", "filesystem-info"),
    }
)
"""Tools with the names, parameters and answers of other servers. Each calls operations of the catalogue."""

SETTINGS: Mapping[str, str] = MappingProxyType({"largefile": "LARGEFILE_"})
"""How the names of the environment variables begin that a set's server reads."""


def settings_for(toolset: str, environment: Mapping[str, str]) -> dict[str, str]:
    """What of an environment the server would read that a toolset stands in for."""
    prefix = SETTINGS.get(toolset)
    return {} if prefix is None else {name: value for name, value in environment.items() if name.startswith(prefix)}
