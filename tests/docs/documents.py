"""The documents as data: code blocks, generated parts, links, and what the program says of itself."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orchestrator
from orchestrator.core.errors import InternalError, OrchestratorError
from orchestrator.core.events.codec import EVENTS
from tests.docs.clients import clients, container_clients
from tests.docs.reference import tables

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "LLM_FILE_ACCESS.md"
OPERATIONS, EVENT_KINDS, ERRORS = (
    ROOT / "docs" / "reference" / f"{name}.md" for name in ("operations", "events", "errors")
)
CONNECTING = ROOT / "docs" / "connecting.md"
DEPLOY = ROOT / "deploy" / "README.md"
REFERENCE = (GUIDE, OPERATIONS, EVENT_KINDS, ERRORS)
README = ROOT / "README.md"
DOCUMENTS = (README, GUIDE, *sorted((ROOT / "docs").rglob("*.md")), ROOT / "policies" / "README.md", DEPLOY)
HOLDERS = {
    "toolsets": GUIDE,
    "operations": OPERATIONS,
    "parameters": OPERATIONS,
    "people": OPERATIONS,
    "errors": ERRORS,
    "events": EVENT_KINDS,
    "outcomes": EVENT_KINDS,
    "clients": CONNECTING,
    "container clients": DEPLOY,
}
"""The document that each generated part stands in."""


_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: what stands after the fence, its text, and where it begins (1-based line)."""

    info: str
    text: str
    line: int


def blocks(text: str, *infos: str) -> list[Block]:
    """The fenced blocks of a document whose info string begins with one of `infos`."""
    found = []
    for match in _FENCE.finditer(text):
        info = match["info"].strip()
        if info.startswith(infos):
            found.append(Block(info, match["text"], text.count("\n", 0, match.start()) + 1))
    return found


def part(text: str, name: str) -> str:
    """What stands between `<!-- begin: name -->` and `<!-- end: name -->`. Raises ValueError where there is none."""
    begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
    start = text.index(begin) + len(begin)
    return text[start : text.index(end, start)]


def with_part(text: str, name: str, content: str) -> str:
    """The document with another content between the markers."""
    old = part(text, name)
    begin = f"<!-- begin: {name} -->\n"
    return text.replace(begin + old, begin + content, 1)


def generated() -> dict[str, str]:
    """What the documents must hold between their markers."""
    parts = {**tables(errors=errors(), events=EVENTS), "clients": clients(), "container clients": container_clients()}
    return {name: f"\n{text}\n" for name, text in parts.items()}


def errors() -> list[type[OrchestratorError]]:
    """Every error class with a code of its own, wherever it is defined."""
    for module in pkgutil.walk_packages(orchestrator.__path__, "orchestrator."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    return [error for error in _below(OrchestratorError) if "code" in vars(error) or error is InternalError]


def _below(kind: type[OrchestratorError]) -> Iterator[type[OrchestratorError]]:
    for error in kind.__subclasses__():
        if error.__module__.startswith("orchestrator."):
            yield error
            yield from _below(error)
