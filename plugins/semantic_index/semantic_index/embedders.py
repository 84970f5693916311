"""Texts to vectors: by a model2vec model in a folder, with no network at all, or by an OpenAI-compatible service."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from model_reviewer import services
from model_reviewer.api_key import ApiKeyMasker

TEXTS_PER_REQUEST = 32

MODEL_FILES = ("config.json", "model.safetensors", "tokenizer.json")
"""Without one of these model2vec would look for the model in the network."""


class Unusable(Exception):
    """It is not installed or not set up as it must be; a person must act."""


class Failed(Exception):
    """No vectors this time."""


class Embedder(Protocol):
    """Makes vectors; those of another `name` can't be compared with its own."""

    name: str

    def embed(self, texts: Sequence[str]) -> Any:
        """One row of a numpy array for each text. Raises Failed."""


def embedder_of(settings: argparse.Namespace, environment: Mapping[str, str]) -> Embedder:
    """As the command line says. Raises Unusable."""
    if settings.model:
        return FolderEmbedder(settings.model)
    return ServiceEmbedder(settings, environment)


class FolderEmbedder:
    """A static model; a text's vector is the mean of those of its tokens."""

    def __init__(self, folder: str) -> None:
        if missing := [name for name in MODEL_FILES if not Path(folder, name).is_file()]:
            raise Unusable(f"{folder} holds no model2vec model: {', '.join(missing)} missing")
        os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        try:
            model2vec: Any = importlib.import_module("model2vec")
            sys.addaudithook(_refuse_network)
            self._model = model2vec.StaticModel.from_pretrained(folder, force_download=False)
        except ImportError as error:
            hint = "pip install 'workspace-orchestrator[semantic]'"
            raise Unusable(f"{error.name or error} is not installed: {hint}") from error
        except Exception as error:  # whatever is wrong with the files of a model
            raise Unusable(f"the model in {folder} can't be loaded: {error!r:.300}") from error
        digest = hashlib.sha256()
        for name in MODEL_FILES:
            digest.update(hashlib.sha256(Path(folder, name).read_bytes()).digest())
        self.name = f"model2vec {Path(folder).name} {digest.hexdigest()[:16]}"

    def embed(self, texts: Sequence[str]) -> Any:
        return self._model.encode(list(texts), use_multiprocessing=False, show_progress_bar=False)


def _refuse_network(event: str, arguments: tuple[object, ...]) -> None:
    """Holds until the process ends."""
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.bind"):
        raise PermissionError(f"{event}: a model in a folder needs no network")


class ServiceEmbedder:
    """`POST {base_url}/embeddings`, by the client that the model reviewer has."""

    def __init__(self, settings: argparse.Namespace, environment: Mapping[str, str]) -> None:
        self._settings, self.name = settings, f"{settings.service_model} of {settings.base_url}"
        key = environment.get(settings.api_key_env, "").strip() if settings.api_key_env else ""
        if settings.api_key_env and not key:
            raise Unusable(f"{settings.api_key_env} is not set: start the daemon where it is")
        self._mask = ApiKeyMasker(key).mask
        try:
            self._sdk: Any = importlib.import_module("openai")
            self._numpy: Any = importlib.import_module("numpy")
        except ImportError as error:
            hint = "pip install 'workspace-orchestrator[semantic,reviewers]'"
            raise Unusable(f"{error.name or error} is not installed: {hint}") from error
        self._headers = {} if key else {"Authorization": self._sdk.Omit()}
        self._client = self._sdk.OpenAI(**services.client_options(settings, key))

    def embed(self, texts: Sequence[str]) -> Any:
        parts = [texts[at : at + TEXTS_PER_REQUEST] for at in range(0, len(texts), TEXTS_PER_REQUEST)]
        try:
            return self._numpy.concatenate([self._part(part) for part in parts])
        except services.Failure as failure:
            raise Failed(self._mask(str(failure))[:500]) from failure
        except ValueError as error:
            raise Failed(f"{self._settings.base_url} answered vectors of several lengths") from error

    def _part(self, texts: Sequence[str]) -> Any:
        """Raises Failure, and ValueError where the vectors are of several lengths."""

        def ask() -> Any:
            answer = self._client.embeddings.create(
                model=self._settings.service_model,
                input=list(texts),
                encoding_format="float",
                extra_headers=self._headers,
            )
            return {item.index: item.embedding for item in answer.data}

        found = services.asked(self._sdk, self._settings, ask)
        if sorted(found) != list(range(len(texts))):
            raise services.Failure("reply_invalid", f"{self._settings.base_url} answered with other rows than asked")
        vectors = self._numpy.asarray([found[at] for at in range(len(texts))], dtype="float32")
        if vectors.ndim != 2 or not vectors.shape[1] or not self._numpy.isfinite(vectors).all():
            raise services.Failure("reply_invalid", f"{self._settings.base_url} answered no vectors")
        return vectors
