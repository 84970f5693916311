"""Answers leave out what is null, false or empty: each such member has that as its default."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest

from orchestrator.api.framing import SUBSCRIBE, FeedEvent
from orchestrator.api.operations import OPERATIONS
from orchestrator.api.results import FileFacts, Notice, Result


def of_answers() -> list[type[Result]]:
    """Every type that an answer can hold."""
    found: dict[type[Result], None] = {}
    waiting: list[Any] = [FeedEvent, Notice]
    waiting += [operation.result for operation in (*OPERATIONS, SUBSCRIBE)]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, type) and issubclass(kind, Result):
            if kind not in found:
                found[kind] = None
                waiting += [field.type for field in msgspec.structs.fields(kind)]
        else:
            waiting += get_args(kind)
    return list(found)


def empties(kind: Any) -> Iterator[object]:
    """The values of a type that say nothing."""
    if get_origin(kind) in (Union, types.UnionType):
        for part in get_args(kind):
            yield from empties(part)
    elif kind is type(None):
        yield None
    elif kind is bool:
        yield False
    elif get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis:
        yield ()


TOLD_ALWAYS: dict[type[Result], str] = {FileFacts: "exists"}
"""What is the answer itself, and is told also where it is false."""


@pytest.mark.parametrize("kind", of_answers(), ids=lambda kind: kind.__name__)
def test_what_says_nothing_is_the_default(kind: type[Result]) -> None:
    assert kind.__struct_config__.omit_defaults
    for field in msgspec.structs.fields(kind):
        for empty in empties(field.type) if TOLD_ALWAYS.get(kind) != field.name else ():
            assert field.default is empty, f"{kind.__name__}.{field.name}"
