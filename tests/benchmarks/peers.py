"""The peers: fetched with the ordinary installers into `.bench/`, and spoken to over MCP stdio."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import msgspec
from mcp import Client, StdioServerParameters

INSTALL_TIMEOUT_S = 600
CALL_TIMEOUT_S = 60.0

LARGEFILE = "largefile"
FILESYSTEM = "@modelcontextprotocol/server-filesystem"

Era = Literal["legacy", "auto"]
"""The SDK client's mode: the 2025 protocols with their handshake, or 2026 where the server has it."""


class Peer(msgspec.Struct, frozen=True):
    """A program to compare with; without `command`, why it could not be had."""

    name: str
    command: tuple[str, ...] = ()
    trouble: str = ""


def fetch_largefile(folder: Path) -> Peer:
    """`largefile` in a virtual environment of its own."""
    home = folder / "largefile"
    script = home / "bin" / "largefile-mcp"
    try:
        if not script.exists():
            _run(sys.executable, "-m", "venv", str(home))
            _run(str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", LARGEFILE)
    except (OSError, subprocess.SubprocessError) as error:
        return Peer(LARGEFILE, trouble=_why(error))
    found = next(home.glob("lib/*/site-packages/largefile-*.dist-info"), None)
    version = found.name.removeprefix("largefile-").removesuffix(".dist-info") if found else ""
    return Peer(f"{LARGEFILE} {version}", (str(script),))


def fetch_filesystem(folder: Path, *allowed: Path) -> Peer:
    """The reference server, allowed into these folders."""
    home = folder / "npm"
    package = home / "node_modules" / FILESYSTEM
    try:
        if not package.exists():
            home.mkdir(parents=True, exist_ok=True)
            _run("npm", "install", "--no-audit", "--no-fund", "--prefix", str(home), FILESYSTEM)
        version = json.loads((package / "package.json").read_text())["version"]
    except (OSError, subprocess.SubprocessError) as error:
        return Peer("server-filesystem", trouble=_why(error))
    return Peer(f"server-filesystem {version}", ("node", str(package / "dist" / "index.js"), *map(str, allowed)))


class McpSession:
    """One MCP server over stdio, driven by the SDK's client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """The text of an answer. Raises AssertionError where the server refuses."""
        with anyio.fail_after(CALL_TIMEOUT_S):
            result = await self._client.call_tool(tool, arguments)
        text = "".join(getattr(block, "text", "") for block in result.content)
        assert not result.is_error, text[:500]
        return text


@asynccontextmanager
async def mcp_session(
    command: tuple[str, ...], *, era: Era = "legacy", env: Mapping[str, str] | None = None
) -> AsyncIterator[McpSession]:
    """Start a server and end it after; `env` instead of this process's environment."""
    parameters = StdioServerParameters(
        command=command[0], args=list(command[1:]), env=dict(os.environ if env is None else env)
    )
    async with Client(parameters, mode=era) as client:
        await client.list_tools()
        yield McpSession(client)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=INSTALL_TIMEOUT_S, capture_output=True, stdin=subprocess.DEVNULL)


def _why(error: OSError | subprocess.SubprocessError) -> str:
    said = getattr(error, "stderr", None)
    last = said.decode("utf-8", "replace").strip().splitlines()[-1:] if isinstance(said, bytes) else []
    return f"not had: {last[0] if last else error}"[:80]
