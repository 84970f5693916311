"""Reads a table of a policy file into its struct; all that is wrong with it is collected.

What a value must be is said by the type of the struct's field: a Literal, a range, a list. Beyond that a field
may name a function in `extra`: `check` says what is wrong with a text, `each` what is wrong with a list's item.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta

from orchestrator.core.errors import escaped
from orchestrator.core.events.sessions import AgentClass
from orchestrator.core.globs import MOST_CHARACTERS, Glob
from orchestrator.core.paths import fold_pattern

if TYPE_CHECKING:
    import tree_sitter

T = TypeVar("T", bound=msgspec.Struct)
CLIENT = "client:"
"""Before an agent's name: the person whom its client asks."""

CLIENT_OF_ANY = f"{CLIENT}*"

Check = Callable[[str], str | None]
"""What is wrong with a text; None: nothing."""

Place = tuple[str | int, ...]
"""`("rule", 2, "paths", 1)`: counted from 1, as a person counts."""

_PLAIN: Mapping[str, str] = {
    " | null`": "`",
    "Expected `array` of length >= 1": "must hold at least one",
    "Expected": "must be",
    "`array`": "a list",
    "`object`": "a table",
    "`str`": "a text",
    "`int`": "a whole number",
    "`float`": "a number",
    "`bool`": "true or false",
    ", got": ", not",
}
"""What msgspec calls things, and what a person does."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.\-]{0,63}\Z")


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
        """The line of a key, or of the table that holds it; 1 for the text as a whole."""
        return next((line for end in range(len(place), 0, -1) if (line := self._lines.get(place[:end]))), 1)

    @cached_property
    def _lines(self) -> dict[Place, int]:
        """The lines (from 1) of the text's tables and keys; tomllib keeps no positions."""
        import tree_sitter  # a start, which finds no problems, needs no parser
        import tree_sitter_toml

        parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_toml.language()))
        return dict(_places(parser.parse(self._text.encode("utf-8", "surrogatepass")).root_node))

    def table(self, kind: type[T], table: object, *place: str | int, known: tuple[str, ...] = ()) -> T | None:
        """The struct; None where something is wrong with the table. `known`: keys that somebody else reads."""
        if not isinstance(table, dict):
            self.wrong(f"is a table: [{place[0]}]", *place)
            return None
        before = len(self.problems)
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        for key in table:
            if key not in fields and key not in known:
                meant = did_you_mean(key, (*fields, *known))
                self.wrong(f"unknown key{meant}; known: {', '.join((*fields, *known))}", *place, key)
        for name, field in fields.items():
            if name in table:
                self.value(field.type, table[name], *place, name)
            elif field.required:
                self.wrong("is missing", *place, name)
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
                self.wrong(f"must be one of {' | '.join(kinds)}", name, at, "kind")
            elif kind is not None and (item := self.table(kind, table, name, at, known=known)) is not None:
                yield at, item

    def value(self, kind: Any, value: Any, *place: str | int) -> None:
        """Note what is wrong with one value of a field's type, or with items of a list."""
        try:
            msgspec.convert(value, kind)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the second: half of a surrogate pair
            message, _, where = str(error).partition(" - at ")
            for word, plain in _PLAIN.items():
                message = message.replace(word, plain)
            item = [int(number) + 1 for number in re.findall(r"\d+", where)]
            if (item or get_origin(kind) is Literal) and (words := words_of(kind)):
                message = f"must be one of {' | '.join(words)}"
            self.wrong(f"{_quoted(value[item[0] - 1] if item else value)}: {message}", *place, *item)
            return
        for meta in get_args(kind):
            checks: Mapping[str, Check] = (meta.extra or {}) if isinstance(meta, Meta) else {}
            if "check" in checks and (problem := checks["check"](value)):
                self.wrong(f"{_quoted(value)}: {problem}", *place)
            for at, item in enumerate(value if "each" in checks else (), 1):
                if problem := checks["each"](item):
                    self.wrong(f"{_quoted(item)}: {problem}", *place, at)


def _places(root: tree_sitter.Node) -> Iterator[tuple[Place, int]]:
    """The tables of a document and the keys in them, each with its line."""
    counts: dict[Place, int] = {}
    for node in root.named_children:
        place: Place = ()
        pairs = [node]
        if node.type in ("table", "table_array_element"):
            header, *pairs = (child for child in node.named_children if child.type != "comment")
            place = _names(header)
            if node.type == "table_array_element":
                counts[place] = counts.get(place, 0) + 1
                if counts[place] == 1:
                    yield place, node.start_point.row + 1
                place = (*place, counts[place])
            yield place, node.start_point.row + 1
        for pair in pairs:
            if pair.type == "pair":
                yield (*place, *_names(pair.named_children[0])), pair.start_point.row + 1


def _names(key: tree_sitter.Node) -> Place:
    """The parts of a key, without quotes and escapes."""
    if key.type == "dotted_key":
        return tuple(name for part in key.named_children for name in _names(part))
    text = (key.text or b"").decode("utf-8", "replace")
    return tuple(tomllib.loads(f"{text} = 1")) if key.type == "quoted_key" else (text,)


def words_of(kind: Any) -> tuple[str, ...]:
    """The words of which a value of a type, or each of its items, is one."""
    parts = get_args(kind)
    return parts if get_origin(kind) is Literal else next(filter(None, map(words_of, parts)), ())


def _quoted(value: object) -> str:
    return f"'{escaped(value)}'" if isinstance(value, str) else repr(value)


# --- what a text may hold -------------------------------------------------------------


def name_problem(name: str) -> str | None:
    """What is wrong with the name of a rule or a reviewer."""
    return None if _NAME.match(name) else "a name has letters, digits, spaces, '_', '-' and '.', at most 64"


def line_problem(text: str) -> str | None:
    """What is wrong with a text for people."""
    return None if text.strip() and text.isprintable() else "is one line of text"


def agent_problem(agent: str) -> str | None:
    """What is wrong with an entry of `agents`."""
    if agent == "*":
        return None
    if agent.startswith("class:"):
        return known_one(agent[6:], get_args(AgentClass))
    if agent == CLIENT_OF_ANY:
        return None
    if not agent or "*" in agent or not agent.isprintable() or " " in agent:
        return "an agent's name (whole, no globs), class:NAME, client:NAME, client:* or *"
    return None


def argument_problem(argument: str) -> str | None:
    """What is wrong with an argument of a command."""
    return "an argument holds no NUL, and is not empty" if not argument or "\0" in argument else None


def glob_problem(glob: str) -> str | None:  # one return for each thing that gitignore passes over
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
    for spelling in map(Glob, (glob, fold_pattern(glob))):  # "[Z-a]" is a range only as long as case counts
        flaw = spelling.flaw or ("a range in brackets runs backwards" if spelling.backwards else None)
        if flaw:
            return f"is no glob, with or without regard to case: {flaw}"
    return None


Name = Annotated[str, Meta(extra={"check": name_problem})]
Agents = Annotated[tuple[str, ...], Meta(min_length=1, extra={"each": agent_problem})]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The known word that is nearest, as a question to put behind a message; none may be near."""
    return "".join(f"; did you mean {near}?" for near in get_close_matches(word, [*known], n=1))


def known_one(value: str, known: tuple[str, ...]) -> str | None:
    """What is wrong with a word that must be one of a few."""
    return None if value in known else f"must be one of {', '.join(known)}"
