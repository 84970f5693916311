"""The formats in which agents talk to a model: what one request asks, and how to answer it. See `responses.py`, too."""

from __future__ import annotations

import json
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
