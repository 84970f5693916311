"""What a field's annotation says of its value: a path, a content, a text to redact; found in any stored struct.

A `WorkspacePath` is a path and a `Digest` a content; the marks below say the rest. Search, redaction, garbage
collection, verification, and what a caller may see ask the functions here, and keep no names of fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, auto
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NewType, TypeVar, Union, get_args, get_origin

import msgspec

from orchestrator.core.ids import Digest, EscapedPath, WorkspacePath


class Mark(Enum):
    """What a value is, beyond its type."""

    PATH = auto()
    CONTENT = auto()
    BROUGHT = auto()
    GONE = auto()
    REVEALING = auto()
    REDACTABLE = auto()
    SECRET = auto()


T = TypeVar("T")

NewContent = Annotated[T, Mark.BROUGHT]
"""A content that came with this struct. The journal keeps it, unless a `kept` of the struct or its event is false."""

OldContent = Annotated[T, Mark.GONE]
"""A content that is named because the journal no longer keeps it."""

FromContent = Annotated[T, Mark.REVEALING]
"""Tells of a content: who may not read the file is not shown it. Every digest of a content does so anyway."""

Redactable = Annotated[T, Mark.REDACTABLE]
"""A text that `journal redact` may blank; no fold reads it."""

Secret = Annotated[T, Mark.SECRET]
"""For the daemon alone; no caller is shown it."""

_NAMED: Mapping[Any, Mark] = {WorkspacePath: Mark.PATH, EscapedPath: Mark.PATH, Digest: Mark.CONTENT}


class Shape(msgspec.Struct, frozen=True):
    """What the fields of one type of struct hold."""

    marked: Mapping[Mark, tuple[str, ...]]  # fields that have a mark themselves
    leading: Mapping[Mark, tuple[str, ...]]  # and those with structs that lead to it
    nested: Mapping[str, tuple[type[msgspec.Struct], ...]]  # structs with marks at any depth, by field
    required: frozenset[str]


@cache
def shape(kind: type[msgspec.Struct]) -> Shape:
    """Raises TypeError on a mapping with marks, which nothing here looks into."""
    fields = msgspec.structs.fields(kind)
    held = {field.name: tuple(dict.fromkeys(_within(field.type))) for field in fields}
    nested = {
        name: tuple(item for item in found if not isinstance(item, Mark) and any(shape(item).leading.values()))
        for name, found in held.items()
    }
    marked = {mark: tuple(name for name, found in held.items() if mark in found) for mark in Mark}
    leading = {
        mark: tuple(
            name for name in held if name in marked[mark] or any(shape(item).leading[mark] for item in nested[name])
        )
        for mark in Mark
    }
    required = frozenset(field.name for field in fields if field.required)
    return Shape(marked, leading, {name: structs for name, structs in nested.items() if structs}, required)


def _within(annotation: Any) -> Iterator[Mark | type[msgspec.Struct]]:
    """The marks of an annotation, and the structs that it leads to."""
    if isinstance(annotation, NewType):
        yield from (_NAMED[annotation],) if annotation in _NAMED else _within(annotation.__supertype__)
    elif isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        yield annotation
    elif get_origin(annotation) is Annotated:
        plain, *extras = get_args(annotation)
        yield from (extra for extra in extras if isinstance(extra, Mark))
        yield from _within(plain)
    elif get_origin(annotation) in (Union, UnionType, tuple, list, frozenset):
        for part in get_args(annotation):
            yield from _within(part)
    elif get_origin(annotation) is not Literal and any(True for part in get_args(annotation) for _ in _within(part)):
        raise TypeError(f"{annotation} holds what must be found, and nothing looks into it")


def found(value: msgspec.Struct, mark: Mark) -> Iterator[tuple[msgspec.Struct, str, Any]]:
    """Each value with a mark, at any depth, in the order of the fields, with the struct and the field that hold it."""
    known = shape(type(value))
    for name in known.leading[mark]:
        for item in _items(getattr(value, name)):
            if isinstance(item, msgspec.Struct):
                yield from found(item, mark)
            elif name in known.marked[mark]:
                yield value, name, item


def _items(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list | frozenset):
        for item in value:
            yield from _items(item)
    elif value is not None:
        yield value


def paths_of(value: msgspec.Struct) -> Iterator[WorkspacePath]:
    """Every path that a struct names, at any depth, in the order of the fields; escaped ones as they are."""
    return (item for _, _, item in found(value, Mark.PATH))


def contents_of(value: msgspec.Struct) -> Iterator[Digest]:
    """Every content that a struct names, at any depth, save as gone."""
    return (item for part, name, item in found(value, Mark.CONTENT) if name not in shape(type(part)).marked[Mark.GONE])


def gone_from(value: msgspec.Struct) -> Iterator[Digest]:
    """Every content that a struct names as gone."""
    return (item for _, _, item in found(value, Mark.GONE))


class BroughtContent(msgspec.Struct, frozen=True):
    """A content that came with an event, for a path where its struct names one."""

    digest: Digest
    path: WorkspacePath | None
    kept: bool


def brought_by(value: msgspec.Struct) -> Iterator[BroughtContent]:
    """The contents that came with a struct, at any depth."""
    about, kept = getattr(value, "path", None), getattr(value, "kept", True)
    for part, _, digest in found(value, Mark.BROUGHT):
        yield BroughtContent(digest, getattr(part, "path", about), getattr(part, "kept", kept))


def fields_with(kind: type[msgspec.Struct], mark: Mark) -> tuple[str, ...]:
    """The names of the fields that have a mark, of a type and of the structs within it."""
    known = shape(kind)
    within = (name for structs in known.nested.values() for item in structs for name in fields_with(item, mark))
    return tuple(dict.fromkeys((*known.marked[mark], *within)))
