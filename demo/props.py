"""What the story is played with: a file of the repository that has room for it, and places in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from demo.agents import Agent
from demo.stage import NEVER_COPIED, DemoFailed

OWN_FILE = "orchestrator-demo.md"
SUFFIXES = (".md", ".py", ".rst", ".txt", ".go", ".rs", ".ts", ".js", ".c", ".h", ".java")
MOST_BYTES = 24_000
MOST_TRIED = 12
PLACES = 5
APART = 6
"""Lines between two places, so that edits at both never touch each other's context."""


class Shared(NamedTuple):
    """A file that both agents work on, and five lines that each stand in it exactly once, top to bottom."""

    path: str
    places: tuple[str, ...]
    own: bool


def shared_file(root: Path, agent: Agent) -> Shared:
    """A file of the repository that agents may change; one of our own where none has room."""
    tried = 0
    for path in _candidates(root):
        places = _places(path, root)
        if not places:
            continue
        change = {"search": places[0], "replace": places[0] + "!"}
        agent.ask("edit_file", path=path, changes=[change], preview=True)
        would = agent.answer()
        if not would.refused and would.json.get("would_be") == "applied":
            return Shared(path, places, own=False)
        tried += 1
        if tried == MOST_TRIED:
            break
    text = "# Two agents and a person\n\n" + "".join(f"Paragraph {n} of the story.\n\n" for n in range(1, 31))
    agent.call("write_file", path=OWN_FILE, content=text, mode="create")
    places = _places(OWN_FILE, root)
    if not places:
        raise DemoFailed(f"{OWN_FILE} is not as it was written")
    return Shared(OWN_FILE, places, own=True)


def _candidates(root: Path) -> list[str]:
    found: list[tuple[int, str]] = []
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if name not in NEVER_COPIED]
        for name in names:
            path = Path(folder, name)
            if path.suffix in SUFFIXES and not path.is_symlink() and path.stat().st_size <= MOST_BYTES:
                found.append((SUFFIXES.index(path.suffix), str(path.relative_to(root))))
    return [path for _, path in sorted(found, key=lambda item: (item[0], item[1].count("/"), item[1]))]


def _places(path: str, root: Path) -> tuple[str, ...]:
    """Five lines far enough apart, first to last; empty where the file has no room."""
    try:
        text = (root / path).read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError):
        return ()
    lines = text.split("\n")
    fit: list[int] = []
    for number, line in enumerate(lines):
        apart = not fit or number - fit[-1] >= APART
        if apart and line.strip() and line.isprintable() and len(line) < 100 and text.count(line) == 1:
            fit.append(number)
    return tuple(lines[n] for n in fit[:PLACES]) if len(fit) >= PLACES else ()
