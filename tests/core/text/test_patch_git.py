"""Git's own diffs of sources in which much stands twice: they land, whatever heading git gives them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from orchestrator.core.text.edits import splice
from orchestrator.core.text.encoding import Document, decode
from orchestrator.core.text.forms.rows import Rows
from orchestrator.core.text.forms.unified import parse_rows
from orchestrator.core.text.patch import locate_patch

Source = Callable[[Random], list[str]]

FILES = 120
NAMES = ["load", "save", "clear", "find"]


def python(r: Random) -> list[str]:
    """Classes with methods of the same names and much the same bodies."""
    lines = ["import os", "", ""]
    for _ in range(r.randint(1, 3)):
        lines.append(f"class {r.choice(['Cart', 'Shop', 'Store'])}:")
        for _ in range(r.randint(1, 5)):
            lines.append(
                f"    def {r.choice(NAMES)}(self, {', '.join(['item', 'count', 'x' * 60][: r.randint(1, 3)])}):"
            )
            lines += r.choices(
                ["        self.items = []", "        self.total = 0", "        return self", ""], k=r.randint(1, 6)
            )
        lines += ["", "", "VALUE = 1"][: r.randint(1, 3)]
    return lines


def go(r: Random) -> list[str]:
    """Functions that do much the same."""
    lines = ["package main", ""]
    for _ in range(r.randint(2, 6)):
        lines.append(f"func {r.choice(NAMES)}(item *Item) error {{")
        for _ in range(r.randint(1, 2)):
            lines += ["\tif err := run(); err != nil {", "\t\treturn err", "\t}"]
        lines += ["\treturn nil", "}", ""]
    return lines


def repeated(r: Random) -> list[str]:
    """Hardly anything but repetitions, a few of them at the margin, where git takes them for headings."""
    return r.choices(["a", "  a", "b", "", "}", "  return x", "name = 1"], k=r.randint(1, 60))


def changed(r: Random, lines: list[str]) -> list[str]:
    out = list(lines)
    for _ in range(r.randint(1, 4)):
        at, length = r.randint(0, len(out)), r.randint(1, 3)
        match r.choice(["insert", "remove", "replace", "copy"]):
            case "insert":
                out[at:at] = r.choices(["        self.total = 0", "    pass", "new", ""], k=length)
            case "remove":
                del out[at : at + length]
            case "replace":
                out[at : at + length] = [f"{line} # new" for line in out[at : at + length]]
            case _:
                to = r.randint(0, len(out))
                out[to:to] = out[at : at + length]
    return out


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitattributes").write_text("*.py diff=python\n*.go diff=golang\n")
    return tmp_path


def git(root: Path, *arguments: str) -> str:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *arguments], cwd=root, env=environment, check=True, capture_output=True)
    return done.stdout.decode()


def pairs(r: Random, source: Source, suffix: str) -> Iterator[tuple[str, str, str]]:
    for at in range(FILES):
        before = source(r)
        yield f"f{at}{suffix}", text(r, before), text(r, changed(r, before))


def text(r: Random, lines: list[str]) -> str:
    """Some end without a newline."""
    joined = "".join(f"{line}\n" for line in lines)
    return joined.removesuffix("\n") if r.random() < 0.1 else joined


@pytest.mark.parametrize("context", [1, 2, 3, 8])
@pytest.mark.parametrize(("source", "suffix"), [
    pytest.param(python, ".py", id="python, by its own headings"),
    pytest.param(python, ".txt", id="python, by lines at the margin"),
    pytest.param(go, ".go", id="go, by its own headings"),
    pytest.param(repeated, ".txt", id="repetitions"),
])  # fmt: skip
def test_they_apply(repository: Path, source: Source, suffix: str, context: int) -> None:
    r = Random(f"{suffix}{context}")
    files = list(pairs(r, source, suffix))
    for name, before, _ in files:
        (repository / name).write_text(before)
    git(repository, "add", "-A")
    for name, _, after in files:
        (repository / name).write_text(after)
    texts = {name: (before, after) for name, before, after in files}
    patches = parse_rows(Rows(git(repository, "diff", f"-U{context}", "--no-renames")))
    assert len(patches) > FILES // 2
    assert sum(bool(hunk.anchors) for patch in patches for hunk in patch.hunks) > FILES // 4
    for patch in patches:
        before, after = texts[patch.old_path or patch.new_path or ""]
        old = document(before)
        assert splice(old, locate_patch(patch, old).edits) == document(after), patch


def document(text: str) -> Document:
    decoded = decode(text.encode())
    assert decoded is not None
    return decoded
