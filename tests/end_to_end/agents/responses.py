"""The format of Codex CLI, in which tools may be searched for, or called from JavaScript."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tests.end_to_end.agents.wires import SERVER, Answer, Tool, Turn, events, text_of


class Responses:
    """OpenAI's newer one: `POST /v1/responses`. MCP tools come as a namespace of tools; where they are deferred the
    model searches for them first, and in code mode it calls them from JavaScript, by the tool `exec`."""

    def turn(self, path: str, body: dict[str, Any]) -> Turn | None:
        if not path.endswith("/responses"):
            return None
        items = body.get("input", ())
        results = {
            item["call_id"]: text_of(item["output"])
            for item in items
            if item.get("type") in {"function_call_output", "custom_tool_call_output"}
        }
        named = re.findall(r'"(\w+)"', results.pop(self._FIND, ""))
        return Turn((*self._tools(self._given(body)), *map(Tool, named)), tuple(results.values()))

    def finds(self, body: dict[str, Any]) -> Answer | None:
        if any(item.get("call_id") == self._FIND for item in body.get("input", ())):
            return None
        if any(tool.get("type") == "tool_search" for tool in body.get("tools", ())):
            arguments = {"query": SERVER, "limit": 50}
            item = {"type": "tool_search_call", "execution": "client", "arguments": arguments}
            return self._answer({**item, "call_id": self._FIND, "status": "completed"}, 0)
        return self._code("text(ALL_TOOLS.map(tool => tool.name))", self._FIND) if self._writes_code(body) else None

    def calls(self, body: dict[str, Any], tool: Tool, arguments: dict[str, Any], number: int) -> Answer:
        call_id = f"call_{number:04}"
        given = arguments["input"] if tool.name == "apply_patch" else arguments
        if self._writes_code(body):
            called = f"await tools.{tool.name}({json.dumps(given)})"
            return self._code(
                f"try {{ const all = {called}; for (const each of all.content ?? [all]) text(each.text ?? each) }}"
                " catch (error) { text(String(error)) }",
                call_id,
            )
        if given is not arguments:
            return self._answer({"type": "custom_tool_call", "call_id": call_id, "name": tool.name, "input": given}, 0)
        item = {"type": "function_call", "call_id": call_id, "name": tool.name, "arguments": json.dumps(arguments)}
        return self._answer({**item, **({"namespace": tool.namespace} if tool.namespace else {})}, number)

    def says(self, body: dict[str, Any], text: str, number: int) -> Answer:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return self._answer({"type": "message", "role": "assistant", "content": content}, number)

    _FIND = "call_find"

    def _tools(self, tools: Iterable[dict[str, Any]]) -> Iterator[Tool]:
        for tool in tools:
            if tool.get("type") == "namespace":
                yield from (Tool(each["name"], tool["name"]) for each in tool["tools"])
            else:
                yield Tool(tool.get("name", tool.get("type", "")))

    def _writes_code(self, body: dict[str, Any]) -> bool:
        return any(tool.name == "exec" for tool in self._tools(self._given(body)))

    @staticmethod
    def _given(body: dict[str, Any]) -> list[dict[str, Any]]:
        return [*body.get("tools", ()), *(tool for item in body.get("input", ()) for tool in item.get("tools", ()))]

    def _code(self, text: str, call_id: str) -> Answer:
        return self._answer({"type": "custom_tool_call", "call_id": call_id, "name": "exec", "input": text}, 0)

    @staticmethod
    def _answer(item: dict[str, Any], number: int) -> Answer:
        response = {"id": f"resp_{number:04}", "object": "response", "output": []}
        usage = {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20}
        item = {"id": f"item_{item.get('call_id', number)}", **item}
        return events(
            [
                {"type": "response.created", "response": response},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": {**response, "output": [item], "usage": usage}},
            ]
        )
