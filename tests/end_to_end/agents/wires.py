"""The four formats in which agents talk to a model: what one request asks, and how to answer it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

SERVER = "orchestrator"
"""The name under which each agent knows our transport."""


class Tool(NamedTuple):
    """A tool as the agent offers it to its model."""

    name: str
    namespace: str | None = None

    @property
    def ours(self) -> bool:
        return SERVER in (self.namespace or self.name)


class Call(NamedTuple):
    """What the model wants called, by our name of it; `own` is one of the agent's own tools."""

    name: str
    arguments: dict[str, Any]
    own: bool = False


class Turn(NamedTuple):
    """One request to the model: the tools it may call, and what came back from the calls so far."""

    tools: tuple[Tool, ...]
    results: tuple[str, ...]

    def offered(self, call: Call) -> Tool | None:
        """The agent's name for this tool. A model may name one that is not offered; so may a call of `own`."""
        if call.own:
            return next((tool for tool in self.tools if tool.name == call.name), Tool(call.name))
        named = (tool for tool in self.tools if tool.ours and tool.name.endswith(call.name))
        return min(named, key=lambda tool: len(tool.name), default=None)


class Answer(NamedTuple):
    """A body and its kind."""

    kind: str
    body: bytes


class Wire(Protocol):
    """One format. `number` makes the ids of an answer unique in a conversation."""

    def turn(self, path: str, body: dict[str, Any]) -> Turn | None:
        """What a request asks; None where it is no request for an answer of the model."""
        ...

    def finds(self, body: dict[str, Any]) -> Answer | None:
        """What the model sends to find out our tools' names, where it is not told them."""
        ...

    def calls(self, body: dict[str, Any], tool: Tool, arguments: dict[str, Any], number: int) -> Answer: ...

    def says(self, body: dict[str, Any], text: str, number: int) -> Answer: ...


class Messages:
    """Anthropic's: `POST /v1/messages`. Where our tools are deferred the model searches for them first."""

    _FIND = "toolu_find"

    def turn(self, path: str, body: dict[str, Any]) -> Turn | None:
        if not path.endswith("/messages"):
            return None
        results = [block for block in self._blocks(body) if block.get("type") == "tool_result"]
        return Turn(
            tuple(Tool(tool["name"]) for tool in body.get("tools", ())),
            tuple(text_of(block.get("content", "")) for block in results if block.get("tool_use_id") != self._FIND),
        )

    def finds(self, body: dict[str, Any]) -> Answer | None:
        names = {tool["name"] for tool in body.get("tools", ())}
        searched = any(block.get("tool_use_id") == self._FIND for block in self._blocks(body))
        if searched or "ToolSearch" not in names or any(SERVER in name for name in names):
            return None
        wanted = ",".join(f"mcp__{SERVER}__{name}" for name in ("edit_file", "run_command", "await_change"))
        block = {"type": "tool_use", "id": self._FIND, "name": "ToolSearch", "input": {}}
        query = json.dumps({"query": f"select:{wanted}", "max_results": 10})
        return self._answer(body, block, {"type": "input_json_delta", "partial_json": query}, "tool_use", 0)

    @staticmethod
    def _blocks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for message in body.get("messages", ()):
            if isinstance(message["content"], list):
                yield from message["content"]

    def calls(self, body: dict[str, Any], tool: Tool, arguments: dict[str, Any], number: int) -> Answer:
        block = {"type": "tool_use", "id": f"toolu_{number:04}", "name": tool.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        return self._answer(body, block, delta, "tool_use", number)

    def says(self, body: dict[str, Any], text: str, number: int) -> Answer:
        return self._answer(
            body, {"type": "text", "text": ""}, {"type": "text_delta", "text": text}, "end_turn", number
        )

    @staticmethod
    def _answer(
        body: dict[str, Any], block: dict[str, Any], delta: dict[str, Any], stopped: str, number: int
    ) -> Answer:
        usage = {"input_tokens": 10, "output_tokens": 10}
        message = {
            "id": f"msg_{number:04}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", ""),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        if not body.get("stream"):
            whole = {**block, **({"text": delta["text"]} if "text" in delta else {})}
            return plain({**message, "content": [whole], "stop_reason": stopped})
        return events(
            [
                {"type": "message_start", "message": message},
                {"type": "content_block_start", "index": 0, "content_block": block},
                {"type": "content_block_delta", "index": 0, "delta": delta},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": stopped, "stop_sequence": None}, "usage": usage},
                {"type": "message_stop"},
            ]
        )


class Completions:
    """OpenAI's older one, spoken by most local servers: `POST /v1/chat/completions`."""

    def finds(self, body: dict[str, Any]) -> Answer | None:
        return None

    def turn(self, path: str, body: dict[str, Any]) -> Turn | None:
        if not path.endswith("/chat/completions"):
            return None
        return Turn(
            tuple(Tool(tool["function"]["name"]) for tool in body.get("tools", ())),
            tuple(text_of(message["content"]) for message in body["messages"] if message["role"] == "tool"),
        )

    def calls(self, body: dict[str, Any], tool: Tool, arguments: dict[str, Any], number: int) -> Answer:
        function = {"name": tool.name, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"call_{number:04}", "type": "function", "function": function}
        return self._answer(body, {"tool_calls": [call]}, "tool_calls", number)

    def says(self, body: dict[str, Any], text: str, number: int) -> Answer:
        return self._answer(body, {"content": text}, "stop", number)

    @staticmethod
    def _answer(body: dict[str, Any], said: dict[str, Any], stopped: str, number: int) -> Answer:
        head = {"id": f"chat_{number:04}", "created": 0, "model": body.get("model", "")}
        usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        message = {"role": "assistant", **said}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": stopped}
            return plain({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
        chunk = {**head, "object": "chat.completion.chunk"}
        return events(
            [
                {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
                {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": stopped}], "usage": usage},
            ],
            end="[DONE]",
        )


class Contents:
    """Gemini's: `POST …:streamGenerateContent` and `…:generateContent`."""

    def finds(self, body: dict[str, Any]) -> Answer | None:
        return None

    def turn(self, path: str, body: dict[str, Any]) -> Turn | None:
        if "enerateContent" not in path:
            return None
        declared = [
            declaration["name"]
            for tool in body.get("tools", ())
            for declaration in tool.get("functionDeclarations", ())
        ]
        parts = [part for content in body.get("contents", ()) for part in content.get("parts", ())]
        return Turn(
            tuple(Tool(name) for name in declared),
            tuple(text_of(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part),
        )

    def calls(self, body: dict[str, Any], tool: Tool, arguments: dict[str, Any], number: int) -> Answer:
        return self._answer({"functionCall": {"id": f"call_{number:04}", "name": tool.name, "args": arguments}})

    def says(self, body: dict[str, Any], text: str, number: int) -> Answer:
        return self._answer({"text": text})

    @staticmethod
    def _answer(part: dict[str, Any]) -> Answer:
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}
        return events([{"candidates": [candidate], "usageMetadata": usage}])


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


def text_of(content: Any) -> str:
    """What a model reads of a tool's answer, however it is wrapped."""
    match content:
        case str():
            return content
        case list():
            return "\n".join(text_of(item) for item in content)
        case {"text": str(text)}:
            return text
        case {"output": output} if len(content) == 1:
            return text_of(output)
        case {"error": error} if len(content) == 1:
            return text_of(error)
        case _:
            return json.dumps(content, ensure_ascii=False)


def plain(document: dict[str, Any]) -> Answer:
    """One JSON document."""
    return Answer("application/json", json.dumps(document).encode())


def events(documents: Iterable[dict[str, Any]], *, end: str = "") -> Answer:
    """Server-sent events, all at once; a document's `type` names its event."""
    lines = []
    for document in documents:
        if "type" in document:
            lines.append(f"event: {document['type']}\n")
        lines.append(f"data: {json.dumps(document)}\n\n")
    if end:
        lines.append(f"data: {end}\n\n")
    return Answer("text/event-stream", "".join(lines).encode())
