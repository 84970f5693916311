"""Requests on standard input, one JSON object a line, and an answer to each on standard output, until the end.

`{"do": "add", "contents": [[digest, [[start, end, name], …], [text, …]], …]}`, `{"do": "remove", "contents": […]}` and
`{"do": "nearest", "text": …, "among": [digest, …] or null, "most": …}`, each with an `id`, which its answer has, too.
The first answer, of id 0, comes before any request and says what it has. What can't be done is answered by
`{"off": why}` where a person must act, else by `{"failed": why}`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from model_reviewer.__main__ import base_url

from semantic_index.embedders import Embedder, Failed, Unusable, embedder_of
from semantic_index.store import Store

MOST_MEMORY_BYTES = 4 << 30


def main() -> int:
    """Serve; the exit code."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    settings = parse(sys.argv[1:])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no answer

    def answer(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    try:
        embedder = embedder_of(settings, os.environ)
        store = Store(Path(settings.store), embedder.name, settings.max_chunks)
    except (Unusable, ImportError) as error:
        answer({"id": 0, "off": str(error)})
        return 1
    answer({"id": 0, "model": embedder.name, "contents": store.contents, "chunks": store.chunks})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer({"id": request["id"], **done(request, embedder, store)})
        except (Failed, sqlite3.Error) as error:
            answer({"id": request["id"], "failed": str(error)})
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="orchestrator-semantic-index", description=__doc__, allow_abbrev=False)
    parser.add_argument("--store", required=True, help="the file that keeps the vectors")
    parser.add_argument("--max-chunks", type=int, default=200_000)
    parser.add_argument("--timeout-s", type=float, default=30.0, help="of one try of a service")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--model", help="a folder with a model2vec model")
    kind.add_argument("--base-url", type=base_url, help="of an OpenAI-compatible service")
    parser.add_argument("--service-model", default="", help="as the service names it")
    parser.add_argument("--api-key-env", metavar="NAME", default="", help="the variable that holds the service's key")
    parser.set_defaults(max_retries=2)
    return parser.parse_args(argv)


def done(request: dict[str, Any], embedder: Embedder, store: Store) -> dict[str, Any]:
    """The answer to one request. Raises Failed."""
    match request["do"]:
        case "add":
            return {"left_out": _added(request["contents"], embedder, store), "chunks": store.chunks}
        case "remove":
            store.remove(request["contents"])
            return {"chunks": store.chunks}
        case _:
            among = request["among"]
            found = store.nearest(
                embedder.embed([request["text"]])[0], None if among is None else frozenset(among), request["most"]
            )
            return {"near": [[digest, *chunk, score] for digest, chunk, score in found]}


def _added(contents: list[Any], embedder: Embedder, store: Store) -> list[str]:
    """The digests for which there is no room."""
    vectors, at, left_out = embedder.embed([text for _, _, texts in contents for text in texts]), 0, []
    if store.dimensions not in (0, vectors.shape[1]):
        raise Failed(f"{embedder.name} makes vectors of {vectors.shape[1]} numbers now, before of {store.dimensions}")
    for digest, chunks, texts in contents:
        if store.has_room(len(chunks), vectors.shape[1]):
            store.add(digest, [(start, end, name) for start, end, name in chunks], vectors[at : at + len(texts)])
        else:
            left_out.append(digest)
        at += len(texts)
    return left_out


if __name__ == "__main__":
    sys.exit(main())
