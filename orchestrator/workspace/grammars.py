"""Tree-sitter grammars, each loaded from its wheel on first use."""

from __future__ import annotations

import importlib
from importlib import resources
from typing import Final

import msgspec
import tree_sitter

from orchestrator.logs import logger


class Grammar(msgspec.Struct, frozen=True):
    """A language, and the query that finds its definitions."""

    name: str
    language: tree_sitter.Language
    query: tree_sitter.Query


class _Wheel(msgspec.Struct, frozen=True):
    """Where a grammar comes from. `tags`: the wheels whose tags.scm fit it; `own`: our queries beside them."""

    module: str
    tags: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    function: str = "language"


def _wheel(name: str, *, tagged: bool = True) -> _Wheel:
    module = f"tree_sitter_{name.replace('-', '_')}"
    return _Wheel(module, (module,) if tagged else (), (name,))


_JAVASCRIPT = "tree_sitter_javascript"
_TYPESCRIPT = _Wheel(
    "tree_sitter_typescript",
    (_JAVASCRIPT, "tree_sitter_typescript"),
    ("javascript", "typescript"),
    "language_typescript",
)

WHEELS: Final = {
    **{name: _wheel(name) for name in "python javascript go rust java c cpp ruby".split()},
    **{name: _wheel(name, tagged=False) for name in "c-sharp bash json yaml toml html css markdown".split()},
    "typescript": _TYPESCRIPT,
    "tsx": msgspec.structs.replace(_TYPESCRIPT, function="language_tsx"),
    "php": msgspec.structs.replace(_wheel("php"), function="language_php"),
}
"""By the names of `core.text.outline.languages`."""


class Grammars:
    """Loads each grammar once."""

    def __init__(self) -> None:
        self._loaded: dict[str, Grammar | None] = {}

    def load(self, name: str) -> Grammar | None:
        """The grammar; None, once with a line in the log, where its wheel is missing or does not fit."""
        if name not in self._loaded:
            try:
                self._loaded[name] = _loaded(name, WHEELS[name])
            except (ImportError, AttributeError, ValueError, OSError) as error:
                logger("grammars").warning("texts are outlined without their grammar", language=name, error=str(error))
                self._loaded[name] = None
        return self._loaded[name]


def _loaded(name: str, wheel: _Wheel) -> Grammar:
    language = tree_sitter.Language(getattr(importlib.import_module(wheel.module), wheel.function)())
    source = "\n".join([*map(_tags, wheel.tags), *map(_own, wheel.own)])
    query = tree_sitter.Query(language, source)
    _spare(query, source.encode())
    return Grammar(name, language, query)


def _tags(module: str) -> str:
    return str(importlib.import_module(module).TAGS_QUERY)


def _own(name: str) -> str:
    return resources.files("orchestrator.workspace").joinpath("queries", f"{name}.scm").read_text(encoding="utf-8")


def _spare(query: tree_sitter.Query, source: bytes) -> None:
    """Switch off what an outline has no use for: the uses of names, and definitions with their comments.

    `(comment)* @doc . (function …)` takes minutes for 85,000 comments in a row; our own queries have those
    definitions without, and what stands above one is found by its line.
    """
    for pattern in range(query.pattern_count):
        text = source[query.start_byte_for_pattern(pattern) : query.end_byte_for_pattern(pattern)]
        wanted = b"@definition." in text or b"@above" in text
        if not wanted or b"(comment)*" in text:
            query.disable_pattern(pattern)
