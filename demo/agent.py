"""One agent's process: a public MCP client on the stdio transport, played from stdin.

Each line in is a tool call, `{"tool": …, "arguments": …}`; each line out is its answer.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

import anyio
from anyio import to_thread
from mcp import Client, StdioServerParameters

from demo.stage import ORCHESTRATOR

CALL_TIMEOUT_S = 60.0


async def play(workspace: str, name: str, mode: Any) -> None:
    """Connect, say that it is so, then call what stdin says until it ends."""
    transport = StdioServerParameters(
        command=ORCHESTRATOR[0],
        args=[*ORCHESTRATOR[1:], "mcp", "--workspace", workspace, "--agent", name],
        env={key: os.environ[key] for key in ("HOME", "PATH", "XDG_RUNTIME_DIR", "LANG")},
    )
    async with Client(transport, mode=mode) as client:
        listed = await client.list_tools()
        _say({"tools": [tool.name for tool in listed.tools], "revision": client.protocol_version})
        while line := await to_thread.run_sync(sys.stdin.readline):
            call = json.loads(line)
            with anyio.fail_after(CALL_TIMEOUT_S):
                result = await client.call_tool(call["tool"], call["arguments"])
            texts = [block.text for block in result.content if block.type == "text"]
            _say({"refused": bool(result.is_error), "texts": texts, "structured": result.structured_content})


def _say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m demo.agent")
    parser.add_argument("--workspace", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--mode", choices=("auto", "legacy"), required=True)
    given = parser.parse_args()
    anyio.run(play, given.workspace, given.name, given.mode)


if __name__ == "__main__":
    main()
