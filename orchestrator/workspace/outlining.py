"""The parse worker: a process that parses what it is handed, and outlines it.

Apart from the daemon because grammars are C code that a crafted text can crash (128,000 times `- ` does
it to YAML's) or hold up for minutes, with the interpreter lock in hand. Trees stay here; outlines go out.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from contextlib import suppress
from typing import BinaryIO

import msgspec
import tree_sitter

from orchestrator.core.text.encoding import Document, decode
from orchestrator.core.text.outline.parsed import parsed_outline
from orchestrator.core.text.outline.plain import plain_outline
from orchestrator.core.text.symbols import Outline
from orchestrator.logs import start_logging
from orchestrator.workspace.grammars import Grammar, Grammars

CHUNK_BYTES = 64 * 1024
"""What the parser is handed at a time: only a source that is called can be stopped (DESIGN §12)."""

MOST_MEMORY = 1 << 30
"""Of the worker's address space. One that would take more ends, and another takes its place."""

LENGTH_BYTES = 4

TAKEN = b"\x01"
"""Said of each job before it is begun: a worker that dies without having said so did not die of it."""


class Job(msgspec.Struct, frozen=True, array_like=True):
    """A text to outline. When `limit_s` is over the process ends, wherever it is."""

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


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Answer jobs, each with its length before it, until there are no more."""
    grammars = Grammars()
    while len(head := jobs.read(LENGTH_BYTES)) == LENGTH_BYTES:
        job = msgspec.msgpack.decode(jobs.read(int.from_bytes(head)), type=Job)
        answers.write(TAKEN)
        answers.flush()
        signal.setitimer(signal.ITIMER_REAL, job.limit_s)  # whose signal ends the process, also inside C code
        answer = msgspec.msgpack.encode(outlined(grammars, job))
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(len(answer).to_bytes(LENGTH_BYTES) + answer)
        answers.flush()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed goes to the daemon's log, not among the answers
    start_logging()
    with suppress(BrokenPipeError):  # the daemon was killed; nobody wants the answer
        serve(sys.stdin.buffer, answers)
    os._exit(0)  # what is left in the buffers is nobody's
