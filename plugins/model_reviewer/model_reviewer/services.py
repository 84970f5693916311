"""The two kinds of services that can be asked, each by its vendor's SDK, which retries and waits by itself."""

from __future__ import annotations

import argparse
import importlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx2

from model_reviewer.prompt import Prompt

T = TypeVar("T")

TOOL = "resolve_conflict"
MOST_COUNT = 10**12
MOST_SAID = 20_000
MOST_SHOWN = 128 * 1024
MOST_WAIT_S = 60.0
"""A service that wants to be left alone for longer is given up on: another reviewer may answer by then."""


class Failure(Exception):
    """The review failed. `code` is one of those in docs/plugins.md; `said` is an answer that may be repaired."""

    def __init__(self, code: str, reason: str, said: str = "") -> None:
        super().__init__(reason)
        self.code, self.said = code, said[:MOST_SAID]


@dataclass(frozen=True)
class ModelAnswer:
    """What a model said; `problem` where the service itself does not stand by it."""

    text: str
    model: str
    input_tokens: object  # None: it does not say
    output_tokens: object
    problem: str = ""


@dataclass(frozen=True)
class Service:
    """One kind of service."""

    base_url: str
    ask: Callable[[argparse.Namespace, str, Prompt, dict[str, Any]], ModelAnswer]


def count(number: object) -> int | None:
    """A number of tokens, as a service says it. Raises Failure."""
    if number is None:
        return None
    if type(number) is not int or not 0 <= number <= MOST_COUNT:
        raise Failure("review_reply_invalid", "the service's usage is no number of tokens")
    return number


def ask_anthropic(settings: argparse.Namespace, key: str, prompt: Prompt, schema: dict[str, Any]) -> ModelAnswer:
    """Anthropic's Messages: a tool that must be called has the answer as its input. Raises Failure."""
    sdk = _sdk("anthropic")

    def ask() -> ModelAnswer:
        with sdk.Anthropic(**client_options(settings, key), open_telemetry=False) as client:
            message = client.messages.create(
                model=settings.model,
                max_tokens=settings.max_output_tokens,
                system=prompt.system,
                messages=prompt.messages,
                tools=[{"name": TOOL, "description": "Give your answer to the conflict.", "input_schema": schema}],
                tool_choice={"type": "tool", "name": TOOL, "disable_parallel_tool_use": True},
                extra_headers={} if key else {"Authorization": sdk.Omit()},
            )
        calls = [block.input for block in message.content if block.type == "tool_use" and block.name == TOOL]
        text = "".join(block.text for block in message.content if block.type == "text")
        usage = message.usage
        asked = [
            getattr(usage, name, None)
            for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        ]
        return ModelAnswer(
            text=json.dumps(calls[0], ensure_ascii=False) if calls else text,
            model=message.model or "",
            input_tokens=sum(count(number) or 0 for number in asked),
            output_tokens=getattr(usage, "output_tokens", None),
            problem=_problem(cut=message.stop_reason == "max_tokens", refused=message.stop_reason == "refusal"),
        )

    return asked(sdk, settings, ask)


def ask_openai(settings: argparse.Namespace, key: str, prompt: Prompt, schema: dict[str, Any]) -> ModelAnswer:
    """OpenAI's chat completions: the message's text is the answer. Not every service enforces the schema.

    Raises Failure.
    """
    sdk = _sdk("openai")

    def ask() -> ModelAnswer:
        form = {"type": "json_schema", "json_schema": {"name": TOOL, "strict": True, "schema": schema}}
        with sdk.OpenAI(**client_options(settings, key)) as client:
            completion = client.chat.completions.create(
                model=settings.model,
                max_tokens=settings.max_output_tokens,
                messages=[{"role": "system", "content": prompt.system}, *prompt.messages],
                response_format=form,
                extra_headers={} if key else {"Authorization": sdk.Omit()},
            )
        choice = completion.choices[0]
        return ModelAnswer(
            text=choice.message.content or "",
            model=completion.model or "",
            input_tokens=getattr(completion.usage, "prompt_tokens", None),
            output_tokens=getattr(completion.usage, "completion_tokens", None),
            problem=_problem(cut=choice.finish_reason == "length", refused=bool(choice.message.refusal)),
        )

    return asked(sdk, settings, ask)


SERVICES = {
    "anthropic": Service("https://api.anthropic.com", ask_anthropic),
    "openai": Service("https://api.openai.com/v1", ask_openai),
}


def _sdk(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Failure(
            "reviewer_unusable", f"{name} is not installed: pip install 'workspace-orchestrator[reviewers]'"
        ) from error


def client_options(settings: argparse.Namespace, key: str) -> dict[str, Any]:
    """What both SDKs take. No proxy of the environment, no redirects: it goes where the operator said, or nowhere."""
    return {
        "api_key": key or "none",
        "base_url": settings.base_url,
        "max_retries": settings.max_retries,
        "timeout": settings.timeout_s,
        "http_client": httpx2.Client(
            trust_env=False, follow_redirects=False, timeout=settings.timeout_s, event_hooks={"response": [_bounded]}
        ),
    }


def _bounded(response: httpx2.Response) -> None:
    """Keep the SDK from waiting for longer than MOST_WAIT_S; what it could not read, it does not see."""
    for name in ("retry-after-ms", "retry-after"):
        try:
            wait_s = _wait_s(name, response.headers.get(name, "0"))
        except (ValueError, TypeError, IndexError):
            del response.headers[name]
        else:
            if not wait_s <= MOST_WAIT_S:
                response.headers["x-should-retry"] = "false"


def _wait_s(name: str, value: str) -> float:
    """Seconds, from a number or an HTTP date. Raises ValueError, TypeError, IndexError where it is neither."""
    try:
        return float(value) / (1000 if name.endswith("-ms") else 1)
    except ValueError:
        try:
            return parsedate_to_datetime(value).timestamp() - time.time()
        except OverflowError:  # a year that no calendar has
            return math.inf


def asked(sdk: Any, settings: argparse.Namespace, ask: Callable[[], T]) -> T:
    """What a service answers. Raises Failure, whatever went wrong."""
    try:
        return ask()
    except sdk.APIStatusError as error:
        busy = error.status_code in (408, 409, 429) or error.status_code >= 500
        code = "reviewer_busy" if busy else "reviewer_refused"
        raise Failure(
            code, f"{settings.base_url} answered {error.status_code}: {error.response.text[:MOST_SHOWN]}"
        ) from error
    except sdk.APITimeoutError as error:
        raise Failure("reviewer_timeout", f"{settings.base_url} gave no answer in {settings.timeout_s:g} s") from error
    except sdk.APIConnectionError as error:
        raise Failure("reviewer_unreachable", f"{settings.base_url}: {error.__cause__ or error}") from error
    except Failure:
        raise
    except Exception as error:  # the SDKs read what is not of their form without a check
        raise Failure("review_reply_invalid", f"the service's answer is not of its form: {error!r:.300}") from error


def _problem(*, cut: bool, refused: bool) -> str:
    if cut:
        return "the answer was cut off at its token limit; answer shorter"
    return "the model refused" if refused else ""
