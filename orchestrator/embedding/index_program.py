"""Runs `orchestrator-semantic-index` (plugins/semantic_index) and speaks with it: one JSON object a line, each way.

It holds the model, the vectors and their memory, so that none of it is in the daemon; a service's API key goes from
`up` to it, past the daemon.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from orchestrator import supervised_process
from orchestrator.core.errors import EmbeddingFailed, SemanticSearchOff
from orchestrator.core.ids import Digest
from orchestrator.core.policy.rules import SemanticRules
from orchestrator.core.text.chunks import Chunk
from orchestrator.ports.semantic import ContentTexts, Near, OpenedIndex

PROGRAM = "orchestrator-semantic-index"

STORE = "semantic.db"
"""In the state directory."""

START_S = 120.0
"""To load a model and the vectors of the last run."""

REQUESTS, GRACE_S = 10, 30.0
"""Of a service for one answer, each of which may take the policy's `timeout_s`; and what an answer may take besides."""

MOST_ANSWER_BYTES = 256 << 20


class Unanswered(Exception):
    """The program says nothing more; it is to be ended."""


class IndexProgram:
    """See `ports.SemanticIndex`."""

    def __init__(self, state_dir: Path, environment: Mapping[str, str], variables_fd: int | None) -> None:
        self._store, self._variables_fd = state_dir / STORE, variables_fd
        self._environment = {name: environment[name] for name in ("PATH", "HOME", "LANG") if name in environment}
        self._process: Process | None = None
        self._answers: BufferedByteReceiveStream | None = None
        self._answer_s, self._asked = GRACE_S, 0
        self._turn = anyio.Lock()

    @property
    def is_open(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def open(self, settings: SemanticRules) -> OpenedIndex:
        async with self._turn:
            await self._end()
            self._answer_s = REQUESTS * settings.timeout_s + GRACE_S
            try:
                self._process = await supervised_process.start(
                    (PROGRAM, *_options(settings), "--store", str(self._store)),
                    cwd="/",
                    env=self._environment,
                    stdin=subprocess.PIPE,
                    stderr=2,
                    variables=tuple(filter(None, (settings.api_key_env,))),
                    variables_fd=self._variables_fd,
                )
            except OSError as error:
                raise SemanticSearchOff(f"{PROGRAM} can't be started: {error.strerror}") from error
            assert self._process.stdout is not None
            self._answers = BufferedByteReceiveStream(self._process.stdout)
            self._asked = 0
            try:
                found = await self._answer(START_S)
            except Unanswered as error:
                await self._end()
                raise EmbeddingFailed(f"{PROGRAM} {error}") from error
        return OpenedIndex(found["model"], frozenset(map(Digest, found["contents"])), found["chunks"])

    async def add(self, contents: Sequence[ContentTexts]) -> tuple[int, frozenset[Digest]]:
        answer = await self._ask({"do": "add", "contents": contents})
        return answer["chunks"], frozenset(map(Digest, answer["left_out"]))

    async def remove(self, digests: Collection[Digest]) -> int:
        chunks: int = (await self._ask({"do": "remove", "contents": tuple(digests)}))["chunks"]
        return chunks

    async def nearest(self, text: str, among: Collection[Digest] | None, most: int) -> list[Near]:
        wanted = tuple(among) if among is not None else None
        found = (await self._ask({"do": "nearest", "text": text, "among": wanted, "most": most}))["near"]
        return [Near(Digest(digest), Chunk(start, end, name), score) for digest, start, end, name, score in found]

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        async with self._turn:
            if self._process is None or self._process.stdin is None:
                raise EmbeddingFailed("the index is not open")
            self._asked += 1
            try:
                with anyio.move_on_after(GRACE_S, shield=True) as sending:  # half a line would spoil the next one
                    await self._process.stdin.send(msgspec.json.encode({**request, "id": self._asked}) + b"\n")
                if sending.cancelled_caught:
                    raise Unanswered("takes no request")
                return await self._answer(self._answer_s)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, Unanswered) as error:
                await self._end()
                raise EmbeddingFailed(f"{PROGRAM} {error if isinstance(error, Unanswered) else 'ended'}") from error

    async def _answer(self, within_s: float) -> dict[str, Any]:
        """The one to the last request; others are of calls that were cancelled.

        Raises Unanswered, SemanticSearchOff, EmbeddingFailed.
        """
        assert self._answers is not None
        answer: dict[str, Any] = {}
        try:
            with anyio.fail_after(within_s):
                while answer.get("id") != self._asked:
                    answer = msgspec.json.decode(await self._answers.receive_until(b"\n", MOST_ANSWER_BYTES))
        except TimeoutError as error:
            raise Unanswered(f"gave no answer in {within_s:g} s") from error
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.DelimiterNotFound, msgspec.DecodeError) as error:
            raise Unanswered("ended") from error
        if "off" in answer:
            raise SemanticSearchOff(answer["off"])
        if "failed" in answer:
            raise EmbeddingFailed(answer["failed"])
        return answer

    async def aclose(self) -> None:
        async with self._turn:
            await self._end()

    async def _end(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            await supervised_process.end(process)


def _options(settings: SemanticRules) -> tuple[str, ...]:
    common = ("--max-chunks", str(settings.max_chunks), "--timeout-s", str(settings.timeout_s))
    if settings.model:
        return ("--model", settings.model, *common)
    key = ("--api-key-env", settings.api_key_env) if settings.api_key_env else ()
    return ("--base-url", settings.base_url, "--service-model", settings.service_model, *key, *common)
