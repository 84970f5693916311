"""Counts the tokens of a text by a byte-pair vocabulary that the operator put into a folder.

The folder has one `NAME.tiktoken` file (each line a piece in base64 and its rank), and `pattern.txt` with the
expression that cuts a text into pieces, unless the name is one whose expression is known here.
"""

from __future__ import annotations

import base64
import importlib
import re
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

from orchestrator.core.errors import TextTooCostly, escaped
from orchestrator.core.text.answer_space import weight
from orchestrator.logs import logger
from orchestrator.ports.machine import Estimate, TokenCount, Workers

PATTERNS: Final = {
    "cl100k_base": r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"""
    r"""|\s*[\r\n]|\s+(?!\S)|\s""",
    "o200k_base": r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"""
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"""
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
}
"""Source: tiktoken 0.14, `tiktoken_ext.openai_public`, which itself downloads the vocabularies."""

MOST_COUNTED = 1 << 20
"""Characters. Of a longer text the first are counted, and the rest is taken in proportion to its estimate."""

MOST_VOCABULARY = 64 << 20
"""Bytes of its file."""

_RUN = re.compile(r"(\S{400}|\s{400})")
"""A longer run is cut: on a million spaces the known patterns end tiktoken 0.14 with a stack overflow."""


class VocabularyUnusable(Exception):
    """No tokens can be counted by it."""


class VocabularyCounter:
    """See `ports.TokenCounter`. A worker process loads the vocabulary, which changes no file and reaches nobody."""

    def __init__(self, workers: Workers) -> None:
        self._workers, self._log = workers, logger("tokens")

    async def count(self, text: str, vocabulary: str) -> TokenCount:
        why = ""
        if vocabulary:
            try:
                return await self._workers.run(partial(counted, vocabulary, text))
            except (VocabularyUnusable, TextTooCostly) as error:
                self._log.warning("tokens are estimated", vocabulary=vocabulary, error=str(error))
                why = f" ({error})"
        estimate = await Estimate().count(text, "")
        return estimate._replace(method=estimate.method + why)


def counted(folder: str, text: str) -> TokenCount:
    """The tokens of a text by a folder's vocabulary. Raises VocabularyUnusable."""
    encoding = _encoding(folder)
    head = text[:MOST_COUNTED]
    tokens = sum(len(encoding.encode_ordinary(piece)) for piece in _RUN.split(head))
    method = f"tiktoken {encoding.name}"
    if len(head) == len(text):
        return TokenCount(tokens, method)
    return TokenCount(tokens * weight(text) // weight(head), f"{method}, of the first {MOST_COUNTED:,} characters")


@lru_cache(maxsize=1)
def _encoding(folder: str) -> Any:
    try:
        tiktoken: Any = importlib.import_module("tiktoken")
    except ImportError as error:
        raise VocabularyUnusable("not installed: pip install 'workspace-orchestrator[tokens]'") from error
    where = escaped(folder)
    try:
        files = sorted(Path(folder).glob("*.tiktoken"))
        if len(files) != 1:
            raise VocabularyUnusable(f"{where} has {len(files)} .tiktoken files, not one")
        (file,), written = files, Path(folder, "pattern.txt")
        if file.stat().st_size > MOST_VOCABULARY:
            raise VocabularyUnusable(f"{escaped(file.name)} is larger than a vocabulary")
        pattern = written.read_text("utf-8").rstrip("\n") if written.exists() else PATTERNS.get(file.stem)
        rows = (line.split() for line in file.read_bytes().splitlines() if line)
        ranks = {base64.b64decode(piece, validate=True): int(rank) for piece, rank in rows}
    except (OSError, ValueError) as error:
        raise VocabularyUnusable(f"the vocabulary in {where} can't be read: {error}") from error
    if pattern is None:
        known = ", ".join(PATTERNS)
        raise VocabularyUnusable(f"{where} has no pattern.txt, and {escaped(file.stem)} is none of {known}")
    if not all(bytes((byte,)) in ranks for byte in range(256)) or len(set(ranks.values())) != len(ranks):
        raise VocabularyUnusable(f"{escaped(file.name)} lacks single bytes, or has a rank twice")
    try:
        return tiktoken.Encoding(name=file.stem, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    except ValueError as error:
        raise VocabularyUnusable(f"pattern.txt in {where} is no expression: {error}") from error
