"""The API key: found where the operator put it, and masked where a service says it again."""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, quote_plus

from model_reviewer.services import Failure

MOST_BYTES = 4096
MARK: Final = "[redacted:key]"

SHORTEST: Final = 8
"""Characters. A shorter one, `none` or `ollama`, is a word that any text may hold: it is masked in
messages as it is, and not looked for in lines."""


def api_key(settings: argparse.Namespace, environment: Mapping[str, str]) -> str:
    """The key; empty where none is set. Raises Failure, without the key in it."""
    if settings.api_key_env:
        place, key = settings.api_key_env, environment.get(settings.api_key_env, "").strip()
        if not key:
            raise Failure(
                "reviewer_unusable",
                f"{place} is not set: name it in `env` of the [[reviewer]], and start the daemon where it is set",
            )
    elif settings.api_key_file:
        place, key = settings.api_key_file, _read(settings.api_key_file, environment).strip()
    else:
        return ""
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise Failure("reviewer_unusable", f"what {place} holds is no key")
    return key


def _read(path: str, environment: Mapping[str, str]) -> str:
    """A file that only the operator can have written, and that nobody else reads."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        raise Failure("reviewer_unusable", f"{path} can't be read: {error.strerror}") from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise Failure("reviewer_unusable", f"{path} is no plain file")
        if found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise Failure("reviewer_unusable", f"{path} is open to others (mode {found.st_mode & 0o777:o}): chmod 600")
        workspace = environment.get("ORCHESTRATOR_WORKSPACE")
        # By what was opened, so that no link leads to what agents can write.
        real = Path(f"/proc/self/fd/{descriptor}").resolve()
        if found.st_nlink > 1 or (workspace and real.is_relative_to(Path(workspace).resolve())):
            raise Failure(
                "reviewer_unusable",
                f"{path} stands in the workspace, or has a second name: move it to where agents can't write",
            )
        data = os.read(descriptor, MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MOST_BYTES:
        raise Failure("reviewer_unusable", f"{path} is larger than a key")
    return data.decode("utf-8", "replace")


class ApiKeyMasker:
    """Knows one key in the forms in which it may come back: as it is, quoted for URLs or JSON, in base64."""

    def __init__(self, key: str) -> None:
        self._guarded = len(key) >= SHORTEST
        forms = sorted(set(_forms(key)), key=len, reverse=True) if self._guarded else [key] if key else []
        self._form = re.compile("|".join(map(re.escape, forms)), re.IGNORECASE if self._guarded else 0)
        self._lowered = tuple(form.lower() for form in forms)

    def mask(self, text: str) -> str:
        """With a mark in the place of the key."""
        return self._form.sub(MARK, text) if self._holds(text) else text

    def masked(self, value: Any) -> Any:
        """The same JSON value, with every text in it masked."""
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, list):
            return [self.masked(item) for item in value]
        if isinstance(value, dict):
            return {self.mask(name): self.masked(item) for name, item in value.items()}
        return value

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
