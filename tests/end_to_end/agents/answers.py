"""What a model reads of a call, and what is wrong with it: "" is well."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any


def has(**wanted: object) -> Callable[[str], str]:
    """Members of the answer's JSON."""

    def trouble(text: str) -> str:
        said = structured(text)
        wrong = {key: said.get(key) for key, value in wanted.items() if said.get(key) != value}
        return f"not {wanted}, but {wrong}: {short(text)}" if wrong else ""

    return trouble


def moved_along(text: str) -> str:
    """Applied, though others changed lines beside it."""
    return has(status="applied")(text) or holds("moved along with others' lines")(text)


def holds(*parts: str) -> Callable[[str], str]:
    """All of these texts."""

    def trouble(text: str) -> str:
        missing = [part for part in parts if not any(form in text for form in _forms(part))]
        return f"lacks {missing}: {short(text)}" if missing else ""

    return trouble


def structured(text: str) -> dict[str, Any]:
    """The answer's JSON in what a model reads; {} where there is none."""
    decoder = json.JSONDecoder()
    for start, character in enumerate(text):
        if character != "{":
            continue
        try:
            document, _ = decoder.raw_decode(text, start)
        except ValueError:
            continue
        if isinstance(document, dict) and document.get("type") == "text":
            return structured(document["text"])
        if isinstance(document, dict) and ("status" in document or "code" in document):
            return document
    return {}


def _forms(part: str) -> Iterator[str]:
    """A text, and as it looks in JSON within a text, to two levels: Gemini CLI shows refusals so."""
    for _ in range(3):
        yield part
        part = json.dumps(part)[1:-1]


def short(text: str) -> str:
    """Its beginning."""
    return repr(text[:400])
