"""The key that a service was called with, when the service says it again."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote, quote_plus

MARK: Final = "[redacted:key]"

SHORTEST: Final = 8
"""Characters. A shorter one, `none` or `ollama`, is a word that any text may hold: it is struck out of
messages as it is, and not looked for in lines."""


class ApiKeyMasker:
    """Knows one key in the forms in which it may come back: as it is, quoted for URLs or JSON, in base64."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._guarded = len(key) >= SHORTEST
        forms = sorted(set(_forms(key)), key=len, reverse=True) if self._guarded else [key] if key else []
        self._form = re.compile("|".join(map(re.escape, forms)), re.IGNORECASE if self._guarded else 0)
        self._lowered = tuple(form.lower() for form in forms)

    def mask(self, text: str) -> str:
        """With a mark in the place of the key."""
        return self._form.sub(MARK, text) if self._holds(text) else text

    def appears_in(self, lines: Sequence[str]) -> bool:
        """Whether lines hold it, in one or broken over several."""
        if not self._guarded:
            return False
        return self._holds("\n".join(lines)) or self._holds("".join(line.strip() for line in lines))

    def _holds(self, text: str) -> bool:
        """A plain search for each form: an answer of megabytes takes milliseconds."""
        lowered = text.lower()
        return any(form in lowered for form in self._lowered)


def _forms(key: str) -> Iterator[str]:
    yield key
    yield from (quote(key), quote(key, safe=""), quote_plus(key))
    yield json.dumps(key)[1:-1]
    yield key.replace("/", "\\/")
    data = key.encode("utf-8", "surrogatepass")
    yield data.hex()
    for before in range(3):
        for encoded in (base64.b64encode, base64.urlsafe_b64encode):
            text = encoded(b"\0" * before + data).decode("ascii")
            # Only the characters that are of the key alone, whatever stands before and after it.
            yield text[(0, 2, 3)[before] : len(text) - (0, 3, 2)[(before + len(data)) % 3]]
