"""Hints that name only what their reader can call: a toolset has some of the catalogue's tools, or others."""

from __future__ import annotations

import re
from functools import cache

import msgspec

from orchestrator.api.operations import BY_NAME
from orchestrator.api.parameters import Replacement

_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\\s]|\\.)*'")
_SENTENCE_ENDS = re.compile(r"(?<=[.!?]) +(?=[\w{\0])")
_CLAUSE_ENDS = re.compile(r", or |, and |; |: | or ")
_WORDS = re.compile(r"\b([a-z]+(?:_[a-z]+)+)\b(?!/|\.\w)|\b([a-z_]+)[(=]")


def callable_hint(hint: str, names: frozenset[str]) -> str:
    """The hint, without the sentences and clauses that name tools or parameters of ours beside `names`."""
    masked = _QUOTED.sub(lambda quoted: "\0" * len(quoted[0]), hint)
    starts = [0, *(end.end() for end in _SENTENCE_ENDS.finditer(masked))]
    stops = [*(end.start() for end in _SENTENCE_ENDS.finditer(masked)), len(hint)]
    kept = (_kept(hint[start:stop], masked[start:stop], names) for start, stop in zip(starts, stops, strict=True))
    return " ".join(filter(None, kept))


def _kept(sentence: str, masked: str, names: frozenset[str]) -> str:
    if not _foreign(masked, names):
        return sentence
    cuts = [end.start() for end in _CLAUSE_ENDS.finditer(masked)]
    cut = next((at for at in reversed(cuts) if not _foreign(masked[:at], names)), 0)
    return f"{sentence[:cut]}." if len(masked[:cut].split()) > 2 else ""


def _foreign(text: str, names: frozenset[str]) -> bool:
    found = {one or other for one, other in _WORDS.findall(text)}
    return bool(found & _known() - names)


def names_with(tools: frozenset[str]) -> frozenset[str]:
    """These tools of the catalogue, and every parameter."""
    return tools | _known() - BY_NAME.keys()


@cache
def _known() -> frozenset[str]:
    """The names of the catalogue's tools and of their parameters."""
    kinds: list[type[msgspec.Struct]] = [Replacement, *(one.struct for one in BY_NAME.values())]
    return frozenset({*BY_NAME, *(field.encode_name for kind in kinds for field in msgspec.structs.fields(kind))})
