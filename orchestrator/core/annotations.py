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

Brought = Annotated[T, Mark.BROUGHT]
"""A content that came with this struct. The journal keeps it, unless a `kept` of the struct or its event is false."""

Gone = Annotated[T, Mark.GONE]
"""A content that is named because the journal no longer keeps it."""

Revealing = Annotated[T, Mark.REVEALING]
"""Tells of a content: who may not read the file is not shown it. Every digest of a content does so anyway."""

Redactable = Annotated[T, Mark.REDACTABLE]
"""A text that `journal redact` may blank; no fold reads it."""

Secret = Annotated[T, Mark.SECRET]
"""For the daemon alone; no caller is shown it."""

_NAMED: Mapping[Any, Mark] = {WorkspacePath: Mark.PATH, EscapedPath: Mark.PATH, Digest: Mark.CONTENT}


class Shape(msgspec.Struct, frozen=True):
    """What the fields of one type of struct hold."""

    marked: Mapping[Mark, tuple[str, ...]]  # fields by mark
    nested: tuple[str, ...]  # fields with structs that have marks, at any depth
    structs: tuple[type[msgspec.Struct], ...]  # those structs
    with_paths: tuple[str, ...]  # fields that are paths, or have structs with marks
    required: frozenset[str]


@cache
def shape(kind: type[msgspec.Struct]) -> Shape:
    """Raises TypeError on a mapping with marks, which nothing here looks into."""
    marked: dict[Mark, list[str]] = {mark: [] for mark in Mark}
    nested, structs = list[str](), list[type[msgspec.Struct]]()
    fields = msgspec.structs.fields(kind)
    for field in fields:
        for found in dict.fromkeys(_within(field.type)):
            if isinstance(found, Mark):
                marked[found].append(field.name)
            elif shape(found).nested or any(shape(found).marked.values()):
                nested.append(field.name)
                structs.append(found)
    required = frozenset(field.name for field in fields if field.required)
    by_mark = {mark: tuple(names) for mark, names in marked.items()}
    with_paths = tuple(name for name in kind.__struct_fields__ if name in marked[Mark.PATH] or name in nested)
    return Shape(by_mark, tuple(dict.fromkeys(nested)), tuple(structs), with_paths, required)


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


def parts(value: msgspec.Struct) -> Iterator[msgspec.Struct]:
    """A struct, and those within it that have marks, in the order of their fields."""
    yield value
    for name in shape(type(value)).nested:
        for item in _items(getattr(value, name)):
            if isinstance(item, msgspec.Struct):
                yield from parts(item)


def marked(part: msgspec.Struct, mark: Mark) -> Iterator[Any]:
    """The values of one struct that have a mark, without those within it."""
    for name in shape(type(part)).marked[mark]:
        yield from (item for item in _items(getattr(part, name)) if not isinstance(item, msgspec.Struct))


def _items(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list | frozenset):
        for item in value:
            yield from _items(item)
    elif value is not None:
        yield value


def paths_of(value: msgspec.Struct) -> Iterator[WorkspacePath]:
    """Every path that a struct names, at any depth, in the order of the fields; escaped ones as they are."""
    known = shape(type(value))
    for name in known.with_paths:
        for item in _items(getattr(value, name)):
            if isinstance(item, msgspec.Struct):
                yield from paths_of(item)
            elif name in known.marked[Mark.PATH]:
                yield item


def contents_of(value: msgspec.Struct) -> Iterator[Digest]:
    """Every content that a struct names, at any depth, save as gone."""
    for part in parts(value):
        gone = frozenset(marked(part, Mark.GONE))
        yield from (digest for digest in marked(part, Mark.CONTENT) if digest not in gone)


def gone_from(value: msgspec.Struct) -> Iterator[Digest]:
    """Every content that a struct names as gone."""
    for part in parts(value):
        yield from marked(part, Mark.GONE)


class BroughtContent(msgspec.Struct, frozen=True):
    """A content that came with an event, for a path where its struct names one."""

    digest: Digest
    path: WorkspacePath | None
    kept: bool


def brought_by(value: msgspec.Struct) -> Iterator[BroughtContent]:
    """The contents that came with a struct, at any depth."""
    about, kept = getattr(value, "path", None), getattr(value, "kept", True)
    for part in parts(value):
        for digest in marked(part, Mark.BROUGHT):
            yield BroughtContent(digest, getattr(part, "path", about), getattr(part, "kept", kept))


def fields_with(kind: type[msgspec.Struct], mark: Mark) -> tuple[str, ...]:
    """The names of the fields that have a mark, of a type and of the structs within it."""
    known = shape(kind)
    within = (name for item in known.structs for name in fields_with(item, mark))
    return tuple(dict.fromkeys((*known.marked[mark], *within)))
