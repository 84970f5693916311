"""A tiny model2vec folder whose words lie near their synonyms, and the same as a service on loopback."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

MEANINGS = (
    "password credential secret login signin authenticate",
    "retry backoff attempt again resend",
    "invoice bill payment price total",
    "colour color paint red green",
)
"""Words of one line are synonyms."""

WORDS = [(word, at) for at, line in enumerate(MEANINGS) for word in line.split()]


def meaning(text: str) -> list[float]:
    """How often words of each meaning are in a text."""
    found = re.findall(r"[a-z]+", text.lower())
    return [float(sum(known == word and of == at for word in found for known, of in WORDS)) for at in range(4)]


def model_folder(folder: Path) -> str:
    """A folder that model2vec loads: a word is a token, and its vector is that of its meaning."""
    numpy: Any = importlib.import_module("numpy")
    tokenizers: Any = importlib.import_module("tokenizers")
    save_file = importlib.import_module("safetensors.numpy").save_file
    folder.mkdir()
    vocabulary = {"[UNK]": 0, **{word: number for number, (word, _) in enumerate(WORDS, 1)}}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("[^a-z]+"), "removed")
    tokenizer.save(str(folder / "tokenizer.json"))
    rows = [[0.0] * 4, *([float(of == at) for at in range(4)] for _, of in WORDS)]
    save_file({"embeddings": numpy.asarray(rows, dtype="float32")}, str(folder / "model.safetensors"))
    (folder / "config.json").write_text(json.dumps({"normalize": True, "max_length": 512}))
    return str(folder)


class EmbeddingService:
    """What it was asked, and how it answers: `broken` is a status in place of vectors.

    It answers while `goes_on` is set.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.keys: set[str] = set()
        self.broken = 0
        self.port = 0
        self.arrived, self.goes_on = Event(), Event()
        self.goes_on.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def answer(self, path: str, key: str, texts: Sequence[str]) -> tuple[int, dict[str, Any]]:
        """The status and the body."""
        assert path == "/v1/embeddings"
        self.keys.add(key)
        if self.broken:
            return self.broken, {"error": {"message": f"no vectors for {key}"}}
        self.texts += texts
        rows = [{"object": "embedding", "index": at, "embedding": meaning(text)} for at, text in enumerate(texts)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return 200, {"object": "list", "data": rows, "model": "tiny", "usage": usage}


@contextmanager
def embedding_service() -> Iterator[EmbeddingService]:
    """A real HTTP server."""
    service = EmbeddingService()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            service.arrived.set()
            service.goes_on.wait(60)
            status, body = service.answer(self.path, self.headers.get("Authorization", ""), asked["input"])
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service.port = server.server_address[1]
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()
