"""One call of a service over HTTP: bounded in time and size, sent again where it is busy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final

import anyio
import httpx2
import msgspec

from orchestrator.core.errors import escaped
from orchestrator.core.text.redact import SecretRedactor
from orchestrator.ports.machine import Clock
from orchestrator.ports.reviewers import (
    ReviewerBusy,
    ReviewerRefused,
    ReviewerUnreachable,
    ReviewFailure,
    ReviewReplyInvalid,
)
from orchestrator.review.api_key_masking import ApiKeyMasker

Sleep = Callable[[float], Awaitable[None]]

MOST_ANSWER_BYTES = 4 * 1024 * 1024
MOST_WAIT_S = 60.0
"""A service that wants to be left alone for longer is given up on: another reviewer may answer by then."""

FIRST_WAIT_S = 1.0
BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
KEPT_OF_ERROR = 300
LOOKED_AT = 128 * 1024
FAR_OFF_S = 1e9
"""What asks for more, and what no calendar has, is this."""

NO_KEY: Final = ApiKeyMasker("")


class HttpClient:
    """Posts JSON to one service."""

    def __init__(self, clock: Clock, *, retries: int, sleep: Sleep = anyio.sleep) -> None:
        self._clock, self._retries, self._sleep = clock, retries, sleep

    async def post(
        self, url: str, headers: Mapping[str, str], body: Mapping[str, Any], *, guard: ApiKeyMasker
    ) -> bytes:
        """The answer's body. The key is struck out of every message. Raises ReviewFailure; cancelled from outside."""
        data = msgspec.json.encode(body)
        sent = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
        # No proxy of the environment, no redirects: it goes where the operator said, or nowhere.
        async with httpx2.AsyncClient(timeout=None, follow_redirects=False, trust_env=False) as client:
            for tries in range(self._retries + 1):
                wait_s, failure = FIRST_WAIT_S * 2**tries, ReviewFailure("")
                try:
                    status, answered, got = await _exchange(client, url, {**sent, **headers}, data)
                except httpx2.TransportError as error:
                    failure = ReviewerUnreachable(f"{_place(url)}: {_why(error, guard)}")
                else:
                    if status == httpx2.codes.OK:
                        return got
                    if status not in BUSY:
                        raise ReviewerRefused(f"{_place(url)} answered {status}: {_tail(got, guard)}")
                    failure = ReviewerBusy(f"{_place(url)} answered {status}: {_tail(got, guard)}")
                    asked_s = self._retry_after(answered.get("retry-after", ""))
                    if asked_s is not None:
                        wait_s = asked_s
                if tries == self._retries:
                    raise failure
                if wait_s > MOST_WAIT_S:
                    raise ReviewerBusy(f"{failure.message}; it wants to be asked in {wait_s:.0f} s, not before")
                await self._sleep(wait_s)
        raise ReviewFailure("no try was made")  # retries are 0 or more

    def _retry_after(self, value: str) -> float | None:
        """Seconds to wait, from seconds or an HTTP date; None where it says nothing that can be read."""
        value = value.strip()[:100]
        if value.isascii() and value.isdigit():
            return float(value[:9])
        try:
            at = parsedate_to_datetime(value)
        except OverflowError:  # a year that no calendar has
            return FAR_OFF_S
        except (ValueError, TypeError, IndexError):
            return None
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return max(0.0, at.timestamp() - self._clock.now_ms() / 1000)


async def _exchange(
    client: httpx2.AsyncClient, url: str, headers: Mapping[str, str], data: bytes
) -> tuple[int, httpx2.Headers, bytes]:
    async with client.stream("POST", url, headers=dict(headers), content=data) as response:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ReviewReplyInvalid("the service compresses its answer though it was asked not to")
        got = bytearray()
        async for piece in response.aiter_raw():
            got += piece
            if len(got) > MOST_ANSWER_BYTES:
                raise ReviewReplyInvalid(f"the answer is larger than {MOST_ANSWER_BYTES >> 20} MB")
        return response.status_code, response.headers, bytes(got)


def _place(url: str) -> str:
    return escaped(url)


def _why(error: httpx2.TransportError, guard: ApiKeyMasker) -> str:
    return without(str(error) or type(error).__name__, guard)


def _tail(data: bytes, guard: ApiKeyMasker) -> str:
    text = guard.mask(data[:LOOKED_AT].decode("utf-8", "replace"))  # before it is cut: half a key is not known
    return without(text[: 8 * KEPT_OF_ERROR], guard)[:KEPT_OF_ERROR] or "(nothing)"


def without(text: str, guard: ApiKeyMasker) -> str:
    """A service's or program's own words, on one line, without the key and whatever else looks like one."""
    return escaped(" ".join(SecretRedactor().hide(guard.mask(text).splitlines())).strip())
