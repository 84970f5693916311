"""One review: the request as JSON on standard input, the answer as JSON on standard output."""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from model_reviewer.api_key import ApiKeyMasker, api_key
from model_reviewer.prompt import Prompt, prompt_of
from model_reviewer.services import SERVICES, Failure, ModelAnswer, count

MOST_MEMORY_BYTES = 2 * 1024**3
"""A service may send more than anybody wants to read."""

MOST_REASON = 1000
"""Characters; cut after the key is masked, because half a key is not known."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Where plain http may go."""


def main() -> int:
    """Answer the request on standard input; the exit code."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    settings = parse(sys.argv[1:])
    json.dump(review(json.load(sys.stdin.buffer), settings, os.environ), sys.stdout)
    return 0


def arguments() -> argparse.ArgumentParser:
    """What the command line may say."""
    parser = argparse.ArgumentParser(prog="orchestrator-model-reviewer", description=__doc__, allow_abbrev=False)
    parser.add_argument("--api", choices=sorted(SERVICES), required=True, help="openai: also ollama, llama.cpp, vLLM")
    parser.add_argument("--model", required=True, help="as the service names it")
    parser.add_argument("--base-url", type=base_url, help="as the vendor's SDK takes it; the vendor's own by default")
    key = parser.add_mutually_exclusive_group()
    key.add_argument("--api-key-env", metavar="NAME", help="the variable that holds the key; name it in `env`, too")
    key.add_argument("--api-key-file", metavar="PATH", help="a file of mode 0600 outside the workspace")
    parser.add_argument("--max-output-tokens", type=int, default=4096, help="of one answer")
    parser.add_argument("--max-input-tokens", type=int, default=32_000, help="of one question, estimated")
    parser.add_argument("--max-retries", type=int, default=2, help="where the service is busy or can't be reached")
    parser.add_argument("--timeout-s", type=float, default=100.0, help="of one try")
    parser.add_argument("--usd-per-mtok-input", type=float, default=0.0, help="the price of a million tokens")
    parser.add_argument("--usd-per-mtok-output", type=float, default=0.0)
    return parser


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line; what is wrong with it goes to standard error, with exit code 2."""
    settings = arguments().parse_args(argv)
    settings.base_url = settings.base_url or SERVICES[settings.api].base_url
    return settings


def base_url(url: str) -> str:
    """The address of a service. Raises ArgumentTypeError where it can't be one."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"is no URL: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise argparse.ArgumentTypeError("is an https URL (or http on this machine)")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise argparse.ArgumentTypeError("holds no name, password, '?' or '#'; the key goes into --api-key-env")
    if parts.scheme == "http" and host not in LOOPBACK:
        raise argparse.ArgumentTypeError(f"plain http is for this machine alone ({', '.join(LOOPBACK)}); use https")
    return url


def review(request: dict[str, Any], settings: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, Any]:
    """The answer to one request; also where it fails. The key stands nowhere in it."""
    masker = ApiKeyMasker("")
    usage: dict[str, Any] = {"model": settings.model}
    try:
        key = api_key(settings, environment)
        masker = ApiKeyMasker(key)
        prompt = prompt_of(request, os.urandom(12).hex(), schema_in_text=settings.api == "openai")
        usage["prompt_hash"] = prompt.digest
        _check_limits(prompt, request.get("limits") or {}, settings)
        said = SERVICES[settings.api].ask(settings, key, prompt, request["answer_schema"])
        usage |= _usage(said, prompt, settings)
        answer = _answer(said)
        if any(map(masker.appears_in, _lines(answer))):
            raise Failure("review_reply_invalid", "a region holds the key that the service was called with", said.text)
    except Failure as failure:
        answer = {"verdict": "failed", "code": failure.code, "reason": str(failure), "said": failure.said}
        if failure.code not in ("review_reply_invalid", "reviewer_timeout", "reviewer_unreachable"):
            usage |= {
                "input_tokens": 0,
                "output_tokens": 0,
            }  # nothing was asked, or the service says that it did nothing
    told = masker.masked({**answer, **({"usage": usage} if "input_tokens" in usage else {})})
    return {**told, "reason": told["reason"][:MOST_REASON]} if isinstance(told.get("reason"), str) else told


def _answer(said: ModelAnswer) -> dict[str, Any]:
    """The JSON object that a model's text holds. Raises Failure with the text, so that it can be asked to repair it."""
    first, last = said.text.find("{"), said.text.rfind("}")
    problem = said.problem
    if not problem and first < 0:
        problem = "the answer holds no JSON object" if said.text.strip() else "the answer is empty"
    try:
        answer = {} if problem else json.loads(said.text[first : last + 1])
    except (ValueError, RecursionError) as error:
        problem = f"the answer is not JSON: {error}"
    if problem or not isinstance(answer.get("regions", []), list):
        raise Failure("review_reply_invalid", problem or "regions is a list", said.text or "(nothing)")
    return {name: value for name, value in answer.items() if name != "usage"}


def _lines(answer: Mapping[str, Any]) -> Iterator[list[str]]:
    """The lines of each region; whether they are of the form asked for is the daemon's to check."""
    for region in answer.get("regions", ()):
        lines = region.get("lines") if isinstance(region, dict) else None
        yield [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []


def _check_limits(prompt: Prompt, limits: Mapping[str, Any], settings: argparse.Namespace) -> None:
    """Raises Failure where the next question may take more than it is allowed to."""
    if prompt.tokens > settings.max_input_tokens:
        raise Failure(
            "over_budget",
            f"the question has about {prompt.tokens} tokens, at most {settings.max_input_tokens} (--max-input-tokens)",
        )
    tokens = prompt.tokens + settings.max_output_tokens
    if (most := limits.get("max_tokens")) is not None and tokens > most:
        raise Failure("over_budget", f"it may take {tokens} tokens, and {most} are left of max_tokens")
    usd = _microusd(settings, prompt.tokens, settings.max_output_tokens) / 1e6
    if (most := limits.get("max_cost_usd")) is not None and usd > most:
        raise Failure("over_budget", f"it may cost {usd:.4f} USD, and {most:.4f} are left of max_cost_usd")


def _usage(said: ModelAnswer, prompt: Prompt, settings: argparse.Namespace) -> dict[str, Any]:
    """What an answer took. A service that does not say is taken at its most: the question, and --max-output-tokens."""
    used, made = count(said.input_tokens) or prompt.tokens, count(said.output_tokens) or settings.max_output_tokens
    return {
        **({"model": said.model} if said.model else {}),
        "input_tokens": used,
        "output_tokens": made,
        "cost_microusd": _microusd(settings, used, made),
    }


def _microusd(settings: argparse.Namespace, input_tokens: int, output_tokens: int) -> int:
    """Millionths of a USD: a price for a million tokens is that of one token in these."""
    price_in: float = settings.usd_per_mtok_input
    price_out: float = settings.usd_per_mtok_output
    return round(input_tokens * price_in + output_tokens * price_out)


if __name__ == "__main__":
    sys.exit(main())
