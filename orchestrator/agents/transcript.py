"""What was said in a run, as JSON Lines: secrets covered, long texts cut, and no more than so many bytes in all."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from orchestrator.core.text.redact import SecretRedactor

MOST_BYTES = 16 * 1024 * 1024
MOST_TEXT = 8_000
"""Characters of one text."""

MOST_DEPTH = 12
MOST_ITEMS = 200

KEPT_RUNS = 50
"""The oldest are removed."""


class Transcript:
    """One run's file, 0600. Use as a context manager. Texts that come in pieces are put together."""

    def __init__(self, folder: str, name: str) -> None:
        """Raises OSError."""
        place = Path(folder)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in sorted(place.glob("*.jsonl"))[: -KEPT_RUNS + 1]:
            old.unlink(missing_ok=True)
        started = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        self.path = str(place / f"{started}-{os.getpid()}-{name}.jsonl")
        self._file = open(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb")  # noqa: PTH123, SIM115
        self._written = 0
        self._redactor = SecretRedactor()
        self._event, self._said, self._length = "", list[str](), 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._flush()
        self._file.close()

    def piece(self, event: str, text: str) -> None:
        """A part of a text; what follows it of the same kind belongs to it."""
        if self._event != event or self._length > MOST_TEXT:
            self._flush()
        self._event = event
        self._said.append(text)
        self._length += len(text)

    def add(self, event: str, **members: Any) -> None:
        """One line."""
        self._flush()
        self._write(event, members)

    def _flush(self) -> None:
        said, self._said, self._length = "".join(self._said), [], 0
        if said:
            self._write(self._event, {"text": said})

    def _write(self, event: str, members: dict[str, Any]) -> None:
        if self._written > MOST_BYTES:
            return
        shown = self._shown(members, MOST_DEPTH)
        line = msgspec.json.encode({"at": int(time.time() * 1000), "event": event, **shown}) + b"\n"
        self._written += len(line)
        if self._written > MOST_BYTES:
            line = (
                msgspec.json.encode({"event": "cut", "text": f"over {MOST_BYTES} bytes; the rest is not kept"}) + b"\n"
            )
        self._file.write(line)
        self._file.flush()

    def _shown(self, value: Any, depth: int) -> Any:
        match value:
            case str():
                text = "\n".join(self._redactor.hide(value[:MOST_TEXT].split("\n")))
                return text if len(value) <= MOST_TEXT else f"{text} … [{len(value) - MOST_TEXT} characters left out]"
            case dict() if depth:
                return {str(name)[:200]: self._shown(item, depth - 1) for name, item in [*value.items()][:MOST_ITEMS]}
            case list() | tuple() if depth:
                return [self._shown(item, depth - 1) for item in value[:MOST_ITEMS]]
            case int() | float() | bool() | None:
                return value
            case _:
                return "…"
