"""The two forms in which models are asked over HTTP: Anthropic's Messages, and OpenAI's chat completions.

Sources: the services' references, as of 2026: `POST /v1/messages` with `anthropic-version: 2023-06-01`,
one tool that must be called; and `POST …/chat/completions` with `response_format` of type `json_schema`,
as ollama, llama.cpp's server and vLLM take it too. Not every one of these enforces the schema, so it is
said in the text as well, and the answer is read from whatever text comes.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from orchestrator.core.errors import escaped
from orchestrator.core.policy.reviewers import Form
from orchestrator.ports.reviewers import ReviewReplyInvalid
from orchestrator.review.answers import SCHEMA, Count, json_in
from orchestrator.review.prompt import Prompt

TOOL = "settle_conflict"
VERSION = "2023-06-01"


class RepairTurn(msgspec.Struct, frozen=True):
    """An answer that was no good, and what was wrong with it."""

    said: str
    wrong: str


class ModelResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered; `content` is decoded JSON, or the trouble that there is with it."""

    content: object
    trouble: str = ""
    text: str = ""  # as it was said, for the repair
    model: str = ""
    input_tokens: int | None = None  # None: it does not say
    output_tokens: int | None = None


class HttpForm(Protocol):
    """How a question is written and an answer read."""

    schema_in_text: bool

    def url(self, root: str) -> str:
        """Where to send it."""

    def headers(self, key: str) -> dict[str, str]:
        """With the key, if there is one."""

    def body(self, prompt: Prompt, model: str, max_tokens: int, turns: tuple[RepairTurn, ...]) -> dict[str, Any]:
        """The question, and the tries before it."""

    def said(self, data: bytes) -> ModelResponse:
        """Read an answer. Raises ReviewReplyInvalid where it is none of this form."""


class AnthropicForm:
    """The Messages API: one tool whose input is the answer."""

    schema_in_text = False

    def url(self, root: str) -> str:
        return _joined(root, "/v1", "/messages")

    def headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def body(self, prompt: Prompt, model: str, max_tokens: int, turns: tuple[RepairTurn, ...]) -> dict[str, Any]:
        messages = [{"role": "user", "content": prompt.user}]
        for turn in turns:
            messages += [
                {"role": "assistant", "content": turn.said or "(nothing)"},
                {"role": "user", "content": _mend(turn)},
            ]
        tool = {"name": TOOL, "description": "Give your answer to the conflict.", "input_schema": SCHEMA}
        return {
            "model": model,
            "max_tokens": max_tokens,
            "system": prompt.system,
            "messages": messages,
            "tools": [tool],
            "tool_choice": {"type": "tool", "name": TOOL, "disable_parallel_tool_use": True},
        }

    def said(self, data: bytes) -> ModelResponse:
        message = _decoded(data, _Message)
        text = "".join(block.text for block in message.content if block.type == "text")
        calls = [block.input for block in message.content if block.type == "tool_use" and block.name == TOOL]
        usage = message.usage or _Usage()
        asked = (usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
        said = bytes(calls[0]).decode("utf-8", "replace") if calls else text
        content, trouble = _from_text(said)
        if message.stop_reason == "max_tokens":
            trouble = "the answer was cut off at its token limit; answer shorter"
        elif message.stop_reason == "refusal":
            trouble = "the model refused"
        return ModelResponse(
            content=content,
            trouble=trouble,
            text=said,
            model=message.model,
            input_tokens=sum(count or 0 for count in asked) if any(asked) else None,
            output_tokens=usage.output_tokens,
        )


class OpenAiForm:
    """Chat completions: the answer is the message's text."""

    schema_in_text = True

    def url(self, root: str) -> str:
        return _joined(root, "/v1", "/chat/completions")

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, prompt: Prompt, model: str, max_tokens: int, turns: tuple[RepairTurn, ...]) -> dict[str, Any]:
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        for turn in turns:
            messages += [
                {"role": "assistant", "content": turn.said or "(nothing)"},
                {"role": "user", "content": _mend(turn)},
            ]
        schema = {"name": TOOL, "strict": True, "schema": SCHEMA}
        return {
            "model": model,
            "max_tokens": max_tokens,
            "messages": messages,
            "stream": False,
            "response_format": {"type": "json_schema", "json_schema": schema},
        }

    def said(self, data: bytes) -> ModelResponse:
        completion = _decoded(data, _Completion)
        if not completion.choices:
            raise ReviewReplyInvalid("the service answered without a choice")
        choice = completion.choices[0]
        text = choice.message.content or ""
        content, trouble = _from_text(text)
        if choice.finish_reason == "length":
            trouble = "the answer was cut off at its token limit; answer shorter"
        elif choice.message.refusal:
            trouble = "the model refused"
        usage = completion.usage or _CompletionUsage()
        return ModelResponse(
            content=content,
            trouble=trouble,
            text=text,
            model=completion.model,
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
        )


def form_of(form: Form) -> HttpForm:
    """The form that a policy names."""
    return AnthropicForm() if form == "anthropic" else OpenAiForm()


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None


class _Block(msgspec.Struct, frozen=True):
    type: str
    text: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"")


class _Message(msgspec.Struct, frozen=True):
    content: list[_Block]
    model: str = ""
    stop_reason: str | None = None
    usage: _Usage | None = None


class _Spoken(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Spoken
    finish_reason: str | None = None


class _CompletionUsage(msgspec.Struct, frozen=True):
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None


class _Completion(msgspec.Struct, frozen=True):
    choices: list[_Choice]
    model: str = ""
    usage: _CompletionUsage | None = None


def _decoded(data: bytes, form: Any) -> Any:
    try:
        return msgspec.json.decode(data, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReviewReplyInvalid(f"the service's answer is not of its form: {escaped(str(error))}") from error


def _from_text(text: str) -> tuple[object, str]:
    try:
        return json_in(text), ""
    except ReviewReplyInvalid as error:
        return None, error.message


def _mend(turn: RepairTurn) -> str:
    return f"That can't be used: {turn.wrong}. Give the whole answer again, in the form that was asked for."


def _joined(root: str, version: str, path: str) -> str:
    """The address below a root that may end with the version already, or with the whole path."""
    root = root.rstrip("/")
    if root.endswith(path):
        return root
    return root + path if root.endswith(version) else root + version + path
