"""The same calls to another server and to ours, and the other one's answers as they were recorded.

    python -m tests.end_to_end.toolsets.original_answers NAME VERSION COMMAND…

records NAME.json anew: COMMAND starts the original over stdio, `{root}` in it becomes the folder that it serves
(`env LARGEFILE_BACKUP_DIR={root}/.backups largefile-mcp`).
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent, ToolAnnotations

FOLDER = Path(__file__).parent / "originals"
ROOT = "{root}"

FILES = {
    "README.md": "# Title\n\nSome words.\n",
    "src/app.py": "import os\n\n\ndef main():\n    print('hello')\n    return 0\n\n\ndef other():\n    return 1\n",
    "src/lib/deep.py": "x = 1\ny = 2\nz = 3\n",
    "src/lib/data.json": '{"a": 1}\n',
    "docs/ten.txt": "".join(f"line {n}\n" for n in range(1, 11)),
    "docs/no_end.txt": "first\nlast",
    "docs/empty.txt": "",
    "docs/size.bin": "x" * 2000,
    ".hidden/kept.txt": "kept\n",
    "umlauts.txt": "äöü\nσπ\n",
    "windows.txt": "a\r\nb\r\n",
}


class Step(NamedTuple):
    """One call. `same`: how its answers compare; a reason in words where they differ on purpose."""

    name: str
    tool: str
    arguments: dict[str, Any]
    same: Literal["text", "lines", "tree", "start", "begins"] | str = "text"


def lay_out(root: Path) -> None:
    """The files that the calls are about."""
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8", newline="")


async def answers(client: Client, root: Path, steps: Iterable[Step]) -> dict[str, dict[str, Any]]:
    """What each call answers, with the root as a word."""
    found = {}
    for step in steps:
        result = await client.call_tool(step.tool, _with_root(step.arguments, str(root)))
        found[step.name] = _with_word(plain(result), str(root))
    return found


def plain(result: CallToolResult) -> dict[str, Any]:
    """Text, typed content and whether it is an error."""
    text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
    said: dict[str, Any] = {"text": text, "error": bool(result.is_error)}
    return said if result.structured_content is None else {**said, "structured": result.structured_content}


def _with_root(value: Any, root: str) -> Any:
    return json.loads(json.dumps(value).replace(ROOT, root))


def _with_word(value: Any, root: str) -> Any:
    return json.loads(json.dumps(value, ensure_ascii=False).replace(root, ROOT))


async def tools_of(client: Client) -> dict[str, Any]:
    """What is listed of each but the words: parameters with types and defaults, title, hints, and typed answers."""
    listed = (await client.list_tools()).tools
    return {
        tool.name: {
            **shape(tool.input_schema),
            "title": tool.title,
            "hints": _hints(tool.annotations or ToolAnnotations()),
            "answers": shape(tool.output_schema) if tool.output_schema else None,
        }
        for tool in listed
    }


def _hints(given: ToolAnnotations) -> list[str]:
    """What they come to: of a tool that only reads nothing else is meant."""
    if given.read_only_hint:
        return ["reads"]
    return [*(["destroys"] if given.destructive_hint else []), *(["may be repeated"] if given.idempotent_hint else [])]


def shape(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without what only explains or bounds."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    schema = {**kinds[0], **schema} if kinds else schema
    kept: dict[str, Any] = {key: schema[key] for key in ("type", "enum") if key in schema}
    if schema.get("default"):
        kept["default"] = schema["default"]
    if kept.get("type") == "number":
        kept["type"] = "integer"
    if "enum" in kept:
        kept.pop("type", None)
    if "properties" in schema:
        kept["properties"] = {name: shape(part) for name, part in schema["properties"].items()}
        kept["required"] = sorted(schema.get("required", ()))
    if "items" in schema:
        kept["items"] = shape(schema["items"])
    return kept


def recorded(name: str) -> dict[str, Any]:
    """What the original answered."""
    known: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return known


async def _record(name: str, version: str, command: list[str]) -> None:
    from tests.end_to_end.toolsets.steps import STEPS

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        lay_out(root)
        command = [word.replace(ROOT, str(root)) for word in command]
        async with Client(StdioServerParameters(command=command[0], args=command[1:]), mode="legacy") as client:
            found = {
                "version": version,
                "tools": await tools_of(client),
                "answers": await answers(client, root, STEPS[name]),
            }
    text = json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True)
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    anyio.run(_record, sys.argv[1], sys.argv[2], sys.argv[3:])
