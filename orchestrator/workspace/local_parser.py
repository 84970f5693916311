"""Outlines by content: by tree-sitter grammars, each loaded from its wheel on first use, in a worker process."""

from __future__ import annotations

import importlib
import time
from functools import cache, partial
from importlib import resources
from itertools import count
from typing import Final

import msgspec
import tree_sitter
from anyio import to_thread

from orchestrator.core.bounded_cache import BoundedCache
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.text.encoding import Document, decode
from orchestrator.core.text.outline import compiles, parsed_outline, plain_outline
from orchestrator.core.text.references import UNHELD, References, Sought, references
from orchestrator.core.text.symbols import Outline, language_of
from orchestrator.logs import logger
from orchestrator.ports.machine import Workers

LIMIT_S = 4.0
"""Of processor time, for one text. 20,000 lines of Python take 0.4 s."""

MOST_PARSED_BYTES = 8 * 1024 * 1024
"""Larger texts are outlined by indentation and headings: a tree takes twenty times its text."""

CACHE_BYTES = 16 * 1024 * 1024
"""Of outlines as the worker wrote them; in memory they take about four times as much."""

COMPILED = "python"
"""Compiling such a text takes as long as outlining it, so that is done for decisions alone."""

OFF_LOOP_BYTES = 64 * 1024
"""Larger texts are outlined without a grammar in a thread."""


class LocalParser:
    """Outlines texts in worker processes, and remembers the outlines."""

    def __init__(self, workers: Workers, *, limit_s: float = LIMIT_S, cache_bytes: int = CACHE_BYTES) -> None:
        self._workers, self._limit_s = workers, limit_s
        self.outlines: BoundedCache[tuple[str, Digest, bool], tuple[Outline | None]] = BoundedCache(cache_bytes)
        self._log = logger("parser")

    async def outline(
        self, path: WorkspacePath, digest: Digest, data: bytes, *, compiled: bool = False
    ) -> Outline | None:
        """See `ports.Parser`."""
        language = language_of(path)
        if language is None or len(data) > MOST_PARSED_BYTES:
            return await _plain(data)
        compiled = compiled and language == COMPILED
        keys = [(language, digest, made) for made in (True, False) if made or not compiled]
        for key in keys:
            if (known := self.outlines.get(key)) is not None:
                return known[0]
        found, size = await self._made(language, data, compiled=compiled)
        if keys[-1] not in self.outlines:  # somebody else may have asked for the same meanwhile
            self.outlines.put((language, digest, compiled), (found,), size)
        return found

    async def references(self, path: WorkspacePath, data: bytes, sought: Sought) -> References | None:
        """See `ports.Parser`."""
        language = language_of(path)
        if language is None or len(data) > MOST_PARSED_BYTES:
            return None
        work = partial(references_in, language, data, sought, self._limit_s)
        try:
            return await self._workers.run(work, limit_s=self._limit_s)
        except Exception as error:  # noqa: BLE001  # as for an outline
            self._log.warning("a text is searched without its grammar", language=language, error=repr(error))
            return None

    async def _made(self, language: str, data: bytes, *, compiled: bool) -> tuple[Outline | None, int]:
        """The outline and its size."""
        work = partial(encoded_outline, language, data, self._limit_s, compiled=compiled)
        try:
            answer = await self._workers.run(work, limit_s=self._limit_s)
        except Exception as error:  # noqa: BLE001  # whatever a grammar's defect is: the text can be outlined without
            self._log.warning("a text is outlined without its grammar", language=language, error=repr(error))
            return await _plain(data), len(data) // 8
        return msgspec.msgpack.decode(answer, type=Outline | None), len(answer)


async def _plain(data: bytes) -> Outline | None:
    work = partial(outlined, None, data)
    return await to_thread.run_sync(work) if len(data) > OFF_LOOP_BYTES else work()


CHUNK_BYTES = 64 * 1024
"""What the parser is given at a time: only a source that is called can be stopped."""

CALLS_PER_LOOK = 64
"""The parser calls back some 25 times for each KB; asking for the time each time takes a seventh of a parse."""


class Grammar(msgspec.Struct, frozen=True):
    """A language, the query that finds its definitions, and the one that finds its scopes, where that is written."""

    name: str
    language: tree_sitter.Language
    query: tree_sitter.Query
    scopes: tree_sitter.Query | None = None


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
    **{name: _wheel(name, tagged=False) for name in "kotlin swift lua scala sql".split()},
    "typescript": _TYPESCRIPT,
    "tsx": msgspec.structs.replace(_TYPESCRIPT, function="language_tsx"),
    "php": msgspec.structs.replace(_wheel("php"), function="language_php"),
}
"""By the names of `core.text.symbols`."""


@cache
def load(name: str) -> Grammar | None:
    """The grammar; None, with a line in the log, where its wheel is missing or does not fit."""
    try:
        return _loaded(name, WHEELS[name])
    except (ImportError, AttributeError, ValueError, OSError) as error:
        logger("grammars").warning("texts are outlined without their grammar", language=name, error=str(error))
        return None


def outlined(language: str | None, data: bytes, limit_s: float = LIMIT_S) -> Outline | None:
    """The outline of a file's bytes; None where they are no text.

    Without a grammar, or when parsing takes over half of the time: by indentation and headings.
    """
    document = decode(data)
    if document is None:
        return None
    grammar = load(language) if language is not None else None
    parsed = _parsed(grammar, document, limit_s / 2) if grammar is not None else None
    return parsed if parsed is not None else plain_outline(document.lines)


def encoded_outline(language: str, data: bytes, limit_s: float, *, compiled: bool) -> bytes:
    """As `outlined`, in MessagePack; `compiled`: with whether the interpreter takes it."""
    found = outlined(language, data, limit_s)
    if compiled and found is not None and found.parsed:
        document = decode(data)
        taken = compiles(document.text.encode("utf-8", "replace")) if document is not None else None
        found = msgspec.structs.replace(found, compiles=taken)
    return msgspec.msgpack.encode(found)


def references_in(language: str, data: bytes, sought: Sought, limit_s: float = LIMIT_S) -> References | None:
    """Where a name is used in a file's bytes; None without a grammar, or where parsing takes over half of the time."""
    document, grammar = decode(data), load(language)
    if document is None or grammar is None:
        return None
    text = document.text.encode("utf-8", "replace")
    tree = _tree(grammar, text, limit_s / 2)
    if tree is None:
        return None
    outlined = tree_sitter.QueryCursor(grammar.query).matches(tree.root_node)
    scoped = tree_sitter.QueryCursor(grammar.scopes).matches(tree.root_node) if grammar.scopes is not None else None
    found = references(language, tree.root_node, outlined, scoped, text, sought)
    return References(tuple(found), scoped is not None and not (sought.held and language in UNHELD))


def _parsed(grammar: Grammar, document: Document, limit_s: float) -> Outline | None:
    data = document.text.encode("utf-8", "replace")
    tree = _tree(grammar, data, limit_s)
    if tree is None:
        return None
    # Without a progress callback: with one, the second query of a process crashes (tree-sitter 0.26).
    matches = tree_sitter.QueryCursor(grammar.query).matches(tree.root_node)
    return parsed_outline(grammar.name, tree.root_node, matches, data)


def _tree(grammar: Grammar, data: bytes, limit_s: float) -> tree_sitter.Tree | None:
    """The tree of a text in UTF-8; None where that takes too long."""
    until, asked = time.process_time() + limit_s, count(1)
    try:
        return tree_sitter.Parser(grammar.language).parse(
            lambda at, _: data[at : at + CHUNK_BYTES],
            encoding="utf8",
            progress_callback=lambda at, error: not next(asked) % CALLS_PER_LOOK and time.process_time() > until,
        )
    except ValueError:  # "Parsing failed": stopped by the callback
        return None


def _loaded(name: str, wheel: _Wheel) -> Grammar:
    language = tree_sitter.Language(getattr(importlib.import_module(wheel.module), wheel.function)())
    own = resources.files("orchestrator.workspace").joinpath("queries")
    source = "\n".join(
        [
            *(str(importlib.import_module(module).TAGS_QUERY) for module in wheel.tags),
            *(own.joinpath(f"{name}.scm").read_text(encoding="utf-8") for name in wheel.own),
        ]
    )
    query = tree_sitter.Query(language, source)
    _spare(query, source.encode())
    scopes = own.joinpath("scopes", f"{'typescript' if name == 'tsx' else name}.scm")
    scoped = tree_sitter.Query(language, scopes.read_text(encoding="utf-8")) if scopes.is_file() else None
    return Grammar(name, language, query, scoped)


def _spare(query: tree_sitter.Query, source: bytes) -> None:
    """Switch off what an outline has no use for: the uses of names, and definitions with their comments.

    `(comment)* @doc . (function …)` takes minutes for 85,000 comments in a row; our own queries have those
    definitions without, and what is above one is found by its line.
    """
    for pattern in range(query.pattern_count):
        text = source[query.start_byte_for_pattern(pattern) : query.end_byte_for_pattern(pattern)]
        wanted = b"@definition." in text or b"@above" in text or b"@import" in text
        if not wanted or b"(comment)*" in text:
            query.disable_pattern(pattern)
