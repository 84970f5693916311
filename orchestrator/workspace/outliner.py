"""Parses and outlines a text; runs in a worker process."""

from __future__ import annotations

import time

import msgspec
import tree_sitter

from orchestrator.core.text.encoding import Document, decode
from orchestrator.core.text.outline.parsed import parsed_outline
from orchestrator.core.text.outline.plain import plain_outline
from orchestrator.core.text.symbols import Outline
from orchestrator.workspace.grammars import Grammar, Grammars

CHUNK_BYTES = 64 * 1024
"""What the parser is handed at a time: only a source that is called can be stopped (DESIGN §12)."""


class Job(msgspec.Struct, frozen=True, array_like=True):
    """A text to outline within `limit_s`."""

    language: str
    data: bytes
    limit_s: float


def outlined(grammars: Grammars, job: Job) -> Outline | None:
    """The outline of a file's bytes; None where they are no text.

    Without a grammar, or when parsing takes over half of the time: by indentation and headings.
    """
    document = decode(job.data)
    if document is None:
        return None
    grammar = grammars.load(job.language)
    parsed = _parsed(grammar, document, job.limit_s / 2) if grammar is not None else None
    return parsed if parsed is not None else plain_outline(document.lines)


def _parsed(grammar: Grammar, document: Document, limit_s: float) -> Outline | None:
    data = document.text.encode("utf-8", "replace")
    until = time.monotonic() + limit_s
    try:
        tree = tree_sitter.Parser(grammar.language).parse(
            lambda at, _: data[at : at + CHUNK_BYTES],
            encoding="utf8",
            progress_callback=lambda at, error: time.monotonic() > until,
        )
    except ValueError:  # "Parsing failed": stopped by the callback
        return None
    # Without a progress callback: with one, the second query of a process crashes (tree-sitter 0.26).
    matches = tree_sitter.QueryCursor(grammar.query).matches(tree.root_node)
    return parsed_outline(grammar.name, tree.root_node, matches, data)
