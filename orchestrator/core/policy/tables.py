"""Reads a table of a policy file into its struct; all that is wrong with it is collected.

What a value must be is said by the type of the struct's field: a Literal, a range, a list. Beyond that a field
may name a function in `extra`: `check` says what is wrong with a text, `each` what is wrong with a list's item.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import inspect

from orchestrator.core.errors import escaped
from orchestrator.core.events.sessions import AgentClass
from orchestrator.core.globs import MOST_CHARACTERS, Glob
from orchestrator.core.paths import fold_pattern

if TYPE_CHECKING:
    import tree_sitter

T = TypeVar("T", bound=msgspec.Struct)
Check = Callable[[str], str | None]
"""What is wrong with a text; None: nothing."""

Place = tuple[str | int, ...]
"""`("rule", 2, "paths", 1)`: counted from 1, as a person counts."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.\-]{0,63}\Z")
_BRACKET = re.compile(r"(?<!\\)\[[!^]?\]?[^\]]*?(?:\[|--|&&|\|\||~~)")
_UNITS = {"_s": "seconds", "_bytes": "bytes", "_lines": "lines"}


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is wrong with a policy file."""

    line: int  # from 1
    message: str
    key: str = ""  # "rule[2].paths[1]", counted from 1; "" for the file as a whole


class TableReader:
    """Reads tables of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.problems: list[Problem] = []

    def wrong(self, message: str, *place: str | int) -> None:
        """Note a problem with its place."""
        key = "".join(f"[{part}]" if isinstance(part, int) else f".{escaped(part)}" for part in place).lstrip(".")
        self.problems.append(Problem(self.line(*place), message, key))

    def line(self, *place: str | int) -> int:
        """The line of a place, or of the nearest place that holds it; 1 for the text as a whole."""
        return next((line for end in range(len(place), 0, -1) if (line := self._lines.get(place[:end]))), 1)

    @cached_property
    def _lines(self) -> dict[Place, int]:
        """The lines (from 1) of the text's tables, keys and array items; tomllib keeps no positions."""
        import tree_sitter  # a start, which finds no problems, needs no parser
        import tree_sitter_toml

        parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_toml.language()))
        return dict(_document(parser.parse(self._text.encode("utf-8", "surrogatepass")).root_node))

    def table(self, kind: type[T], table: object, *place: str | int, known: tuple[str, ...] = ()) -> T | None:
        """The struct; None where something is wrong with the table. `known`: keys that somebody else reads."""
        if not isinstance(table, dict):
            self.wrong(f"is a table: [{place[0]}]", *place)
            return None
        before = len(self.problems)
        fields = _fields(kind)
        for key in table:
            if key not in fields and key not in known:
                self.wrong(f"unknown key; {_suggestion(key, (*fields, *known))}", *place, key)
        for name, field in fields.items():
            if name in table:
                self._value(field.type, table[name], *place, name)
            elif field.required:
                choices = _choices(field.type)
                self.wrong("is missing" + (f": {choices}" if choices else ""), *place, name)
        if len(self.problems) > before:
            return None
        return msgspec.convert({name: table[name] for name in fields if name in table}, kind)

    def tables(
        self, kinds: type[T] | Mapping[str, type[T]], whole: Mapping[str, Any], name: str
    ) -> Iterator[tuple[int, T]]:
        """The structs of `[[name]]` tables that nothing is wrong with, each with its number from 1.

        Of several kinds the table's `kind` says which it is.
        """
        tables = whole.get(name, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self.wrong(f"{name}s are written as [[{name}]] tables", name)
            return
        for at, table in enumerate(tables, 1):
            known = () if isinstance(kinds, type) else ("kind",)
            kind = kinds if isinstance(kinds, type) else kinds.get(str(table.get("kind")))
            if kind is None and not isinstance(kinds, type):
                self.wrong(f"is one of {' | '.join(kinds)}", name, at, "kind")
            elif kind is not None and (item := self.table(kind, table, name, at, known=known)) is not None:
                yield at, item

    def field(self, kind: type[msgspec.Struct], name: str, value: object, *place: str | int) -> None:
        """Note what is wrong with a value for one field of a struct."""
        self._value(_fields(kind)[name].type, value, *place)

    def _value(self, kind: inspect.Type, value: object, *place: str | int, check: Check | None = None) -> None:
        """Note what is wrong with one value, or with each item of a list."""
        extra: Mapping[str, Check] = {}
        while isinstance(kind, inspect.Metadata):
            extra, kind = {**(kind.extra or {}), **extra}, kind.type
        if isinstance(kind, inspect.UnionType):  # of something and None, which TOML does not have
            kind = next(item for item in kind.types if not isinstance(item, inspect.NoneType))
        check = extra.get("check", check)
        if not isinstance(kind, inspect.VarTupleType):
            if problem := check(value) if check and isinstance(value, str) else _problem(kind, value, str(place[-1])):
                self.wrong(f"{_quoted(value)}: {problem}", *place)
        elif not isinstance(value, list) or len(value) < (kind.min_length or 0):
            self.wrong("is a list of texts" + (", at least one" if kind.min_length else ""), *place)
        else:
            for at, item in enumerate(value, 1):
                self._value(kind.item_type, item, *place, at, check=extra.get("each"))


def _fields(kind: type[msgspec.Struct]) -> dict[str, inspect.Field]:
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    fields = {field.encode_name: field for field in found.fields}
    for declared in msgspec.structs.fields(kind):
        if get_origin(declared.type) is Literal:  # msgspec sorts the words, whose order has a meaning
            words = inspect.LiteralType(get_args(declared.type))
            fields[declared.encode_name] = msgspec.structs.replace(fields[declared.encode_name], type=words)
    return fields


def _choices(kind: inspect.Type) -> str:
    return " | ".join(map(str, kind.values)) if isinstance(kind, inspect.LiteralType) else ""


def _problem(kind: inspect.Type, value: object, name: str) -> str | None:
    """What is wrong with a value that is no list."""
    match kind:
        case inspect.LiteralType():
            known = tuple(map(str, kind.values))
            return None if value in known else f"is none of {_choices(kind)}; {_suggestion(str(value), known)}"
        case inspect.BoolType():
            return None if type(value) is bool else "is true or false"
        case inspect.StrType():
            good = isinstance(value, str) and value.strip() and value.isprintable()
            return None if good else "is one line of text in quotes"
        case inspect.IntType() | inspect.FloatType():
            return _number_problem(kind, value, name)
        case _:
            raise TypeError(f"no policy holds a {kind}")


def _number_problem(kind: inspect.IntType | inspect.FloatType, value: object, name: str) -> str | None:
    whole = isinstance(kind, inspect.IntType)
    least = kind.ge if kind.ge is not None else kind.gt
    if type(value) in ((int,) if whole else (int, float)):
        assert isinstance(value, int | float)
        if least is not None and kind.le is not None and least <= value <= kind.le and value != kind.gt:
            return None
    unit = "USD" if "usd" in name else next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")
    number = f"a {'whole ' if whole else ''}number" + (f" of {unit}" if unit else "")
    return f"{number}, {'more than ' if kind.gt is not None else ''}{least} to {kind.le}"


# --- what a text may hold -------------------------------------------------------------


def name_problem(name: str) -> str | None:
    """What is wrong with the name of a rule or a reviewer."""
    return None if _NAME.match(name) else "a name has letters, digits, spaces, '_', '-' and '.', at most 64"


def agent_problem(agent: str) -> str | None:
    """What is wrong with an entry of `agents`."""
    if agent == "*":
        return None
    if agent.startswith("class:"):
        return known_one(agent[6:], get_args(AgentClass))
    if not agent or "*" in agent or not agent.isprintable() or " " in agent:
        return "an agent's name (whole, no globs), class:NAME, or *"
    return None


def argument_problem(argument: str) -> str | None:
    """What is wrong with an argument of a command."""
    return "an argument holds no NUL, and is not empty" if not argument or "\0" in argument else None


def glob_problem(glob: str) -> str | None:  # noqa: PLR0911  # one return for each thing that gitignore passes over
    """Why a glob cannot be used; also where gitignore would pass over it in silence."""
    body = glob.removeprefix("!")
    segments = body.strip("/").split("/")
    if not body.strip("/") or "" in segments or body.startswith("//") or body.endswith("//"):
        return "an empty glob, or an empty part of one"
    if body.startswith("#"):
        return r"begins a comment; write \# (in single quotes)"
    if not body.isprintable() or body.rstrip("/") != body.rstrip("/").rstrip():
        return "ends with a space, or holds characters that names may not have"
    if "." in segments or ".." in segments:
        return "names are relative to the workspace and never hold '.' or '..' components"
    if not unicodedata.is_normalized("NFC", body):
        return "is not in Unicode form NFC and would match nothing"
    if len(glob) > MOST_CHARACTERS:
        return f"a glob of {len(glob):,} characters, of at most {MOST_CHARACTERS:,}"
    if any(_open_bracket(segment) for segment in segments):
        return r"'[' is never closed; write \[ for the character (in single quotes)"
    if _BRACKET.search(body):
        return "a bracket holds '[', '--', '&&', '||' or '~~', which mean different things to different readers"
    for spelling in map(Glob, (glob, fold_pattern(glob))):  # "[Z-a]" is a range only as long as case counts
        flaw = spelling.flaw or ("a range in brackets runs backwards" if spelling.backwards else None)
        if flaw:
            return f"is no glob, with or without regard to case: {flaw}"
    return None


def _open_bracket(segment: str) -> bool:
    """Whether a `[` in a glob has no `]`; gitignore then drops the whole glob."""
    rest = re.sub(r"\\.", "", segment)
    return "[" in re.sub(r"\[[!^]?\]?[^\]]*\]", "", rest)


def known_one(value: str, known: tuple[str, ...]) -> str | None:
    """What is wrong with a word that must be one of a few."""
    return None if value in known else f"unknown; {_suggestion(value, known)}"


def _suggestion(value: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(value, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


def _quoted(value: object) -> str:
    return f"'{escaped(value)}'" if isinstance(value, str) else repr(value)


# --- where a text says something ----------------------------------------------------------


def _document(root: tree_sitter.Node) -> Iterator[tuple[Place, int]]:
    counts: dict[Place, int] = {}
    for node in root.named_children:
        line = node.start_point.row + 1
        if node.type == "pair":
            yield from _pair((), node)
        elif node.type in ("table", "table_array_element"):
            header, *pairs = (child for child in node.named_children if child.type != "comment")
            place = _names(header)
            if node.type == "table_array_element":
                counts[place] = counts.get(place, 0) + 1
                if counts[place] == 1:
                    yield place, line
                place = (*place, counts[place])
            yield place, line
            for pair in pairs:
                yield from _pair(place, pair)


def _pair(table: Place, node: tree_sitter.Node) -> Iterator[tuple[Place, int]]:
    if node.type != "pair":
        return
    key, *_, value = node.named_children
    place = (*table, *_names(key))
    yield place, node.start_point.row + 1
    yield from _value(place, value)


def _value(place: Place, node: tree_sitter.Node) -> Iterator[tuple[Place, int]]:
    if node.type == "inline_table":
        for pair in node.named_children:
            yield from _pair(place, pair)
    elif node.type == "array":
        items = (child for child in node.named_children if child.type != "comment")
        for number, item in enumerate(items, 1):
            yield (*place, number), item.start_point.row + 1
            yield from _value((*place, number), item)


def _names(key: tree_sitter.Node) -> Place:
    """The parts of a key, without quotes and escapes."""
    if key.type == "dotted_key":
        return tuple(name for part in key.named_children for name in _names(part))
    text = (key.text or b"").decode("utf-8", "replace")
    return tuple(tomllib.loads(f"{text} = 1")) if key.type == "quoted_key" else (text,)
