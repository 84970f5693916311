"""Diffs of large contents, carried out by git's own patching."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.core.content import LargeContent, digest_of
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.encoding import Document, decode
from orchestrator.core.text.unified_diff import line_hunks
from orchestrator.engine.changes.large_diffs import large_diff

PATH = WorkspacePath("app.log")
OLD = "".join(f"line {number}\n" for number in range(1, 101))


def document(text: str) -> Document:
    found = decode(text.encode())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(OLD, OLD.replace("line 50\n", "fifty\n"), id="in the middle"),
        pytest.param(OLD, OLD.replace("line 50\n", "fifty\n").replace("line 55\n", ""), id="two that meet"),
        pytest.param(OLD, OLD.replace("line 1\n", "one\nand more\n").replace("line 90\n", "x\n"), id="far apart"),
        pytest.param(OLD, OLD + "the end", id="at the end, without its newline"),
        pytest.param(OLD.removesuffix("\n"), OLD.replace("line 100\n", "last\n"), id="a last line without newline"),
    ],
)
def test_git_makes_the_new_content_of_it(tmp_path: Path, old: str, new: str) -> None:
    contents = {digest_of(text.encode()): text.encode() for text in (old, new)}

    def blocks(content: LargeContent) -> Iterator[bytes]:
        yield contents[content.digest]

    before, after = (LargeContent(digest, len(data)) for digest, data in contents.items())
    body = large_diff(PATH, blocks, before, after, line_hunks(document(old), document(new)))
    (tmp_path / PATH).write_text(old)
    patch = f"--- a/{PATH}\n+++ b/{PATH}\n{body}"
    subprocess.run(("git", "apply", "-"), input=patch.encode(), cwd=tmp_path, check=True)
    assert (tmp_path / PATH).read_text() == new
