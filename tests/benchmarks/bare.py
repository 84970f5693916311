"""An MCP server of the standard library alone, with one tool: the floor for a Python process that starts."""

from __future__ import annotations

import json
import sys

TOOL = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}


def answer(method: str, params: dict[str, object]) -> dict[str, object]:
    """What the handshake and the list of tools need, and no more."""
    if method == "initialize":
        about = {"name": "bare", "version": "0"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    return {"tools": [TOOL]}


if __name__ == "__main__":
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message:
            result = answer(message["method"], message.get("params", {}))
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            sys.stdout.buffer.write(json.dumps(reply).encode() + b"\n")
            sys.stdout.buffer.flush()
