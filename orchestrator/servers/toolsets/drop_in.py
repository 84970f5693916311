"""The sets that stand in for other servers, by the name that `--toolset` takes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from orchestrator.servers.toolsets.editor import EDITOR
from orchestrator.servers.toolsets.filesystem.entry import FILESYSTEM
from orchestrator.servers.toolsets.filesystem_tool import FILESYSTEM_TOOL
from orchestrator.servers.toolsets.largefile.entry import LARGEFILE
from orchestrator.servers.toolsets.local_files import LOCAL_FILES
from orchestrator.servers.toolsets.tool import ToolsetEntry

DROP_IN: Mapping[str, ToolsetEntry] = MappingProxyType(
    {
        "filesystem": FILESYSTEM,
        "editor": EDITOR,
        "largefile": LARGEFILE,
        "localfiles": LOCAL_FILES,
        "filesystem-tool": FILESYSTEM_TOOL,
    }
)
