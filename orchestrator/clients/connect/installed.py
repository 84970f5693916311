"""Which versions of a client are installed: by its package's description, so that no client is started."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from orchestrator.clients.connect.templates import Template

LEVELS = 4
"""So many folders above a program its package may begin."""


class Installed(NamedTuple):
    """A program on the PATH; the version is empty where nothing tells it."""

    path: str
    version: str


def installed(program: str) -> tuple[Installed, ...]:
    """Each one that the PATH leads to; the first is the one that is started."""
    found: dict[str, Installed] = {}
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = Path(folder or ".") / program
        if path.is_file() and os.access(path, os.X_OK):
            real = path.resolve()
            found.setdefault(str(real), Installed(str(path), _version(real)))
    return tuple(found.values())


def remarks(template: Template) -> Iterator[str]:
    """What a person should know of the versions that are there."""
    found = installed(template.program)
    if not found:
        yield f"{template.program} is not on the PATH"
        return
    first = found[0]
    if len(found) > 1:
        others = ", ".join(f"{each.path} ({each.version or 'version not known'})" for each in found[1:])
        yield f"{template.program} is installed more than once; {first.path} is the one that is started, not {others}"
    if template.tried and first.version and first.version != template.tried:
        yield f"{first.path} is {first.version}; these settings were tried out with {template.tried}"


def _version(program: Path) -> str:
    for folder in [*program.parents][:LEVELS]:
        try:
            found = json.loads((folder / "package.json").read_bytes())
        except (OSError, ValueError):
            continue
        version = found.get("version") if isinstance(found, dict) else None
        if isinstance(version, str):
            return version
    return ""
